"""Refuses what this runner does not support, before anything starts, with the name of the step and a hint."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.error import UnsupportedByRunner, three_parts
from penstock.functions.signature import signature_of
from penstock.functions.splitting import splits_of
from penstock.graph import (
    CombinePerKey,
    Graph,
    GroupByKey,
    ParDo,
    Read,
    Source,
    StatefulParDo,
    Step,
    Write,
)
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.files.window_files import windowing_of_files
from penstock.io.formats.text_rows import TextRowsSink
from penstock.io.streaming.periodic_sequence import PeriodicSource
from penstock.io.streaming.recorded_stream import RecordedStream
from penstock.io.streaming.stream_sources import StreamSource
from penstock.machines.triggers import machine_of
from penstock.windows.triggers import DefaultTrigger, can_fire_early
from penstock.windows.window_fn import GlobalWindows
from penstock_spark.formats.registry import format_of
from penstock_spark.passes.side_views import side_views, unending_edges, without_side_views
from penstock_spark.passes.single_panes import single_panes
from penstock_spark.passes.windowed_writes import writes_by_window
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.splitting import is_splittable
from penstock_spark.plan.stream_plan import Clock, clock_of, ends_on_its_own
from penstock_spark.plan.windowing import windowing_of

_LOGGER = logging.getLogger(__name__)

_STREAMS = (RecordedStream, StreamSource, PeriodicSource, SequenceSource)


def warn_of_hints(steps: Iterable[Step]) -> None:
    """Logs one warning if steps of a pipeline that is about to run have resource hints."""
    hinted = [step.label for step in steps if step.resource_hints]
    if hinted:
        _LOGGER.warning(
            "Spark runs all steps on the same machines, so the resource hints of these steps have no effect: %s; set "
            "Spark's properties, such as --spark_conf=spark.executor.memory=8g, spark.executor.cores and "
            "spark.executor.resource.gpu.amount",
            ", ".join(hinted),
        )


def default_mode(graph: Graph) -> str:
    """The mode of a pipeline whose options name none: ``streaming`` if a source, or the work on an element, is
    unbounded, else ``batch``.
    """
    read = (output.edge for step in graph.steps if not step.inputs for output in step.outputs)
    is_bounded = all(graph.edge(edge).is_bounded for edge in read)
    return "batch" if is_bounded and not any(map(_may_never_end, graph.steps)) else "streaming"


def mode_of(graph: Graph, asked: str | None, available_now: bool) -> str:
    """The mode in which a pipeline runs, if its options ask for a mode or for none.

    A batch that takes what is available now of an unbounded source is a stream that ends early.
    """
    natural = default_mode(graph)
    if asked == "batch" and available_now and natural != "batch":
        return natural
    return asked or natural


def _may_never_end(step: Step) -> bool:
    """True if a step is a splittable DoFn whose work on an element may never end."""
    return is_splittable(step.primitive) and splits_of(step.primitive.dofn).is_unbounded  # type: ignore[union-attr]


def check(graph: Graph, mode: str, allow_unsafe_triggers: bool = False) -> None:
    """Refuses a pipeline that this runner cannot run; the error names the step, what it asks for, and what to
    do.

    `allow_unsafe_triggers` is the option of that name: the pipeline may wait forever.
    """
    for step in graph.steps:
        for what, hint in _refusals(graph, step, mode):
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
    for step, what, hint in _colliding(graph):
        raise UnsupportedByRunner(what, where=step.where, hint=hint)
    if mode != "batch":
        for step, what, hint in _clocks(graph):
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
        for step, what, hint in _find_double_writes(graph):
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
    if mode == "streaming":
        for step, what, is_for_ever in _waits(graph):
            if is_for_ever and not allow_unsafe_triggers:
                raise UnsupportedByRunner(what, where=step.where, hint=_WAITS_LESS)
            _LOGGER.warning("%s", three_parts(what, where=step.where, hint=_WAITS_LESS))
    # This asks the triggers' machines, so all triggers must be known.
    retracting = retracting_edges(
        graph if mode == "micro_batch" else single_panes(graph), is_streaming=mode != "batch"
    )
    unending = unending_edges(graph) if mode != "batch" else frozenset()
    for step in graph.steps:
        if any(side.edge in unending for side in step.side_inputs) and not retracting.isdisjoint(step.inputs):
            raise UnsupportedByRunner(
                "its input may retract elements, and a retraction may see a different side input than its element did",
                where=step.where,
                hint="join the two, or read the side input before the grouping that retracts elements",
            )
        if not retracting.isdisjoint(step.inputs) and not _accepts_retractions(step):
            raise UnsupportedByRunner(
                "it does not accept retractions, and in the mode micro_batch a round may retract results of its input",
                where=step.where,
                hint="run in the mode streaming, or group in the mode ACCUMULATING or DISCARDING first",
            )
        if isinstance(step.primitive, Write) and not retracting.isdisjoint(step.inputs):
            raise UnsupportedByRunner(
                "a sink cannot write retractions, and its input may contain some",
                where=step.where,
                hint="apply Changelog() before the write, or group in the mode ACCUMULATING or DISCARDING",
            )


_WAITS_LESS = (
    "window the side input, e.g. WindowInto(FixedWindows(60)), "
    "or give it a trigger such as Repeatedly(AfterCount(1))"
)


def _waits(graph: Graph) -> Iterator[tuple[Step, str, bool]]:
    """Yields the steps whose elements wait for the end of a stream, and whether only a drain ends it.

    They have a side input in the global window, which fires at the end of all time. In the mode ``micro_batch`` it is
    ready with each round, and a TestStream ends at once.
    """
    unending = unending_edges(graph)
    for step in graph.steps:
        for side in step.side_inputs:
            windowing = windowing_of(graph, side.edge)
            if (
                side.edge not in unending
                or not isinstance(windowing.windowfn, GlobalWindows)
                or can_fire_early(windowing.triggerfn)
            ):
                continue
            producer = graph.producer(side.edge)
            before = graph.leading_to(producer).steps
            sources = {
                each.label: each.primitive.source for each in before if isinstance(each.primitive, Read)
            }
            lasting = [label for label, source in sources.items() if not ends_on_its_own(source)]
            lasting += [each.label for each in before if _may_never_end(each)]
            of = f"its side input, the unbounded collection of {producer.label!r} in the global window,"
            if lasting:
                yield step, f"{of} has no content before {lasting[0]!r} ends, which it never does", True
            elif not any(isinstance(source, RecordedStream) for source in sources.values()):
                what = f"{of} has no content before its sources end, and every element waits for that"
                yield step, what, False


def _find_double_writes(graph: Graph) -> Iterator[tuple[Step, str, str]]:
    """Yields the writes that both the query and the batch of its bounded side inputs would run."""
    aside = side_views(graph)
    computed = {step.label for step in aside.steps} if aside else set()
    for step in without_side_views(graph).steps if aside else ():
        if isinstance(step.primitive, Write) and step.label in computed:
            yield (
                step,
                "what it has written leads to a side input, which a batch computes before the query starts, and to "
                "other steps of the query, which would write everything again",
                "read its results only for the side input, or only in the query",
            )


def _accepts_retractions(step: Step) -> bool:
    """True if retractions may come to a step whose construction has not checked for them, in each mode."""
    match step.primitive:
        case StatefulParDo(dofn):
            return bool(dofn.accepts_retractions)
        case CombinePerKey(fn):
            return bool(fn.accepts_retractions)
    return True


def _refusals(graph: Graph, step: Step, mode: str) -> Iterator[tuple[str, str]]:
    if mode != "batch":
        yield from _streaming(graph, step)
    elif not step.inputs and any(not graph.edge(output.edge).is_bounded for output in step.outputs):
        hint = (
            "add --available_now to read what is there now, leave out mode='batch' to run the pipeline as a stream, "
            "or read a bounded source"
        )
        yield "batch mode cannot read an unbounded source", hint
    if step.inputs and isinstance(step.primitive, Read):
        yield from _query(graph, step, mode)
    match step.primitive:
        case ParDo(dofn):
            signature = signature_of(dofn)
            if signature.is_splittable:
                yield from _splittable(graph, step, mode)
            elif "WatermarkEstimatorParam" in signature.kinds:
                hint = "also ask for DoFn.RestrictionParam, or leave out the parameter"
                yield "only a splittable DoFn has a watermark estimator", hint
            if isinstance(step.primitive, StatefulParDo):
                windowfn = windowing_of(graph, step.inputs[0]).windowfn
                if windowfn.is_merging():
                    yield (
                        f"state belongs to one window, and the windows of {windowfn} merge",
                        "use windows that do not merge, or group first and process the groups",
                    )
                if dofn.process_yields_batches:
                    yield "a DoFn with state or timers cannot yield batches yet", "yield elements"
        case GroupByKey() | CombinePerKey():
            for edge in step.inputs:
                trigger = windowing_of(graph, edge).triggerfn
                try:
                    machine_of(trigger)
                except TypeError:
                    what = f"the runner does not know the trigger {trigger}"
                    yield what, "derive your own trigger from CustomTrigger"


def _query(graph: Graph, step: Step, mode: str) -> Iterator[tuple[str, str]]:
    """The refusals of a query that Spark computes over the rows of other steps."""
    if mode != "batch":
        what = "Spark alone computes this query, over rows that Python makes, which only a batch does"
        yield what, "compute it in a separate pipeline, with mode='batch'"
    if any(isinstance(each.primitive, Write) for each in graph.leading_to(step).steps):
        what = "a query that Spark alone computes cannot read what a sink has written"
        yield what, "read it in a second pipeline, when the first one has ended"


def _splittable(graph: Graph, step: Step, mode: str) -> Iterator[tuple[str, str]]:
    dofn = step.primitive.dofn  # type: ignore[union-attr]
    if isinstance(step.primitive, StatefulParDo):
        hint = "read in one step, and keep state in the next one"
        yield "a splittable DoFn cannot use state or timers, because its restrictions have no key", hint
        return
    if dofn.defines_process_batch or dofn.process_yields_batches:
        yield "a splittable DoFn cannot take or yield batches", "take and yield elements"
        return
    if mode == "batch":
        if _may_never_end(step):
            hint = "leave out mode='batch' to run the pipeline as a stream, or bound the work on each element"
            yield "batch mode cannot run a splittable DoFn whose work on an element may never end", hint
        return
    clock = clock_of(graph.steps)
    if clock is not Clock.LIVE and _may_never_end(step):
        yield (
            f"work that may never end follows the machine's clock, but here processing time is {clock.value}",
            "leave out the TestStream and recorded arrival times, or bound the work on each element",
        )
    if any(side.edge in unending_edges(graph) for side in step.side_inputs):
        yield (
            "a splittable DoFn of a stream cannot read a side input that may change",
            "give it a bounded side input, or read the side input in a step after it",
        )


def _streaming(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    match step.primitive:
        case Read(source) if not (source.is_bounded or isinstance(source, _STREAMS)):
            yield (
                f"the runner cannot read {source.describe()} as a stream",
                "use a source of penstock.io with as_stream()",
            )
        case Write(sink) if format_of(sink).files and writes_by_window(graph, step):
            edge = graph.edge(step.inputs[0])
            windowing = windowing_of_files(windowing_of(graph, edge.id), edge.is_bounded, sink)
            is_never = isinstance(windowing.windowfn, GlobalWindows) and isinstance(
                windowing.triggerfn, DefaultTrigger
            )
            if is_never and not edge.is_bounded:
                yield (
                    "To write a GlobalWindow unbounded PCollection, triggering_frequency must be set and be greater "
                    "than 0: a file gets its name when its window ends, and the global window never ends",
                    "pass triggering_frequency, put WindowInto before the write, or let no step read its results",
                )


def _colliding(graph: Graph) -> Iterator[tuple[Step, str, str]]:
    """Writes whose files have the names of another one's: the last would replace the others."""
    found: dict[Any, Step] = {}
    for step in graph.steps:
        sink = step.primitive.sink if isinstance(step.primitive, Write) else None
        shards = getattr(sink, "shards", None)
        if shards is not None:
            names: object = shards.file_path_prefix, shards.template, shards.file_name_suffix
        elif isinstance(sink, TextRowsSink) and sink.file_naming is None:
            names = sink.path, sink.partition_by
        else:
            continue
        other = found.setdefault(names, step)
        if other is not step:
            what = f"its files have the same names as the files of {other.label!r}, and would replace them"
            yield step, what, "give one of the two another path, or Flatten their inputs"


def _clocks(graph: Graph) -> Iterator[tuple[Step, str, str]]:
    """Sources whose clocks cannot run in one query."""
    reads = [(step, step.primitive.source) for step in graph.steps if isinstance(step.primitive, Read)]
    recorded = [step for step, source in reads if isinstance(source, RecordedStream)]
    ticks = [step for step, source in reads if _has_arrival_times(source)]
    live = [step for step, source in reads if not source.is_bounded and step not in (*recorded, *ticks)]
    for one, other in ((recorded, ticks), (recorded, live), (ticks, live)):
        if one and other:
            yield (
                other[0],
                f"it does not use the same clock as {one[0].label!r}: a TestStream has its own clock, recorded arrival "
                "times are another, and every other source uses the machine's",
                "give all sources recorded arrival times, or none of them",
            )


def _has_arrival_times(source: Source) -> bool:
    return isinstance(source, StreamSource) and source.arrival_time is not None
