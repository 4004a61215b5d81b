"""Makes the snapshot of a run from facts that its driver knows already: pure functions, which ask no one else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from penstock.diagrams.steps import StepView
from penstock.io.rejects import ELEMENTS_REJECTED
from penstock.machines.pane_counts import DROPPED as TALLIED_DROPPED
from penstock.machines.pane_counts import EARLY, LATE, ON_TIME, RETRACTED, Tally
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.metrics.execution import COUNTERS, Snapshot
from penstock.runners.runner import PipelineState
from penstock_spark.checkpoints.custody.run_records import RunRecord
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
from penstock_spark.live.pace import IDLE, WINDOW_MICROS, AtWork, Pace, pace_of
from penstock_spark.live.snapshot import (
    CheckpointNow,
    GroupingNow,
    MicroBatch,
    RunSnapshot,
    SinkNow,
    SourceNow,
    Spread,
    StepError,
)
from penstock_spark.live.throughput import Throughput, add_work
from penstock_spark.reports.metrics import GroupingReport, Watermarks

BATCHES_KEPT = 30
"""So many micro-batches are in a snapshot: the last ones."""

_PHASES = (
    *("triggerExecution", "latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch"),
    "commitOffsets",
)
_STEP = re.compile(r"(?:at step|\[while running) '([^\n]+?)'(?: \(|\]|$)", re.MULTILINE)


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
        flows: The edges of its steps, if its workers count elements; else the edges of the steps that write.
        composites: The edges of its composites, likewise.
        counted: The edges that they count.
        native_grouping: The label of the grouping that Spark does on its own and that waits for the watermark, if there
            is one.
        has_groupings: Whether a run that has come to its end cannot continue.
        places: Where each step is made, by label, as errors write it.
        interval_seconds: The time from the start of a micro-batch to the start of the next, if the run sets it.
        limited: The sources of which a micro-batch may read only a part of what is there.
        settings: The options, and facts about the machine, that a view shows.
        spark_page: The address of the page that Spark itself has; empty if there is none.
        record: The record of the run, as it began; None if its checkpoint goes with it.
        written_by_spark: The edge that Spark writes without Python, if there is one.
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
    places: Mapping[str, str] = field(default_factory=dict)
    interval_seconds: float | None = None
    limited: frozenset[str] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict)
    spark_page: str = ""
    record: RunRecord | None = None
    written_by_spark: frozenset[int] = frozenset()


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
        throughput: Rows, busy time and backlog over time.
        last_rows_micros: When the last micro-batch that read rows ended; None without one.
        first_batch: The first micro-batch that ended; None before that.
        checkpoint: The checkpoint, as it was last measured; None without one.
        runs: The earlier runs of the checkpoint.
    """

    sources: tuple[SourceNow, ...] = ()
    batches: tuple[MicroBatch, ...] = ()
    panes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    history: History = field(default_factory=History)
    rows_per_second: float | None = None
    elements: tuple[Counts, ...] = ()
    throughput: Throughput = field(default_factory=Throughput)
    last_rows_micros: int | None = None
    first_batch: int | None = None
    checkpoint: CheckpointNow | None = None
    runs: tuple[RunRecord, ...] = ()


def with_progress(
    seen: StreamFacts,
    progress: Mapping[str, Any],
    about: RunFacts,
    rows: Mapping[str, int] = MappingProxyType({}),
) -> StreamFacts:
    """Updates `seen` with a micro-batch that Spark has reported.

    `rows` has the number of rows that some sources have read: Spark also counts lines that are not records.
    """
    if "addBatch" not in progress["durationMs"]:
        # Spark also reports that there was nothing to do, with the number of the next micro-batch.
        return seen
    reported = list(progress["sources"])[about.first_source :]
    before = {source.label: source.rows for source in seen.sources}
    read = [
        rows.get(label, int(each["numInputRows"] or 0))
        for label, each in zip(about.sources, reported, strict=False)
    ]
    sources = tuple(
        _source(label, each, before.get(label, 0), count, label in about.limited)
        for label, each, count in zip(about.sources, reported, read, strict=False)
    )
    batch = MicroBatch(
        int(progress["batchId"]),
        _micros_of(progress["timestamp"]),
        sum(read),
        _durations(progress["durationMs"]),
    )
    if seen.batches and batch.number <= seen.batches[-1].number:
        return seen
    batches = (*seen.batches, batch)[-BATCHES_KEPT:]
    ended_micros = batch.began_micros + batch.millis.get("triggerExecution", 0) * 1000
    backlogs = [source.backlog for source in sources if source.backlog is not None]
    return replace(
        seen,
        sources=sources,
        batches=batches,
        rows_per_second=_rate(batches),
        throughput=add_work(
            seen.throughput, batch.began_micros, ended_micros, batch.rows, sum(backlogs) if backlogs else None
        ),
        last_rows_micros=ended_micros if batch.rows else seen.last_rows_micros,
        first_batch=batch.number if seen.first_batch is None else seen.first_batch,
    )


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


def _source(
    label: str, reported: Mapping[str, Any], rows_before: int, rows: int, is_limited: bool
) -> SourceNow:
    end, latest = _parts(reported["endOffset"]), _parts(reported.get("latestOffset"))
    behind = [latest[part] - end.get(part, 0) for part in latest]
    backlog = sum(max(0, each) for each in behind) if behind else _metric(reported, "numFilesOutstanding")
    return SourceNow(
        label,
        rows_before + rows,
        _known_rate(reported.get("inputRowsPerSecond"), rows),
        backlog,
        len(end) if end else None,
        max(behind) - min(behind) if len(behind) > 1 else None,
        waits="its limit for a micro-batch leaves the rest for the next ones"
        if backlog and is_limited
        else "",
    )


def _known_rate(rate: object, rows: int) -> float | None:
    """Returns a rate of Spark; None in a first micro-batch, for which Spark reports 0 or no number.

    >>> _known_rate(0.0, 7), _known_rate(float("nan"), 0), _known_rate(0.0, 0), _known_rate(3.5, 7)
    (None, None, 0.0, 3.5)
    """
    if not isinstance(rate, int | float) or rate != rate or (rows and not rate):
        return None
    return float(rate)


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
    at_work: AtWork | None = None,
) -> RunSnapshot:
    """The snapshot of a stream; `at_work` is the micro-batch that is being written, if any."""
    told = watermarks.by_grouping()
    clock_micros = _finite(watermarks.clock_micros) if watermarks.by_shard else None
    goes_on = about.is_live and not PipelineState.is_terminal(state)
    behind = at_micros - clock_micros if goes_on and clock_micros is not None else None
    groupings = tuple(
        _grouping(label, level, told.get(label), seen, clock_micros, about, counted, watermarks)
        for label, level in about.levels.items()
    )
    is_over = PipelineState.is_terminal(state)
    speed = event_speed(seen.history) if goes_on else None
    pace = (
        None
        if is_over
        else pace_of(
            seen.throughput, at_micros, seen.last_rows_micros, about.interval_seconds, at_work, speed
        )
    )
    awaited = _least(one.awaited for one in told.values())
    sources = tuple(
        replace(
            source,
            watermark_micros=_finite(awaited.get(source.label, MIN_MICROS)),
            rejected=int(counted.get((COUNTERS, source.label, *ELEMENTS_REJECTED), 0)),
            waits=_waits(source, awaited.get(source.label), pace),
        )
        for source in seen.sources or map(SourceNow, about.sources)
    )
    elements = _elements(about.flows, about, seen, state, at_micros)
    rows_in = sum(source.rows for source in seen.sources) if about.sources else None
    errors = errors_of(failure, about.steps, about.places)
    return RunSnapshot(
        about.name,
        about.run,
        about.mode,
        state,
        about.began_micros,
        at_micros,
        clock_micros,
        None if behind is None else max(0, behind),
        rows_in=rows_in,
        rows_per_second=seen.rows_per_second if about.sources else None,
        steps=about.steps,
        elements=elements,
        composites=_elements(about.composites, about, seen, state, at_micros),
        sources=sources,
        groupings=groupings,
        micro_batches=seen.batches,
        errors=errors,
        history=seen.history,
        pace=pace,
        throughput=seen.throughput,
        event_speed=speed,
        sinks=sinks_of(about.steps, elements),
        checkpoint=seen.checkpoint,
        runs=(*seen.runs, run_record(about, seen, counted, state, at_micros, errors)) if about.record else (),
        settings=about.settings,
        spark_page=about.spark_page,
    )


def run_record(
    about: RunFacts,
    seen: StreamFacts,
    counted: Snapshot,
    state: str,
    at_micros: int,
    errors: Iterable[StepError] = (),
) -> RunRecord:
    """Returns the record of a run for its checkpoint, with its present state."""
    assert about.record is not None
    dropped = [counted[key] for key in counted if key[0] == COUNTERS and key[2:] in DROPPED.values()]
    return replace(
        about.record,
        seen_micros=at_micros,
        state=state if PipelineState.is_terminal(state) else PipelineState.RUNNING,
        rows=sum(source.rows for source in seen.sources) if about.sources else None,
        first_batch=seen.first_batch,
        last_batch=seen.batches[-1].number if seen.batches else None,
        error=describe_errors(errors),
        dropped=int(sum(dropped)),
    )


def describe_errors(errors: Iterable[StepError]) -> str:
    """Returns errors as the record of a run has them.

    >>> describe_errors([StepError("ValueError", "at step 'Parse'", "Parse"), StepError("OSError", "", "")])
    "ValueError at step 'Parse'; OSError"
    """
    return "; ".join(f"{error.kind} {error.where}".strip() for error in errors)


def _waits(source: SourceNow, watermark_micros: int | None, pace: Pace | None) -> str:
    """Returns what a source waits for, or what waits for it."""
    if pace is None or (watermark_micros is not None and watermark_micros >= MAX_MICROS):
        return ""
    return "it waits for something new to read" if pace.doing == IDLE else source.waits


def sinks_of(steps: Iterable[StepView], elements: Iterable[StepElements]) -> tuple[SinkNow, ...]:
    """Returns the steps that write.

    >>> sinks_of([StepView("Write", "Write")], [StepElements("Write", 7, in_per_second=2.0)])
    (SinkNow(label='Write', elements_in=7, per_second=2.0),)
    """
    taken = {one.label: one for one in elements}
    writes = (step.label for step in steps if step.kind == "Write")
    return tuple(
        SinkNow(label, taken[label].elements_in, taken[label].in_per_second)
        if label in taken
        else SinkNow(label)
        for label in writes
    )


def event_speed(history: History) -> float | None:
    """Returns how many seconds of event time the slowest watermark moved in a second, over the last minute.

    >>> from penstock_spark.live.history import Line
    >>> event_speed(History((Line("Sum", ((0, 0), (10_000_000, 30_000_000))),)))
    3.0
    """
    speeds = []
    for line in history.lines:
        known = [(clock, micros) for clock, micros in line.points if micros is not None]
        if len(known) < 2 or known[-1][1] >= MAX_MICROS:
            continue
        last_clock, last = known[-1]
        since = [point for point in known[:-1] if point[0] <= last_clock - WINDOW_MICROS]
        clock_micros, micros = since[-1] if since else known[0]
        speeds.append((last, round((last - micros) / (last_clock - clock_micros), 3)))
    return min(speeds)[1] if speeds else None


def _spread(watermarks: Watermarks, label: str, number: Callable[[GroupingReport], int]) -> Spread | None:
    """Returns how a number is spread over the shards of a grouping."""
    return _spread_of(
        {shard: number(told[label]) for (_, shard), told in watermarks.by_shard.items() if label in told}
    )


def _busy_micros(watermarks: Watermarks, level: int) -> dict[int, int]:
    """Returns how long each shard of a level worked on the last micro-batch; those without input did not."""
    busy = watermarks.busy_micros
    return {
        shard: busy.get((each, shard), 0) for each, shard in watermarks.by_shard if busy and each == level
    }


def _spread_of(by_shard: Mapping[int, int]) -> Spread | None:
    """Returns how a number is spread over shards; None with less than two.

    >>> _spread_of({0: 5, 1: 70, 2: 15})
    Spread(shards=3, total=90, most=70, most_shard=1, median=15)
    """
    if len(by_shard) < 2:
        return None
    most = max(by_shard, key=lambda shard: (by_shard[shard], -shard))
    ordered = sorted(by_shard.values())
    return Spread(len(ordered), sum(ordered), by_shard[most], most, ordered[len(ordered) // 2])


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
    watermarks: Watermarks,
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
        keys_by_shard=_spread(watermarks, label, lambda own: own.keys),
        bytes_by_shard=_spread(watermarks, label, lambda own: own.state_bytes),
        micros_by_shard=_spread_of(_busy_micros(watermarks, level)),
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


def errors_of(
    failure: BaseException | None, steps: Sequence[StepView], places: Mapping[str, str] | None = None
) -> tuple[StepError, ...]:
    """The errors that made a run fail, by type and step: the text of an exception may quote an element.

    Args:
        failure: The exception; None without one.
        steps: The steps of the run: nothing else in the text counts as a label.
        places: Where each step is made, by label.

    >>> errors_of(ValueError("bad 7 at step 'Parse' (a.py:3)"), [StepView("Parse", "ParDo")])
    (StepError(kind='ValueError', where="at step 'Parse'", step='Parse'),)
    >>> errors_of(ValueError("bad 7 [while running 'Parse' (a.py:3)]"), [StepView("Parse", "ParDo")])
    (StepError(kind='ValueError', where="at step 'Parse'", step='Parse'),)
    >>> errors_of(ValueError("at step 'not one of ours'"), [StepView("Parse", "ParDo")])
    (StepError(kind='ValueError', where='', step=''),)
    """
    if failure is None:
        return ()
    text = "\n".join([str(failure), *getattr(failure, "__notes__", ())])
    labels = {step.label for step in steps}
    named = next((label for label in _STEP.findall(text) if label in labels), "")
    where = (places or {}).get(named, f"at step {named!r}") if named else ""
    return (StepError(type(failure).__name__, where, named),)


def _finite(micros: int) -> int | None:
    """A time; None for the beginning of time, which stands for an unknown one."""
    return None if micros <= MIN_MICROS else micros
