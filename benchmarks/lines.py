"""The lines that go into the workloads: the same endless ones at every call."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate, count

_SEED = 7
_VOCABULARY = 100_000
_POOL = 1_000_000
_WORDS_PER_LINE = 12
_SYLLABLES = [first + vowel for first in "bdfghklmnprstvwz" for vowel in "aeiou"]
_FIRST_SECOND = 1_600_000_000
_LATE_SECONDS_MAX = 60
_KEYS = 10_000
_HOT_PART = 0.9


def text() -> Iterator[str]:
    """Lines of words whose frequencies fall with their rank, as in a natural language (Zipf's law)."""
    chance = random.Random(_SEED)
    words = [_word(number) for number in range(_VOCABULARY)]
    pool = chance.choices(words, cum_weights=_zipf(_VOCABULARY), k=_POOL)
    while True:
        yield " ".join(chance.choices(pool, k=_WORDS_PER_LINE))


def _zipf(ranks: int) -> list[float]:
    return list(accumulate((rank + 2.7) ** -1.05 for rank in range(1, ranks + 1)))


def _word(number: int) -> str:
    """A word for a rank; the more frequent the shorter.

    >>> _word(0), _word(81), _word(99_999)
    ('ba', 'babe', 'fupozu')
    """
    word = ""
    while number >= 0:
        number, digit = divmod(number, len(_SYLLABLES))
        word = _SYLLABLES[digit] + word
        number -= 1
    return word


def scores() -> Iterator[str]:
    """Lines of user, team, score and the second of the event, up to a minute out of order; 250 in each second."""
    return _scores(250)


def visits() -> Iterator[str]:
    """Lines of visits, 500 in each second: most visits of a user come within a minute of the last."""
    return _scores(500)


def _scores(events_per_second: int) -> Iterator[str]:
    draw = random.Random(_SEED).random
    for number in count():
        second = _FIRST_SECOND + number // events_per_second + int((2 * draw() - 1) * _LATE_SECONDS_MAX)
        yield f"user{int(draw() * _KEYS)},team{int(draw() * 100)},{int(draw() * 20)},{second}"


def numbers() -> Iterator[str]:
    """Lines of one number below a million."""
    draw = random.Random(_SEED).random
    while True:
        yield str(int(draw() * 1_000_000))


def even_keys() -> Iterator[str]:
    """Lines of a key and a number; each of 10,000 keys is as likely as the others."""
    draw = random.Random(_SEED).random
    while True:
        yield f"key{int(draw() * _KEYS)},{int(draw() * 100)}"


def hot_key() -> Iterator[str]:
    """Lines of which nine in ten have one key."""
    draw = random.Random(_SEED).random
    while True:
        number = 0 if draw() < _HOT_PART else int(draw() * _KEYS)
        yield f"key{number},{int(draw() * 100)}"


def skewed_keys() -> Iterator[str]:
    """Lines whose keys' frequencies fall with their rank (Zipf's law)."""
    chance = random.Random(_SEED)
    weights = _zipf(_KEYS)
    while True:
        for number in chance.choices(range(_KEYS), cum_weights=weights, k=1_000):
            yield f"key{number},{int(chance.random() * 100)}"


def moments_of_few() -> Iterator[str]:
    """Lines of one of 100 keys and one of 10,000 seconds."""
    draw = random.Random(_SEED).random
    while True:
        yield f"key{int(draw() * 100)},{int(draw() * 10_000)}"


def moments_of_many() -> Iterator[str]:
    """Lines of one of a million keys and always the same second: as many pairs as `moments_of_few` has."""
    draw = random.Random(_SEED).random
    while True:
        yield f"key{int(draw() * 1_000_000)},0"


def large_sizes() -> Iterator[str]:
    """Lines of one of eight keys and a size of 10 MB."""
    return (f"key{number % 8},10000000" for number in count())


def small_sizes() -> Iterator[str]:
    """Lines of one of eight keys and a size of 10 kB."""
    return (f"key{number % 8},10000" for number in count())


def wide_rows() -> Iterator[str]:
    """Lines of a key and 499 numbers."""
    return _rows(500)


def narrow_rows() -> Iterator[str]:
    """Lines of a key and 9 numbers."""
    return _rows(10)


def _rows(fields: int) -> Iterator[str]:
    draw = random.Random(_SEED).random
    for number in count():
        # One field in ten is drawn: the others only have to be there.
        drawn = [str(int(draw() * 100)) for _ in range(0, fields - 1, 10)]
        values = [value for value in drawn for _ in range(10)]
        yield f"key{number % 100},{','.join(values[: fields - 1])}"
