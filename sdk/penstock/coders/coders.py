"""Beam's coders, each with Beam's wire format: of single values, of values that consist of others, and of any value."""

from __future__ import annotations

import base64
import pickle
import struct
import typing
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, ClassVar, Self

from penstock.absent import hint_at_absent_names
from penstock.coders.base import Coder, FastCoder, Registry
from penstock.coders.deterministic import SHORT_SIZES, decode_key, encode_key, encode_long_size
from penstock.coders.stream import ENCODED_OTHERWISE, InputStream, OutputStream
from penstock.elements.bounded_window import GlobalWindow, IntervalWindow
from penstock.error import noun_for, refusal, split_hint
from penstock.typehints import typehints
from penstock.typehints.sharded_key_type import ShardedKeyTypeConstraint
from penstock.utils.sharded_key import ShardedKey
from penstock.utils.timestamp import Timestamp

__all__ = [
    "Base64PickleCoder",
    "BigEndianShortCoder",
    "BigIntegerCoder",
    "BooleanCoder",
    "ByteCoder",
    "BytesCoder",
    "CloudpickleCoder",
    "Coder",
    "DecimalCoder",
    "DeterministicFastPrimitivesCoder",
    "DeterministicFastPrimitivesCoderV2",
    "DeterministicMapCoder",
    "FakeDeterministicFastPrimitivesCoder",
    "FastCoder",
    "FastPrimitivesCoder",
    "FloatCoder",
    "GlobalWindowCoder",
    "IntervalWindowCoder",
    "IterableCoder",
    "LengthPrefixCoder",
    "ListCoder",
    "ListLikeCoder",
    "MapCoder",
    "NullableCoder",
    "PickleCoder",
    "ShardedKeyCoder",
    "SinglePrecisionFloatCoder",
    "SingletonCoder",
    "StrUtf8Coder",
    "TimestampCoder",
    "ToBytesCoder",
    "ToStringCoder",
    "TupleCoder",
    "TupleSequenceCoder",
    "VarInt32Coder",
    "VarIntCoder",
]


class _Primitive(FastCoder):
    """A coder without parameters, deterministic, of values of one type."""

    _type: ClassVar[Any]

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> object:
        return self._type


class StrUtf8Coder(Coder):
    """Strings, as UTF-8 (Beam's ``StrUtf8Coder``)."""

    def encode(self, value: str) -> bytes:
        return value.encode("utf-8")

    def decode(self, encoded: bytes) -> str:
        return encoded.decode("utf-8")

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type[str]:
        return str


class ToBytesCoder(Coder):
    """Writes any value as text, for output only: bytes unchanged, others as the UTF-8 of their ``str`` (Beam's name).

    >>> ToBytesCoder().encode(12)
    b'12'
    """

    def encode(self, value: object) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode("utf-8")

    def decode(self, encoded: bytes) -> Any:
        """Always raises NotImplementedError."""
        what = "a ToBytesCoder does not decode"
        raise refusal(NotImplementedError, what, hint="use StrUtf8Coder to read text")

    def is_deterministic(self) -> bool:
        return True


ToStringCoder = ToBytesCoder


class BytesCoder(_Primitive):
    """Leaves bytes unchanged (Beam's ``BytesCoder``)."""

    _type = bytes

    def encode_to_stream(self, value: bytes, stream: OutputStream, nested: bool) -> None:
        """Writes the bytes; AssertionError, as in Beam, for any other type."""
        if not isinstance(value, bytes):
            what = f"a BytesCoder encodes bytes, not {noun_for(value)}"
            raise refusal(AssertionError, what, hint="use the coder of that type, or encode the value first")
        stream.write(value, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> bytes:
        return stream.read_all(nested)


class BooleanCoder(_Primitive):
    """True and False, as a byte 1 or 0 (Beam's ``BooleanCoder``)."""

    _type = bool

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        stream.write_byte(1 if value else 0)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> bool:
        """Reads a byte; ValueError if it is neither 0 nor 1."""
        byte = stream.read_byte()
        if byte > 1:
            raise refusal(ValueError, f"Expected 0 or 1, got {byte}", hint=ENCODED_OTHERWISE)
        return byte == 1


class VarIntCoder(_Primitive):
    r"""Integers of 64 bits in 1 to 10 bytes, fewest for small positive ones (Beam's ``VarIntCoder``).

    >>> VarIntCoder().encode(300)
    b'\xac\x02'
    """

    _type = int

    def encode(self, value: int) -> bytes:
        """Returns the bytes of a number; OverflowError if it does not fit in 64 bits with a sign."""
        # Numbers in cells are encoded all the time, and are mostly short.
        if type(value) is int and 0 <= value < 1 << 63:
            return SHORT_SIZES[value] if value < 128 else encode_long_size(value)
        return super().encode(value)

    def decode(self, encoded: bytes) -> int:
        if len(encoded) == 1 and encoded[0] < 128:
            return encoded[0]
        result = shift = 0
        for byte in encoded:
            result |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        # A number that does not end, or has more than 63 bits, whose last may be a sign, goes to the thorough reader.
        if 0 < len(encoded) < 10 and byte < 128:
            return result
        return self.decode_from_stream(InputStream(encoded), False)

    def encode_to_stream(self, value: int, stream: OutputStream, nested: bool) -> None:
        """Writes a number; OverflowError if it does not fit in 64 bits with a sign."""
        try:
            stream.write_var_int64(value)
        except OverflowError as error:
            what = "an integer is out of the range of VarIntCoder, -(2**63) to 2**63 - 1"
            hint = "use BigIntegerCoder, or leave out the type hint"
            raise refusal(OverflowError, what, hint=hint) from error

    def decode_from_stream(self, stream: InputStream, nested: bool) -> int:
        return stream.read_var_int64()


class VarInt32Coder(_Primitive):
    """Integers of 32 bits in 1 to 5 bytes (Beam's ``VarInt32Coder``)."""

    _type = int

    def encode_to_stream(self, value: int, stream: OutputStream, nested: bool) -> None:
        """Writes a number; OverflowError if it does not fit in 32 bits with a sign."""
        if not -(1 << 31) <= value < 1 << 31:
            what = "an integer is out of the range of VarInt32Coder, -(2**31) to 2**31 - 1"
            raise refusal(OverflowError, what, hint="use VarIntCoder")
        stream.write_var_int64(value & 0xFFFFFFFF)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> int:
        value = stream.read_var_int64()
        return value - (1 << 32) if value >= 1 << 31 else value


class _Packed(_Primitive):
    _form: ClassVar[str]

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write_packed(self._form, value)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> object:
        return stream.read_packed(self._form)


class FloatCoder(_Packed):
    """Floats in their 8 bytes, high byte first (Beam's ``FloatCoder``)."""

    _type = float
    _form = "d"


class SinglePrecisionFloatCoder(_Packed):
    """Floats rounded to 4 bytes, high byte first; too large ones become infinite (Beam's name)."""

    _type = float
    _form = "f"

    def encode_to_stream(self, value: float, stream: OutputStream, nested: bool) -> None:
        try:
            stream.write_packed("f", value)
        except OverflowError:
            stream.write_packed("f", float("inf") if value > 0 else float("-inf"))


class BigEndianShortCoder(_Packed):
    """Integers of 16 bits in 2 bytes, high byte first (Beam's ``BigEndianShortCoder``)."""

    _type = int
    _form = "h"


class ByteCoder(_Packed):
    """Numbers from 0 to 255, as a byte (Beam's ``ByteCoder``)."""

    _type = int
    _form = "B"


class BigIntegerCoder(_Primitive):
    r"""Integers of any size as two's complement in the fewest bytes, high byte first (Beam's name).

    >>> BigIntegerCoder().encode(-129)
    b'\xff\x7f'
    """

    _type = int

    def encode_to_stream(self, value: int, stream: OutputStream, nested: bool) -> None:
        size = (value + (value < 0)).bit_length() // 8 + 1
        stream.write(value.to_bytes(size, "big", signed=True), nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> int:
        return int.from_bytes(stream.read_all(nested), "big", signed=True)


class DecimalCoder(_Primitive):
    """Finite Decimals: the number of decimal places as a VarInt, then the digits as a big integer (Beam's name)."""

    _type = Decimal

    def encode_to_stream(self, value: Decimal, stream: OutputStream, nested: bool) -> None:
        """Writes a number; TypeError, as in Beam, for infinities and NaN."""
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            hint = "leave out infinite numbers and NaN, or encode them as strings"
            raise refusal(TypeError, "a DecimalCoder encodes finite numbers only", hint=hint)
        stream.write_var_int64(-exponent)
        whole = int(Decimal((0, digits, 0)))
        BigIntegerCoder().encode_to_stream(-whole if sign else whole, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Decimal:
        scale = stream.read_var_int64()
        whole = BigIntegerCoder().decode_from_stream(stream, nested)
        sign, digits, _ = Decimal(whole).as_tuple()
        return Decimal((sign, digits, -scale))


class SingletonCoder(_Primitive):
    """One value only, in no bytes at all (Beam's ``SingletonCoder``)."""

    def __init__(self, value: object) -> None:
        self._value = value

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        pass

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return self._value

    def to_type_hint(self) -> object:
        """Always raises NotImplementedError."""
        raise NotImplementedError


class TupleCoder(FastCoder):
    r"""Tuples of a fixed length, one part after the other, each by its own coder; pairs if there are two (Beam's name).

    >>> from penstock.coders.coders import StrUtf8Coder, VarIntCoder
    >>> TupleCoder([StrUtf8Coder(), VarIntCoder()]).encode(("ab", 3))
    b'\x02ab\x03'
    """

    def __init__(self, components: Iterable[Coder]) -> None:
        self._coders = tuple(components)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes the parts; ValueError if there are not as many as coders."""
        parts = tuple(value)
        if len(parts) != len(self._coders):
            what = f"a tuple of {len(parts)} parts does not fit {self!r}"
            raise refusal(ValueError, what, hint="give the coder one part for each part of the tuple")
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
        if self.is_deterministic():
            return self
        return TupleCoder(coder.as_deterministic_coder(step_label, error_message) for coder in self._coders)

    def to_type_hint(self) -> object:
        return typehints.Tuple[tuple(coder.to_type_hint() for coder in self._coders)]

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> TupleCoder:
        return cls(registry.get_coder(part) for part in typehint.tuple_types)

    def coders(self) -> tuple[Coder, ...]:
        """Returns the coders of the parts."""
        return self._coders

    def is_kv_coder(self) -> bool:
        return len(self._coders) == 2

    def key_coder(self) -> Coder:
        return self._pair()[0]

    def value_coder(self) -> Coder:
        return self._pair()[1]

    def _pair(self) -> tuple[Coder, ...]:
        if len(self._coders) != 2:
            what = f"{self!r} does not have two components"
            raise refusal(ValueError, what, hint="use a TupleCoder of two")
        return self._coders

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(repr, self._coders))}]"

    def __hash__(self) -> int:
        return hash(self._coders)


class _OfOne(FastCoder):
    """A coder made of one other coder; it is deterministic if the other is."""

    def __init__(self, value_coder: Coder) -> None:
        self._inner = value_coder

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

    If the number cannot be known beforehand it is -1, and chunks follow, each after its own number; a 0 ends them.
    """

    # Beam's writers start a new chunk once this many bytes are in the previous one.
    _chunk_bytes = 64 * 1024

    def __init__(self, elem_coder: Coder) -> None:
        super().__init__(elem_coder)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
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
        return cls(registry.get_coder(typehint.inner_type))


class IterableCoder(ListLikeCoder):
    """Iterables of values of one type; they come back as lists (Beam's ``IterableCoder``)."""

    def to_type_hint(self) -> object:
        return typehints.Iterable[self._inner.to_type_hint()]


class ListCoder(ListLikeCoder):
    """Lists of values of one type (Beam's ``ListCoder``)."""

    def to_type_hint(self) -> object:
        return typehints.List[self._inner.to_type_hint()]


class TupleSequenceCoder(ListLikeCoder):
    """Tuples of any length of values of one type (Beam's ``TupleSequenceCoder``)."""

    def decode_from_stream(self, stream: InputStream, nested: bool) -> tuple[Any, ...]:
        return tuple(super().decode_from_stream(stream, nested))


class NullableCoder(_OfOne):
    """A value or None: a byte 1 and the value, or a byte 0 (Beam's ``NullableCoder``)."""

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        stream.write_byte(0 if value is None else 1)
        if value is not None:
            self._inner.encode_to_stream(value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads a value or None; ValueError if the first byte is neither 0 nor 1."""
        present = stream.read_byte()
        if present > 1:
            what = f"a nullable value begins with the byte 0 or 1, not {present}"
            raise refusal(ValueError, what, hint=ENCODED_OTHERWISE)
        return self._inner.decode_from_stream(stream, nested) if present else None

    def to_type_hint(self) -> object:
        return typehints.Optional[self._inner.to_type_hint()]

    @classmethod
    def from_type_hint(cls, typehint: object, registry: Registry) -> NullableCoder:
        """Returns the coder of an ``Optional`` hint; TypeError for any other."""
        if not typehints.is_nullable(typehint):
            raise refusal(TypeError, f"{typehint!r} does not allow None", hint="use Optional[...]")
        return cls(registry.get_coder(typehints.get_concrete_type_from_nullable(typehint)))


class LengthPrefixCoder(_OfOne):
    """Any value after the number of its bytes (Beam's ``LengthPrefixCoder``)."""

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        stream.write(self._inner.encode(value), True)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return self._inner.decode(stream.read_all(True))

    def value_coder(self) -> Coder:
        return self._inner

    def to_type_hint(self) -> object:
        return self._inner.to_type_hint()


class MapCoder(FastCoder):
    """Dicts: the number of items in 4 bytes, then keys and values in turn, in the dict's order (Beam's name)."""

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
        """The coder that writes the items in order of their keys; ValueError if a part cannot be deterministic."""
        return DeterministicMapCoder(
            self._key_coder.as_deterministic_coder(step_label, error_message),
            self._value_coder.as_deterministic_coder(step_label, error_message),
        )

    def to_type_hint(self) -> object:
        return typehints.Dict[self._key_coder.to_type_hint(), self._value_coder.to_type_hint()]

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> MapCoder:
        return cls(registry.get_coder(typehint.key_type), registry.get_coder(typehint.value_type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self._key_coder!r}, {self._value_coder!r}]"

    def __hash__(self) -> int:
        return hash((type(self), self._key_coder, self._value_coder))


class DeterministicMapCoder(MapCoder):
    """Dicts with their items in the order of the keys, by deterministic coders (Beam's ``DeterministicMapCoder``)."""

    _sorted = True

    def is_deterministic(self) -> bool:
        return True

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        return self


class ShardedKeyCoder(_OfOne):
    """Keys with a shard: the shard's bytes, then the key (Beam's ``ShardedKeyCoder``)."""

    def __init__(self, key_coder: Coder) -> None:
        super().__init__(key_coder)

    def encode_to_stream(self, value: ShardedKey, stream: OutputStream, nested: bool) -> None:
        stream.write(value.shard_id, True)
        self._inner.encode_to_stream(value.key, stream, True)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> ShardedKey:
        shard_id = stream.read_all(True)
        return ShardedKey(self._inner.decode_from_stream(stream, True), shard_id)

    def to_type_hint(self) -> object:
        return ShardedKeyTypeConstraint(self._inner.to_type_hint())

    @classmethod
    def from_type_hint(cls, typehint: object, registry: Registry) -> ShardedKeyCoder:
        """Returns the coder of a ``ShardedKeyType`` hint; ValueError for any other."""
        if not hasattr(typehint, "key_type"):
            raise refusal(ValueError, f"{typehint!r} is not a ShardedKeyType", hint="use ShardedKeyType[K]")
        return cls(registry.get_coder(typehint.key_type))


class _OfAnything:
    """The common part of coders of any value, which may be a pair of any values."""

    def is_kv_coder(self) -> bool:
        return True

    def key_coder(self) -> Any:
        return self

    def value_coder(self) -> Any:
        return self

    def to_type_hint(self) -> object:
        return typing.Any


class PickleCoder(_OfAnything, Coder):
    """Anything that can be pickled (Beam's ``PickleCoder``).

    An object whose class a worker cannot import, such as a class of the main program, is pickled with its class.
    """

    def encode(self, value: object) -> bytes:
        try:
            return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            return CloudpickleCoder().encode(value)

    def decode(self, encoded: bytes) -> Any:
        return pickle.loads(encoded)

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        return DeterministicFastPrimitivesCoder(self, step_label)


class CloudpickleCoder(_OfAnything, Coder):
    """Anything that cloudpickle can pickle, functions and classes of ``__main__`` included (Beam's name).

    Only this coder needs a package beyond the standard library, and only when it is used.
    """

    def encode(self, value: object) -> bytes:
        import cloudpickle

        return bytes(cloudpickle.dumps(value))

    def decode(self, encoded: bytes) -> Any:
        return pickle.loads(encoded)


class Base64PickleCoder(_OfAnything, Coder):
    """Anything that the standard library can pickle, as base-64 text (Beam's ``Base64PickleCoder``)."""

    def encode(self, value: object) -> bytes:
        return base64.b64encode(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def decode(self, encoded: bytes) -> Any:
        return pickle.loads(base64.b64decode(encoded))


def _of_hashable(make: Callable[[Iterable[Any]], Any], parts: Iterable[Any]) -> object:
    """A set or a dict of decoded parts, which are hashable if they have been encoded as one."""
    try:
        return make(parts)
    except TypeError as error:
        raise refusal(
            ValueError, f"not an encoded {make.__name__}: {error}", hint=ENCODED_OTHERWISE
        ) from None


class FastPrimitivesCoder(_OfAnything, FastCoder):
    r"""Common values as a byte for the type and a compact form; all others by `fallback_coder` (Beam's name).

    The common types are None, bool, int of 64 bits, float, bytes, str, and lists, tuples, dicts and sets.

    >>> FastPrimitivesCoder().encode(("a", 1))
    b'\x06\x02\x04\x01a\x01\x01'
    """

    def __init__(self, fallback_coder: Coder | None = None) -> None:
        self._fallback_coder = fallback_coder or PickleCoder()

    def encode(self, value: object) -> bytes:
        return self._encoded(value, False)

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        stream.write(self._encoded(value, nested))

    def _encoded(self, value: object, nested: bool) -> bytes:
        return self._tagged(value, nested)

    def _tagged(self, value: Any, nested: bool) -> bytes:
        kind = type(value)
        if kind is str or kind is bytes:
            data: bytes = value if kind is bytes else value.encode()
            tag = b"\x03" if kind is bytes else b"\x04"
            return tag + _number(len(data)) + data if nested else tag + data
        if kind is int and -(1 << 63) <= value < 1 << 63:
            return b"\x01" + _number(value)
        if value is None:
            return b"\x00"
        if kind is float:
            return _pack_float(2, value)
        if kind is bool:
            return b"\x09\x01" if value else b"\x09\x00"
        if kind in _COLLECTION_TAGS:
            head = _COLLECTION_TAGS[kind] + _number(len(value))
            return head + b"".join([self._tagged(part, True) for part in self._parts(value)])
        stream = OutputStream()
        stream.write_byte(_OTHER)
        self._fallback_coder.encode_to_stream(value, stream, nested)
        return stream.get()

    def _parts(self, value: object) -> Any:
        return (part for item in value.items() for part in item) if type(value) is dict else value

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads a value; ValueError if no type has the first byte."""
        match stream.read_byte():
            case 0:
                return None
            case 1:
                return stream.read_var_int64()
            case 2:
                return stream.read_packed("d")
            case 3:
                return stream.read_all(nested)
            case 4:
                return stream.read_all(nested).decode()
            case 5:
                return self._read_parts(stream)
            case 6:
                return tuple(self._read_parts(stream))
            case 7:
                parts = self._read_parts(stream, 2)
                return _of_hashable(dict, zip(parts[::2], parts[1::2], strict=True))
            case 8:
                return _of_hashable(set, self._read_parts(stream))
            case 9:
                return stream.read_byte() != 0
            case 255:
                return self._fallback_coder.decode_from_stream(stream, nested)
            case tag:
                what = f"no type of value is encoded with the first byte {tag}"
                raise refusal(ValueError, what, hint=ENCODED_OTHERWISE)

    def _read_parts(self, stream: InputStream, each: int = 1) -> list[Any]:
        try:
            return [self.decode_from_stream(stream, True) for _ in range(stream.read_var_int64() * each)]
        except RecursionError:
            what = "the encoded value is nested too deeply"
            raise refusal(ValueError, what, hint=ENCODED_OTHERWISE) from None

    def is_deterministic(self) -> bool:
        return self._fallback_coder.is_deterministic()

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """Returns a `DeterministicFastPrimitivesCoder`, which refuses values at run time."""
        return self if self.is_deterministic() else DeterministicFastPrimitivesCoder(self, step_label)


_COLLECTION_TAGS: dict[type, bytes] = {list: b"\x05", tuple: b"\x06", dict: b"\x07", set: b"\x08"}
_OTHER = 255
_number = VarIntCoder().encode
_pack_float = struct.Struct(">Bd").pack


class KeyCoder(Coder):
    """Keys of all types, as `penstock.coders.deterministic` encodes them (penstock's own).

    >>> KeyCoder().decode(KeyCoder().encode(("a", 1)))
    ('a', 1)
    """

    def encode(self, value: object) -> bytes:
        """Returns the bytes of a key; TypeError if it has no deterministic encoding."""
        return encode_key(value)

    def decode(self, encoded: bytes) -> Any:
        return decode_key(encoded)

    def is_deterministic(self) -> bool:
        return True


class DeterministicFastPrimitivesCoder(FastPrimitivesCoder):
    """As `FastPrimitivesCoder`, but deterministic: it refuses values without a deterministic encoding (Beam's name).

    Dicts and sets are written in the order of their encoded keys and members; values that are not common
    values are written as keys are.

    Args:
        coder: The coder that this one replaces.
        step_label: The step that needs it, for the error.
    """

    encodes_as_keys = True

    def __init__(self, coder: Coder, step_label: str) -> None:
        super().__init__(KeyCoder())
        self._underlying_coder = coder
        self._step_label = step_label

    def _encoded(self, value: object, nested: bool) -> bytes:
        """The bytes of a value; TypeError if it has no deterministic encoding."""
        try:
            return self._tagged(value, nested)
        except TypeError as error:
            what, hint = split_hint(str(error))
            if "\n" in what:
                raise
            raise refusal(TypeError, what, where=f"at step {self._step_label!r}", hint=hint) from error

    def _parts(self, value: object) -> Any:
        if type(value) is dict:
            return (part for key in sorted(value, key=encode_key) for part in (key, value[key]))
        return sorted(value, key=encode_key) if type(value) is set else value


DeterministicFastPrimitivesCoderV2 = DeterministicFastPrimitivesCoder


class FakeDeterministicFastPrimitivesCoder(FastPrimitivesCoder):
    """A `FastPrimitivesCoder` that claims to be deterministic, even if it is not (Beam's name).

    Register it as the fallback coder if you know that your keys are pickled alike everywhere.
    """

    def is_deterministic(self) -> bool:
        return True


# Added to a signed number, it makes an unsigned number of 8 bytes that sorts the same way.
_SHIFT = 1 << 63


class TimestampCoder(_Primitive):
    """Timestamps, rounded down to milliseconds, in 8 bytes that sort as the times do (Beam's ``TimestampCoder``)."""

    _type = Timestamp

    def encode_to_stream(self, value: Timestamp, stream: OutputStream, nested: bool) -> None:
        stream.write_packed("Q", value.micros // 1000 + _SHIFT)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Timestamp:
        return Timestamp.from_micros((stream.read_packed("Q") - _SHIFT) * 1000)


class IntervalWindowCoder(FastCoder):
    """Intervals, rounded down to milliseconds: the end as a timestamp, then the length as a VarInt (Beam's name)."""

    def encode_to_stream(self, value: IntervalWindow, stream: OutputStream, nested: bool) -> None:
        end_millis = value.end_micros // 1000
        stream.write_packed("Q", end_millis + _SHIFT)
        stream.write_var_int64(end_millis - value.start_micros // 1000)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> IntervalWindow:
        end_millis = stream.read_packed("Q") - _SHIFT
        return IntervalWindow.from_micros((end_millis - stream.read_var_int64()) * 1000, end_millis * 1000)

    def is_deterministic(self) -> bool:
        return True


class GlobalWindowCoder(SingletonCoder):
    """The global window, in no bytes (Beam's ``GlobalWindowCoder``)."""

    def __init__(self) -> None:
        super().__init__(GlobalWindow())


hint_at_absent_names(globals())
