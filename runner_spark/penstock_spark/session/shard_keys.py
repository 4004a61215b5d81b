"""Numbers that Spark's hash partitioning puts into one partition each."""

from __future__ import annotations

import functools

_MASK = 0xFFFFFFFF
_SEED = 42


@functools.cache
def shard_keys(shards: int) -> tuple[int, ...]:
    """Returns, for each shard, the smallest number that Spark sends to the partition with the shard's number.

    >>> keys = shard_keys(4)
    >>> [murmur3(key) % 4 for key in keys]
    [0, 1, 2, 3]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < shards:
        found.setdefault(murmur3(number) % shards, number)
        number += 1
    return tuple(found[shard] for shard in range(shards))


def murmur3(number: int) -> int:
    """Spark's hash of a 32-bit integer, signed (the 32-bit Murmur3 of one word, with Spark's seed).

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """
    word = number * 0xCC9E2D51 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    word = word * 0x1B873593 & _MASK
    mixed = _SEED ^ word
    mixed = (mixed << 13 | mixed >> 19) & _MASK
    mixed = (mixed * 5 + 0xE6546B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed
