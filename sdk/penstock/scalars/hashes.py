"""HASH and XXHASH64: hashes of values, the same as Spark's, by which Spark's own tables are divided into buckets."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from decimal import Context, Decimal

from penstock.scalars.casting import whole_micros
from penstock.scalars.function import Arguments, ScalarFunction
from penstock.scalars.resolving import SqlTypeError, do_not_fit
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, STRING, SqlType
from penstock.scalars.widths import bits_of_single

_32, _64 = (1 << 32) - 1, (1 << 64) - 1
_SEED = 42
_EVERY_DIGIT = Context(prec=80)


def _turned(value: int, by: int, bits: int) -> int:
    """Returns a number whose bits are moved to the left, the first ones to the end."""
    return (value << by | value >> bits - by) & (1 << bits) - 1


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


OfWhole = Callable[[int, int], int]
"""Adds an integer to a hash."""
OfBytes = Callable[[bytes, int], int]
"""Adds bytes to a hash."""

# Murmur3 with 32 bits


def _mix(seed: int, word: int) -> int:
    word = _turned(word * 0xCC9E2D51 & _32, 15, 32) * 0x1B873593 & _32
    return _turned(seed ^ word, 13, 32) * 5 + 0xE6546B64 & _32


def _finish(value: int, length: int) -> int:
    value ^= length
    value = (value ^ value >> 16) * 0x85EBCA6B & _32
    value = (value ^ value >> 13) * 0xC2B2AE35 & _32
    return value ^ value >> 16


def _murmur_int(value: int, seed: int) -> int:
    return _finish(_mix(seed, value & _32), 4)


def _murmur_long(value: int, seed: int) -> int:
    return _finish(_mix(_mix(seed, value & _32), value >> 32 & _32), 8)


def _murmur_bytes(data: bytes, seed: int) -> int:
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mix(seed, word)
    # Spark mixes each byte behind the last word on its own, with its sign.
    for byte in data[whole:]:
        seed = _mix(seed, _signed(byte, 8) & _32)
    return _finish(seed, len(data))


# xxHash with 64 bits

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _64
    value = (value ^ value >> 29) * _P3 & _64
    return value ^ value >> 32


def _round(value: int, word: int) -> int:
    return _turned(value + word * _P2 & _64, 31, 64) * _P1 & _64


def _xx_int(value: int, seed: int) -> int:
    found = (seed + _P5 + 4 & _64) ^ (value & _32) * _P1 & _64
    return _avalanche(_turned(found, 23, 64) * _P2 + _P3 & _64)


def _xx_long(value: int, seed: int) -> int:
    found = (seed + _P5 + 8 & _64) ^ _round(0, value & _64)
    return _avalanche(_turned(found, 27, 64) * _P1 + _P4 & _64)


def _xx_bytes(data: bytes, seed: int) -> int:
    at, length = 0, len(data)
    if length >= 32:
        lanes = [seed + _P1 + _P2 & _64, seed + _P2 & _64, seed, seed - _P1 & _64]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        found = sum(_turned(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
        for lane in lanes:
            found = (found ^ _round(0, lane)) * _P1 + _P4 & _64
    else:
        found = seed + _P5 & _64
    found = found + length & _64
    while at + 8 <= length:
        [word] = struct.unpack_from("<Q", data, at)
        found = _turned(found ^ _round(0, word), 27, 64) * _P1 + _P4 & _64
        at += 8
    if at + 4 <= length:
        [word] = struct.unpack_from("<I", data, at)
        found = _turned(found ^ word * _P1 & _64, 23, 64) * _P2 + _P3 & _64
        at += 4
    for byte in data[at:]:
        found = _turned(found ^ byte * _P5 & _64, 11, 64) * _P1 & _64
    return _avalanche(found)


# Values


def _step(of_int: OfWhole, of_long: OfWhole, of_bytes: OfBytes) -> Callable[..., int]:
    """Returns the function that adds a value, of which the query says the type, to a hash."""

    def add(kind: str, value: object, seed: int) -> int:
        match value:
            case None:
                return seed
            case bool():
                return of_int(int(value), seed)
            case int():
                return (of_long if kind == "BIGINT" else of_int)(value, seed)
            case float() if kind == "FLOAT":
                return of_int(bits_of_single(value), seed)
            case float():
                # Zero has no sign here, and NaN one form.
                [bits] = struct.unpack(
                    "<q", struct.pack("<d", value + 0.0 if value == value else float("nan"))
                )
                return of_long(bits, seed)
            case str():
                return of_bytes(value.encode(), seed)
            case bytes():
                return of_bytes(value, seed)
            case Decimal():
                return _of_decimal(kind, value, seed, of_long, of_bytes)
            case datetime.datetime():
                return of_long(whole_micros(value), seed)
            case datetime.date():
                return of_int(value.toordinal() - datetime.date(1970, 1, 1).toordinal(), seed)
            case datetime.timedelta():
                return of_long(value // datetime.timedelta(microseconds=1), seed)
        raise TypeError(f"a value of {type(value).__name__} has no hash")

    return add


def _of_decimal(kind: str, value: Decimal, seed: int, of_long: OfWhole, of_bytes: OfBytes) -> int:
    digits, scale = map(int, kind.split(","))
    unscaled = int(value.scaleb(scale, _EVERY_DIGIT))
    if digits <= 18:
        return of_long(unscaled, seed)
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return of_bytes(unscaled.to_bytes(length, "big", signed=True), seed)


_MURMUR = _step(_murmur_int, _murmur_long, _murmur_bytes)
_XX = _step(_xx_int, _xx_long, _xx_bytes)


def _folding(add: Callable[..., int], bits: int) -> Callable[..., int]:
    def compute(kinds: str, *values: object) -> int:
        found = _SEED
        for kind, value in zip(kinds.split(";"), values, strict=True):
            found = add(kind, value, found)
        return _signed(found, bits)

    return compute


# Types


def _hash_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if not arguments:
        raise do_not_fit(function, arguments, "at least one value")
    kinds = Literal(";".join(map(_kind, arguments)), STRING.or_null(False))
    return function.of((kinds, *arguments), BIGINT.or_null(False))


def _kind(argument: Scalar) -> str:
    kind: SqlType = argument.type
    if kind.name in ("BIGINT", "DOUBLE"):
        return kind.width_name
    if kind.name == "DECIMAL" and kind.precision is not None:
        return f"{kind.precision},{kind.scale}"
    if kind.is_nested or kind.name in ("ANY", "DECIMAL", "MONTHS"):
        raise SqlTypeError(
            f"no hash of a value of type {kind.or_null()}", "hash its parts, or CAST it AS STRING"
        )
    return kind.name


def _hashes(name: str, add: Callable[..., int], bits: int) -> ScalarFunction:
    compute = _folding(add, bits)
    return ScalarFunction(
        name=name,
        resolve=_hash_of,
        python=lambda result, arguments: compute,
        takes_null=True,
        spark=f"{name.lower()}({{rest}})",
        whole="INT" if bits == 32 else "",
    )


FUNCTIONS = (_hashes("HASH", _MURMUR, 32), _hashes("XXHASH64", _XX, 64))
"""The records."""
