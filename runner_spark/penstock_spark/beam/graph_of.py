"""Turns a Beam pipeline into the graph that the compiler takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam
from apache_beam import pvalue as beam_pvalue
from apache_beam.internal.util import ArgumentPlaceholder
from apache_beam.io import iobase as beam_iobase
from apache_beam.testing import test_stream as beam_test_stream
from apache_beam.transforms import core as beam_core
from apache_beam.transforms import util as beam_util
from apache_beam.transforms import window as beam_window
from apache_beam.transforms.external import ExternalTransform
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.userstate import is_stateful_dofn

from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import FlatMapDoFn
from penstock.functions.signature import bind
from penstock.graph import (
    AssignWindows,
    CombinePerKey,
    Edge,
    Flatten,
    Graph,
    GroupByKey,
    InlineValues,
    Output,
    ParDo,
    Primitive,
    Read,
    Reshuffle,
    SideInput,
    SideInputSlot,
    StatefulParDo,
    Step,
    Write,
)
from penstock.where import Location, at_step
from penstock_spark.beam.combining import combine_fn_of
from penstock_spark.beam.dofns import dofn_function, dofn_of
from penstock_spark.beam.side_inputs import side_input_of
from penstock_spark.beam.sources import periodic_source, read_pieces, split_source
from penstock_spark.beam.splittable import SplittableDoFn, is_splittable
from penstock_spark.beam.streams import translate_test_stream
from penstock_spark.beam.text_files import text_sink_of, text_source_of, with_absolute_paths
from penstock_spark.beam.types import element_type_of, refine_type
from penstock_spark.beam.values import output_of
from penstock_spark.beam.windowing import windowing_of
from penstock_spark.supported import default_mode

if TYPE_CHECKING:
    from apache_beam.pipeline import AppliedPTransform, Pipeline

_BEAM = os.path.dirname(apache_beam.__file__)


def graph_of(pipeline: Pipeline, mode: str | None = None) -> Graph:
    """The graph of a Beam pipeline, for a mode; without a mode, the graph decides.

    Raises:
        UnsupportedByRunner: If the runner cannot run a transform; the message names it.
    """
    graph = _build(pipeline, is_batch=True)
    return graph if (mode or default_mode(graph)) == "batch" else _build(pipeline, is_batch=False)


def _build(pipeline: Pipeline, is_batch: bool) -> Graph:
    builder = _Builder(is_batch)
    for node in pipeline.transforms_stack[0].parts:
        builder.add(node)
    return Graph(tuple(builder.steps), tuple(builder.edges))


class _Builder:
    """The steps and edges so far, and the edge of each PCollection."""

    def __init__(self, is_batch: bool) -> None:
        self.is_batch = is_batch
        self.steps: list[Step] = []
        self.edges: list[Edge] = []
        self.numbers: dict[Any, int] = {}

    def add(self, node: AppliedPTransform) -> None:
        """Adds the steps of a transform: of itself if the compiler knows it, else of its parts."""
        if isinstance(node.transform, ExternalTransform):
            raise _unknown(node)
        translate = _translation(node, self.is_batch)
        if translate is not None:
            # Beam keeps a step that it has refused, without outputs, if the program continues.
            if node.outputs:
                translate(self, node)
        elif node.parts:
            for part in node.parts:
                self.add(part)
        elif any(value.producer is node for value in node.outputs.values()):
            raise _unknown(node)

    def step(
        self,
        node: AppliedPTransform,
        primitive: Primitive,
        *,
        part: str = "",
        inputs: Sequence[int] | None = None,
        outputs: Sequence[Output] | None = None,
        location: Location | None = None,
    ) -> None:
        """Adds a step for a transform, or for a `part` of one."""
        label = f"{node.full_label}/{part}" if part else node.full_label
        found = tuple(map(self.edge_of, node.inputs)) if inputs is None else tuple(inputs)
        sides = () if part else tuple(map(self._side_input, node.side_inputs))
        made = tuple(self._outputs(node)) if outputs is None else tuple(outputs)
        self.steps.append(Step(label, primitive, found, sides, made, location))

    def edge_of(self, pcoll: beam_pvalue.PCollection) -> int:
        """The number of a PCollection's edge."""
        return self.numbers[pcoll]

    def inputs_of(self, node: AppliedPTransform) -> tuple[int, ...]:
        """The edges that a transform reads."""
        return tuple(self.edge_of(value) for value in node.inputs if not _is_begin(value))

    def new_edge(self, pcoll: beam_pvalue.PCollection, where: str) -> int:
        """The edge of a PCollection that a step makes."""
        number = self.numbers[pcoll] = len(self.edges)
        windowing = windowing_of(pcoll.windowing, where)
        hint = element_type_of(pcoll.element_type)
        self.edges.append(Edge(number, hint, windowing, pcoll.is_bounded))
        return number

    def type_of_input(self, node: AppliedPTransform) -> object:
        """The type of the elements that a step reads."""
        return self.edges[self.inputs_of(node)[0]].element_type

    def refine(self, inferred: object) -> None:
        """Adds what is known of the main output of the last step: Beam infers fewer types."""
        number = self.steps[-1].outputs[0].edge
        edge = self.edges[number]
        self.edges[number] = replace(edge, element_type=refine_type(edge.element_type, inferred))

    def inner_edge(self, node: AppliedPTransform) -> Output:
        """An edge between two steps of one transform, windowed like its input."""
        number = len(self.edges)
        inputs = self.inputs_of(node)
        like = self.edges[inputs[0]] if inputs else Edge(number, None, windowing_of(_GLOBAL, ""))
        self.edges.append(replace(like, id=number, element_type=element_type_of(None)))
        return Output(None, number)

    def _outputs(self, node: AppliedPTransform) -> Iterator[Output]:
        # The main output comes first, even if a tagged output was used earlier.
        for tag in sorted(node.outputs, key=lambda tag: tag is not None):
            pcoll = node.outputs[tag]
            if isinstance(pcoll, beam_pvalue.PCollection):
                yield Output(None if tag is None else str(tag), self.new_edge(pcoll, where_of(node)))

    def _side_input(self, side: beam_pvalue.AsSideInput) -> SideInput:
        return side_input_of(side, self.edge_of(side.pvalue))


_GLOBAL = beam_core.Windowing(beam_window.GlobalWindows())


def where_of(node: AppliedPTransform) -> str:
    """The middle part of an error about a transform."""
    return at_step(node.full_label, None)


def _is_begin(value: object) -> bool:
    return isinstance(value, beam_pvalue.PBegin)


def _unknown(node: AppliedPTransform) -> Exception:
    transform = node.transform
    sort, inner = "transform", getattr(transform, "source", None) or getattr(transform, "sink", None)
    if inner is not None:
        sort, transform = "end", inner
    kind = type(transform)
    hint = "write the step with Beam's ParDo and GroupByKey, or use penstock's own transform for it"
    if "pubsub" in kind.__module__:
        hint = (
            "only Google's runners have Pub/Sub; read it with a penstock.io.RangeSource over Google's client"
        )
    elif isinstance(transform, ExternalTransform) or "external" in kind.__module__:
        hint = (
            "cross-language transforms need Beam's Java services; penstock.io and penstock.sql have their own"
        )
    what = f"the runner cannot run the {sort} {kind.__name__}"
    return UnsupportedByRunner(what, where=where_of(node), hint=hint)


_Translation = Callable[[_Builder, Any], None]


def _translation(node: AppliedPTransform, is_batch: bool) -> _Translation | None:
    """The function that makes the steps of a transform; None for a composite that is made of its parts."""
    translate = next(
        (found for kind, found in _TRANSLATIONS.items() if isinstance(node.transform, kind)), None
    )
    return (
        None if translate is None or (node.parts and not _is_known_composite(node, is_batch)) else translate
    )


def _is_known_composite(node: AppliedPTransform, is_batch: bool) -> bool:
    """True if the compiler knows better than the parts of a composite."""
    match node.transform:
        case beam_core.CombinePerKey():
            return not node.side_inputs
        case beam_iobase.Read():
            return isinstance(node.transform.source, beam_iobase.BoundedSource)
        case beam_iobase.Write():
            # In a stream, Beam writes the files of a window, and a penstock sink the files of a micro-batch.
            return is_batch and text_sink_of(node.transform.sink) is not None
    return type(node.transform) in _KNOWN_COMPOSITES


_KNOWN_COMPOSITES = (beam_core.Create, beam_util.Reshuffle, beam_util.ReshufflePerKey, PeriodicImpulse)


def _create(builder: _Builder, node: AppliedPTransform) -> None:
    # Values with a time or windows are outputs of `Create`, and not its elements.
    builder.step(node, Read(InlineValues(tuple(map(output_of, node.transform.values)))), inputs=())


def _impulse(builder: _Builder, node: AppliedPTransform) -> None:
    builder.step(node, Read(InlineValues((b"",))), inputs=())


def _read(builder: _Builder, node: AppliedPTransform) -> None:
    if not isinstance(node.transform.source, beam_iobase.BoundedSource):
        raise _unknown(node)
    known = text_source_of(node.transform.source)
    if known is not None:
        builder.step(node, Read(known), inputs=())
        return
    values = Read(InlineValues((with_absolute_paths(node.transform.source),)))
    reader = "SDFBoundedSourceReader"
    source, pieces, spread = (builder.inner_edge(node) for _ in range(3))
    builder.step(node, values, part="Impulse", inputs=(), outputs=[source])
    builder.step(node, ParDo(split_source()), part=f"{reader}/Split", inputs=[source.edge], outputs=[pieces])
    builder.step(node, Reshuffle(), part=f"{reader}/Spread", inputs=[pieces.edge], outputs=[spread])
    [output] = builder._outputs(node)
    builder.step(node, ParDo(read_pieces()), part=f"{reader}/Read", inputs=[spread.edge], outputs=[output])


def _write(builder: _Builder, node: AppliedPTransform) -> None:
    sink = text_sink_of(node.transform.sink)
    if sink is None:
        raise _unknown(node)
    builder.step(node, Write(sink))


def _pardo(builder: _Builder, node: AppliedPTransform) -> None:
    transform = node.transform
    if getattr(transform.fn, "is_materialize_values_do_fn", False):
        # Beam's own mark of a DoFn that appends to a list of the program, whose process it never leaves.
        what = "the runner cannot return the results of a transform of plain values, as in [1, 2] | transform"
        hint = "apply the transform in a pipeline: pipeline | beam.Create(values) | transform"
        raise UnsupportedByRunner(what, where=where_of(node), hint=hint)
    slots = iter(range(len(node.side_inputs)))

    def filled(value: object) -> object:
        return SideInputSlot(next(slots)) if isinstance(value, ArgumentPlaceholder) else value

    args = tuple(map(filled, transform.args))
    # Beam numbers side inputs in keyword arguments by the order of their names.
    kwargs = tuple((name, filled(transform.kwargs[name])) for name in sorted(transform.kwargs))
    location = location_of(dofn_function(transform.fn))
    made = SplittableDoFn(transform.fn) if is_splittable(transform.fn) else dofn_of(transform.fn)
    if not isinstance(made, SplittableDoFn):
        bind(made.process_signature(), args, dict(kwargs), where=at_step(node.full_label, location))
    kind = StatefulParDo if is_stateful_dofn(transform.fn) else ParDo
    builder.step(node, kind(made, args, kwargs), location=location)
    if isinstance(made, FlatMapDoFn):
        builder.refine(made.infer_output_type(builder.type_of_input(node)))


def _combine(builder: _Builder, node: AppliedPTransform) -> None:
    transform = node.transform
    combine = CombinePerKey(combine_fn_of(transform.fn, transform.args, transform.kwargs))
    builder.step(node, combine, location=location_of(transform.fn.add_input))


def _flatten(builder: _Builder, node: AppliedPTransform) -> None:
    builder.step(node, Flatten(), inputs=builder.inputs_of(node))


def _test_stream(builder: _Builder, node: AppliedPTransform) -> None:
    outputs = list(builder._outputs(node))
    source = translate_test_stream(node.transform, tuple(output.tag for output in outputs))
    builder.step(node, Read(source), inputs=(), outputs=outputs)


def _periodic_impulse(builder: _Builder, node: AppliedPTransform) -> None:
    transform, [output] = node.transform, builder._outputs(node)
    read = Read(periodic_source(transform))
    if not transform.apply_windowing:
        builder.step(node, read, part="GenSequence", inputs=(), outputs=[output])
        return
    ticks = builder.inner_edge(node)
    builder.edges[ticks.edge] = replace(builder.edges[ticks.edge], is_bounded=False)
    builder.step(node, read, part="GenSequence", inputs=(), outputs=[ticks])
    builder.step(node, AssignWindows(), part="ApplyWindowing", inputs=[ticks.edge], outputs=[output])


def _simple(primitive: Callable[[], Primitive]) -> _Translation:
    return lambda builder, node: builder.step(node, primitive())


_TRANSLATIONS: Mapping[type, _Translation] = {
    beam_core.Create: _create,
    PeriodicImpulse: _periodic_impulse,
    beam_core.Impulse: _impulse,
    beam_iobase.Read: _read,
    beam_iobase.Write: _write,
    beam_test_stream.TestStream: _test_stream,
    beam_core.WindowInto: _simple(AssignWindows),
    beam_core.ParDo: _pardo,
    beam_core.GroupByKey: _simple(GroupByKey),
    beam_core.CombinePerKey: _combine,
    beam_core.Flatten: _flatten,
    beam_util.Reshuffle: _simple(Reshuffle),
    beam_util.ReshufflePerKey: _simple(lambda: Reshuffle(by_key=True)),
}


def location_of(function: object) -> Location | None:
    """The first line of a function, or of the class of an object; None if it is not the user's."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code.co_filename.startswith((_BEAM, "<")):
        return None
    return Location(code.co_filename, code.co_firstlineno)
