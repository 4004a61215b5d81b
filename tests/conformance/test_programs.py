"""Programs in transcripts: which there may be, what the bare machine makes of them, and that errors are seen."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark, Dropped, Pane
from penstock.machines.reference_engine import ReferenceEngine, play
from penstock.relations import joins, validity
from penstock.relations.joins import JoinRows
from penstock.transforms.core import DoFn, GroupByKey, Map, ParDo
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import (
    CombiningValueStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock.utils.timestamp import Duration
from penstock.windows.windowing import Windowing
from penstock_conformance import bare
from penstock_conformance.malformed import Malformed
from penstock_conformance.outcomes import Status
from penstock_conformance.own_programs import Shown, Sides
from penstock_conformance.parsing import load, parse
from penstock_conformance.playing import outcomes_of
from penstock_conformance.programs import program_of
from penstock_conformance.scenario import MODES
from penstock_conformance.walking import ProgramMachine

SECOND = 1_000_000
GLOBAL = Windowing(GlobalWindows())


class Counted(DoFn):
    """Tells the number of elements of a key and window at a time of the clock, and when the window ends."""

    COUNT = CombiningValueStateSpec("count", sum)
    SOON = TimerSpec("soon", TimeDomain.REAL_TIME)

    def process(self, element, by, count=DoFn.StateParam(COUNT), soon=DoFn.TimerParam(SOON)):
        count.add(by)
        soon.set(100, dynamic_timer_tag="tag")

    @on_timer(SOON)
    def tell(self, key=DoFn.KeyParam, tag=DoFn.DynamicTimerTagParam, count=DoFn.StateParam(COUNT)):
        yield key, (tag, count.read())

    @on_window_expiration
    def end(self, key=DoFn.KeyParam, count=DoFn.StateParam(COUNT)):
        yield key, count.read()


def test_a_program_hears_of_the_clock_and_of_the_end_of_its_windows_and_drops_what_comes_later() -> None:
    windowing = Windowing(FixedWindows(10), allowed_lateness=Duration(5))
    machine = ProgramMachine(ParDo(Counted(), 2), windowing)
    events = [
        AddElement("a", 3 * SECOND, key="k"),
        AddElement("b", 4 * SECOND, key="k"),
        AdvanceClock(100 * SECOND),
        AdvanceWatermark(15 * SECOND),
        AddElement("c", 5 * SECOND, key="k"),
    ]
    *panes, last = play(machine, events)  # type: ignore[arg-type]
    assert [(one.step, one.key, one.emitted.value) for one in panes if isinstance(one.emitted, Pane)] == [
        (2, "k", ("tag", 4)),
        (3, "k", 4),
    ]
    assert (last.step, last.key) == (4, "k")
    assert isinstance(last.emitted, Dropped)


def test_a_program_holds_the_watermark_as_its_timers_do() -> None:
    player = ReferenceEngine(ProgramMachine(Sides(validity.ValidityJoin(final=True)), GLOBAL))  # type: ignore[arg-type]
    player.play(AddElement(("left", 2), 5 * SECOND, key="k"))
    assert player.hold_micros == 5 * SECOND
    player.play(AdvanceWatermark(6 * SECOND))
    assert player.hold_micros is None


@pytest.mark.parametrize(
    "program",
    [
        Map(lambda pair: pair),
        GroupByKey(),
        Shown(Sides(JoinRows("inner")), lambda row: row) | "Again" >> ParDo(Counted(), 1),
        ParDo(Counted(), 1) | GroupByKey(),
    ],
    ids=["without state", "a grouping", "two with state", "a grouping after it"],
)
def test_a_program_has_one_step_with_state_and_no_grouping(program: Any) -> None:
    with pytest.raises(Malformed, match="one ParDo with state"):
        ProgramMachine(program, GLOBAL)


@pytest.mark.parametrize(
    "setting", ["combine: sum", "trigger: AfterCount(1)", "accumulation: discarding", "timestamp: latest"]
)
def test_a_program_has_no_settings_of_a_grouping(setting: str) -> None:
    text = f"= A\nsource: us\nwindows: GlobalWindows()\nprogram: ValidFrom()\n{setting}\n\nelement 5 at 3"
    [scenario] = parse({"a": text})
    with pytest.raises(Malformed, match=f"{setting.partition(':')[0]}, which belongs to groupings"):
        program_of(scenario)


def test_a_program_that_is_none_is_malformed() -> None:
    text = "= A\nsource: us\nwindows: GlobalWindows()\nprogram: Joined()\n\nelement 5 at 3"
    with pytest.raises(Malformed, match="cannot be understood"):
        bare.report(parse({"a": text})[0], "streaming")


def test_a_row_of_no_side_is_malformed() -> None:
    text = (
        "= A\nsource: us\nwindows: GlobalWindows()\nprogram: Sides(JoinRows())\n\nelement k: ('lft', 5) at 3"
    )
    with pytest.raises(Malformed, match="a row has the side 'lft'"):
        bare.report(parse({"a": text})[0], "streaming")


def failed() -> set[str]:
    """The scenarios of joins that a broken engine does not pass in some mode."""
    joins = [scenario for scenario in load() if scenario.place.startswith("joins/")]
    outcomes = outcomes_of(joins, MODES, "bare")
    return {outcome.scenario.title for outcome in outcomes if outcome.status is Status.FAILED}


def test_a_join_that_undoes_nothing_fails_wherever_something_is_to_be_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = joins.emit_pairs

    def without_retracted(key: Any, change: Any, window: Any) -> Any:
        return real(key, ((), change[1]), window)

    for module in (joins, validity):
        monkeypatch.setattr(module, "emit_pairs", without_retracted)
    scenarios = [scenario for scenario in load() if scenario.place.startswith("joins/")]
    undoing = {
        one.title
        for one in scenarios
        if any("retract" in expected.text for step in one.steps("streaming") for expected in step.expected)
    }
    assert len(undoing) > 9
    assert failed() == undoing


def test_a_join_that_undoes_last_fails_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    real = joins.emit_pairs

    def other_way_round(*arguments: Any) -> Any:
        return reversed([*real(*arguments)])

    monkeypatch.setattr(joins, "emit_pairs", other_way_round)
    assert "A full outer join" in failed()
    assert "An inner join" not in failed()
