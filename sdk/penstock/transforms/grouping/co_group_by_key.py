"""Joins by key: `CoGroupByKey`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.pairs import NEVER_PAIRS, make_pair_error
from penstock.error import refusal
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map, MapTuple, ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.typehints import KV, Dict, Tuple, Union
from penstock.typehints import Iterable as IterableHint
from penstock.typehints.trivial_inference import instance_to_type, key_value_types


class CoGroupByKey(PTransform[Any, Any]):
    """Groups several PCollections of KVs by their common keys (Beam's name).

    Applied to a dict of PCollections, it emits for each key a dict of the same tags, with an iterable of the key's
    values in each PCollection. Applied to a tuple or list of PCollections, it emits tuples of iterables. A key that is
    missing in one PCollection has an empty iterable there.

    Args:
        pipeline: The pipeline; needed only if there may be no PCollections, in which case the result is empty.

    Example: ``{"mail": mails, "phone": phones} | CoGroupByKey()`` emits
    ``("amy", {"mail": ["amy@example.com"], "phone": []})``.
    """

    def __init__(self, *, pipeline: Any = None) -> None:
        super().__init__()
        self.pipeline = pipeline

    def _extract_input_pvalues(self, pvalueish: object) -> tuple[Any, tuple[Any, ...]]:
        if isinstance(pvalueish, Mapping):
            return pvalueish, tuple(pvalueish.values())
        if isinstance(pvalueish, PCollection) or not isinstance(pvalueish, Iterable):
            what = f"CoGroupByKey joins several PCollections, and its input is of the type {type(pvalueish).__name__}"
            raise refusal(TypeError, what, hint="write {'mail': mails, 'phone': phones} | CoGroupByKey()")
        # The iterable is needed twice.
        pcolls = tuple(pvalueish)
        return pcolls, pcolls

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __ror__(
            self, left: tuple[PCollection[tuple[K, T]], PCollection[tuple[K, V]]], label: str | None = None
        ) -> PCollection[tuple[K, tuple[Iterable[T], Iterable[V]]]]: ...

        @overload
        def __ror__(
            self, left: Mapping[Any, PCollection[tuple[K, Any]]], label: str | None = None
        ) -> PCollection[tuple[K, dict[Any, Any]]]: ...

        @overload
        def __ror__(
            self, left: Iterable[PCollection[Any]], label: str | None = None
        ) -> PCollection[tuple[Any, Any]]: ...

        def __ror__(self, left: object, label: str | None = None) -> object: ...

    def expand(self, pcolls: Any) -> PCollection[tuple[Any, Any]]:
        tags = tuple(pcolls) if isinstance(pcolls, Mapping) else None
        inputs = tuple(pcolls.values()) if isinstance(pcolls, Mapping) else tuple(pcolls)
        if not inputs:
            pipeline: Any = self.pipeline
            inputs = (pipeline | Create([]),)
            tags = None if tags is None else ("",)
        types = [key_value_types(pcoll.element_type) for pcoll in inputs]
        labels = range(len(inputs)) if tags is None else tags
        union = merge_numbered([f"Tag[{label}]" for label in labels], inputs, types)
        result: PCollection[tuple[Any, Any]] = union | GroupByKey() | "Collect" >> _collected(tags, types)
        return result


def merge_numbered(
    labels: Iterable[str], pcolls: Iterable[Any], types: Iterable[tuple[Any, Any]]
) -> PCollection[Any]:
    """Merges PCollections of KVs into KVs of the key and a pair of the PCollection's number and a value."""
    # One type for all, so that the type of their union is a KV.
    key_types, value_types = zip(*types, strict=True)
    common = KV[Union[key_types], Tuple[int, Union[value_types]]]
    labelled = enumerate(zip(labels, pcolls, strict=True))
    return (
        tuple(
            pcoll | label >> _numbered(number).with_output_types(common)
            for number, (label, pcoll) in labelled
        )
        | Flatten()
    )


def _numbered(number: int) -> ParDo[Any]:
    def with_number(pair: tuple[Any, ...]) -> tuple[Any, tuple[int, Any]]:
        if type(pair) is not tuple and isinstance(pair, NEVER_PAIRS):
            raise make_pair_error([pair])
        try:
            key, value = pair
        except (TypeError, ValueError):
            raise make_pair_error([pair]) from None
        return key, (number, value)

    return Map(with_number)


def _collected(tags: tuple[Any, ...] | None, types: list[tuple[Any, Any]]) -> ParDo[Any]:
    """Returns the step that distributes the values of a key over their inputs, with its output type."""
    count = len(types)

    def deal_out(key: object, values: Iterable[tuple[int, Any]]) -> tuple[Any, Any]:
        dealt: list[list[Any]] = [[] for _ in range(count)]
        for number, value in values:
            dealt[number].append(value)
        return key, tuple(dealt) if tags is None else dict(zip(tags, dealt, strict=True))

    key_type = Union[tuple(key for key, _ in types)]
    iterables = tuple(IterableHint[value] for _, value in types)
    if tags is None:
        return MapTuple(deal_out).with_output_types(KV[key_type, Tuple[iterables]])
    tag_type = Union[tuple(instance_to_type(tag) for tag in tags)]
    return MapTuple(deal_out).with_output_types(KV[key_type, Dict[tag_type, Union[iterables]]])
