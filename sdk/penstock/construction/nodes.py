"""The protocols by which values, transforms and pipelines, which refer to one another, know each other.

`Pipeline`, `AppliedPTransform` and `PTransform` have these attributes and more; the modules above know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from penstock import graph
from penstock.construction.applicable import Expands, ResultT
from penstock.options.pipeline_options import PipelineOptions
from penstock.windows.windowing import Windowing


class AppliedTransform(Protocol):
    """A transform, as the record of its application and its outputs see it."""

    explained: str
    needs_pcollection: ClassVar[bool]

    @property
    def label(self) -> str:
        """The step's name."""

    @property
    def side_inputs(self) -> Sequence[Any]:
        """The views among its arguments."""

    def default_label(self) -> str:
        """The name of a step without a given name."""

    def expand(self, input_or_inputs: object, /) -> object:
        """Applies its parts, or makes its output."""

    def type_check_inputs(self, pvalueish: object) -> None:
        """Raises an error if the input's element types do not fit its hints."""

    def type_check_outputs(self, pvalueish: object) -> None:
        """Raises an error if the output's element types do not fit its hints."""

    def infer_output_type(self, input_type: object) -> object:
        """Returns the type of the output's elements."""

    def to_primitive(self) -> graph.Primitive | None:
        """Returns the primitive that the runner executes for it; None for composites."""

    def get_type_hints(self) -> Any:
        """Returns its type hints."""

    def get_resource_hints(self) -> dict[str, bytes]:
        """Returns its resource hints."""

    def get_windowing(self, inputs: Sequence[Any]) -> Windowing:
        """Returns the windowing of its output."""

    def annotations(self) -> dict[str, str | bytes]:
        """Facts about it for tools, by name."""


class Producer(Protocol):
    """The record of an application, as the values that it makes see it."""

    full_label: str
    outputs: dict[str | int | None, Any]
    transform: Any

    @property
    def where(self) -> str:
        """The middle part of an error about the step."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs in order, without side inputs."""


class Construction(Protocol):
    """A pipeline under construction, as values and transforms see it."""

    result: Any

    @property
    def options(self) -> PipelineOptions:
        """The pipeline's own copy of its options."""

    @property
    def runner(self) -> Any:
        """The runner."""

    @property
    def allow_unsafe_triggers(self) -> bool:
        """True if grouping with a trigger that may lose data is allowed."""

    def apply(self, transform: object, pvalueish: object = None, label: str | None = None) -> Any:
        """Applies a transform under a label."""

    def draft(self) -> AbstractContextManager[None]:
        """Forgets at the end of the block what was applied in it."""

    def current_transform(self) -> Any:
        """Returns the record of the transform that is being applied now; at the top of the program, the root."""

    def root_transform(self) -> Any:
        """Returns the root of the tree of applied transforms."""

    def run(self, test_runner_api: object = "AUTO") -> Any:
        """Runs the pipeline."""

    def __or__(self, transform: Expands[Any, ResultT]) -> ResultT:
        """Applies a transform to the beginning of the pipeline."""
