"""Every refusal: what this runner does not do, by name, with a hint, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.error import UnsupportedByRunner
from penstock.graph import CombinePerKey, Graph, GroupByKey, InlineValues, ParDo, Read, Step, Write
from penstock.machines.triggers import machine_of
from penstock.testing.test_stream import RecordedStream
from penstock.transforms.dofn import DoFnSignature, signature_of
from penstock.transforms.trigger import TriggerFn
from penstock_spark.retractions import retracting_edges
from penstock_spark.windowing import windowing_of


def default_mode(graph: Graph) -> str:
    """The mode of a pipeline that asks for none: ``streaming`` if something in it is unbounded, else ``batch``."""
    return "batch" if all(edge.is_bounded for edge in graph.edges) else "streaming"


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
        return
    # Which elements may be retractions can only be asked when all triggers are known.
    retracting = retracting_edges(graph)
    for step in graph.steps:
        if isinstance(step.primitive, Write) and not retracting.isdisjoint(step.inputs):
            raise UnsupportedByRunner(
                "a sink takes no elements that take earlier ones back, and its input may hold some",
                where=step.where,
                hint="write what Changelog() makes of them, or group in the mode ACCUMULATING or DISCARDING",
            )


def _refusals(graph: Graph, step: Step, mode: str) -> Iterator[tuple[str, str]]:
    yield from _unbounded(graph, step) if mode == "batch" else _streaming(step)
    match step.primitive:
        case ParDo(dofn):
            yield from _dofn(signature_of(dofn))
        case GroupByKey() | CombinePerKey():
            for edge in step.inputs:
                yield from _trigger(windowing_of(graph, edge).triggerfn)


def _unbounded(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    if not step.inputs and any(not graph.edge(output.edge).is_bounded for output in step.outputs):
        yield "an unbounded source cannot be read in batch mode", "read a bounded source"


def _streaming(step: Step) -> Iterator[tuple[str, str]]:
    if step.side_inputs:
        yield "side inputs are not there yet in streaming", "join with CoGroupByKey, or use mode='batch'"
    match step.primitive:
        case Read(source) if not isinstance(source, InlineValues | RecordedStream):
            yield (
                f"the source {source.describe()} cannot be streamed yet",
                "use a TestStream or Create, or mode='batch'",
            )
        case Write(sink):
            yield f"the sink {sink.describe()} takes no stream yet", "use mode='batch'"


def _dofn(signature: DoFnSignature) -> Iterator[tuple[str, str]]:
    if signature.is_stateful:
        yield (
            "a DoFn with state or timers is not supported yet",
            "group by key and process the values of each key",
        )
    if signature.is_splittable:
        yield (
            "a splittable DoFn is not supported yet",
            "create the parts of the work as elements and Reshuffle them",
        )
    if signature.process_batch is not None:
        yield "process_batch is not supported yet", "define process; the runner batches elements by itself"
    if "WatermarkEstimatorParam" in signature.kinds:
        yield "a watermark estimator has no meaning in batch mode", "leave the parameter out"


def _trigger(trigger: TriggerFn) -> Iterator[tuple[str, str]]:
    try:
        machine_of(trigger)
    except TypeError:
        yield (
            f"nothing says how the trigger {trigger} works",
            "derive triggers of your own from CustomTrigger",
        )
