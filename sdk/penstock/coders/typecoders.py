"""The registry, which finds the coder of a type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from penstock.coders import coders
from penstock.coders.base import Coder, Registry, registry_in_use
from penstock.coders.deterministic import forget_encoders
from penstock.coders.registered_pickles import forget_coders
from penstock.coders.row_coder import RowCoder, row_hint
from penstock.error import refusal, three_parts
from penstock.typehints import row_type, typehints

__all__ = ["registry"]

TypeT = TypeVar("TypeT", bound=type)

_STANDARD_CODERS: dict[Any, type[Coder]] = {
    int: coders.VarIntCoder,
    float: coders.FloatCoder,
    bytes: coders.BytesCoder,
    bool: coders.BooleanCoder,
    str: coders.StrUtf8Coder,
}


class CoderRegistry:
    """Coders by type (Beam's ``CoderRegistry``); `registry` is the one in use.

    Args:
        fallback_coder: The coder class for types without one; by default `FastPrimitivesCoder`.
    """

    def __init__(self, fallback_coder: object = None) -> None:
        self._coders: dict[Any, type[Coder]] = {}
        self.custom_types: list[Any] = []
        self.custom_fallbacks: list[Any] = []
        self.register_standard_coders(fallback_coder)

    def register_standard_coders(self, fallback_coder: Any) -> None:
        """Sets the coders of the basic types, and the fallback."""
        self._coders.update(_STANDARD_CODERS)
        self._fallback_coder = fallback_coder or FirstOf([coders.FastPrimitivesCoder])

    def register_fallback_coder(self, fallback_coder: Any) -> None:
        """Adds a coder class before the current fallback; its ``from_type_hint`` may raise to pass on a type.

        If the coder is deterministic, it also encodes keys of classes without a deterministic encoding.
        """
        self.custom_fallbacks.append(fallback_coder)
        self._fallback_coder = FirstOf([fallback_coder, self._fallback_coder])
        forget_encoders()

    def register_coder(self, typehint_type: object, typehint_coder_class: type[Coder]) -> None:
        """Sets the coder class of a user's type; its ``from_type_hint`` makes the coder.

        Objects of exactly this class are written with it wherever elements leave a process. If the coder is
        deterministic, keys of the class are compared by their encodings.

        Raises:
            TypeError: The second argument is not a class, for instance a coder object.
        """
        if not isinstance(typehint_coder_class, type):
            what = f"Coder registration requires a coder class object. Received {typehint_coder_class!r} instead."
            raise refusal(TypeError, what, hint="leave out the parentheses: register_coder(MyType, MyCoder)")
        if typehint_type not in self.custom_types:
            self.custom_types.append(typehint_type)
        self._coders[_lookup_key(typehint_type)] = typehint_coder_class
        forget_encoders()
        forget_coders()

    def register_row(self, typehint_type: TypeT) -> TypeT:
        """Sets a `RowCoder` as the coder of a dataclass or NamedTuple; usable as a decorator."""
        row_hint(typehint_type)
        self.register_coder(typehint_type, RowCoder)
        return typehint_type

    def registered_coder(self, kind: object) -> Coder | None:
        """Returns the coder that the user registered for exactly this type; None if there is none."""
        key = _lookup_key(kind)
        if not any(_lookup_key(custom) == key for custom in self.custom_types):
            return None
        return self._coders[key].from_type_hint(kind, self)

    def get_coder(self, typehint: object) -> Coder:
        """Returns the coder of a type or type hint; the fallback if it is unknown.

        >>> CoderRegistry().get_coder(int), CoderRegistry().get_coder(None)
        (VarIntCoder, FastPrimitivesCoder)
        """
        coder_class = self._coders.get(_lookup_key(typehint)) or _class_for_hint(typehint)
        coder: Coder = (coder_class or self._fallback_coder).from_type_hint(typehint, self)
        return coder

    def get_custom_type_coder_tuples(
        self, types: Iterable[Any] | None = None
    ) -> list[tuple[Any, type[Coder]]]:
        """Returns the user's types, or those of them that are in `types`, each with its coder class."""
        wanted = None if types is None else list(types)
        return [
            (kind, self._coders[_lookup_key(kind)])
            for kind in self.custom_types
            if wanted is None or kind in wanted
        ]

    def load_custom_type_coder_tuples(self, type_coder: Iterable[tuple[Any, type[Coder]]]) -> None:
        """Registers what `get_custom_type_coder_tuples` returned, in another process."""
        for kind, coder_class in type_coder:
            self.register_coder(kind, coder_class)

    def verify_deterministic(self, key_coder: Coder, op_name: str, silent: bool = True) -> Coder:
        """Returns the coder for a step's keys: `key_coder`, or a deterministic one like it; ValueError if there is
        none.

        As in Beam, `silent` has no effect.
        """
        if key_coder.is_deterministic():
            return key_coder
        message = three_parts(
            f"the key coder {key_coder!r} is not deterministic, so equal keys might not be grouped",
            where=f"at step {op_name!r}",
            hint="give the previous step a type hint, or the class of the keys a deterministic coder",
        )
        return key_coder.as_deterministic_coder(op_name, message)


class FirstOf:
    """The first of several coder classes that takes a type (Beam's ``FirstOf``)."""

    def __init__(self, coders: Iterable[Any]) -> None:
        self._coders = list(coders)

    def from_type_hint(self, typehint: object, registry: Registry) -> Coder:
        """Returns the coder of the first class that makes one; ValueError if none does."""
        reasons = []
        for coder_class in self._coders:
            try:
                coder: Coder = coder_class.from_type_hint(typehint, registry)
            except Exception as error:
                reasons.append(f"{coder_class}: {error}")
            else:
                return coder
        what = f"no coder takes {typehint!r}: {'; '.join(reasons)}"
        raise refusal(ValueError, what, hint="register a coder")


def _lookup_key(kind: object) -> Any:
    # A class of __main__ is another object in a worker than in the program, under the same name.
    if getattr(kind, "__module__", None) == "__main__" and isinstance(kind, type):
        return kind.__qualname__
    try:
        hash(kind)
    except TypeError:
        return None
    return kind


def _class_for_hint(typehint: object) -> Any:
    if isinstance(typehint, row_type.RowTypeConstraint):
        return RowCoder
    classes: tuple[tuple[Any, type[Coder]], ...] = (
        (typehints.TupleConstraint, coders.TupleCoder),
        (typehints.DictConstraint, coders.MapCoder),
        (typehints.IterableTypeConstraint, coders.IterableCoder),
        (typehints.ListConstraint, coders.ListCoder),
    )
    for constraint, coder_class in classes:
        if type(typehint) is constraint:
            return coder_class
    return coders.NullableCoder if typehints.is_nullable(typehint) else None


registry = CoderRegistry()
# A test may put another one in its place.
registry_in_use.bind(lambda: registry)
