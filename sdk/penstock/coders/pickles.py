"""The coders that take any value: by pickling, or with Beam's compact format for common types."""

from __future__ import annotations

import base64
import pickle
import struct
import typing
from typing import Any

from penstock.coders.base import Coder, FastCoder
from penstock.coders.deterministic import decode_key, encode_key
from penstock.coders.primitives import VarIntCoder
from penstock.coders.stream import InputStream, OutputStream
from penstock.error import three_parts


class _OfAnything:
    """What the coders of any value have in common: they may hold pairs, and do not know of what."""

    def is_kv_coder(self) -> bool:
        """Yes: any value may be a pair."""
        return True

    def key_coder(self) -> Any:
        """The coder itself."""
        return self

    def value_coder(self) -> Any:
        """The coder itself."""
        return self

    def to_type_hint(self) -> Any:
        """The type Any."""
        return typing.Any


class PickleCoder(_OfAnything, Coder):
    """Anything that can be pickled (Beam's ``PickleCoder``).

    Objects of classes that a worker cannot import, such as classes of the main program, bring their class along.

    >>> PickleCoder().decode(PickleCoder().encode({"a": [1]}))
    {'a': [1]}
    """

    def encode(self, value: Any) -> bytes:
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

    It is the one coder that needs a package beyond the standard library, and only when it is used.
    """

    def encode(self, value: Any) -> bytes:
        import cloudpickle

        return bytes(cloudpickle.dumps(value))

    def decode(self, encoded: bytes) -> Any:
        return pickle.loads(encoded)


class Base64PickleCoder(_OfAnything, Coder):
    """Anything that the standard library can pickle, as base-64 text (Beam's ``Base64PickleCoder``)."""

    def encode(self, value: Any) -> bytes:
        """The text of the pickled value."""
        return base64.b64encode(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def decode(self, encoded: bytes) -> Any:
        return pickle.loads(base64.b64decode(encoded))


class FastPrimitivesCoder(_OfAnything, FastCoder):
    r"""Common values as a byte that tells the type and a compact form; all others by another coder (Beam's
    name).

    The common types are None, bool, int of 64 bits, float, bytes, str, and lists, tuples, dicts and sets.

    Args:
        fallback_coder: The coder of all others.

    >>> FastPrimitivesCoder().encode(("a", 1))
    b'\x06\x02\x04\x01a\x01\x01'
    """

    def __init__(self, fallback_coder: Coder | None = None) -> None:
        self._fallback_coder = fallback_coder or PickleCoder()

    def encode(self, value: Any) -> bytes:
        return self._encoded(value, False)

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write(self._encoded(value, nested))

    def _encoded(self, value: Any, nested: bool) -> bytes:
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

    def _parts(self, value: Any) -> Any:
        return (part for item in value.items() for part in item) if type(value) is dict else value

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads a value; ValueError if the first byte tells no known type."""
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
                return dict(zip(parts[::2], parts[1::2], strict=True))
            case 8:
                return set(self._read_parts(stream))
            case 9:
                return stream.read_byte() != 0
            case 255:
                return self._fallback_coder.decode_from_stream(stream, nested)
            case tag:
                raise ValueError(f"no type of value is encoded with the first byte {tag}")

    def _read_parts(self, stream: InputStream, each: int = 1) -> list[Any]:
        return [self.decode_from_stream(stream, True) for _ in range(stream.read_var_int64() * each)]

    def is_deterministic(self) -> bool:
        return self._fallback_coder.is_deterministic()

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """A `DeterministicFastPrimitivesCoder`, which refuses values at run time."""
        return self if self.is_deterministic() else DeterministicFastPrimitivesCoder(self, step_label)


_COLLECTION_TAGS: dict[type, bytes] = {list: b"\x05", tuple: b"\x06", dict: b"\x07", set: b"\x08"}
_OTHER = 255
_number = VarIntCoder().encode
_pack_float = struct.Struct(">Bd").pack


class KeyCoder(Coder):
    """All that may be a key, as `penstock.coders.deterministic` encodes it (penstock's own).

    >>> KeyCoder().decode(KeyCoder().encode(("a", 1)))
    ('a', 1)
    """

    def encode(self, value: Any) -> bytes:
        """The bytes of a key; TypeError if it has no deterministic encoding."""
        return encode_key(value)

    def decode(self, encoded: bytes) -> Any:
        return decode_key(encoded)

    def is_deterministic(self) -> bool:
        return True


class DeterministicFastPrimitivesCoder(FastPrimitivesCoder):
    """As `FastPrimitivesCoder`, deterministic, and refusing what cannot be made so (Beam's name).

    Dicts and sets are written in the order of their encoded keys and members; values that are not common
    values are written as keys are.

    Args:
        coder: The coder that this one stands in for.
        step_label: The step that needs it, for the error.
    """

    def __init__(self, coder: Coder, step_label: str) -> None:
        super().__init__(KeyCoder())
        self._underlying_coder = coder
        self._step_label = step_label

    def _encoded(self, value: Any, nested: bool) -> bytes:
        """The bytes of a value; TypeError if it has no deterministic encoding."""
        try:
            return self._tagged(value, nested)
        except TypeError as error:
            what, _, hint = str(error).partition("\n  hint: ")
            if "\n" in what:
                raise
            raise TypeError(three_parts(what, where=f"at step {self._step_label!r}", hint=hint)) from error

    def _parts(self, value: Any) -> Any:
        if type(value) is dict:
            return (part for key in sorted(value, key=encode_key) for part in (key, value[key]))
        return sorted(value, key=encode_key) if type(value) is set else value


DeterministicFastPrimitivesCoderV2 = DeterministicFastPrimitivesCoder


class FakeDeterministicFastPrimitivesCoder(FastPrimitivesCoder):
    """A `FastPrimitivesCoder` that says it is deterministic though it may not be (Beam's name).

    It can be registered as the fallback coder by those who know that their keys are pickled alike everywhere.
    """

    def is_deterministic(self) -> bool:
        return True
