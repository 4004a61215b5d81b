"""The names of the files of ``WriteToFiles``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo

FileNaming = Callable[[Any, Any, int, int, Any, Any], str]


def _name(
    prefix: str, suffix: Any, window: BoundedWindow | None, shard: Any, shards: Any, compression: object
) -> str:
    """Returns the existing parts, joined with dashes; the ending and the compression each follow their own dot."""
    parts = [prefix]
    if window is not None and window != GlobalWindow():
        parts += [window.start.to_utc_datetime().isoformat(), window.end.to_utc_datetime().isoformat()]
    if shard is not None and shards is not None:
        parts.append(f"{int(shard):05d}-of-{int(shards):05d}")
    return "-".join(parts) + (suffix or "") + (f".{compression}" if compression else "")


def default_file_naming(prefix: str, suffix: str | None = None) -> FileNaming:
    """Returns names such as ``prefix-00000-of-00005.txt``, with the limits of a window (Beam's name).

    The names of the global window contain no limits. The suffix includes its dot.

    >>> default_file_naming("out", ".txt")(GlobalWindow(), None, 1, 5, "", None)
    'out-00001-of-00005.txt'
    """

    def naming(
        window: BoundedWindow | None,
        pane: PaneInfo,
        shard_index: int,
        total_shards: int,
        compression: object,
        destination: object,
    ) -> str:
        return _name(prefix, suffix, window, shard_index, total_shards, compression)

    return naming


def prefix_naming(prefix: str) -> FileNaming:
    """Returns `default_file_naming` without a suffix (Beam's name).

    >>> prefix_naming("out")(None, None, 0, 1, "gz", None)
    'out-00000-of-00001.gz'
    """
    return default_file_naming(prefix)


def destination_prefix_naming(suffix: str | None = None, *, allow_separators: bool = False) -> FileNaming:
    """Returns a naming like `default_file_naming`, with the destination as the prefix (Beam's name).

    Args:
        suffix: The end of the names, with its dot.
        allow_separators: Whether a destination such as ``eu/fr`` may select a folder; otherwise it raises a ValueError.
            Destinations mostly come from the data, whose author must not choose where files go. (Beam allows it.)

    >>> destination_prefix_naming(".csv")(None, None, 0, 1, "", "eu")
    'eu-00000-of-00001.csv'
    """

    def naming(
        window: BoundedWindow | None,
        pane: PaneInfo,
        shard_index: int,
        total_shards: int,
        compression: object,
        destination: object,
    ) -> str:
        if not allow_separators and re.search(r"[/\\]", str(destination)):
            what = f"a destination, of type {type(destination).__name__}, contains a separator of folders"
            hint = "replace it in the function destination=, or pass allow_separators=True to the naming"
            raise refusal(ValueError, what, hint=hint)
        return _name(str(destination), suffix, window, shard_index, total_shards, compression)

    return naming


def check_file_name(name: str, where: str | None = None, more: str = "") -> None:
    """Raises a ValueError for a name that leads out of its folder.

    Args:
        name: The name that `file_naming` has returned.
        where: The step; None for the line that is being executed.
        more: The rest of the hint.

    >>> check_file_name("eu/fr-00000-of-00001")
    >>> check_file_name("../eu")
    Traceback (most recent call last):
    ...
    ValueError: a file name leads out of the folder that is written to
      at ...
      hint: correct file_naming
    """
    parts = re.split(r"[/\\]", name)
    # An absolute name begins with an empty part; a drive or a scheme ends with a colon.
    if parts[0] == "" or parts[0].endswith(":") or ".." in parts:
        what = "a file name leads out of the folder that is written to"
        raise refusal(ValueError, what, where=where, hint=f"correct file_naming{more}")


def single_file_naming(prefix: str, suffix: str | None = None) -> FileNaming:
    """Returns a naming by the prefix and the suffix alone; a second shard raises a ValueError (Beam's name).

    >>> single_file_naming("all", ".txt")(None, None, 0, 1, "", None)
    'all.txt'
    """

    def naming(
        window: BoundedWindow | None,
        pane: PaneInfo,
        shard_index: int,
        total_shards: int,
        compression: object,
        destination: object,
    ) -> str:
        if shard_index not in (0, None) or total_shards not in (1, None):
            what = f"single_file_naming has no name for shard {shard_index} of {total_shards}"
            raise refusal(ValueError, what, hint="write with one shard: shards=1, max_writers_per_bundle=0")
        return _name(prefix, suffix, window, None, None, compression)

    return naming
