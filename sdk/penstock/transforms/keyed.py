"""Small steps over keys and values: take, swap or add keys, and drop duplicates."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform, ptransform_fn, shown_as
from penstock.construction.pvalue import PCollection
from penstock.transforms.combining.combine import CombinePerKey
from penstock.transforms.combining.ready_combiners import CountCombineFn, pair_with_none
from penstock.transforms.elements.pardo import Map, MapTuple
from penstock.typehints import KV, Tuple, with_input_types, with_output_types
from penstock.typehints.annotations import signature_as_written
from penstock.typehints.trivial_inference import infer_return_type, instance_to_type, key_value_types

if TYPE_CHECKING:

    class FirstParts(PTransform[Any, Any]):
        """Takes pairs, and emits keys."""

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[K]: ...

    class SecondParts(PTransform[Any, Any]):
        """Takes pairs, and emits values."""

        def expand(self, pcoll: PCollection[tuple[Any, V]]) -> PCollection[V]: ...

    class SwappedParts(PTransform[Any, Any]):
        """Swaps the parts of pairs."""

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[V, K]]: ...

    class SameElements(PTransform[Any, Any]):
        """Emits elements of the type of its input."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[T]: ...

    class KeyedElements(PTransform[Any, Any]):
        """Adds a key to each element."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[tuple[Any, T]]: ...


@shown_as(lambda: FirstParts())
@ptransform_fn
@with_input_types(Tuple[K, V])
@with_output_types(K)
def Keys(pcoll: PCollection[Any], label: str = "Keys") -> PCollection[Any]:
    """Emits the first part of each pair (Beam's name).

    Example: ``ages | Keys()`` over ``("amy", 30)`` emits ``"amy"``.
    """
    return pcoll | label >> MapTuple(_first)


@shown_as(lambda: SecondParts())
@ptransform_fn
@with_input_types(Tuple[K, V])
@with_output_types(V)
def Values(pcoll: PCollection[Any], label: str = "Values") -> PCollection[Any]:
    """Emits the second part of each pair (Beam's name).

    Example: ``ages | Values()`` over ``("amy", 30)`` emits ``30``.
    """
    return pcoll | label >> MapTuple(_second)


@shown_as(lambda: SwappedParts())
@ptransform_fn
@with_input_types(Tuple[K, V])
@with_output_types(Tuple[V, K])
def KvSwap(pcoll: PCollection[Any], label: str = "KvSwap") -> PCollection[Any]:
    """Swaps the key and the value of each pair (Beam's name).

    Example: ``ages | KvSwap()`` over ``("amy", 30)`` emits ``(30, "amy")``.
    """
    key_type, value_type = key_value_types(pcoll.element_type)
    return pcoll | label >> MapTuple(_swapped).with_output_types(KV[value_type, key_type])


@shown_as(lambda: SameElements())
@ptransform_fn
@with_input_types(T)
@with_output_types(T)
def Distinct(pcoll: PCollection[Any]) -> PCollection[Any]:
    """Emits each element once per window (Beam's name).

    Elements must have a deterministic coder, since they become keys.

    Example: ``words | Distinct()``.
    """
    element_type = pcoll.element_type
    # The counts are not used, but Spark can compute counts natively.
    return (
        pcoll
        | "ToPairs" >> Map(pair_with_none).with_output_types(KV[element_type, Any])
        | "Group" >> CombinePerKey(CountCombineFn()).with_output_types(KV[element_type, int])
        | "Distinct" >> Keys()
    )


@shown_as(lambda: SameElements())
@ptransform_fn
@with_input_types(T)
@with_output_types(T)
def RemoveDuplicates(pcoll: PCollection[Any]) -> PCollection[Any]:
    """Emits each element once per window; the old name of `Distinct` (Beam's name)."""
    return pcoll | "RemoveDuplicates" >> Distinct()


@shown_as(lambda: KeyedElements())
@ptransform_fn
@with_input_types(T)
@with_output_types(Tuple[Any, T])
def WithKeys(pcoll: PCollection[Any], k: Any, *args: Any, **kwargs: Any) -> PCollection[Any]:
    """Pairs each element with a key (Beam's name).

    Args:
        k: The key of all elements, or a callable that computes the key from an element.
        *args: Further arguments of the callable: plain values or side inputs.
        **kwargs: Further keyword arguments of the callable, likewise.

    Example: ``words | WithKeys(len)`` over ``"amy"`` emits ``(3, "amy")``.
    """
    element_type = pcoll.element_type
    if not callable(k):
        return pcoll | "AddKeys" >> Map(_Constant(k)).with_output_types(KV[instance_to_type(k), element_type])
    if not fn_takes_side_inputs(k):
        args, kwargs = (), {}
    key_type = Any if args or kwargs else infer_return_type(k, [element_type])
    paired = Map(_Computed(k), *args, **kwargs).with_output_types(KV[key_type, element_type])
    return pcoll | "AddKeys" >> paired


def fn_takes_side_inputs(fn: Callable[..., Any]) -> bool:
    """True if a callable takes more than one argument (Beam's name), or if Python cannot tell.

    >>> fn_takes_side_inputs(lambda x: x), fn_takes_side_inputs(lambda x, *rest: x)
    (False, True)
    """
    try:
        parameters = signature_as_written(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return len(parameters) > 1 or any(parameter.kind in many for parameter in parameters)


class _Constant:
    def __init__(self, key: object) -> None:
        self._key = key

    def __call__(self, element: object) -> tuple[Any, Any]:
        return self._key, element


class _Computed:
    def __init__(self, key_of: Callable[..., Any]) -> None:
        self._key_of = key_of

    def __call__(self, element: object, *args: object, **kwargs: object) -> tuple[Any, Any]:
        return self._key_of(element, *args, **kwargs), element


def _first(key: object, _: object) -> Any:
    return key


def _second(_: object, value: object) -> object:
    return value


def _swapped(key: object, value: object) -> tuple[Any, Any]:
    return value, key
