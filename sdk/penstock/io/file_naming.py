"""What the files of ``WriteToFiles`` are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.error import three_parts
from penstock.transforms.window import GlobalWindow

FileNaming = Callable[[Any, Any, int, int, Any, Any], str]


def _name(prefix: str, suffix: Any, window: Any, shard: Any, shards: Any, compression: Any) -> str:
    """The parts that there are, joined with dashes; ending and compression come after a dot of their own."""
    parts = [prefix]
    if window is not None and window != GlobalWindow():
        parts += [window.start.to_utc_datetime().isoformat(), window.end.to_utc_datetime().isoformat()]
    if shard is not None and shards is not None:
        parts.append(f"{int(shard):05d}-of-{int(shards):05d}")
    return "-".join(parts) + (suffix or "") + (f".{compression}" if compression else "")


def default_file_naming(prefix: str, suffix: str | None = None) -> FileNaming:
    """Names such as ``prefix-00000-of-00005.txt``, with the window's limits unless it is the global one
    (Beam's name).

    Args:
        prefix: How the names begin.
        suffix: How they end, with its dot.

    Returns:
        A function (window, pane, shard_index, total_shards, compression, destination) -> file name.

    >>> default_file_naming("out", ".txt")(GlobalWindow(), None, 1, 5, "", None)
    'out-00001-of-00005.txt'
    """

    def naming(
        window: Any, pane: Any, shard_index: int, total_shards: int, compression: Any, destination: Any
    ) -> str:
        return _name(prefix, suffix, window, shard_index, total_shards, compression)

    return naming


def prefix_naming(prefix: str) -> FileNaming:
    """`default_file_naming` without a suffix (Beam's name).

    >>> prefix_naming("out")(None, None, 0, 1, "gz", None)
    'out-00000-of-00001.gz'
    """
    return default_file_naming(prefix)


def destination_prefix_naming(suffix: str | None = None) -> FileNaming:
    """Like `default_file_naming`, with the destination as the prefix (Beam's name).

    >>> destination_prefix_naming(".csv")(None, None, 0, 1, "", "eu")
    'eu-00000-of-00001.csv'
    """

    def naming(
        window: Any, pane: Any, shard_index: int, total_shards: int, compression: Any, destination: Any
    ) -> str:
        return _name(str(destination), suffix, window, shard_index, total_shards, compression)

    return naming


def single_file_naming(prefix: str, suffix: str | None = None) -> FileNaming:
    """The prefix and the suffix alone; for one shard only (Beam's name).

    Raises:
        ValueError: When called for one of several shards.

    >>> single_file_naming("all", ".txt")(None, None, 0, 1, "", None)
    'all.txt'
    """

    def naming(
        window: Any, pane: Any, shard_index: int, total_shards: int, compression: Any, destination: Any
    ) -> str:
        if shard_index not in (0, None) or total_shards not in (1, None):
            raise ValueError(
                three_parts(
                    f"one file name was asked for shard {shard_index} of {total_shards}",
                    hint="write with one shard: shards=1, max_writers_per_bundle=0",
                )
            )
        return _name(prefix, suffix, window, None, None, compression)

    return naming
