"""The harness of whole engines: many scenarios as branches of one pipeline, which a runner runs."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin
from penstock.elements.bounded_window import TimestampedValue
from penstock.metrics.metric import MetricResults, MetricsFilter
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_stream import ElementEvent, TestStream
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import MapTuple
from penstock.utils.timestamp import Timestamp
from penstock_conformance.branches import Branch
from penstock_conformance.comparing import judge
from penstock_conformance.judging import (
    DROPPED,
    RoundOutput,
    add_end_of_input,
    find_wrong_reasons,
    find_wrong_steps,
)
from penstock_conformance.malformed import Malformed
from penstock_conformance.programs import Program, program_of
from penstock_conformance.scenario import Scenario
from penstock_conformance.tapes import Tape, tape_of, why_not_expressible
from penstock_figures.recording import Recording

BRANCHES_MAX = 250
"""The maximum number of scenarios in one pipeline: an engine's work at each event grows with them."""

_TOLD_EVERY_MILLIS = 10_000


@dataclass(frozen=True)
class Case:
    """A scenario for a pipeline."""

    scenario: Scenario
    mode: str
    label: str
    program: Program
    tape: Tape
    found: list[Any] = field(default_factory=list)  # The output of the branch.
    branches: list[Branch] = field(default_factory=list)  # The branch, once it is applied.

    def apply_to(self, pipeline: Pipeline) -> None:
        """Adds its branch to a pipeline."""
        source: PTransform[Any, Any] = TestStream(events=self.tape.events)
        if self.mode == "batch":
            source = _AllAtOnce(self.tape)
        self.branches.append(Branch(source, self.program, self.found))
        _ = pipeline | self.label >> self.branches[-1]

    def recording(self, result: Any) -> Recording | None:
        """Returns what a run with the option ``record_events`` has recorded of the grouping; None without it."""
        try:
            recording: Recording = result.recording(self.branches[-1].panes)
        except ValueError:
            return None
        return replace(recording, title=self.scenario.title)

    def report(self, end_clock_micros: int, metrics: MetricResults) -> str | None:
        """Returns what is wrong with the output, at the end of a pipeline with these metrics."""
        steps = add_end_of_input(self.scenario, self.mode, end_clock_micros)
        wrong = [*find_wrong_steps(self.scenario, steps, [RoundOutput(len(steps), self.found)])]
        return judge(
            self.scenario, self.mode, [*wrong, *find_wrong_reasons(steps, count_dropped(metrics, self.label))]
        )


class _AllAtOnce(PTransform[Any, Any]):
    """The elements of a tape at their event times, for a batch."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        events = [event for event in tape.events if isinstance(event, ElementEvent)]
        values = [value for event in events for value in event.timestamped_values]
        self._elements = [(value.value, value.timestamp.micros) for value in values]

    def expand(self, pbegin: PBegin) -> object:
        return pbegin | Create(self._elements) | MapTuple(_at)


def _at(value: object, micros: int) -> object:
    return TimestampedValue(value, Timestamp.from_micros(micros))


def case_of(scenario: Scenario, mode: str, label: str = "Scenario", stops_at_panes: bool = False) -> Case:
    """A scenario for a pipeline; see `penstock_conformance.tapes.tape_of` for `stops_at_panes`."""
    return Case(scenario, mode, label, program_of(scenario), tape_of(scenario, mode, stops_at_panes))


def pipeline_of(cases: Iterable[Case], **arguments: Any) -> Pipeline:
    """A pipeline with a branch for each case."""
    # Many scenarios have a trigger that may finish.
    pipeline = Pipeline(options=PipelineOptions([], allow_unsafe_triggers=True), **arguments)
    with _without_warnings():
        for case in cases:
            case.apply_to(pipeline)
    return pipeline


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppresses warnings about triggers that may finish: scenarios have them on purpose."""
    logger = logging.getLogger("penstock.transforms.grouping_checks")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def count_dropped(metrics: MetricResults, label: str) -> Mapping[str, int]:
    """The number of elements that a branch has dropped, by the counter of the reason."""
    asked = MetricsFilter().with_step(label).with_names(DROPPED.values())
    return {str(counter.key.metric.name): counter.committed for counter in metrics.query(asked)["counters"]}


def groups_of(cases: Iterable[Case], branches_max: int = BRANCHES_MAX) -> list[list[Case]]:
    """Cases, all of one mode, that may share a pipeline, and so a clock.

    A batch has no clock. The clock merges the streams of others, so that each event has the same processing time as
    alone, unless a micro-batch of one begins before the earlier ones of another have ended: all end together. Cases
    in which no processing time passes are kept apart, because they might wait for it in vain; so is each case with a
    signal, which reaches all groupings of a pipeline.
    """
    groups: list[list[Case]] = []
    for case in cases:
        for group in groups:
            if len(group) < branches_max and all(_fit(case, one) for one in group):
                group.append(case)
                break
        else:
            groups.append([case])
    return groups


def _fit(one: Case, other: Case) -> bool:
    if one.mode == "batch":
        return True
    if one.tape.has_signals or other.tape.has_signals:
        return False
    same_kind = one.tape.tells_time == other.tape.tells_time
    return same_kind and _follows(one.tape, other.tape) and _follows(other.tape, one.tape)


def _follows(later: Tape, earlier: Tape) -> bool:
    """True if each micro-batch begins after the earlier ones of the other have ended."""
    ends = [end for _, end in earlier.rounds()]
    begins = [begin for begin, _ in later.rounds()]
    return all(begin >= max(ends[:number], default=0) for number, begin in enumerate(begins))


def _is_shown(scenario: Scenario) -> bool:
    """True if the end of a pipeline shows what must not be met; holds and times are not visible there."""
    return scenario.unmet is None or not re.search(r"hold|clock: ", scenario.unmet)


def _with_own_checkpoint(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a pipeline, with a new checkpoint folder."""
    location = arguments.get("checkpoint_location")
    own = {} if location is None else {"checkpoint_location": f"{location}/conformance-{uuid.uuid4().hex}"}
    return {**arguments, **own}


class Report(NamedTuple):
    """The result of a scenario: what is wrong, or None; and with the option ``record_events``, what happened."""

    scenario: Scenario
    wrong: str | None
    recording: Recording | None = None


def run_scenarios(
    scenarios: Iterable[Scenario],
    mode: str,
    branches_max: int = BRANCHES_MAX,
    tell: Callable[[str], None] = lambda line: None,
    **arguments: object,
) -> Iterator[Report]:
    """Runs all scenarios that pipelines can play.

    The function `tell` receives a line when a pipeline begins, and while it runs: all outcomes come at its end. The
    other arguments are those of `Pipeline`, such as ``spark=session``. In a ``checkpoint_location``, each pipeline
    has a new folder.
    """
    cases = []
    for number, scenario in enumerate(scenarios):
        if mode not in scenario.modes or why_not_expressible(scenario, mode) or not _is_shown(scenario):
            continue
        try:
            cases.append(case_of(scenario, mode, f"Scenario {number}"))
        except Malformed:
            raise
        except (TypeError, ValueError) as error:
            yield Report(scenario, judge(scenario, mode, [f"  the grouping is refused: {error}"]))
    groups = groups_of(cases, branches_max)
    for number, group in enumerate(groups, 1):
        tell(f"{mode}: pipeline {number} of {len(groups)}, {len(group)} scenarios")
        result = pipeline_of(group, mode=mode, **_with_own_checkpoint(arguments)).run()
        began = time.monotonic()
        while result.wait_until_finish(_TOLD_EVERY_MILLIS) is None:
            tell(f"{mode}: pipeline {number} of {len(groups)} runs for {time.monotonic() - began:.0f} s")
        metrics = result.metrics()
        end_clock_micros = max(case.tape.end_clock_micros for case in group)
        is_recorded = arguments.get("record_events") is not None
        for case in group:
            recording = case.recording(result) if is_recorded else None
            yield Report(case.scenario, case.report(end_clock_micros, metrics), recording)
