"""The coders of values that consist of others, each with Beam's wire format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from penstock.coders.base import Coder, FastCoder, Registry
from penstock.coders.stream import InputStream, OutputStream
from penstock.error import three_parts
from penstock.typehints import typehints
from penstock.typehints.sharded_key_type import ShardedKeyTypeConstraint
from penstock.utils.sharded_key import ShardedKey


class TupleCoder(FastCoder):
    r"""Tuples of a fixed length, a coder for each part, the parts in turn (Beam's ``TupleCoder``).

    Args:
        components: The coders of the parts; with two of them it is a coder of pairs.

    >>> from penstock.coders.primitives import StrUtf8Coder, VarIntCoder
    >>> TupleCoder([StrUtf8Coder(), VarIntCoder()]).encode(("ab", 3))
    b'\x02ab\x03'
    """

    def __init__(self, components: Iterable[Coder]) -> None:
        self._coders = tuple(components)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes the parts; ValueError if there are not as many as coders."""
        parts = tuple(value)
        if len(parts) != len(self._coders):
            raise ValueError(f"a tuple of {len(parts)} parts does not fit {self!r}")
        last = len(parts) - 1
        for index, (coder, part) in enumerate(zip(self._coders, parts, strict=True)):
            coder.encode_to_stream(part, stream, nested or index < last)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> tuple[Any, ...]:
        last = len(self._coders) - 1
        return tuple(
            coder.decode_from_stream(stream, nested or index < last)
            for index, coder in enumerate(self._coders)
        )

    def is_deterministic(self) -> bool:
        return all(coder.is_deterministic() for coder in self._coders)

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """The coder of the deterministic coders; ValueError if a part has none."""
        if self.is_deterministic():
            return self
        return TupleCoder(coder.as_deterministic_coder(step_label, error_message) for coder in self._coders)

    def to_type_hint(self) -> Any:
        """``Tuple`` of the types of the parts."""
        return typehints.Tuple[tuple(coder.to_type_hint() for coder in self._coders)]

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> TupleCoder:
        """The coder of a ``Tuple`` hint with a type for each part."""
        return cls(registry.get_coder(part) for part in typehint.tuple_types)

    def coders(self) -> tuple[Coder, ...]:
        """The coders of the parts."""
        return self._coders

    def is_kv_coder(self) -> bool:
        return len(self._coders) == 2

    def key_coder(self) -> Coder:
        """The first of two coders; ValueError if there are not two."""
        return self._pair()[0]

    def value_coder(self) -> Coder:
        """The second of two coders; ValueError if there are not two."""
        return self._pair()[1]

    def _pair(self) -> tuple[Coder, ...]:
        if len(self._coders) != 2:
            raise ValueError(
                three_parts(f"{self!r} does not have two components", hint="use a TupleCoder of two")
            )
        return self._coders

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(repr, self._coders))}]"

    def __hash__(self) -> int:
        return hash(self._coders)


class _OfOne(FastCoder):
    """A coder made of one other coder, as deterministic as that is."""

    def __init__(self, inner: Coder) -> None:
        self._inner = inner

    def is_deterministic(self) -> bool:
        return self._inner.is_deterministic()

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        if self.is_deterministic():
            return self
        return type(self)(self._inner.as_deterministic_coder(step_label, error_message))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self._inner!r}]"

    def __hash__(self) -> int:
        return hash((type(self), self._inner))


class ListLikeCoder(_OfOne):
    """Many values of one type: their number in 4 bytes, then each (Beam's ``ListLikeCoder``).

    If the number cannot be known beforehand it is -1, and chunks follow, each after its own number; a 0 ends
    them.

    Args:
        elem_coder: The coder of the elements.
    """

    # Beam's writers start a new chunk once this many bytes are in the one before.
    _chunk_bytes = 64 * 1024

    def __init__(self, elem_coder: Coder) -> None:
        super().__init__(elem_coder)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes the elements of any iterable."""
        if hasattr(value, "__len__"):
            stream.write_packed("i", len(value))
            for element in value:
                self._inner.encode_to_stream(element, stream, True)
            return
        stream.write_packed("i", -1)
        count, chunk = 0, OutputStream()
        for element in value:
            self._inner.encode_to_stream(element, chunk, True)
            count += 1
            if chunk.size() > self._chunk_bytes:
                stream.write_var_int64(count)
                stream.write(chunk.get())
                count, chunk = 0, OutputStream()
        if count:
            stream.write_var_int64(count)
            stream.write(chunk.get())
        stream.write_var_int64(0)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads the elements into a list."""
        size = stream.read_packed("i")
        if size >= 0:
            return [self._inner.decode_from_stream(stream, True) for _ in range(size)]
        elements: list[Any] = []
        while count := stream.read_var_int64():
            elements.extend(self._inner.decode_from_stream(stream, True) for _ in range(count))
        return elements

    def value_coder(self) -> Coder:
        return self._inner

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> Self:
        """The coder of a hint with one inner type."""
        return cls(registry.get_coder(typehint.inner_type))


class IterableCoder(ListLikeCoder):
    """Iterables of values of one type; they come back as lists (Beam's ``IterableCoder``)."""

    def to_type_hint(self) -> Any:
        return typehints.Iterable[self._inner.to_type_hint()]


class ListCoder(ListLikeCoder):
    """Lists of values of one type (Beam's ``ListCoder``)."""

    def to_type_hint(self) -> Any:
        return typehints.List[self._inner.to_type_hint()]


class TupleSequenceCoder(ListLikeCoder):
    """Tuples of any length of values of one type (Beam's ``TupleSequenceCoder``)."""

    def decode_from_stream(self, stream: InputStream, nested: bool) -> tuple[Any, ...]:
        """Reads the elements into a tuple."""
        return tuple(super().decode_from_stream(stream, nested))


class NullableCoder(_OfOne):
    """A value or None: a byte 1 and the value, or a byte 0 (Beam's ``NullableCoder``).

    Args:
        value_coder: The coder of the values that are not None.
    """

    def __init__(self, value_coder: Coder) -> None:
        super().__init__(value_coder)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write_byte(0 if value is None else 1)
        if value is not None:
            self._inner.encode_to_stream(value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads a value or None; ValueError if the first byte is neither 0 nor 1."""
        present = stream.read_byte()
        if present > 1:
            raise ValueError(f"a nullable value begins with the byte 0 or 1, not {present}")
        return self._inner.decode_from_stream(stream, nested) if present else None

    def to_type_hint(self) -> Any:
        return typehints.Optional[self._inner.to_type_hint()]

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> NullableCoder:
        """The coder of an ``Optional`` hint; TypeError for any other."""
        if not typehints.is_nullable(typehint):
            raise TypeError(three_parts(f"{typehint!r} does not allow None", hint="use Optional[...]"))
        return cls(registry.get_coder(typehints.get_concrete_type_from_nullable(typehint)))


class LengthPrefixCoder(_OfOne):
    """Any value after the number of its bytes (Beam's ``LengthPrefixCoder``).

    Args:
        value_coder: The coder of the values.
    """

    def __init__(self, value_coder: Coder) -> None:
        super().__init__(value_coder)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes the size and the value."""
        stream.write(self._inner.encode(value), True)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return self._inner.decode(stream.read_all(True))

    def value_coder(self) -> Coder:
        return self._inner

    def to_type_hint(self) -> Any:
        return self._inner.to_type_hint()


class MapCoder(FastCoder):
    """Dicts: the number of items in 4 bytes, then keys and values in turn, in the dict's order (Beam's
    ``MapCoder``).

    Args:
        key_coder: The coder of the keys.
        value_coder: The coder of the values.
    """

    _sorted = False

    def __init__(self, key_coder: Coder, value_coder: Coder) -> None:
        self._key_coder = key_coder
        self._value_coder = value_coder

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write_packed("i", len(value))
        for key in sorted(value) if self._sorted else value:
            self._key_coder.encode_to_stream(key, stream, True)
            self._value_coder.encode_to_stream(value[key], stream, True)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> dict[Any, Any]:
        result = {}
        for _ in range(stream.read_packed("i")):
            key = self._key_coder.decode_from_stream(stream, True)
            result[key] = self._value_coder.decode_from_stream(stream, True)
        return result

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """The coder that writes the items in order of their keys; ValueError if keys or values have none."""
        return DeterministicMapCoder(
            self._key_coder.as_deterministic_coder(step_label, error_message),
            self._value_coder.as_deterministic_coder(step_label, error_message),
        )

    def to_type_hint(self) -> Any:
        return typehints.Dict[self._key_coder.to_type_hint(), self._value_coder.to_type_hint()]

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> MapCoder:
        """The coder of a ``Dict`` hint."""
        return cls(registry.get_coder(typehint.key_type), registry.get_coder(typehint.value_type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self._key_coder!r}, {self._value_coder!r}]"

    def __hash__(self) -> int:
        return hash((type(self), self._key_coder, self._value_coder))


class DeterministicMapCoder(MapCoder):
    """Dicts with their items in the order of the keys (Beam's ``DeterministicMapCoder``).

    Args:
        key_coder: The deterministic coder of the keys.
        value_coder: The deterministic coder of the values.
    """

    _sorted = True

    def is_deterministic(self) -> bool:
        return True

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        return self


class ShardedKeyCoder(_OfOne):
    """Keys with a shard: the shard's bytes, then the key (Beam's ``ShardedKeyCoder``).

    Args:
        key_coder: The coder of the keys.
    """

    def __init__(self, key_coder: Coder) -> None:
        super().__init__(key_coder)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write(value._shard_id, True)
        self._inner.encode_to_stream(value.key, stream, True)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        shard_id = stream.read_all(True)
        return ShardedKey(self._inner.decode_from_stream(stream, True), shard_id)

    def to_type_hint(self) -> Any:
        return ShardedKeyTypeConstraint(self._inner.to_type_hint())

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> ShardedKeyCoder:
        """The coder of a ``ShardedKeyType`` hint; ValueError for any other."""
        if not hasattr(typehint, "key_type"):
            raise ValueError(
                three_parts(f"{typehint!r} is not a ShardedKeyType", hint="use ShardedKeyType[K]")
            )
        return cls(registry.get_coder(typehint.key_type))
