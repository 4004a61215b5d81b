"""What the files of ``WriteToFiles`` are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.base.bounded_window import GlobalWindow
from penstock.error import three_parts

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


def destination_prefix_naming(suffix: str | None = None, *, allow_separators: bool = False) -> FileNaming:
    """Like `default_file_naming`, with the destination as the prefix (Beam's name).

    Args:
        suffix: How the names end, with its dot.
        allow_separators: Whether a destination such as ``eu/fr`` may choose a folder. Destinations mostly come from the
            data, and who writes that must not choose where files go. (Beam allows it.)

    Returns:
        A function (window, pane, shard_index, total_shards, compression, destination) -> file name; it raises
        ValueError for a destination with a separator.

    >>> destination_prefix_naming(".csv")(None, None, 0, 1, "", "eu")
    'eu-00000-of-00001.csv'
    """

    def naming(
        window: Any, pane: Any, shard_index: int, total_shards: int, compression: Any, destination: Any
    ) -> str:
        if not allow_separators and re.search(r"[/\\]", str(destination)):
            raise ValueError(
                three_parts(
                    f"a destination, of type {type(destination).__name__}, has a separator of folders in it",
                    hint="replace it in the function destination=, or pass allow_separators=True to the naming",
                )
            )
        return _name(str(destination), suffix, window, shard_index, total_shards, compression)

    return naming


def check_file_name(name: str) -> None:
    """Raises ValueError for a name that is outside of the folder that it is for.

    >>> check_file_name("eu/fr-00000-of-00001")
    >>> check_file_name("../eu")
    Traceback (most recent call last):
    ...
    ValueError: a file name leads out of the folder that is written to
      hint: correct file_naming or destination, or pass allow_outside_path=True
    """
    parts = re.split(r"[/\\]", name)
    # A first part that is empty begins an absolute name; one with a colon, a drive or a scheme.
    if parts[0] == "" or parts[0].endswith(":") or ".." in parts:
        raise ValueError(
            three_parts(
                "a file name leads out of the folder that is written to",
                hint="correct file_naming or destination, or pass allow_outside_path=True",
            )
        )


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
