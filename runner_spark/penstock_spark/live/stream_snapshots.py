"""Makes the snapshot of a run from facts that its driver knows already: pure functions, which ask no one else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from penstock.diagrams.steps import StepView
from penstock.machines.pane_counts import DROPPED as TALLIED_DROPPED
from penstock.machines.pane_counts import EARLY, LATE, ON_TIME, RETRACTED, Tally
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.metrics.execution import COUNTERS, Snapshot
from penstock.runners.runner import PipelineState
from penstock_spark.folding.machine_read import DROPPED
from penstock_spark.live.elements import (
    Counts,
    Flow,
    StepElements,
    add_counts,
    choose_counts_for_rate,
    elements_of,
)
from penstock_spark.live.history import Firing, History, extend_history
from penstock_spark.live.snapshot import GroupingNow, MicroBatch, RunSnapshot, SourceNow, StepError
from penstock_spark.reports.metrics import GroupingReport, Watermarks
from penstock_spark.stream.sources.reading import REJECTED

BATCHES_KEPT = 30
"""So many micro-batches are in a snapshot: the last ones."""

_PHASES = (
    *("triggerExecution", "latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch"),
    "commitOffsets",
)
_STEP = re.compile(r"at step '([^\n]+?)'(?: \(|$)", re.MULTILINE)


@dataclass(frozen=True)
class RunFacts:
    """The facts about a run that do not change.

    Attributes:
        name: The name of the application.
        run: The name of the run.
        mode: Its mode.
        began_micros: When it began, by the machine's clock.
        steps: Its steps.
        levels: The level of each grouping, by label, the first one first.
        sources: The labels of the sources that Spark reads, in its order.
        first_source: The number of sources that Spark reads itself, which come before them.
        is_live: True if its clock is the machine's.
        counts_panes: Whether its workers count panes.
        flows: The edges of its steps, if its workers count elements; else none.
        composites: The edges of its composites, likewise.
        counted: The edges that they count.
        native_grouping: The label of the grouping that Spark does on its own and that waits for the watermark, if there
            is one.
        has_groupings: Whether a run that has come to its end cannot continue.
    """

    name: str
    run: str
    mode: str
    began_micros: int
    steps: tuple[StepView, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    first_source: int = 0
    is_live: bool = False
    counts_panes: bool = False
    flows: tuple[Flow, ...] = ()
    composites: tuple[Flow, ...] = ()
    counted: frozenset[int] = frozenset()
    native_grouping: str | None = None
    has_groupings: bool = False


@dataclass(frozen=True)
class StreamFacts:
    """The facts that the driver has seen of a stream so far.

    Attributes:
        sources: The sources, as Spark last reported them, with all rows so far.
        batches: The last micro-batches.
        panes: What the groupings have fired, by label; without the windows, which are in the history.
        history: Watermarks and firings.
        rows_per_second: The rows that were read in a second, over the last micro-batches.
        elements: The counts of edges at the last times of counting.
    """

    sources: tuple[SourceNow, ...] = ()
    batches: tuple[MicroBatch, ...] = ()
    panes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    history: History = field(default_factory=History)
    rows_per_second: float | None = None
    elements: tuple[Counts, ...] = ()


def with_progress(seen: StreamFacts, progress: Mapping[str, Any], about: RunFacts) -> StreamFacts:
    """Updates `seen` with a micro-batch that Spark has reported."""
    reported = list(progress["sources"])[about.first_source :]
    before = {source.label: source.rows for source in seen.sources}
    sources = tuple(
        _source(label, each, before.get(label, 0))
        for label, each in zip(about.sources, reported, strict=False)
    )
    batch = MicroBatch(
        int(progress["batchId"]),
        _micros_of(progress["timestamp"]),
        sum(int(each["numInputRows"] or 0) for each in reported),
        _durations(progress["durationMs"]),
    )
    if seen.batches and batch.number <= seen.batches[-1].number:
        return seen
    batches = (*seen.batches, batch)[-BATCHES_KEPT:]
    return replace(seen, sources=sources, batches=batches, rows_per_second=_rate(batches))


def _micros_of(timestamp: str) -> int:
    """A time as Spark writes it, in microseconds.

    >>> _micros_of("1970-01-01T00:00:01.500Z")
    1500000
    """
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000) * 1000


def _durations(millis: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(millis[name]) for name in _PHASES if millis.get(name) is not None}


def _rate(batches: Sequence[MicroBatch]) -> float | None:
    """The rows a second of the last micro-batches, over the time from the first's beginning to the last's end."""
    recent = batches[-5:]
    micros = recent[-1].began_micros - recent[0].began_micros
    micros += recent[-1].millis.get("triggerExecution", 0) * 1000
    return sum(batch.rows for batch in recent) / (micros / 1_000_000) if micros > 0 else None


def _source(label: str, reported: Mapping[str, Any], rows_before: int) -> SourceNow:
    end, latest = _parts(reported["endOffset"]), _parts(reported.get("latestOffset"))
    behind = [latest[part] - end.get(part, 0) for part in latest]
    rate = reported.get("inputRowsPerSecond")
    return SourceNow(
        label,
        rows_before + int(reported["numInputRows"] or 0),
        float(rate) if rate is not None and float(rate) == float(rate) else None,
        sum(max(0, each) for each in behind) if behind else _metric(reported, "numFilesOutstanding"),
        len(end) if end else None,
        max(behind) - min(behind) if len(behind) > 1 else None,
    )


def _metric(reported: Mapping[str, Any], name: str) -> int | None:
    """A number that a source reports through Spark beside its offsets."""
    found = (reported.get("metrics") or {}).get(name)
    return int(float(found)) if found is not None else None


def _parts(offset: object) -> dict[tuple[str, ...], int]:
    """The numbers in an offset of partitions, by their path; none for another kind of offset.

    >>> _parts('{"scores": {"0": 7, "1": 9}}')
    {('scores', '0'): 7, ('scores', '1'): 9}
    >>> _parts("12"), _parts({"logOffset": 3}), _parts(None)
    ({}, {}, {})
    """
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    if not isinstance(offset, Mapping):
        return {}
    found: dict[tuple[str, ...], int] = {}
    for topic, partitions in offset.items():
        if isinstance(partitions, Mapping):
            for part, number in partitions.items():
                if isinstance(number, int) and not isinstance(number, bool):
                    found[str(topic), str(part)] = number
    return found


def with_tallies(
    seen: StreamFacts, tallies: Mapping[str, Tally], watermarks: Watermarks, about: RunFacts
) -> StreamFacts:
    """Updates `seen` after groupings have fired, and their watermarks have moved."""
    panes = {label: dict(counts) for label, counts in seen.panes.items()}
    firings: list[Firing] = []
    for label, tally in tallies.items():
        own = panes.setdefault(label, {})
        for timing, count in tally.counts.items():
            own[timing] = own.get(timing, 0) + count
        firings += [
            Firing(label, fired_micros, _finite(start), end, timing, count)
            for fired_micros, start, end, timing, count in tally.fired
        ]
    marks = {
        label: _finite(told.leaving_micros)
        for label, told in watermarks.by_grouping().items()
        if label in about.levels
    }
    ordered = {label: marks[label] for label in about.levels if label in marks}
    clock_micros = _finite(watermarks.clock_micros) if watermarks.by_shard else None
    history = extend_history(
        seen.history, clock_micros, ordered, sorted(firings, key=lambda firing: firing.clock_micros)
    )
    return replace(seen, panes=panes, history=history)


def with_elements(
    seen: StreamFacts, counted: Mapping[str, int], at_micros: int, about: RunFacts
) -> StreamFacts:
    """Updates `seen` after micro-batches whose workers have counted elements, by the number of the edge."""
    if not about.flows:
        return seen
    marks = seen.elements or (_nothing_counted(about),)
    by_edge = dict(marks[-1].by_edge)
    for edge, count in counted.items():
        by_edge[int(edge)] = by_edge.get(int(edge), 0) + count
    return replace(seen, elements=add_counts(marks, Counts(at_micros, by_edge)))


def _nothing_counted(about: RunFacts) -> Counts:
    return Counts(about.began_micros, dict.fromkeys(about.counted, 0))


def _elements(
    flows: tuple[Flow, ...], about: RunFacts, seen: StreamFacts, state: str, at_micros: int
) -> tuple[StepElements, ...]:
    beginning = _nothing_counted(about)
    marks = seen.elements or (beginning,)
    if PipelineState.is_terminal(state):
        return elements_of(flows, Counts(at_micros, marks[-1].by_edge), beginning)
    return elements_of(flows, *choose_counts_for_rate(marks, at_micros))


def stream_snapshot(
    about: RunFacts,
    seen: StreamFacts,
    state: str,
    watermarks: Watermarks,
    counted: Snapshot,
    at_micros: int,
    failure: BaseException | None = None,
) -> RunSnapshot:
    """The snapshot of a stream."""
    told = watermarks.by_grouping()
    clock_micros = _finite(watermarks.clock_micros) if watermarks.by_shard else None
    goes_on = about.is_live and not PipelineState.is_terminal(state)
    behind = at_micros - clock_micros if goes_on and clock_micros is not None else None
    groupings = tuple(
        _grouping(label, level, told.get(label), seen, clock_micros, about, counted)
        for label, level in about.levels.items()
    )
    awaited = _least(one.awaited for one in told.values())
    sources = tuple(
        replace(
            source,
            watermark_micros=_finite(awaited.get(source.label, MIN_MICROS)),
            rejected=int(counted.get((COUNTERS, source.label, *REJECTED), 0)),
        )
        for source in seen.sources or map(SourceNow, about.sources)
    )
    return RunSnapshot(
        about.name,
        about.run,
        about.mode,
        state,
        about.began_micros,
        at_micros,
        clock_micros,
        None if behind is None else max(0, behind),
        rows_in=sum(source.rows for source in seen.sources) if about.sources else None,
        rows_per_second=seen.rows_per_second if about.sources else None,
        steps=about.steps,
        elements=_elements(about.flows, about, seen, state, at_micros),
        composites=_elements(about.composites, about, seen, state, at_micros),
        sources=sources,
        groupings=groupings,
        micro_batches=seen.batches,
        errors=errors_of(failure, about.steps),
        history=seen.history,
    )


def _least(every: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for marks in every:
        for label, micros in marks.items():
            found[label] = min(micros, found.get(label, micros))
    return found


def _grouping(
    label: str,
    level: int,
    told: GroupingReport | None,
    seen: StreamFacts,
    clock_micros: int | None,
    about: RunFacts,
    counted: Snapshot,
) -> GroupingNow:
    dropped = sum(int(counted.get((COUNTERS, label, *name), 0)) for name in DROPPED.values())
    panes = seen.panes.get(label, {})
    known = about.counts_panes and label != about.native_grouping
    base = GroupingNow(
        label,
        level,
        early=panes.get(EARLY, 0) if known else None,
        on_time=panes.get(ON_TIME, 0) if known else None,
        late=panes.get(LATE, 0) if known else None,
        retracted=panes.get(RETRACTED, 0) if known else None,
        dropped=max(dropped, panes.get(TALLIED_DROPPED, 0)),
    )
    if told is None:
        return base
    output = _finite(told.leaving_micros)
    is_between = output is not None and output < MAX_MICROS and clock_micros is not None
    return replace(
        base,
        input_micros=_finite(told.entering_micros),
        output_micros=output,
        event_lag_micros=max(0, clock_micros - output) if is_between else None,  # type: ignore[operator]
        held_by=find_watermark_holder(told, set(about.levels)),
        waiting=dict(told.waits),
        open_keys=told.keys,
        open_windows=told.windows,
        state_bytes=told.state_bytes,
    )


def find_watermark_holder(told: GroupingReport, groupings: set[str]) -> str:
    """The cause that holds the watermark of a grouping, as a clause; empty at the end of time.

    >>> find_watermark_holder(GroupingReport(9, 5), set())
    'its own windows, which have not fired yet'
    >>> find_watermark_holder(GroupingReport(MIN_MICROS, MIN_MICROS, awaited={"Read": MIN_MICROS}), set())
    "the source 'Read', which has no watermark yet"
    >>> find_watermark_holder(GroupingReport(5, 5, awaited={"Sum": 5, "Read": 9}), {"Sum"})
    "the grouping 'Sum'"
    >>> find_watermark_holder(GroupingReport(MAX_MICROS, MAX_MICROS), set())
    ''
    """
    if told.leaving_micros >= MAX_MICROS:
        return ""
    if told.waits:
        sides = ", ".join(f"{label!r}" for label in sorted(told.waits))
        return f"{sum(told.waits.values())} elements, which wait for the side input of {sides}"
    if told.leaving_micros < told.entering_micros:
        return "its own windows, which have not fired yet"
    if not told.awaited:
        return ""
    label, micros = min(told.awaited.items(), key=lambda each: (each[1], each[0]))
    name = f"the {'grouping' if label in groupings else 'source'} {label!r}"
    return f"{name}, which has no watermark yet" if micros <= MIN_MICROS else name


def errors_of(failure: BaseException | None, steps: Sequence[StepView]) -> tuple[StepError, ...]:
    """The errors that made a run fail, by type and step: the text of an exception may quote an element.

    >>> errors_of(ValueError("bad 7 at step 'Parse' (a.py:3)"), [StepView("Parse", "ParDo")])
    (StepError(kind='ValueError', where="at step 'Parse'"),)
    >>> errors_of(ValueError("at step 'not one of ours'"), [StepView("Parse", "ParDo")])
    (StepError(kind='ValueError', where=''),)
    """
    if failure is None:
        return ()
    text = "\n".join([str(failure), *getattr(failure, "__notes__", ())])
    labels = {step.label for step in steps}
    named = [label for label in _STEP.findall(text) if label in labels]
    return (StepError(type(failure).__name__, f"at step {named[0]!r}" if named else ""),)


def _finite(micros: int) -> int | None:
    """A time; None for the beginning of time, which stands for an unknown one."""
    return None if micros <= MIN_MICROS else micros
