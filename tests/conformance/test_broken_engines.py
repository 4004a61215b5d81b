"""An engine that is broken on purpose: the suite fails, and its rows name the figures that show what is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Pane
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_conformance.outcomes import Status, by_row
from penstock_conformance.parsing import load
from penstock_conformance.playing import outcomes_of

SCENARIOS = [scenario for scenario in load() if not scenario.place.startswith("must_fail/")]
STEPS = ("element", "advance_watermark", "advance_clock", "signal", "end_micro_batch")


def failed_rows() -> set[str]:
    rows = by_row(outcomes_of(SCENARIOS, ["streaming"], "bare"))
    return {row for row, cells in rows.items() if Status.FAILED in cells.values()}


def break_steps(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Iterator[Any]]) -> None:
    """Changes all that comes out of each step of a machine."""
    for name in STEPS:
        step = getattr(GroupingMachine, name)

        def broken(self: Any, *arguments: Any, step: Any = step) -> list[Any]:
            return list(change(step(self, *arguments)))

        monkeypatch.setattr(GroupingMachine, name, broken)


def test_whole_engines_fail_nothing() -> None:
    assert failed_rows() == set()


def test_an_engine_that_holds_nothing_fails_where_holds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupingMachine, "hold_micros", lambda self, state: None)
    assert failed_rows() == {"panes/holds"}


def test_an_engine_that_gives_late_panes_twice_fails_the_figures_with_late_panes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def twice(emitted: Any) -> Iterator[Any]:
        for one in emitted:
            is_late = isinstance(one, Pane) and one.info.timing == PaneInfoTiming.LATE
            yield from [one] * (1 + is_late)

    break_steps(monkeypatch, twice)
    assert {row.removeprefix("figure ") for row in failed_rows() if row.startswith("figure ")} == {
        *(
            "12",
            "13",
            "14",
            "2-11",
            "2-12",
            "2-13",
            "2-14",
            "2-15",
            "4-2",
            "4-7",
            "4-11",
            "6-12",
            "7-1",
            "7-2",
        )
    }


def test_an_engine_that_forgets_a_retraction_fails_the_figures_that_retract(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_the_first(emitted: Any) -> Iterator[Any]:
        panes = iter(emitted)
        for one in panes:
            if isinstance(one, Pane) and one.kind.is_retraction:
                break
            yield one
        yield from panes

    break_steps(monkeypatch, without_the_first)
    assert {row.removeprefix("figure ") for row in failed_rows() if row.startswith("figure ")} == {
        *("14", "2-14", "2-15", "4-7", "4-11")
    }
