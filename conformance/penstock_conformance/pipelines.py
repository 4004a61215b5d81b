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

from penstock.base.bounded_window import TimestampedValue
from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin
from penstock.figures.recording import Recording
from penstock.metrics.metric import MetricResults, MetricsFilter
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_stream import ElementEvent, TestStream
from penstock.transforms.create import Create
from penstock.transforms.pardo import MapTuple
from penstock.utils.timestamp import Timestamp
from penstock_conformance.branches import Branch
from penstock_conformance.comparing import verdict
from penstock_conformance.judging import DROPPED, Taken, steps_to_the_end, wrong_reasons, wrong_steps
from penstock_conformance.malformed import Malformed
from penstock_conformance.programs import Program, program_of
from penstock_conformance.scenario import Scenario
from penstock_conformance.tapes import Tape, tape_of, why_untold

BRANCHES_MAX = 250
"""The number of scenarios in one pipeline: what an engine does at each event, it does for each of them."""

_TOLD_EVERY_MILLIS = 10_000


@dataclass(frozen=True)
class Case:
    """A scenario that is to go through a pipeline.

    Attributes:
        scenario: The scenario.
        mode: The engine mode.
        label: The label of its branch.
        program: Its grouping.
        tape: What happens.
        found: Where the branch writes what comes out.
        branches: The branch, once it is made.
    """

    scenario: Scenario
    mode: str
    label: str
    program: Program
    tape: Tape
    found: list[Any] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def apply_to(self, pipeline: Pipeline) -> None:
        """Makes a branch of it."""
        source: PTransform[Any, Any] = TestStream(events=self.tape.events)
        if self.mode == "batch":
            source = _AllAtOnce(self.tape)
        self.branches.append(Branch(source, self.program, self.found))
        _ = pipeline | self.label >> self.branches[-1]

    def recording(self, result: Any) -> Recording | None:
        """What a run has recorded of the grouping, to be drawn; None if there is nothing.

        Args:
            result: That of a pipeline with the option ``record_events``.
        """
        try:
            recording: Recording = result.recording(self.branches[-1].panes)
        except ValueError:
            return None
        return replace(recording, title=self.scenario.title)

    def report(self, end_clock_micros: int, metrics: MetricResults) -> str | None:
        """What is wrong with what has been found.

        Args:
            end_clock_micros: Processing time at the end of the pipeline.
            metrics: Those of the run.
        """
        steps = steps_to_the_end(self.scenario, self.mode, end_clock_micros)
        wrong = [*wrong_steps(self.scenario, steps, [Taken(len(steps), self.found)])]
        return verdict(
            self.scenario, self.mode, [*wrong, *wrong_reasons(steps, dropped_in(metrics, self.label))]
        )


class _AllAtOnce(PTransform[Any, Any]):
    """The elements of a tape, for a batch.

    Args:
        tape: The tape.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        events = [event for event in tape.events if isinstance(event, ElementEvent)]
        values = [value for event in events for value in event.timestamped_values]
        self._elements = [(value.value, value.timestamp.micros) for value in values]

    def expand(self, pbegin: PBegin) -> Any:
        """The elements at their event times."""
        return pbegin | Create(self._elements) | MapTuple(_at)


def _at(value: Any, micros: int) -> Any:
    return TimestampedValue(value, Timestamp.from_micros(micros))


def case_of(scenario: Scenario, mode: str, label: str = "Scenario", stops_at_panes: bool = False) -> Case:
    """A scenario that is to go through a pipeline.

    Args:
        scenario: The scenario.
        mode: The engine mode.
        label: The label of its branch.
        stops_at_panes: See `penstock_conformance.tapes.tape_of`.

    Raises:
        Malformed: It cannot; or a setting cannot be understood.
        ValueError: The model refuses the grouping; so does TypeError.
    """
    return Case(scenario, mode, label, program_of(scenario), tape_of(scenario, mode, stops_at_panes))


def pipeline_of(cases: Iterable[Case], **arguments: Any) -> Pipeline:
    """A pipeline of a branch for each case.

    Args:
        cases: The cases.
        arguments: Those of `Pipeline`.
    """
    # Many scenarios show what a trigger that may finish does.
    pipeline = Pipeline(options=PipelineOptions(allow_unsafe_triggers=True), **arguments)
    with _without_warnings():
        for case in cases:
            case.apply_to(pipeline)
    return pipeline


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Within the block, nothing is logged of triggers that may finish: scenarios have them on purpose."""
    logger = logging.getLogger("penstock.transforms.grouping_checks")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def dropped_in(metrics: MetricResults, label: str) -> Mapping[str, int]:
    """How many elements a branch has dropped, by the counter that tells why."""
    asked = MetricsFilter().with_step(label).with_names(DROPPED.values())
    return {str(counter.key.metric.name): counter.committed for counter in metrics.query(asked)["counters"]}


def groups_of(cases: Iterable[Case], branches_max: int = BRANCHES_MAX) -> list[list[Case]]:
    """Cases that may share a pipeline, and so a clock.

    A batch has none. The streams of others are merged by it, so that each of their events has the processing time that
    it has alone, unless a micro-batch of one begins before those before it have ended in another: those of all end
    together. Cases in which no processing time passes are kept apart, for they may wait for it in vain; and each that
    has a signal, for that reaches all groupings of a pipeline.

    Args:
        cases: The cases, all of one mode.
        branches_max: The number of cases in one pipeline, at most.
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
    """Whether each micro-batch begins when the ones before it have ended in the other."""
    ends = [end for _, end in earlier.rounds()]
    begins = [begin for begin, _ in later.rounds()]
    return all(begin >= max(ends[:number], default=0) for number, begin in enumerate(begins))


def _is_shown(scenario: Scenario) -> bool:
    """Whether it would be seen at the end of a pipeline that what must not be met is not: holds and times are not."""
    return scenario.unmet is None or not re.search(r"hold|clock: ", scenario.unmet)


def _with_own_checkpoint(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a pipeline, with a folder that no other has used."""
    location = arguments.get("checkpoint_location")
    own = {} if location is None else {"checkpoint_location": f"{location}/conformance-{uuid.uuid4().hex}"}
    return {**arguments, **own}


class Report(NamedTuple):
    """How a scenario went.

    Attributes:
        scenario: The scenario.
        wrong: What is wrong; None if all is as written.
        recording: What happened, if the pipeline had the option ``record_events``.
    """

    scenario: Scenario
    wrong: str | None
    recording: Recording | None = None


def reports(
    scenarios: Iterable[Scenario],
    mode: str,
    branches_max: int = BRANCHES_MAX,
    tell: Callable[[str], None] = lambda line: None,
    **arguments: Any,
) -> Iterator[Report]:
    """Runs all scenarios that can go through pipelines.

    Args:
        scenarios: The scenarios.
        mode: The engine mode.
        branches_max: The number of scenarios in one pipeline, at most.
        tell: Gets a line when a pipeline begins, and while it runs: its outcomes all come at its end.
        arguments: Those of `Pipeline`, such as ``spark=session``. In a ``checkpoint_location``, each pipeline has a new
            folder of its own.

    Raises:
        Exception: What made a run fail.
    """
    cases = []
    for number, scenario in enumerate(scenarios):
        if mode not in scenario.modes or why_untold(scenario, mode) or not _is_shown(scenario):
            continue
        try:
            cases.append(case_of(scenario, mode, f"Scenario {number}"))
        except Malformed:
            raise
        except (TypeError, ValueError) as error:
            yield Report(scenario, verdict(scenario, mode, [f"  the grouping is refused: {error}"]))
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
