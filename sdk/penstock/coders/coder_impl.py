"""The return types of ``FastCoder._create_impl`` in programs written for Beam: the working half of a coder.

A coder of penstock's does its work itself. These names are for coders that are written in Beam's two halves; the
ready-made ones are penstock's coders under Beam's other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.coders import coders
from penstock.coders.base import ByBytes, ByStreams, Nested
from penstock.coders.stream import InputStream, OutputStream


class CoderImpl(Nested):
    """The base: a subclass defines all four methods, or derives from one of the classes below (Beam's name)."""

    def encode(self, value: Any) -> bytes:
        """The bytes of a value."""
        raise NotImplementedError(f"{type(self).__name__} does not encode")

    def decode(self, encoded: bytes) -> Any:
        """The value of the bytes."""
        raise NotImplementedError(f"{type(self).__name__} does not decode")

    def encode_all(self, values: Iterable[Any]) -> bytes:
        """The bytes of several values, one after the other."""
        stream = OutputStream()
        for value in values:
            self.encode_to_stream(value, stream, True)
        return stream.get()

    def decode_all(self, encoded: bytes) -> Iterator[Any]:
        """The values of the bytes that `encode_all` returned."""
        stream = InputStream(encoded)
        while stream.size():
            yield self.decode_from_stream(stream, True)

    def estimate_size(self, value: Any, nested: bool = False) -> int:
        """How many bytes a value takes, by encoding it."""
        stream = OutputStream()
        self.encode_to_stream(value, stream, nested)
        return stream.size()


class SimpleCoderImpl(CoderImpl, ByBytes):
    """A CoderImpl that defines `encode` and `decode` (Beam's name)."""


class StreamCoderImpl(ByStreams, CoderImpl):
    """A CoderImpl that defines `encode_to_stream` and `decode_from_stream` (Beam's name)."""


@dataclass(eq=False)
class CallbackCoderImpl(SimpleCoderImpl):
    r"""A CoderImpl made of two functions, and one that tells how many bytes a value takes (Beam's name).

    >>> CallbackCoderImpl(str.encode, bytes.decode).encode_nested("ab")
    b'\x02ab'
    """

    encoder: Callable[[Any], bytes]
    decoder: Callable[[bytes], Any]
    size_estimator: Callable[[Any], int] | None = None

    def encode(self, value: Any) -> bytes:
        return self.encoder(value)

    def decode(self, encoded: bytes) -> Any:
        return self.decoder(encoded)

    def estimate_size(self, value: Any, nested: bool = False) -> int:
        """The estimator's answer; if nested, plus the bytes of the size itself."""
        if self.size_estimator is None:
            return super().estimate_size(value, nested)
        size = self.size_estimator(value)
        return size + len(coders.VarIntCoder().encode(size)) if nested else size


create_InputStream = InputStream
create_OutputStream = OutputStream

BigEndianShortCoderImpl = coders.BigEndianShortCoder
BigIntegerCoderImpl = coders.BigIntegerCoder
BooleanCoderImpl = coders.BooleanCoder
ByteCoderImpl = coders.ByteCoder
BytesCoderImpl = coders.BytesCoder
DecimalCoderImpl = coders.DecimalCoder
FastPrimitivesCoderImpl = coders.FastPrimitivesCoder
FloatCoderImpl = coders.FloatCoder
IntervalWindowCoderImpl = coders.IntervalWindowCoder
IterableCoderImpl = coders.IterableCoder
LengthPrefixCoderImpl = coders.LengthPrefixCoder
ListCoderImpl = coders.ListCoder
MapCoderImpl = coders.MapCoder
NullableCoderImpl = coders.NullableCoder
SinglePrecisionFloatCoderImpl = coders.SinglePrecisionFloatCoder
SingletonCoderImpl = coders.SingletonCoder
TimestampCoderImpl = coders.TimestampCoder
TupleCoderImpl = coders.TupleCoder
TupleSequenceCoderImpl = coders.TupleSequenceCoder
VarInt32CoderImpl = coders.VarInt32Coder
VarIntCoderImpl = coders.VarIntCoder
