"""The bytes that coders write to and read from, with Beam's number formats."""

from __future__ import annotations

import struct
from typing import Any

from penstock.error import refusal

ENCODED_OTHERWISE = "check that the bytes are complete, and that this coder has encoded them"
_LARGER = "use a coder for larger numbers, such as BigIntegerCoder"


class OutputStream:
    r"""Bytes being written (Beam's ``OutputStream``).

    >>> out = OutputStream()
    >>> out.write(b"ab", nested=True)
    >>> out.write_var_int64(300)
    >>> out.get()
    b'\x02ab\xac\x02'
    """

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes, nested: bool = False) -> None:
        """Appends bytes, preceded by their size if `nested`."""
        if nested:
            self.write_var_int64(len(data))
        self._data += data

    def write_byte(self, value: int) -> None:
        """Appends a byte, a number from 0 to 255; OverflowError for any other."""
        if not 0 <= value < 256:
            raise refusal(OverflowError, "the number does not fit in a byte", hint=_LARGER)
        self._data.append(value)

    def write_var_int64(self, value: int) -> None:
        """Appends a number in 1 to 10 bytes, 7 bits a byte, low bits first, as two's complement of 64 bits.

        Raises:
            OverflowError: The number does not fit in 64 bits with a sign.
        """
        if not -(1 << 63) <= value < 1 << 63:
            raise refusal(OverflowError, "the number does not fit in 64 bits with a sign", hint=_LARGER)
        value &= (1 << 64) - 1
        while value > 127:
            self._data.append(value & 127 | 128)
            value >>= 7
        self._data.append(value)

    def write_packed(self, form: str, value: object) -> None:
        """Appends a number in a fixed size, high byte first; `form` is a letter of the ``struct`` module."""
        try:
            self._data += struct.pack(f">{form}", value)
        except struct.error as error:
            if isinstance(value, int):
                raise refusal(OverflowError, f"the number does not fit: {error}", hint=_LARGER) from None
            raise refusal(TypeError, str(error), hint="encode a number") from None

    def size(self) -> int:
        """Returns the number of bytes written."""
        return len(self._data)

    def get(self) -> bytes:
        """Returns the bytes written."""
        return bytes(self._data)


class InputStream:
    """Bytes being read (Beam's ``InputStream``).

    Raises:
        EOFError: In every method that reads, if the bytes end too early.

    >>> source = InputStream(bytes([172, 2, 7]))
    >>> source.read_var_int64(), source.size()
    (300, 1)
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def size(self) -> int:
        """Returns the number of bytes left."""
        return len(self._data) - self._position

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes."""
        if not 0 <= size <= self.size():
            what = f"the encoded value ends too early: {size} bytes expected, {self.size()} left"
            raise refusal(EOFError, what, hint=ENCODED_OTHERWISE)
        start = self._position
        self._position += size
        return bytes(self._data[start : self._position])

    def read_all(self, nested: bool = False) -> bytes:
        """Returns all bytes left; if nested, the next size and that many bytes."""
        return self.read(self.read_var_int64() if nested else self.size())

    def read_byte(self) -> int:
        """Returns the next byte."""
        position = self._position
        if position >= len(self._data):
            what = "the encoded value ends too early: 1 byte expected, 0 left"
            raise refusal(EOFError, what, hint=ENCODED_OTHERWISE)
        self._position = position + 1
        return self._data[position]

    def read_var_int64(self) -> int:
        """Returns the number that `OutputStream.write_var_int64` wrote; ValueError if it is longer than 64 bits."""
        result = shift = 0
        while True:
            byte = self.read_byte()
            result |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= 70:
                what = "a number of variable length does not end within 64 bits"
                raise refusal(ValueError, what, hint=ENCODED_OTHERWISE)
        if result >= 1 << 64:
            what = "a number of variable length is longer than 64 bits"
            raise refusal(ValueError, what, hint=ENCODED_OTHERWISE)
        return result - (1 << 64) if result >= 1 << 63 else result

    def read_packed(self, form: str) -> Any:
        """Returns the number that `OutputStream.write_packed` wrote."""
        return struct.unpack(f">{form}", self.read(struct.calcsize(f">{form}")))[0]
