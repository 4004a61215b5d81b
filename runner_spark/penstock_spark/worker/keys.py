"""Keys and windows in exchange rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zlib import crc32

from penstock.coders.deterministic import decode_key, decode_registered_keys
from penstock.elements.bounded_window import GlobalWindow, IntervalWindow
from penstock.transforms.window import BoundedWindow
from penstock.windows.output_times import output_times_of
from penstock.windows.window_fn import Sessions, WindowFn
from penstock.windows.windowing import Windowing
from penstock_spark.worker.batch import dumps

SELF_CONTAINED_TAGS = frozenset(b"siqIfb10N")
"""First bytes of encoded keys that any process can decode.

Other keys may hold objects of the user's classes, which a worker may not be able to import by name. Their rows carry
the pickled key next to the values.
"""

SELF_CONTAINED_TYPES = frozenset((str, int, bytes, float, bool, type(None)))
_MOST_WINDOWS = 10_000


hash_of_key = crc32
"""The hash of an encoded key: the same in every process, and with checkpoints also in later ones."""


def shard_of(name: bytes, shards: int) -> int:
    """Returns the shard of an encoded key; the pages in a shard divide the rest of the hash."""
    return hash_of_key(name) % shards


def find_keys_to_pickle(names: list[bytes], keys: list[Any]) -> dict[bytes, Any]:
    """The keys of a batch that are not self-contained, by their encodings; mostly none, as their types show."""
    if SELF_CONTAINED_TYPES.issuperset(map(type, keys)):
        return {}
    return decode_registered_keys(
        {name: key for name, key in zip(names, keys, strict=True) if not key_is_self_contained(name)}
    )


def key_is_self_contained(key: bytes) -> bool:
    """True if the key can be restored from the row's key column alone.

    >>> key_is_self_contained(b"sabc"), key_is_self_contained(b"(...")
    (True, False)
    """
    return key[0] in SELF_CONTAINED_TAGS


def payloads(names: list[bytes], pickled_keys: dict[bytes, Any], contents: list[Any]) -> list[bytes]:
    """The value columns of rows: each content (a value, a list of values or an accumulator) is pickled, with
    its key if the key column is not enough.
    """
    if not pickled_keys:
        return list(map(dumps, contents))
    return [
        dumps(held if key_is_self_contained(name) else (pickled_keys[name], held))
        for name, held in zip(names, contents, strict=True)
    ]


def restore(key: bytes, payload: Any) -> tuple[Any, Any]:
    """The key and the chunk of a row, from its key column and its unpickled value column."""
    if key[0] in SELF_CONTAINED_TAGS:
        return decode_key(key), payload
    restored, chunk = payload
    return restored, chunk


WindowColumns = tuple[int, int, bytes | None]


def window_encoder(windowing: Windowing) -> Callable[[Any], WindowColumns]:
    """The function from a window to its three columns (see `penstock_spark.worker.rows`)."""
    windowfn = windowing.windowfn
    starts_first = windowfn.is_merging()

    def encode(window: BoundedWindow) -> WindowColumns:
        kind = type(window)
        if kind is GlobalWindow:
            return 0, 0, b""
        other = None if kind is IntervalWindow else windowfn.get_window_coder().encode(window)
        start = getattr(window, "start_micros", None)
        if start is None:
            start = window.start.micros if kind is IntervalWindow else 0
        return (start, window.end_micros, other) if starts_first else (window.end_micros, start, other)

    return encode


def window_decoder(windowing: Windowing) -> Callable[[int, int, bytes | None], Any]:
    windowfn = windowing.windowfn
    starts_first = windowfn.is_merging()

    def decode(first: int, second: int, other: bytes | None) -> object:
        if other is None:
            start, end = (first, second) if starts_first else (second, first)
            return IntervalWindow.from_micros(start, end)
        return GlobalWindow() if other == b"" else windowfn.get_window_coder().decode(other)

    return decode


def rank_of(windowing: Windowing) -> Callable[[int, Any], int] | None:
    """The rank of a chunk, of which the lowest decides the output timestamp; None if no chunk does.

    The output timestamp is the lowest rank for the earliest, and the lowest rank negated for the latest
    input.
    """
    times = output_times_of(windowing.timestamp_combiner, windowing.windowfn)
    if times.together is max:
        return lambda micros, window: -times.of_element(micros, window)
    return None if times.together is None else times.of_element


def timestamp_of(windowing: Windowing) -> Callable[[int, Any], int]:
    """The function from the lowest rank and the window to the output timestamp in microseconds."""
    times = output_times_of(windowing.timestamp_combiner, windowing.windowfn)
    if times.together is max:
        return lambda rank, window: -rank
    return times.of_element if times.together is None else lambda rank, window: rank


def placer_of(windowing: Windowing) -> Callable[[WindowColumns], tuple[tuple[Any], int]]:
    """The function from a window's columns to the window, in a 1-tuple, and the output timestamp if no rank decides."""
    decode, timestamp = window_decoder(windowing), timestamp_of(windowing)

    def place(columns: WindowColumns) -> tuple[tuple[Any], int]:
        window = decode(*columns)
        return (window,), timestamp(0, window)

    # Merged windows are mostly new, and other windows mostly known.
    return place if windowing.windowfn.is_merging() else lru_cache(_MOST_WINDOWS)(place)


def merges_in_one_pass(windowfn: WindowFn | None) -> bool:
    """True if windows sorted by start merge by looking at neighbours only."""
    return type(windowfn) is Sessions
