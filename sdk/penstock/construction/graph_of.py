"""Turns a pipeline as it was written into the graph that the runner compiles."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.applied import AppliedPTransform
from penstock.construction.pvalue import PCollection
from penstock.construction.runtime_type_checks import add_type_checks
from penstock.error import TransformError
from penstock.graph import Primitive
from penstock.options.pipeline_options import PipelineOptions, TypeOptions
from penstock.typehints import typehints

TypeChecks: TypeAlias = Literal["all", "sampled"]
"""Which elements a running pipeline checks against type hints."""


def graph_of(root: AppliedPTransform, checks: TypeChecks | None = None) -> graph.Graph:
    """Returns the graph below a node of the pipeline's tree; by default without type checks at run time.

    The steps are in the order of application. A transform can only be applied after the ones that it reads from, and so
    the order is topological.
    """
    return _built(root, checks).graph()


def graph_with_edge(pcoll: pvalue.PCollection[Any]) -> tuple[graph.Graph, int]:
    """Returns the graph of a PCollection's pipeline, and the number of the edge that the PCollection became."""
    pipeline = pcoll.pipeline
    builder = _built(pipeline.root_transform(), type_checks(pipeline.options))
    return builder.graph(), builder.numbers[id(pcoll)]


def type_checks(options: PipelineOptions) -> TypeChecks | None:
    """Which type hints a pipeline with these options checks while it runs."""
    types = options.view_as(TypeOptions)
    if types.runtime_type_check:
        return "all"
    return "sampled" if types.performance_runtime_type_check else None


def _built(root: AppliedPTransform, checks: TypeChecks | None) -> _Builder:
    builder = _Builder(checks)
    for leaf in root.leaves():
        if leaf.transform is not None:
            builder.add(leaf)
    return builder


class _Builder:
    """The steps and edges so far, and the edge of each PCollection."""

    def __init__(self, checks: TypeChecks | None) -> None:
        self.checks = checks
        self.steps: list[graph.Step] = []
        self.edges: list[graph.Edge] = []
        self.numbers: dict[int, int] = {}

    def graph(self) -> graph.Graph:
        return graph.Graph(tuple(self.steps), tuple(self.edges))

    def add(self, leaf: AppliedPTransform) -> None:
        """Adds the step of a leaf, unless it returns its input unchanged."""
        assert leaf.transform is not None
        primitive = leaf.transform.to_primitive()
        if primitive is None:
            if not leaf.is_composite():
                what = f"{type(leaf.transform).__name__} returns a PCollection that no transform makes"
                hint = "return from expand the outputs of the transforms that it applies"
                raise TransformError(what, where=leaf.where, hint=hint)
            return
        if self.checks is not None:
            primitive = self._with_checks(leaf, primitive)
        inputs = tuple(
            self._edge(leaf, value) for value in leaf.inputs if not isinstance(value, pvalue.PBegin)
        )
        sides = tuple(
            graph.SideInput(self._edge(leaf, side.pvalue), side.view, side.default)
            for side in leaf.side_inputs
        )
        # The main output comes first, even if a tagged output was used earlier.
        tags = sorted(leaf.outputs, key=lambda tag: tag is not None)
        outputs = tuple(
            graph.Output(None if tag is None else str(tag), self._new_edge(leaf.outputs[tag]))
            for tag in tags
            if isinstance(leaf.outputs[tag], pvalue.PCollection)
        )
        hints = tuple(sorted(leaf.resource_hints.items()))
        self.steps.append(
            graph.Step(leaf.full_label, primitive, inputs, sides, outputs, leaf.location, hints)
        )

    def _with_checks(self, leaf: AppliedPTransform, primitive: Primitive) -> Primitive:
        assert leaf.transform is not None
        hints = leaf.transform.get_type_hints()
        return add_type_checks(primitive, hints, leaf.full_label, sampled=self.checks == "sampled")

    def _new_edge(self, pcoll: pvalue.PCollection[Any]) -> int:
        number = self.numbers[id(pcoll)] = len(self.edges)
        element_type = typehints.Any if pcoll.element_type is None else pcoll.element_type
        self.edges.append(graph.Edge(number, element_type, pcoll.windowing, pcoll.is_bounded))
        return number

    def _edge(self, leaf: AppliedPTransform, value: PCollection[Any]) -> int:
        number = self.numbers.get(id(value))
        if number is None:
            what = f"the input {value} is not the output of any step"
            raise TransformError(what, where=leaf.where, hint="apply the transform that makes it")
        return number
