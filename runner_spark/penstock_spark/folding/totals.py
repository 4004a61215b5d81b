"""Sums and counts that Spark adds up: exact integers in two columns, and the reading of the totals.

An integer n travels as its high part, ``n >> 31``, and its low part, the remainder. Both parts are added up apart. The
low parts are below 2**31, so that more rows than a shuffle has could not make their sum overflow; the high parts leave
room for integers of 94 bits, and a larger one is refused where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import lshift
from typing import TYPE_CHECKING, Any

from penstock.coders.deterministic import decode_key
from penstock.error import refusal
from penstock_spark.worker.batch import ONLY_PANE, Batch
from penstock_spark.worker.keys import placer_of
from penstock_spark.worker.program import TotalsRoot

if TYPE_CHECKING:
    import pyarrow as pa

_LOW_BITS = 31
_LOW_MASK = (1 << _LOW_BITS) - 1
_HIGH_LIMIT = 1 << 62


def split_numbers(numbers: list[Any], where: str) -> tuple[list[int], list[int]]:
    """Returns the high and the low parts of integers; OverflowError if one has more than 93 bits.

    >>> split_numbers([5, -1, 1 << 40], "at step 'A'")
    ([0, -1, 512], [5, 2147483647, 0])
    """
    if not all(issubclass(kind, int) for kind in set(map(type, numbers))):
        raise refusal(
            TypeError,
            "the values to sum were declared int, but some are not",
            where=where,
            hint="correct the type hint; with float or Any, Python adds them up",
        )
    highs = [number >> _LOW_BITS for number in numbers]
    if highs and not (min(highs) > -_HIGH_LIMIT and max(highs) < _HIGH_LIMIT):
        raise refusal(
            OverflowError,
            "a sum of integers has more than 93 bits",
            where=where,
            hint="declare the values as Any: Python then adds them up with as many bits as they need",
        )
    return highs, [number & _LOW_MASK for number in numbers]


def join_numbers(highs: list[int], lows: list[int]) -> list[int]:
    return [lshift(high, _LOW_BITS) + low for high, low in zip(highs, lows, strict=True)]


class TotalsReader:
    """Turns rows of totals into batches of (key, total)."""

    def __init__(self, roots: list[TotalsRoot]) -> None:
        self._roots = {root.tag: root for root in roots}
        self._places = {root.tag: placer_of(root.windowing) for root in roots}

    def read(self, record: pa.RecordBatch) -> Iterator[tuple[int, Batch]]:
        columns = {name: record.column(name).to_pylist() for name in record.schema.names}
        elements = list(
            zip(
                map(decode_key, columns["key"]),
                join_numbers(columns["rank"], columns["sequence"]),
                strict=True,
            )
        )
        bounds = list(zip(columns["first"], columns["second"], columns["window"], strict=True))
        for tag, root in self._roots.items():
            chosen = [number for number, own in enumerate(columns["tag"]) if own == tag]
            if chosen:
                placed = [self._places[tag](bounds[number]) for number in chosen]
                windows: list[Any] = [windows for windows, _ in placed]
                timestamps = [timestamp for _, timestamp in placed]
                values = [elements[number] for number in chosen]
                yield root.edge, Batch(values, timestamps, windows, ONLY_PANE).collapse()
