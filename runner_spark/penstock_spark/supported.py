"""Every refusal: what this runner does not do, by name, with a hint, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.error import UnsupportedByRunner
from penstock.functions.signature import DoFnSignature, signature_of
from penstock.graph import CombinePerKey, Graph, GroupByKey, ParDo, Read, StatefulParDo, Step, Write
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.recorded_stream import RecordedStream
from penstock.io.streams import StreamSource
from penstock.io.window_files import windowing_of_files
from penstock.machines.triggers import machine_of
from penstock.transforms.periodicsequence import PeriodicSource
from penstock.windows.triggers import DefaultTrigger, TriggerFn
from penstock.windows.window_fn import GlobalWindows
from penstock_spark.formats.registry import format_of
from penstock_spark.passes.side_views import unending_edges
from penstock_spark.passes.windowed_writes import writes_by_window
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.windowing import windowing_of

_STREAMS = (RecordedStream, StreamSource, PeriodicSource, SequenceSource)


def default_mode(graph: Graph) -> str:
    """The mode of a pipeline that asks for none: ``streaming`` if a source is unbounded, else ``batch``."""
    read = (output.edge for step in graph.steps if not step.inputs for output in step.outputs)
    return "batch" if all(graph.edge(edge).is_bounded for edge in read) else "streaming"


def check(graph: Graph, mode: str) -> None:
    """Refuses a pipeline that this runner cannot run.

    Args:
        graph: The pipeline.
        mode: ``batch``, ``micro_batch`` or ``streaming``.

    Raises:
        UnsupportedByRunner: Naming the step, what it asks for, and what to do instead.
    """
    for step in graph.steps:
        for what, hint in _refusals(graph, step, mode):
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
    if mode != "batch":
        for step, what, hint in _clocks(graph):
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
    # Which elements may be retractions can only be asked when all triggers are known.
    retracting = retracting_edges(graph, is_streaming=mode != "batch")
    unending = unending_edges(graph) if mode != "batch" else frozenset()
    for step in graph.steps:
        if any(side.edge in unending for side in step.side_inputs) and not retracting.isdisjoint(step.inputs):
            raise UnsupportedByRunner(
                "its input may take elements back, which would meet another side input than when they came",
                where=step.where,
                hint="join the two, or read the side input before the grouping that takes elements back",
            )
        if isinstance(step.primitive, Write) and not retracting.isdisjoint(step.inputs):
            raise UnsupportedByRunner(
                "a sink takes no elements that take earlier ones back, and its input may hold some",
                where=step.where,
                hint="write what Changelog() makes of them, or group in the mode ACCUMULATING or DISCARDING",
            )


def _refusals(graph: Graph, step: Step, mode: str) -> Iterator[tuple[str, str]]:
    yield from _unbounded(graph, step) if mode == "batch" else _streaming(graph, step)
    match step.primitive:
        case ParDo(dofn):
            yield from _dofn(signature_of(dofn))
            if isinstance(step.primitive, StatefulParDo):
                yield from _stateful(graph, step)
                if dofn._process_yields_batches:
                    yield "a DoFn with state or timers cannot yield batches yet", "yield elements"
        case GroupByKey() | CombinePerKey():
            for edge in step.inputs:
                yield from _trigger(windowing_of(graph, edge).triggerfn)


def _unbounded(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    if not step.inputs and any(not graph.edge(output.edge).is_bounded for output in step.outputs):
        hint = "leave mode='batch' out, and the pipeline runs as a stream; or read a bounded source"
        yield "an unbounded source cannot be read in batch mode", hint


def _streaming(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    match step.primitive:
        case Read(source) if not (source.is_bounded or isinstance(source, _STREAMS)):
            yield (
                f"nothing says how {source.describe()} is read as a stream",
                "use a source of penstock.io, with as_stream()",
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
                    "than 0: its names are asked for when the window ends, which it never does",
                    "pass triggering_frequency, put WindowInto before, or end the pipeline with the write",
                )


def _clocks(graph: Graph) -> Iterator[tuple[Step, str, str]]:
    """Sources whose processing times cannot be had together."""
    reads = [(step, step.primitive.source) for step in graph.steps if isinstance(step.primitive, Read)]
    recorded = [step for step, source in reads if isinstance(source, RecordedStream)]
    ticks = [step for step, source in reads if _has_arrival_times(source)]
    live = [step for step, source in reads if not source.is_bounded and step not in (*recorded, *ticks)]
    for one, other in ((recorded, ticks), (recorded, live), (ticks, live)):
        if one and other:
            yield (
                other[0],
                f"it does not go by the same clock as {one[0].label!r}: a TestStream has its own, recorded arrival "
                "times are another, and all else goes by the machine's",
                "read recorded streams with arrival times, all of them, or none",
            )


def _has_arrival_times(source: Any) -> bool:
    return isinstance(source, StreamSource) and source.arrival_time is not None


def _dofn(signature: DoFnSignature) -> Iterator[tuple[str, str]]:
    if signature.is_splittable:
        yield (
            "a splittable DoFn is not supported yet",
            "create the parts of the work as elements and Reshuffle them",
        )
    if "WatermarkEstimatorParam" in signature.kinds:
        yield "a watermark estimator has no meaning in batch mode", "leave the parameter out"


def _stateful(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    windowfn = windowing_of(graph, step.inputs[0]).windowfn
    if windowfn.is_merging():
        yield (
            f"state belongs to one window, and those of {windowfn} merge",
            "use windows that do not merge, or group first and process the groups",
        )


def _trigger(trigger: TriggerFn) -> Iterator[tuple[str, str]]:
    try:
        machine_of(trigger)
    except TypeError:
        yield (
            f"nothing says how the trigger {trigger} works",
            "derive triggers of your own from CustomTrigger",
        )
