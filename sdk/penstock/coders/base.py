"""Defines coders: they turn values into bytes and back, and answer the questions of a registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from penstock.base.late_binding import LateBinding
from penstock.coders.stream import InputStream, OutputStream
from penstock.error import refusal, three_parts


class Registry(Protocol):
    """Lists the questions that coders ask the registry in use. It imports them all, so they cannot import it."""

    @property
    def custom_fallbacks(self) -> Sequence[Any]:
        """The user's coders for types that nothing else takes."""

    def get_coder(self, typehint: object) -> Coder:
        """Returns the coder of a type."""

    def registered_coder(self, kind: object) -> Coder | None:
        """Returns the coder that the user has registered for a type."""

    def get_custom_type_coder_tuples(
        self, types: Iterable[Any] | None = None
    ) -> list[tuple[Any, type[Coder]]]:
        """Returns the user's types, or those of them that are in `types`, each with its coder class."""


registry_in_use: LateBinding[[], Registry] = LateBinding("penstock.coders.typecoders")
"""Gives the registry that coders ask."""


def _undefined(what: str, method: str) -> NotImplementedError:
    """The error of a method that a coder of the user's own has to define."""
    return refusal(NotImplementedError, what, hint=f"define {method}, or use another coder")


class Nested:
    """The common part of coders: the bytes of a value that is a part of a larger one."""

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes a value; if `nested`, so that the reader can recognize its end."""
        raise _undefined(f"{type(self).__name__} does not write to streams", "encode_to_stream")

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads the value that `encode_to_stream` wrote."""
        raise _undefined(f"{type(self).__name__} does not read from streams", "decode_from_stream")

    def encode_nested(self, value: Any) -> bytes:
        """Returns the bytes of a value that is a part of a larger one: their end can be recognized."""
        stream = OutputStream()
        self.encode_to_stream(value, stream, True)
        return stream.get()

    def decode_nested(self, encoded: bytes) -> Any:
        """Returns the value of the bytes that `encode_nested` returned."""
        return self.decode_from_stream(InputStream(encoded), True)


class ByBytes(Nested):
    """Implements streams on `encode` and `decode`: a subclass defines these two."""

    def encode(self, value: Any) -> bytes:
        """Returns the bytes of a value."""
        raise _undefined(f"{self!r} does not encode", "encode")

    def decode(self, encoded: bytes) -> Any:
        """Returns the value of the bytes."""
        raise _undefined(f"{self!r} does not decode", "decode")

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write(self.encode(value), nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return self.decode(stream.read_all(nested))


class ByStreams(Nested):
    """Implements `encode` and `decode` on streams: a subclass defines how it writes to them and reads from them."""

    def encode(self, value: Any) -> bytes:
        """Returns the bytes of a value."""
        stream = OutputStream()
        self.encode_to_stream(value, stream, False)
        return stream.get()

    def decode(self, encoded: bytes) -> Any:
        """Returns the value of the bytes."""
        return self.decode_from_stream(InputStream(encoded), False)


class Coder(ByBytes):
    """Turns values of one kind into bytes and back (Beam's ``Coder``).

    A subclass defines `encode` and `decode`, and `is_deterministic` if equal values always have equal bytes: only then
    can it encode keys.

    >>> class Hexadecimal(Coder):
    ...     def encode(self, value):
    ...         return b"%x" % value
    ...     def decode(self, encoded):
    ...         return int(encoded, 16)
    >>> Hexadecimal().decode(Hexadecimal().encode(255))
    255
    """

    pickles_as_it_is = False
    """True if objects of a class with this coder are pickled without it, where all can be and it is quicker."""

    encodes_as_keys = False
    """True if it leaves objects of a class to the encoding of keys, which then must not ask the coder again."""

    def is_deterministic(self) -> bool:
        """True if equal values always have equal bytes, in every process."""
        return False

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """Returns this coder or a deterministic one like it.

        Args:
            step_label: The step that needs it, for the error.
            error_message: The text of the error, instead of the default one.

        Raises:
            ValueError: If there is no such coder.
        """
        if self.is_deterministic():
            return self
        raise ValueError(
            error_message
            or three_parts(
                f"{self!r} cannot be made deterministic",
                where=f"at step {step_label!r}",
                hint="give the keys a type hint whose coder is deterministic",
            )
        )

    def estimate_size(self, value: Any) -> int:
        """Returns roughly how many bytes a value takes; by default, the length of its encoding."""
        return len(self.encode(value))

    def to_type_hint(self) -> object:
        """Returns the type of the values; NotImplementedError if a coder does not define it."""
        raise NotImplementedError

    @classmethod
    def from_type_hint(cls, typehint: object, registry: Registry) -> Coder:
        """Returns a coder of this class for values of a type; by default, the type is ignored."""
        return cls()

    def is_kv_coder(self) -> bool:
        """True if the values are pairs of key and value."""
        return False

    def key_coder(self) -> Coder:
        """Returns the coder of the keys; ValueError if the values are not pairs."""
        raise self._not_of_pairs("key_coder")

    def value_coder(self) -> Coder:
        """Returns the coder of the values; ValueError if the values are not pairs."""
        raise self._not_of_pairs("value_coder")

    def _not_of_pairs(self, method: str) -> Exception:
        if self.is_kv_coder():
            return _undefined(f"{self!r} is a coder of pairs, and must define {method}", method)
        return refusal(ValueError, f"{self!r} is not a coder of pairs", hint="use a TupleCoder of two coders")

    def version_tag(self) -> str:
        """Returns a mark that changes when the format does (Beam's name); empty here."""
        return ""

    def __repr__(self) -> str:
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))


class FastCoder(ByStreams, Coder):
    """A coder that works on streams: a subclass defines `encode_to_stream` and `decode_from_stream` (Beam's name)."""

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        raise self._undefined("encode")

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        raise self._undefined("decode")

    def _undefined(self, verb: str) -> Exception:
        hint = "define encode_to_stream and decode_from_stream"
        return refusal(NotImplementedError, f"{self!r} does not {verb}", hint=hint)
