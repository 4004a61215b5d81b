"""The coders of single values, each with Beam's wire format."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from penstock.coders.base import Coder, FastCoder
from penstock.coders.key_forms import SHORT_SIZES, long_size
from penstock.coders.stream import InputStream, OutputStream
from penstock.error import three_parts


class _Primitive(FastCoder):
    """A coder without parameters, deterministic, of values of one type."""

    _type: ClassVar[Any]

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return self._type


class StrUtf8Coder(Coder):
    r"""Strings, as UTF-8 (Beam's ``StrUtf8Coder``).

    >>> StrUtf8Coder().encode("é")
    b'\xc3\xa9'
    """

    def encode(self, value: str) -> bytes:
        return value.encode("utf-8")

    def decode(self, encoded: bytes) -> str:
        return encoded.decode("utf-8")

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type[str]:
        return str


class ToBytesCoder(Coder):
    """Anything as text, for output only: bytes as they are, all else as the UTF-8 of its ``str`` (Beam's
    name).

    >>> ToBytesCoder().encode(12)
    b'12'
    """

    def encode(self, value: Any) -> bytes:
        """The bytes or the text of a value."""
        return value if isinstance(value, bytes) else str(value).encode("utf-8")

    def decode(self, encoded: bytes) -> Any:
        """Not possible: NotImplementedError."""
        raise NotImplementedError(
            three_parts("a ToBytesCoder does not decode", hint="use StrUtf8Coder to read text")
        )

    def is_deterministic(self) -> bool:
        return True


ToStringCoder = ToBytesCoder


class BytesCoder(_Primitive):
    """Bytes, as they are (Beam's ``BytesCoder``)."""

    _type = bytes

    def encode_to_stream(self, value: bytes, stream: OutputStream, nested: bool) -> None:
        """Writes the bytes; AssertionError, as in Beam, for any other type."""
        if not isinstance(value, bytes):
            raise AssertionError(f"a BytesCoder encodes bytes, not {type(value).__name__}")
        stream.write(value, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> bytes:
        return stream.read_all(nested)


class BooleanCoder(_Primitive):
    """True and False, as a byte 1 or 0 (Beam's ``BooleanCoder``)."""

    _type = bool

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes the truth of a value."""
        stream.write_byte(1 if value else 0)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> bool:
        """Reads a byte; ValueError if it is neither 0 nor 1."""
        byte = stream.read_byte()
        if byte > 1:
            raise ValueError(f"Expected 0 or 1, got {byte}")
        return byte == 1


class VarIntCoder(_Primitive):
    r"""Whole numbers of 64 bits in 1 to 10 bytes, fewest for small positive ones (Beam's ``VarIntCoder``).

    >>> VarIntCoder().encode(300)
    b'\xac\x02'
    """

    _type = int

    def encode(self, value: int) -> bytes:
        """The bytes of a number; OverflowError if it does not fit in 64 bits with a sign."""
        # Numbers in cells are encoded all the time, and are mostly short.
        if type(value) is int and 0 <= value < 1 << 63:
            return SHORT_SIZES[value] if value < 128 else long_size(value)
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
        # What has no end, or so many bits that one may be a sign, is for the thorough reader.
        if 0 < len(encoded) < 10 and byte < 128:
            return result
        return self.decode_from_stream(InputStream(encoded), False)

    def encode_to_stream(self, value: int, stream: OutputStream, nested: bool) -> None:
        """Writes a number; OverflowError if it does not fit in 64 bits with a sign."""
        try:
            stream.write_var_int64(value)
        except OverflowError as error:
            raise OverflowError(
                three_parts(
                    "an integer is out of the range of VarIntCoder, -(2**63) to 2**63 - 1",
                    hint="use BigIntegerCoder, or leave out the type hint",
                )
            ) from error

    def decode_from_stream(self, stream: InputStream, nested: bool) -> int:
        return stream.read_var_int64()


class VarInt32Coder(_Primitive):
    """Whole numbers of 32 bits in 1 to 5 bytes (Beam's ``VarInt32Coder``)."""

    _type = int

    def encode_to_stream(self, value: int, stream: OutputStream, nested: bool) -> None:
        """Writes a number; OverflowError if it does not fit in 32 bits with a sign."""
        if not -(1 << 31) <= value < 1 << 31:
            raise OverflowError("an integer is out of the range of VarInt32Coder, -(2**31) to 2**31 - 1")
        stream.write_var_int64(value & 0xFFFFFFFF)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> int:
        value = stream.read_var_int64()
        return value - (1 << 32) if value >= 1 << 31 else value


class _Packed(_Primitive):
    _form: ClassVar[str]

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        stream.write_packed(self._form, value)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
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
        """Writes the nearest number of 4 bytes."""
        try:
            stream.write_packed("f", value)
        except OverflowError:
            stream.write_packed("f", float("inf") if value > 0 else float("-inf"))


class BigEndianShortCoder(_Packed):
    """Whole numbers of 16 bits in 2 bytes, high byte first (Beam's ``BigEndianShortCoder``)."""

    _type = int
    _form = "h"


class ByteCoder(_Packed):
    """Numbers from 0 to 255, as a byte (Beam's ``ByteCoder``)."""

    _type = int
    _form = "B"


class BigIntegerCoder(_Primitive):
    r"""Whole numbers of any size as two's complement in the fewest bytes, high byte first (Beam's name).

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
    """Finite Decimals: the number of decimal places as a VarInt, then the digits as a big integer (Beam's
    name).

    >>> DecimalCoder().decode(DecimalCoder().encode(Decimal("1.50")))
    Decimal('1.50')
    """

    _type = Decimal

    def encode_to_stream(self, value: Decimal, stream: OutputStream, nested: bool) -> None:
        """Writes a number; TypeError, as in Beam, for infinities and NaN."""
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise TypeError("a DecimalCoder encodes finite numbers only")
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

    def __init__(self, value: Any) -> None:
        self._value = value

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        """Writes nothing."""

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return self._value

    def to_type_hint(self) -> Any:
        """Not said: NotImplementedError."""
        raise NotImplementedError
