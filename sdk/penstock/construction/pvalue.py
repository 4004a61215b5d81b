"""The values of a pipeline's program: PCollections, their tagged outputs, and side-input views.

They hold no data. They describe which step computes what, and the runner computes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, overload

from typing_extensions import TypeVar

from penstock.base.shown import Elements, render_facts
from penstock.checks.similar_names import hint_at_name
from penstock.construction.applicable import Expands, K, ResultT, SelfT, V
from penstock.construction.nodes import Construction, Producer
from penstock.error import noun_for, refusal
from penstock.graph import type_name
from penstock.tracebacks import shortens_tracebacks
from penstock.typehints import typehints
from penstock.typehints.constraints import short_type
from penstock.typehints.io_hints import WithElements, WithoutElements
from penstock.windows.side_input_windows import default_window_mapping_fn
from penstock.windows.windowing import Windowing

if TYPE_CHECKING:
    from penstock.construction.typed_steps import (
        Combines,
        CombinesAll,
        CombinesKeys,
        DeadLetterOf,
        ExpandsWhole,
        Groups,
        HandlesErrors,
        Keeps,
        Maps,
        MapsParts,
        MapsPartsToMany,
        MapsToMany,
        MoreP,
        OtherParts,
        Outputs,
        PartTs,
    )
    from penstock.elements.bounded_window import TimestampedValue

T = TypeVar("T")
ElementT_co = TypeVar("ElementT_co", covariant=True, default=Any)


class PValue:
    """An input or output of a transform (Beam's ``PValue``).

    Attributes:
        tag: The tag of the output; None for a main output.
        element_type: The type hint of its elements; None if it is unknown so far.
        producer: The applied transform that computes it; set when the transform is applied.
        is_bounded: Whether it ends.
    """

    def __init__(
        self,
        pipeline: Construction,
        tag: str | None = None,
        element_type: Any = None,
        windowing: Windowing | None = None,
        is_bounded: bool = True,
    ) -> None:
        self.pipeline = pipeline
        self.tag = tag
        self.element_type = element_type
        self.producer: Producer | None = None
        self.is_bounded = is_bounded
        self._windowing = windowing

    def __str__(self) -> str:
        label = self.producer.full_label if self.producer else None
        return f"{type(self).__name__}[{label}.{self.tag}]"

    def __repr__(self) -> str:
        return f"<{self} at {id(self):#x}>"

    @shortens_tracebacks
    def apply(self, *arguments: Any, **keywords: Any) -> Any:
        """Applies a transform, which a label may follow, to this value (the long form of ``value | transform``)."""
        transform, *rest = arguments
        return self.pipeline.apply(transform, self, *rest, **keywords)

    @shortens_tracebacks
    def __or__(self: SelfT, transform: Expands[SelfT, ResultT]) -> ResultT:
        result: ResultT = self.pipeline.apply(transform, self)  # type: ignore[attr-defined]
        return result


class PCollection(PValue, WithElements, Generic[ElementT_co]):
    """A collection of elements, bounded or not, that a pipeline computes (Beam's ``PCollection``).

    Two PCollections are equal only if they are the same object. A PCollection cannot be iterated, because it has no
    elements before the pipeline runs.
    """

    @property
    def windowing(self) -> Windowing:
        """The windows and triggers of its elements."""
        if self._windowing is None:
            producer = self.producer
            if producer is None or producer.transform is None:
                what = "this PCollection is not the output of any transform yet"
                raise refusal(ValueError, what, where=str(self), hint="apply a transform first")
            self._windowing = producer.transform.get_windowing(producer.inputs)
        return self._windowing

    @windowing.setter
    def windowing(self, windowing: Windowing) -> None:
        self._windowing = windowing

    @shortens_tracebacks
    def collect(self) -> Elements[ElementT_co]:
        """Runs the pipeline up to here and returns all elements, in any order (penstock's own, like ``ib.collect``).

        Meant for notebooks and small results. It runs only the steps that lead to this PCollection, as a batch. All
        elements must fit into the memory of this program. Timestamps and windows are left out; ``beam.Reify`` puts them
        into the elements.

        Returns:
            A list, which a notebook shows as a table.

        Raises:
            UnsupportedByRunner: The PCollection does not end.

        Example: ``totals.collect()``.
        """
        return Elements(self.pipeline.runner.elements_of(self, None))

    @shortens_tracebacks
    def head(self, n: int = 5) -> Elements[ElementT_co]:
        """Returns up to `n` elements, whichever Spark finds first; computes only what is needed to find them.

        Otherwise it works like `collect`.

        Raises:
            ValueError: `n` is not a number of elements.
            UnsupportedByRunner: The PCollection does not end.

        Example: ``lines.head()``.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            what = f"head needs a number of elements, but got {n!r}"
            raise refusal(ValueError, what, hint="pass an integer, such as head(20)")
        return Elements(self.pipeline.runner.elements_of(self, n) if n else [])

    def _repr_html_(self) -> str:
        """Describes it for a notebook: which step makes the elements, their type and their windows."""
        label = self.producer.full_label if self.producer else "no step"
        facts = {
            "made by": label if self.tag is None else f"{label}, output {self.tag}",
            "element type": short_type(type_name(self.element_type)) or "Any",
            "windows": str(self.windowing.windowfn),
            "bounded": "yes; head() and collect() show its elements" if self.is_bounded else "no",
        }
        return render_facts("PCollection", facts)

    if TYPE_CHECKING:
        # Each overload looks at the type of a step's function for these elements: `sum` has another one for each type.
        # Those with `Concatenate` take functions with further arguments.

        @overload  # type: ignore[override]
        def __or__(
            self: PCollection[T], transform: Maps[Callable[[T], TimestampedValue[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(self: PCollection[T], transform: Maps[Callable[[T], Awaitable[V]]]) -> PCollection[V]: ...

        @overload
        def __or__(self: PCollection[T], transform: Maps[Callable[[T], V]]) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: Maps[Callable[Concatenate[T, MoreP], TimestampedValue[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: Maps[Callable[Concatenate[T, MoreP], Awaitable[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: Maps[Callable[Concatenate[T, MoreP], V]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T],
            transform: MapsToMany[Callable[Concatenate[T, MoreP], Iterable[TimestampedValue[V]] | None]],
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: MapsToMany[Callable[Concatenate[T, MoreP], Outputs[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[tuple[*PartTs]], transform: MapsParts[Callable[[*PartTs], TimestampedValue[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[tuple[*PartTs]], transform: MapsParts[Callable[[*PartTs], Awaitable[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[tuple[*PartTs]], transform: MapsParts[Callable[[*PartTs], V]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[OtherParts], transform: MapsParts[Callable[..., V]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[tuple[*PartTs]], transform: MapsPartsToMany[Callable[[*PartTs], Outputs[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[OtherParts], transform: MapsPartsToMany[Callable[..., Outputs[V]]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: Keeps[Callable[Concatenate[T, MoreP], object]]
        ) -> PCollection[T]: ...

        @overload
        def __or__(
            self: PCollection[tuple[K, T]], transform: CombinesKeys[Combines[T, V]]
        ) -> PCollection[tuple[K, V]]: ...

        @overload
        def __or__(self: PCollection[T], transform: CombinesAll[Combines[T, V]]) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[tuple[K, T]], transform: CombinesKeys[Callable[[Iterable[T]], V]]
        ) -> PCollection[tuple[K, V]]: ...

        @overload
        def __or__(
            self: PCollection[tuple[K, T]],
            transform: CombinesKeys[Callable[Concatenate[Iterable[T], MoreP], V]],
        ) -> PCollection[tuple[K, V]]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: CombinesAll[Callable[[Iterable[T]], V]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: CombinesAll[Callable[Concatenate[Iterable[T], MoreP], V]]
        ) -> PCollection[V]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: Groups[Callable[[T], K]]
        ) -> PCollection[tuple[K, Iterable[T]]]: ...

        @overload
        def __or__(
            self: PCollection[T], transform: HandlesErrors[Expands[PCollection[T], PCollection[V]]]
        ) -> GoodAndBad[V, T]: ...

        @overload
        def __or__(self: SelfT, transform: ExpandsWhole[SelfT, ResultT]) -> ResultT: ...

        def __or__(self, transform: object) -> object:
            """Applies a transform to this PCollection."""
            ...

    else:  # A type checker must see that it is not iterable.

        def __iter__(self) -> Iterator[Any]:
            what = "a PCollection cannot be iterated: it has no elements before the pipeline runs"
            hint = "apply a transform with `|`, or pass it as a side input, e.g. AsIter(pcoll)"
            raise refusal(TypeError, what, hint=hint)

    def __reduce_ex__(self, _protocol: object) -> tuple[Any, ...]:
        # Closures capture PCollections by accident; workers get a placeholder without any use.
        return _PickledPCollection, ()

    @staticmethod
    def from_(pcoll: PValue, is_bounded: bool | None = None) -> PCollection[Any]:
        """A new PCollection in the pipeline of `pcoll`, and bounded like it unless `is_bounded` says otherwise."""
        return PCollection(pcoll.pipeline, is_bounded=pcoll.is_bounded if is_bounded is None else is_bounded)


class _PickledPCollection:
    """Replaces a PCollection in pickles."""


class PBegin(PValue, WithoutElements):
    """The input of transforms at a pipeline's start, such as ``Create`` (Beam's ``PBegin``)."""


class PDone(PValue, WithoutElements):
    """The output of a transform without results (Beam's ``PDone``)."""


class DoOutputsTuple(Generic[ElementT_co]):
    """The outputs of a ``ParDo`` with ``with_outputs`` (Beam's ``DoOutputsTuple``).

    Read an output by attribute (``result.errors``), by item (``result["errors"]``), or by unpacking: the main output
    first if it has a tag, then the declared tags in order. An undeclared tag raises a ValueError, unless unknown tags
    are allowed.
    """

    producer: Producer | None

    def __init__(
        self,
        pipeline: Construction,
        transform: Any,
        tags: Sequence[str],
        main_tag: str | None,
        allow_unknown_tags: bool | None = None,
        made: Mapping[str | None, PCollection[Any]] = MappingProxyType({}),
    ) -> None:
        self._pipeline = pipeline
        self._transform = transform
        self._tags = tuple(tags)
        self._main_tag = main_tag
        self._allow_unknown_tags = not tags if allow_unknown_tags is None else allow_unknown_tags
        self.producer = None
        self._pcolls: dict[str | None, PCollection[Any]] = dict(made)

    def __repr__(self) -> str:
        return f"<DoOutputsTuple main_tag={self._main_tag} tags={self._tags} transform={self._transform}>"

    def __iter__(self) -> Iterator[PCollection[ElementT_co]]:
        if self._main_tag is not None:
            yield self[self._main_tag]
        for tag in self._tags:
            yield self[tag]

    def __getattr__(self, tag: str) -> PCollection[ElementT_co]:
        # Python itself looks up such names, for example to copy an object.
        if tag.startswith("_"):
            raise AttributeError(tag)
        return self[tag]

    def __getitem__(self, tag: int | str | None) -> PCollection[ElementT_co]:
        if isinstance(tag, int):
            tag = str(tag)
        if tag == self._main_tag:
            tag = None
        elif tag is not None and self._tags and tag not in self._tags and not self._allow_unknown_tags:
            what = f"Tag {tag!r} is neither the main tag {self._main_tag!r} nor one of {self._tags}"
            tags = [each for each in (self._main_tag, *self._tags) if isinstance(each, str)]
            hint = hint_at_name(str(tag), tags, f"declare it: with_outputs({tag!r}, ...)")
            raise refusal(ValueError, what, where=self.producer.where if self.producer else None, hint=hint)
        if tag not in self._pcolls:
            self._pcolls[tag] = self._output(tag)
        return self._pcolls[tag]

    def _output(self, tag: str | None) -> PCollection[Any]:
        """Makes the PCollection of a tag, and records it as an output of the step."""
        producer = self.producer
        if producer is None:
            what = "the outputs do not exist before the transform is applied"
            raise refusal(ValueError, what, where=repr(self), hint="apply the transform first")
        hints = self._transform.get_type_hints().tagged_output_types() if tag is not None else {}
        pcoll: PCollection[Any] = PCollection(
            self._pipeline,
            tag=tag,
            element_type=hints.get(tag, typehints.Any) if tag is not None else None,
            is_bounded=self._transform.gives_bounded(producer.inputs),
        )
        pcoll.producer = producer
        producer.outputs[tag] = pcoll
        return pcoll


if TYPE_CHECKING:
    # A checker knows the type of each part of a tuple when it is unpacked. But mypy does not call `__getitem__` of a
    # tuple, and says that ``outputs["bad"]`` may be any of its parts; so it does not see tuples.
    MYPY = False

    if MYPY:

        class MainAndTagged(DoOutputsTuple[Any], Generic[V, *PartTs]):
            """The outputs of a ParDo whose main output has a tag."""

        class GoodAndBad(DoOutputsTuple[Any], Generic[V, T]):
            """The outputs of ``with_exception_handling``: results, and elements with their exception."""

            good: PCollection[V]
            bad: PCollection[DeadLetterOf[T]]

    else:

        class MainAndTagged(DoOutputsTuple[Any], tuple[PCollection[V], *PartTs]):
            """The outputs of a ParDo whose main output has a tag: they unpack to the main output and the others."""

            def __getitem__(self, tag: int | str | None) -> PCollection[Any]: ...

        class GoodAndBad(DoOutputsTuple[Any], tuple[PCollection[V], PCollection[DeadLetterOf[T]]]):
            """The outputs of ``with_exception_handling``: results, and elements with their exception."""

            good: PCollection[V]
            bad: PCollection[DeadLetterOf[T]]

            @overload
            def __getitem__(self, tag: Literal["bad"]) -> PCollection[DeadLetterOf[T]]: ...

            @overload
            def __getitem__(self, tag: int | str | None) -> PCollection[Any]: ...


def declared_tags(outputs: DoOutputsTuple) -> tuple[str, ...]:
    """Returns the tags that a step with several outputs has declared, without the main output's."""
    return outputs._tags


def main_tag_of(outputs: DoOutputsTuple) -> str | None:
    """Returns the tag of the main output; None if it has none."""
    return outputs._main_tag


def pass_on_outputs(outputs: DoOutputsTuple) -> dict[str | int | None, Any]:
    """Returns a step's outputs as the outputs of the composite around it, without an unnamed main output."""
    is_named = outputs._main_tag is not None or not outputs._tags
    return {tag: value for tag, value in outputs._pcolls.items() if is_named or tag is not None}


class AsSideInput:
    """A whole PCollection as an argument of another step, with one view per window; use a subclass (Beam's name)."""

    view = ""

    def __init__(self, pcoll: PCollection[Any]) -> None:
        if not isinstance(pcoll, PCollection):
            what = f"{type(self).__name__} takes a PCollection, not {noun_for(pcoll)}"
            raise refusal(TypeError, what, hint="pass plain values as ordinary arguments")
        # Refuses side inputs in session windows: no window of a main input corresponds to a session.
        default_window_mapping_fn(pcoll.windowing.windowfn)
        self.pvalue = pcoll

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pvalue})"

    @property
    def default(self) -> tuple[Any, ...]:
        """The value of an empty PCollection as a 1-tuple; () without a default."""
        return ()

    @property
    def element_type(self) -> Any:
        """The type hint of what the step receives."""
        return typehints.Any

    def requires_keyed_input(self) -> bool:
        """True if the elements must be key-value pairs."""
        return False


_NO_DEFAULT = object()


class AsSingleton(AsSideInput):
    """Passes the only element of a PCollection, per window, to a step (Beam's ``AsSingleton``).

    An empty PCollection becomes `default_value`, or an `EmptySideInput` without a default. More than one element raises
    an error at run time.
    """

    view = "singleton"
    _NO_DEFAULT = _NO_DEFAULT

    def __init__(self, pcoll: PCollection[Any], default_value: object = _NO_DEFAULT) -> None:
        super().__init__(pcoll)
        self.default_value = default_value

    @property
    def default(self) -> tuple[Any, ...]:
        return () if self.default_value is _NO_DEFAULT else (self.default_value,)

    @property
    def element_type(self) -> Any:
        return self.pvalue.element_type


class AsIter(AsSideInput):
    """Passes the elements of a PCollection to a step as an iterable, per window (Beam's ``AsIter``)."""

    view = "iter"

    @property
    def element_type(self) -> Any:
        return typehints.Iterable[self.pvalue.element_type or typehints.Any]


class AsList(AsSideInput):
    """Passes the elements of a PCollection to a step as a list, per window (Beam's ``AsList``)."""

    view = "list"


class AsDict(AsSideInput):
    """Passes key-value pairs with unique keys to a step as a dict, per window (Beam's ``AsDict``)."""

    view = "dict"


class AsMultiMap(AsSideInput):
    """Passes pairs to a step as a mapping from each key to all its values, per window (Beam's ``AsMultiMap``)."""

    view = "multimap"

    def requires_keyed_input(self) -> bool:
        return True


class EmptySideInput:
    """Stands for an empty PCollection in an `AsSingleton` without a default (Beam's ``EmptySideInput``)."""
