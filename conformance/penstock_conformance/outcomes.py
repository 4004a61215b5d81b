"""The result of each scenario in each engine mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from penstock_conformance.bare import Run
from penstock_conformance.choosing import rows_of
from penstock_conformance.scenario import MODES, Expected, ExpectedPane, Scenario
from penstock_figures.recording import Recording


class Status(Enum):
    """The result; of several in one row, the first one here counts."""

    FAILED = "failed"
    DIFFERS = "differs by the model"
    PASSED = "passed"
    NOT_PLAYED = "not played"


@dataclass(frozen=True)
class Outcome:
    """The result of a scenario in a mode."""

    scenario: Scenario
    mode: str
    status: Status
    text: str = ""  # What is wrong, or why it was not played.
    seconds: float = 0.0
    run: Run | None = None  # What happened on the bare machine.
    recording: Recording | None = None  # What happened on Spark, if it was recorded.


def status_of(scenario: Scenario, mode: str, report: str | None) -> Status:
    """The result of a played scenario, from its report."""
    if report is not None:
        return Status.FAILED
    return Status.DIFFERS if differs_by_the_model(scenario, mode) else Status.PASSED


def differs_by_the_model(scenario: Scenario, mode: str) -> bool:
    """True if a mode has different panes than the mode for which the scenario was written.

    Times are not compared: a batch emits everything at its end.

    >>> from penstock_conformance.choosing import choose_scenarios
    >>> from penstock_conformance.parsing import load
    >>> [figure_12] = choose_scenarios(load(), ["figure 12: fixed"])
    >>> differs_by_the_model(figure_12, "streaming"), differs_by_the_model(figure_12, "batch")
    (False, True)
    """
    if not scenario.parts or mode in scenario.parts[0].modes:
        return False
    return _panes(scenario, mode) != _panes(scenario, scenario.parts[0].modes[0])


def _panes(scenario: Scenario, mode: str) -> list[str]:
    return sorted(_essence(expected) for step in scenario.steps(mode) for expected in step.expected)


def _essence(expected: Expected) -> str:
    is_retraction = isinstance(expected, ExpectedPane) and expected.is_retraction
    return repr((type(expected).__name__, expected.value, expected.key, expected.window, is_retraction))


def by_row(outcomes: Iterable[Outcome]) -> Mapping[str, Mapping[str, Status]]:
    """The status of each row, by mode: of several scenarios, the first one in `Status`."""
    rank = list(Status).index
    table: dict[str, dict[str, Status]] = {}
    for outcome in outcomes:
        for row in rows_of(outcome.scenario):
            cells = table.setdefault(row, {})
            cells[outcome.mode] = min(cells.get(outcome.mode, outcome.status), outcome.status, key=rank)
    return {row: {mode: cells[mode] for mode in MODES if mode in cells} for row, cells in table.items()}
