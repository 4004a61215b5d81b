"""The rows of frames between stages, and the order a grouping exchange sorts them in.

A row of a grouping exchange is one chunk of a key and window: a pickled list of values, or a pickled accumulator. The
columns `first` and `second` are the window's bounds in the order that the grouping wants to read windows in: end and
start, or start and end where windows merge. `window` is null for an IntervalWindow, empty for the GlobalWindow and the
encoded window otherwise. `rank` and `sequence` order the chunks of a window; in rows that Spark adds up, they are the
high and the low part of a number instead (see `penstock_spark.folding.totals`). Where Python adds up, a row without a
`value` is the number in `sequence` (see `penstock_spark.folding.numbers`).

A grouping's machine reads rows of one element each, in order of event time: `first` is the timestamp, `second` the
running number that orders elements of the same time, and `sequence` the stage that counted it. `window` has all
the element's windows, pickled, `rank` its kind, and `value` its pickled value.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

EXCHANGE = pa.schema(
    [
        pa.field("output", pa.int32()),
        pa.field("tag", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("first", pa.int64()),
        pa.field("second", pa.int64()),
        pa.field("window", pa.binary()),
        pa.field("rank", pa.int64()),
        pa.field("sequence", pa.int64()),
        pa.field("value", pa.binary()),
    ]
)
PARTITION_COLUMNS = ("key", "tag")
SORT_COLUMNS = ("key", "tag", "first", "second", "window", "rank", "sequence")
GROUP_COLUMNS = ("key", "tag", "first", "second", "window")
NUMBER_COLUMNS = ("rank", "sequence")

_STAGES, _TASKS, _TASK_ROWS = 1 << 11, 1 << 20, 1 << 32


def first_number(stage: int, partition: int) -> int:
    """The number from which a task counts its rows in `sequence`; it differs between tasks, also of different stages.

    Rows of any tasks then have an order, whichever of them arrives first.
    """
    return (stage % _STAGES * _TASKS + partition % _TASKS) * _TASK_ROWS


def page_records(
    output: int, tag: int, pages: list[bytes], number: int, shards: list[int] | None = None
) -> pa.RecordBatch:
    """Rows that hold whole pages, numbered from `number`; the column `first` has each page's shard."""
    count = len(pages)
    zeros, none, numbers = [0] * count, [None] * count, [*range(number, number + count)]
    return exchange_records(output, tag, [b""] * count, shards or zeros, zeros, none, zeros, numbers, pages)


def exchange_records(
    output: int,
    tag: int,
    keys: list[bytes],
    first: list[int],
    second: list[int],
    windows: Sequence[bytes | None],
    ranks: list[int],
    sequences: list[int],
    values: Sequence[bytes | None],
) -> pa.RecordBatch:
    """An Arrow record batch of exchange rows; all lists have one length."""
    count = len(keys)
    columns = [
        pa.array([output] * count, pa.int32()),
        pa.array([tag] * count, pa.int32()),
        pa.array(keys, pa.binary()),
        pa.array(first, pa.int64()),
        pa.array(second, pa.int64()),
        pa.array(windows, pa.binary()),
        pa.array(ranks, pa.int64()),
        pa.array(sequences, pa.int64()),
        pa.array(values, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EXCHANGE)
