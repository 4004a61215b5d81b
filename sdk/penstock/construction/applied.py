"""The record of one application of a transform, and the visitors of such records."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from penstock.base.display import DisplayData, HasDisplayData
from penstock.construction import pvalue
from penstock.construction.nodes import AppliedTransform, Construction
from penstock.error import refusal
from penstock.functions.resources import merge_resource_hints
from penstock.where import OUR_PACKAGES, Location, at_step


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
        transform: AppliedTransform | None,
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
        """Returns the PCollections among the inputs by name; side inputs are ``side0``, ``side1``, ``side2``."""
        named = {
            name: value for name, value in self.main_inputs.items() if isinstance(value, pvalue.PCollection)
        }
        return {**named, **{f"side{index}": side.pvalue for index, side in enumerate(self.side_inputs)}}

    def named_outputs(self) -> dict[str, pvalue.PCollection[Any]]:
        """Returns the PCollections among the outputs, by the tag as a string."""
        return {
            str(tag): value for tag, value in self.outputs.items() if isinstance(value, pvalue.PCollection)
        }

    def add_part(self, part: AppliedPTransform) -> None:
        """Adds a transform that is applied inside this one."""
        self.parts.append(part)

    def is_composite(self) -> bool:
        """True if other transforms, inside it or elsewhere, make its outputs."""
        return bool(self.parts) or all(value.producer is not self for value in self.outputs.values())

    def explanations(self) -> Iterator[tuple[str, str]]:
        """Yields the labels of the composites here that say more about themselves, and what they say."""
        if self.transform is not None and self.transform.explained:
            yield self.full_label, self.transform.explained
        for part in self.parts:
            yield from part.explanations()

    def ready_made(self) -> Iterator[tuple[str, str]]:
        """The outermost transforms here that no user wrote: their labels, and those that they have by default."""
        if self.transform is not None and is_ready_made(self.transform):
            yield self.full_label, self.transform.default_label()
            return
        for part in self.parts:
            yield from part.ready_made()

    def facts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields the labels here, each with a line for each fact of the transform's display data."""
        if isinstance(self.transform, HasDisplayData):
            yield self.full_label, tuple(map(str, DisplayData.create_from(self.transform).items))
        for part in self.parts:
            yield from part.facts()

    def leaves(self) -> Iterator[AppliedPTransform]:
        """Yields the transforms without parts below it, in the order of application."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if node.parts:
                waiting.extend(reversed(node.parts))
            else:
                yield node

    def visit(self, visitor: PipelineVisitor, pipeline: Construction, visited: set[Any]) -> None:
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


def is_ready_made(transform: object) -> bool:
    """True if a transform belongs to penstock, and does what penstock says.

    >>> from penstock.transforms.core import Map, PTransform
    >>> is_ready_made(Map(len)), is_ready_made(type("Mine", (PTransform,), {"__module__": "__main__"})())
    (True, False)
    """
    kind = type(transform)
    # A composite that is a function has a class of ours.
    origin = vars(transform).get("_fn", kind) if kind.__name__.startswith("_") else kind
    module = getattr(origin, "__module__", None) or ""
    return module.partition(".")[0] in OUR_PACKAGES


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


def encode_annotations(annotations: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Annotations with their values as bytes (Beam's name).

    >>> encode_annotations({"team": "blue"})
    {'team': b'blue'}
    """
    encoded = {}
    for key, value in (annotations or {}).items():
        if not isinstance(value, (str, bytes)):
            what = f"Unknown annotation type {type(value).__name__} for {key}"
            raise refusal(TypeError, what, hint="pass a string or bytes")
        encoded[key] = value.encode() if isinstance(value, str) else value
    return encoded


_annotations: contextvars.ContextVar[Mapping[str, bytes]] = contextvars.ContextVar(
    "penstock_annotations", default=MappingProxyType({})
)


def current_annotations() -> Mapping[str, bytes]:
    """Returns the annotations of the blocks around the current line of the program."""
    return _annotations.get()


@contextlib.contextmanager
def transform_annotations(**annotations: object) -> Iterator[None]:
    """Annotates the transforms applied in the block, also inside composites, with strings or bytes (Beam's name)."""
    token = _annotations.set({**_annotations.get(), **encode_annotations(annotations)})
    try:
        yield
    finally:
        _annotations.reset(token)
