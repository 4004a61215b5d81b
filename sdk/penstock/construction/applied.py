"""The record of one application of a transform, and the visitors of such records."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.base.where import Location, at_step
from penstock.construction import pvalue
from penstock.error import refusal
from penstock.functions.resources import merge_resource_hints

if TYPE_CHECKING:
    from penstock.construction.pipeline import Pipeline
    from penstock.construction.ptransform import PTransform


class AppliedPTransform:
    """One application of a transform: a node of the pipeline's tree (Beam's ``AppliedPTransform``).

    Attributes:
        parent: The composite around it; None for the root.
        transform: The transform; None for the root.
        full_label: The labels of the composites around it and its own, joined with ``/``.
        main_inputs: Its inputs by name, without side inputs.
        side_inputs: The views among its arguments.
        outputs: Its outputs by tag; the main output's tag is None.
        parts: The transforms applied inside it.
        resource_hints: Its own resource hints and the ones around it.
        location: The line of the user's program that applied it.
    """

    def __init__(
        self,
        parent: AppliedPTransform | None,
        transform: PTransform[Any, Any] | None,
        full_label: str,
        main_inputs: Mapping[str, Any] | None,
        environment_id: str | None = None,
        annotations: Mapping[str, bytes] | None = None,
        location: Location | None = None,
    ) -> None:
        self.parent = parent
        self.transform = transform
        self.full_label = full_label
        self.main_inputs = dict(main_inputs or {})
        self.side_inputs: tuple[pvalue.AsSideInput, ...] = tuple(getattr(transform, "side_inputs", ()))
        self.outputs: dict[str | int | None, Any] = {}
        self.parts: list[AppliedPTransform] = []
        self.environment_id = environment_id
        self.resource_hints: dict[str, bytes] = dict(transform.get_resource_hints()) if transform else {}
        if parent is not None and parent.resource_hints:
            self.resource_hints = merge_resource_hints(parent.resource_hints, self.resource_hints)
        self.annotations = {
            **(annotations or {}),
            **encode_annotations(transform.annotations() if transform else None),
        }
        self.location = location

    def __repr__(self) -> str:
        return f"AppliedPTransform({self.full_label}, {type(self.transform).__name__})"

    @property
    def where(self) -> str:
        """The middle part of an error about this step."""
        return at_step(self.full_label, self.location)

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs in order, without side inputs."""
        return tuple(self.main_inputs.values())

    def named_inputs(self) -> dict[str, pvalue.PCollection[Any]]:
        """The PCollections among the inputs by name; side inputs are ``side0``, ``side1``, ``side2``."""
        named = {
            name: value for name, value in self.main_inputs.items() if isinstance(value, pvalue.PCollection)
        }
        return {**named, **{f"side{index}": side.pvalue for index, side in enumerate(self.side_inputs)}}

    def named_outputs(self) -> dict[str, pvalue.PCollection[Any]]:
        """The PCollections among the outputs, by the tag as text."""
        return {
            str(tag): value for tag, value in self.outputs.items() if isinstance(value, pvalue.PCollection)
        }

    def add_output(self, output: Any, tag: str | int | None) -> None:
        """Adds an output."""
        if isinstance(output, pvalue.DoOutputsTuple):
            output = output[tag]
        self.replace_output(output, tag)

    def replace_output(self, output: Any, tag: str | int | None = None) -> None:
        """Replaces the output with the tag."""
        if isinstance(output, pvalue.DoOutputsTuple):
            output = output[output._main_tag]
        if isinstance(output, dict):
            self.outputs.update(output)
        elif isinstance(output, pvalue.PValue):
            self.outputs[tag] = output
        else:
            raise refusal(TypeError, f"Unexpected output type: {type(output).__name__}", where=self.where)

    def replace_inputs(self, main_inputs: Mapping[str, Any]) -> None:
        """Replaces all main inputs."""
        self.main_inputs = dict(main_inputs)

    def replace_side_inputs(self, side_inputs: tuple[pvalue.AsSideInput, ...]) -> None:
        """Replaces all side inputs."""
        self.side_inputs = tuple(side_inputs)

    def add_part(self, part: AppliedPTransform) -> None:
        """Adds a transform that is applied inside this one."""
        self.parts.append(part)

    def is_composite(self) -> bool:
        """Whether other transforms, inside it or elsewhere, make its outputs."""
        return bool(self.parts) or all(value.producer is not self for value in self.outputs.values())

    def explanations(self) -> Iterator[tuple[str, str]]:
        """The labels of the composites here that say more about themselves, and what they say."""
        if self.transform is not None and self.transform.explained:
            yield self.full_label, self.transform.explained
        for part in self.parts:
            yield from part.explanations()

    def leaves(self) -> Iterator[AppliedPTransform]:
        """The transforms without parts below it, in the order of application."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if node.parts:
                waiting.extend(reversed(node.parts))
            else:
                yield node

    def visit(self, visitor: PipelineVisitor, pipeline: Pipeline, visited: set[Any]) -> None:
        """Visits this node and everything below it in the order of application, but not values in `visited`."""
        if self.is_composite():
            visitor.enter_composite_transform(self)
            # A visitor may replace parts during the walk.
            for part in list(self.parts):
                part.visit(visitor, pipeline, visited)
            visitor.leave_composite_transform(self)
        else:
            visitor.visit_transform(self)
        for value in self.outputs.values():
            if value.producer is self and value not in visited:
                visited.add(value)
                visitor.visit_value(value, self)


class PipelineVisitor:
    """Visits the nodes of a pipeline's tree (Beam's name); override what you need."""

    def visit_value(self, value: pvalue.PValue, producer_node: AppliedPTransform) -> None:
        """Called for each value, after the transform that makes it."""

    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        """Called for each transform without parts."""

    def enter_composite_transform(self, transform_node: AppliedPTransform) -> None:
        """Called for each composite before its parts."""

    def leave_composite_transform(self, transform_node: AppliedPTransform) -> None:
        """Called for each composite after its parts."""


class PTransformOverride:
    """Says which applied transforms to replace, and by which others (Beam's ``PTransformOverride``)."""

    def matches(self, applied_ptransform: AppliedPTransform) -> bool:
        """Whether to replace this one."""
        raise NotImplementedError

    def get_replacement_transform_for_applied_ptransform(
        self, applied_ptransform: AppliedPTransform
    ) -> PTransform[Any, Any]:
        """The transform that replaces an applied one."""
        return self.get_replacement_transform(applied_ptransform.transform)

    def get_replacement_transform(self, ptransform: Any) -> PTransform[Any, Any]:
        """The transform that replaces another."""
        raise NotImplementedError

    def get_replacement_inputs(self, applied_ptransform: AppliedPTransform) -> tuple[Any, ...]:
        """The inputs of the replacement: the main inputs, and the side inputs' PCollections."""
        return (*applied_ptransform.inputs, *(side.pvalue for side in applied_ptransform.side_inputs))


def encode_annotations(annotations: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Annotations with their values as bytes (Beam's name).

    >>> encode_annotations({"team": "blue"})
    {'team': b'blue'}
    """
    encoded = {}
    for key, value in (annotations or {}).items():
        if not isinstance(value, (str, bytes)):
            what = f"Unknown annotation type {type(value).__name__} for {key}"
            raise refusal(TypeError, what, hint="pass text or bytes")
        encoded[key] = value.encode() if isinstance(value, str) else value
    return encoded


_annotations: contextvars.ContextVar[Mapping[str, bytes]] = contextvars.ContextVar(
    "penstock_annotations", default=MappingProxyType({})
)


def current_annotations() -> Mapping[str, bytes]:
    """The annotations of the blocks around the present line of the program."""
    return _annotations.get()


@contextlib.contextmanager
def transform_annotations(**annotations: Any) -> Iterator[None]:
    """Annotates the transforms applied in the block, also inside composites, with text or bytes (Beam's name)."""
    token = _annotations.set({**_annotations.get(), **encode_annotations(annotations)})
    try:
        yield
    finally:
        _annotations.reset(token)
