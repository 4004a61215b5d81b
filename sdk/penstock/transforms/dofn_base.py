"""The DoFn: user code that runs on each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from penstock.error import three_parts
from penstock.transforms import params
from penstock.transforms.batch_types import annotated_input, annotated_output, element_hints
from penstock.transforms.display import HasDisplayData
from penstock.transforms.params import DoFnParam
from penstock.transforms.signature import MethodSignature, method_signature
from penstock.typehints import trivial_inference, typehints
from penstock.typehints.decorators import WithTypeHints, get_type_hints
from penstock.typehints.native_type_compatibility import convert_to_beam_type

__all__ = ["DoFn", "strip_output_annotations"]

_ANNOTATIONS = ("TimestampedValue", "WindowedValue")


class DoFn(WithTypeHints, HasDisplayData):
    """User code for each element of a PCollection (Beam's ``DoFn``); subclass it and define `process`.

    A runner calls `setup` once per instance, then for each bundle `start_bundle`, `process` for each element
    and `finish_bundle`, and at last `teardown`. A method asks for more than the element with default
    arguments such as ``window=DoFn.WindowParam``.

    Attributes:
        takes_retractions: Whether `process`, where it uses state or timers, takes elements that take back earlier
            ones; ``DoFn.PaneInfoParam`` tells by its ``kind``. Other DoFns give retractions for retractions by
            themselves (penstock's own).
        gives_retractions: Whether it gives elements whose pane has a ``kind`` that takes earlier ones back, although
            none of its input does (penstock's own).

    >>> class Words(DoFn):
    ...     def process(self, element):
    ...         yield from element.split()
    >>> list(Words().process("to be"))
    ['to', 'be']
    """

    takes_retractions: bool = False
    gives_retractions: bool = False

    ElementParam = DoFnParam("ElementParam")
    SideInputParam = DoFnParam("SideInputParam")
    TimestampParam = DoFnParam("TimestampParam")
    WindowParam = DoFnParam("WindowParam")
    WindowedValueParam = DoFnParam("WindowedValueParam")
    PaneInfoParam = DoFnParam("PaneInfoParam")
    KeyParam = DoFnParam("KeyParam")
    DynamicTimerTagParam = DoFnParam("DynamicTimerTagParam")
    WatermarkEstimatorParam = params.WatermarkEstimatorDoFnParam
    BundleFinalizerParam = params.BundleFinalizerDoFnParam
    BundleContextParam = params.BundleContextDoFnParam
    SetupContextParam = params.SetupContextDoFnParam
    StateParam = params.StateDoFnParam
    TimerParam = params.TimerDoFnParam
    RestrictionParam = params.RestrictionDoFnParam

    DoFnProcessParams = [
        ElementParam,
        SideInputParam,
        TimestampParam,
        WindowParam,
        WindowedValueParam,
        WatermarkEstimatorParam,
        PaneInfoParam,
        BundleFinalizerParam,
        KeyParam,
        StateParam,
        TimerParam,
        BundleContextParam,
        SetupContextParam,
    ]

    @staticmethod
    def from_callable(fn: Callable[..., Any]) -> DoFn:
        """A DoFn that calls `fn`, which returns an iterable, on each element."""
        from penstock.transforms.dofn import CallableWrapperDoFn

        return CallableWrapperDoFn(fn)

    @staticmethod
    def unbounded_per_element() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Marks a ``process`` that may give elements without end for one element: its output counts as unbounded."""

        def mark(process: Callable[..., Any]) -> Callable[..., Any]:
            process.unbounded_per_element = True  # type: ignore[attr-defined]
            return process

        return mark

    @staticmethod
    def yields_elements(fn: Callable[..., Any]) -> Callable[..., Any]:
        """Marks a ``process_batch`` that yields elements, not batches.

        Raises:
            TypeError: If the method is neither ``process`` nor ``process_batch``.
        """
        return _marked(fn, "yields_elements")

    @staticmethod
    def yields_batches(fn: Callable[..., Any]) -> Callable[..., Any]:
        """Marks a ``process`` that yields batches, not elements.

        Raises:
            TypeError: If the method is neither ``process`` nor ``process_batch``.
        """
        return _marked(fn, "yields_batches")

    def default_label(self) -> str:
        """The label of a step that runs this DoFn: the class's name."""
        return type(self).__name__

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        """Handles one element.

        Args:
            element: The element; it must not be changed.
            args: Further arguments of the transform, side inputs among them.
            kwargs: Likewise, by name.

        Returns:
            An iterable of elements, `TaggedOutput` or ``TimestampedValue`` objects, or None for nothing.
        """
        raise NotImplementedError

    def process_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Handles a batch of elements at once; instead of `process`, or beside it.

        The annotation of `batch` says what a batch is: ``list[T]``, or an array or table of NumPy, pandas or Arrow.
        All elements of a batch have the same timestamp, windows and pane; no batch is empty.

        Args:
            batch: The batch; it must not be changed.
            args: Further arguments of the transform, side inputs among them.
            kwargs: Likewise, by name.

        Returns:
            An iterable of batches, or of elements if it is decorated with `yields_elements`; None for nothing.
        """
        raise NotImplementedError

    def setup(self) -> Any:
        """Called once before the first bundle, e.g. to connect to something."""

    def start_bundle(self) -> Any:
        """Called before each bundle."""

    def finish_bundle(self) -> Any:
        """Called after each bundle; may give ``WindowedValue`` objects."""

    def teardown(self) -> Any:
        """Called when the instance is discarded, as far as possible."""

    def get_function_arguments(self, func: str) -> tuple[list[str], list[Any]]:
        """The names of the arguments of one of its methods, and the default arguments."""
        from penstock.transforms.dofn import get_function_arguments

        return get_function_arguments(self, func)

    def process_signature(self) -> MethodSignature:
        """What `process` asks for; wrappers answer for the function they wrap."""
        return method_signature("process", self._process_argspec_fn())

    def timer_owner(self) -> Any:
        """The object that has the ``on_timer`` methods; wrappers answer with what they wrap."""
        return self

    def default_type_hints(self) -> Any:
        """The type hints on the class, then those from the annotations of `process`.

        Raises:
            ValueError: If `process` is annotated as returning something that is not iterable.
            TypeError: If `process` and `process_batch` give elements of different types.
        """
        hints = element_hints(self)
        try:
            hints = hints.strip_iterable()
        except ValueError as error:
            raise ValueError(
                three_parts(
                    f"Return value not iterable: {type(self).__name__}.process: {first_line(error)}",
                    hint="annotate process as returning an Iterable of elements",
                )
            ) from error
        return get_type_hints(type(self)).with_defaults(hints.extract_tagged_outputs())

    def infer_output_type(self, input_type: Any) -> Any:
        """The type of the elements that `process` gives for elements of `input_type`."""
        if not self._process_defined:
            return typehints.Any
        known = [input_type]
        declared = self.process_signature().asking_for("ElementParam")
        if declared:
            # The element is not the first argument.
            parameters = [parameter.name for parameter in self.process_signature().parameters]
            known = [typehints.Any] * parameters.index(declared[0].name)
            known += [input_type] if declared[0].passed_by != "keyword" else []
        returned = trivial_inference.infer_return_type(self.process, known)
        return trivial_inference.element_type(strip_output_annotations(returned))

    def get_input_batch_type(self, input_element_type: Any) -> Any:
        """The type of the batches that `process_batch` takes: by default, the annotation of its first parameter.

        Args:
            input_element_type: The type of the input's elements.

        Returns:
            A type hint; None if there is no `process_batch`.

        Raises:
            TypeError: If the parameter has no annotation.
        """
        return annotated_input(self)

    def get_output_batch_type(self, input_element_type: Any) -> Any:
        """The type of the batches it gives: by default, what its annotations say, or what can be inferred.

        Args:
            input_element_type: The type of the input's elements.

        Returns:
            A type hint; None if it gives no batches.

        Raises:
            TypeError: If `process` and `process_batch` give batches of different types, or no iterators of any.
        """
        return annotated_output(self, input_element_type)

    @property
    def _process_defined(self) -> bool:
        return getattr(self.process, "__func__", self.process) is not DoFn.process

    @property
    def _process_batch_defined(self) -> bool:
        return getattr(self.process_batch, "__func__", self.process_batch) is not DoFn.process_batch

    @property
    def _can_yield_batches(self) -> bool:
        return (self._process_defined and self._process_yields_batches) or (
            self._process_batch_defined and not self._process_batch_yields_elements
        )

    @property
    def _process_yields_batches(self) -> bool:
        return getattr(self.process, "yields_batches", False)

    @property
    def _process_batch_yields_elements(self) -> bool:
        return getattr(self.process_batch, "yields_elements", False)

    def _process_argspec_fn(self) -> Callable[..., Any]:
        """The function whose parameters count for arguments and type hints."""
        return self.process


def first_line(error: Exception) -> str:
    """The first line of an error's text: what is wrong, without where and hint."""
    return str(error).partition("\n")[0]


def _marked(fn: Callable[..., Any], mark: str) -> Callable[..., Any]:
    if fn.__name__ not in ("process", "process_batch"):
        raise TypeError(
            three_parts(f"@{mark} must be applied to a process or process_batch method, not {fn!r}")
        )
    setattr(fn, mark, True)
    return fn


def strip_output_annotations(type_hint: Any, strip_tagged_output: bool = True) -> Any:
    """The type of the elements of a type hint that may speak of timestamps, windows or tags, which are no elements.

    ``TimestampedValue[T]`` is T; any other such hint says nothing, so that it is `Any`.

    Args:
        type_hint: The type hint.
        strip_tagged_output: Whether tags count.
    """
    names = (*_ANNOTATIONS, "TaggedOutput") if strip_tagged_output else _ANNOTATIONS
    found = False
    arguments = get_args(type_hint)
    if getattr(type_hint, "__name__", None) == "TimestampedValue" and len(arguments) == 1:
        type_hint = convert_to_beam_type(arguments[0])

    def look(hint: Any, _: Any) -> None:
        nonlocal found
        found = found or getattr(hint, "__name__", None) in names

    typehints.visit_inner_types(type_hint, look, [])
    return typehints.Any if found else type_hint
