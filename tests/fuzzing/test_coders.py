"""Coders: what is encoded comes back, equal bytes are equal keys, and damaged bytes are refused or mean something."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from penstock import coders
from penstock.coders.deterministic import decode_key, encode_key, encode_keys
from penstock.transforms.window import IntervalWindow
from penstock.utils.timestamp import Timestamp
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, is_refusal, result_or_refusal, seeds


def same(one: Any, other: Any) -> bool:
    """True if two keys are the same key, in the simplest words: of one type, and alike to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return one.hex() == other.hex()
    # Equal decimals may have different digits, and equal times different zones.
    return repr(one) == repr(other)


@seeds(2_000, 300_000)
def test_keys_come_back_and_are_the_same_if_and_only_if_their_bytes_are(count: int) -> None:
    seen: dict[bytes, Any] = {}

    def law(chance: Chance) -> None:
        key = chance.key()
        encoded = encode_key(key)
        assert encode_keys([key]) == [encoded]
        assert encode_keys([key, "another"])[0] == encoded
        assert same(decode_key(encoded), key)
        if len(seen) > 100_000:
            seen.clear()
        assert same(seen.setdefault(encoded, key), key)

    each_seed(count, law)
    for (_, key), (_, other) in pairwise(seen.items()):
        assert not same(key, other)


@seeds(3_000, 500_000)
def test_damaged_keys_are_refused_or_are_other_keys(count: int) -> None:
    def law(chance: Chance) -> None:
        damaged = chance.damaged(encode_key(chance.key()))
        found = result_or_refusal(lambda: decode_key(damaged))
        if found is not None:
            result_or_refusal(lambda: encode_key(found[0]))

    each_seed(count, law)


Make = Callable[[Chance], Any]


def _lists(of: Make) -> Make:
    return lambda chance: [of(chance) for _ in range(chance.randint(0, 4))]


def _small(chance: Chance) -> int:
    return chance.randint(-(2**63), 2**63 - 1)


def _plain(chance: Chance) -> Any:
    return chance.one_of(
        (None, True, 1.5, _small(chance), chance.clean_text(), chance.blob(), (1, "a"), [1], {"a": 2}, {3})
    )


def _time(chance: Chance) -> Any:
    return Timestamp(chance.randint(-(2**33), 2**33))


def _window(chance: Chance) -> Any:
    start = chance.randint(-(2**33), 2**33)
    return IntervalWindow(start, start + chance.randint(1, 1000))


INT, TEXT = coders.VarIntCoder(), coders.StrUtf8Coder()
CODERS: dict[str, tuple[Any, Make]] = {
    "VarIntCoder": (INT, _small),
    "VarInt32Coder": (coders.VarInt32Coder(), lambda chance: chance.randint(-(2**31), 2**31 - 1)),
    "BigIntegerCoder": (coders.BigIntegerCoder(), Chance.number),
    "FloatCoder": (coders.FloatCoder(), lambda chance: chance.uniform(-1e9, 1e9)),
    "BooleanCoder": (coders.BooleanCoder(), Chance.often),
    "BytesCoder": (coders.BytesCoder(), Chance.blob),
    "StrUtf8Coder": (TEXT, Chance.clean_text),
    "FastPrimitivesCoder": (coders.FastPrimitivesCoder(), _plain),
    "NullableCoder": (coders.NullableCoder(TEXT), lambda chance: chance.one_of((None, chance.clean_text()))),
    "IterableCoder": (coders.IterableCoder(INT), _lists(_small)),
    "TupleCoder": (coders.TupleCoder((INT, TEXT)), lambda chance: (_small(chance), chance.clean_text())),
    "MapCoder": (
        coders.MapCoder(TEXT, INT),
        lambda chance: {chance.clean_text(): _small(chance) for _ in range(chance.randint(0, 3))},
    ),
    "TimestampCoder": (coders.TimestampCoder(), _time),
    "IntervalWindowCoder": (coders.IntervalWindowCoder(), _window),
    "DecimalCoder": (coders.DecimalCoder(), lambda chance: Decimal(chance.number()).scaleb(-3)),
}
MAY_NOT_BE_UTF8 = ("StrUtf8Coder", "FastPrimitivesCoder", "TupleCoder", "MapCoder", "NullableCoder")
"""Their texts raise Python's own error, as Beam's coders do."""

PICKLED = b"\xff"
"""The first byte of a value that a FastPrimitivesCoder pickles; damaged pickles are Python's business."""


@pytest.mark.parametrize(
    "encoded", [b"\x08\x01\x08\x01\x01\x03", b"\x07\x01\x05\x00\x00", b"\x05\x01" * 100_000]
)
def test_what_a_coder_of_any_value_cannot_have_encoded_is_refused(encoded: bytes) -> None:
    with pytest.raises(ValueError, match="hint: check that the bytes are complete"):
        coders.FastPrimitivesCoder().decode(encoded)


@seeds(60, 10_000)
def test_values_come_back_and_damaged_ones_are_refused_or_are_others(count: int) -> None:
    def law(chance: Chance) -> None:
        for name, (coder, make) in CODERS.items():
            value = make(chance)
            encoded = coder.encode(value)
            assert coder.decode(encoded) == value, name
            assert coder.decode_nested(coder.encode_nested(value)) == value, name
            damaged = chance.damaged(encoded)
            if name == "FastPrimitivesCoder" and PICKLED in damaged:
                continue
            try:
                coder.decode(damaged)
            except UnicodeDecodeError:
                assert name in MAY_NOT_BE_UTF8
            except Exception as error:
                if not is_refusal(error):
                    error.add_note(f"{name} of {damaged!r}")
                    raise

    each_seed(count, law)
