"""The transcripts in whole pipelines, without Spark: the real plan, levels and shards, cut into micro-batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from penstock.options.base import list_given_flags
from penstock.testing.test_stream import SignalEvent, WatermarkEvent
from penstock.utils.timestamp import Timestamp
from penstock_conformance.comparing import judge
from penstock_conformance.judging import (
    add_end_of_input,
    find_wrong_reasons,
    find_wrong_steps,
    move_to_ends_of_rounds,
)
from penstock_conformance.parsing import load, parse
from penstock_conformance.pipelines import Case, case_of, count_dropped, groups_of, pipeline_of, run_scenarios
from penstock_conformance.scenario import Scenario
from penstock_conformance.tapes import why_not_expressible
from tests.conformance.toy_runner import ToyRunner, batches_of, cut_anywhere, taken
from tests.shards.toy_query import ToyQuery

SCENARIOS = load()

NOT_SHOWN = {"A wrong hold", "A hold that should be over"}
"""What must not be met, and is not seen to be: where something would be held, before the watermark is there."""

REFUSED = "A grouping that is refused, and should not be"


def cases(*modes: str) -> list[Any]:
    """Every scenario that goes through a pipeline in some modes."""
    return [
        pytest.param(scenario, mode, id=f"{scenario.place.rpartition(':')[0]}: {scenario.title} ({mode})")
        for scenario in SCENARIOS
        for mode in scenario.modes
        if mode in modes and not why_not_expressible(scenario, mode)
        if scenario.title not in {*NOT_SHOWN, REFUSED}
    ]


def test_every_scenario_goes_through_a_pipeline_but_those_that_are_refused_before_anything_happens() -> None:
    for scenario in SCENARIOS:
        for mode in scenario.modes:
            is_refused = scenario.fails is not None and scenario.title != REFUSED
            expected = "it is refused before anything happens" if is_refused else None
            assert why_not_expressible(scenario, mode) == expected


def test_a_tape_has_the_watermarks_that_advance_and_the_signals() -> None:
    lines = ["watermark 2; 50% 10", "watermark 3; 50% 6", "watermark 3; 50% 6", "watermark 3; 50% 12, 90% 3"]
    text = "\n".join(["= A", "source: a test", "windows: FixedWindows(10)", "", *lines, "signal flush"])
    tape = case_of(*parse({"a": text}), "streaming").tape
    assert tape.events == (
        WatermarkEvent(2, percentiles=((0.5, Timestamp(10)),)),
        WatermarkEvent(3),
        WatermarkEvent(3, percentiles=((0.5, Timestamp(12)),)),
        SignalEvent("flush"),
    )
    assert tape.steps == (0, 1, 3, 4)
    assert tape.has_signals


@pytest.mark.parametrize(("scenario", "mode"), cases("streaming", "micro_batch"))
def test_what_comes_out_of_a_pipeline_comes_at_the_step_that_the_transcript_says(
    scenario: Scenario, mode: str
) -> None:
    case = case_of(scenario, mode, stops_at_panes=mode == "streaming")
    steps = add_end_of_input(scenario, mode, case.tape.end_clock_micros)
    micro_batches, metrics = taken(case, len(steps))
    if mode == "micro_batch":
        ends = [one.clock_micros for one in micro_batches if one.clock_micros is not None]
        steps = move_to_ends_of_rounds(steps, ends, case.tape.slack_micros)
    wrong = [
        *find_wrong_steps(scenario, steps, micro_batches, case.tape.slack_micros),
        *find_wrong_reasons(steps, count_dropped(metrics, case.label)),
    ]
    report = judge(scenario, mode, wrong)
    assert report is None, f"\n{report}"


def test_a_wrong_hold_is_seen_where_the_watermark_would_be_beyond_it() -> None:
    text = "= A\nsource: a test\nwindows: FixedWindows(10)\ntimestamp: earliest\n\nelement 5 at 3\nwatermark 5\n  "
    for hold, is_right in (("hold 3", True), ("hold 4", False), ("no hold", False)):
        [scenario] = parse({"a": text + hold})
        steps = add_end_of_input(scenario, "streaming")
        micro_batches, _ = taken(case_of(scenario, "streaming"), len(steps))
        assert ([*find_wrong_steps(scenario, steps, micro_batches)] == []) == is_right


def by_key(
    case: Case,
    shards: int,
    events_per_batch: int | None,
    random: Random | None = None,
    without: tuple[str, ...] = (),
) -> Any:
    """All that comes out of a case, in order for each key."""
    if random is not None:
        case = replace(case, tape=replace(case.tape, events=cut_anywhere(case.tape.events, random)))
    query = ToyQuery(pipeline_of([case]), case.mode, shards, events_per_batch, without)
    found = defaultdict(list)
    for _, given in batches_of(query):
        for seen in (seen for elements in given.values() for seen in elements):
            _, (is_late, key, *_) = seen
            found[key, is_late].append(seen)
    return found


def one_by_one(case: Case, whole: Any, random: Random) -> None:
    assert by_key(case, 1, 1) == whole


def a_few_at_once(case: Case, whole: Any, random: Random) -> None:
    assert by_key(case, 2, random.choice((2, 3))) == whole


def cut_at_random(case: Case, whole: Any, random: Random) -> None:
    assert by_key(case, 2, None, random) == whole


def without_columns(case: Case, whole: Any, random: Random) -> None:
    # Windows that are due at one moment come in another order where they are not kept in columns.
    assert in_any_order(by_key(case, 2, 3, without=("all",))) == in_any_order(whole)


WAYS = (one_by_one, a_few_at_once, cut_at_random, without_columns)


def check_ways(scenario: Scenario, mode: str, ways: Iterable[Callable[[Case, Any, Random], None]]) -> None:
    case = case_of(scenario, mode)
    whole = by_key(case, 3, None)
    for way in ways:
        way(case, whole, Random(scenario.title))


@pytest.mark.parametrize(("scenario", "mode"), cases("streaming")[::3])
def test_the_same_input_cut_in_other_ways_gives_the_same_panes(scenario: Scenario, mode: str) -> None:
    # One way for every third scenario; with the mark all four for each.
    check_ways(scenario, mode, [WAYS[SCENARIOS.index(scenario) // 3 % 4]])


@pytest.mark.soak
@pytest.mark.parametrize(("scenario", "mode"), cases("streaming"))
def test_the_same_input_cut_in_each_way_gives_the_same_panes(scenario: Scenario, mode: str) -> None:
    check_ways(scenario, mode, WAYS)


def in_any_order(found: Any) -> Any:
    """The panes of each key, in an order that does not depend on when they came."""
    return {key: sorted(panes, key=repr) for key, panes in found.items()}


def test_where_micro_batches_are_rounds_the_cuts_do_change_something() -> None:
    [scenario] = (one for one in SCENARIOS if one.title == "Paper, figure 11: fixed windows in micro-batches")
    case = case_of(scenario, "micro_batch")
    assert by_key(case, 2, None, Random(1)) != by_key(case, 2, None)


@pytest.mark.parametrize(
    "scenarios", [SCENARIOS[::4], pytest.param(SCENARIOS, marks=pytest.mark.soak)], ids=["some", "all"]
)
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_scenarios_that_share_a_pipeline_do_not_disturb_each_other(
    mode: str, scenarios: list[Scenario]
) -> None:
    lines: list[str] = []
    together = run_scenarios(scenarios, mode, branches_max=50, tell=lines.append, runner=ToyRunner())
    found = {report.scenario.title: report.wrong for report in together}
    wrong = [text for text in found.values() if text]
    assert not wrong, "\n".join(wrong)
    begun = [line for line in lines if line.endswith("scenarios")]
    assert begun[0].startswith(f"{mode}: pipeline 1 of {len(begun)}, ")
    here = {scenario.title for scenario in scenarios if mode in scenario.modes and scenario.fails is None}
    # When panes come is not known at the end.
    assert here - found.keys() == here & {*NOT_SHOWN, "A wrong processing time"}


def test_nothing_is_logged_of_triggers_that_scenarios_have_on_purpose(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline_of(
        [case_of(one, "batch", one.title) for one in SCENARIOS if "batch" in one.modes and not one.fails]
    )
    assert not caplog.records


def test_a_few_pipelines_are_enough_for_all() -> None:
    streaming = [
        case_of(scenario, "streaming")
        for scenario in SCENARIOS
        if "streaming" in scenario.modes and not why_not_expressible(scenario, "streaming")
        if scenario.title != REFUSED
    ]
    groups = groups_of(streaming)
    assert sum(map(len, groups)) == len(streaming)
    assert all(len({case.tape.tells_time for case in group}) == 1 for group in groups)
    # A signal reaches all that is in the pipeline.
    alone = [group for group in groups if any(case.tape.has_signals for case in group)]
    assert [len(group) for group in alone] == [1] * 6
    assert len(groups) == 2 + len(alone)


def test_flags_of_a_command_are_not_options_of_its_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["penstock", "conformance", "--figure", "7"])
    assert list_given_flags(pipeline_of([]).options) == []
