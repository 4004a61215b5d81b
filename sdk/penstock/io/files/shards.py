"""The folder and the names of a sink's files, which are numbered shards (arguments of all file sinks in Beam)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from penstock.checks.whole_numbers import check_whole_number
from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal
from penstock.io.files.compression import resolve_compression
from penstock.io.files.paths import Path, check_path, known_path

DEFAULT_SHARD_NAME_TEMPLATE = "-SSSSS-of-NNNNN"
DEFAULT_WINDOW_SHARD_NAME_TEMPLATE = "-W-SSSSS-of-NNNNN"


@dataclass(frozen=True)
class Shards:
    """The folder and the names of a sink's files (the arguments that Beam's file sinks share).

    Attributes:
        file_path_prefix: The beginning of every file's path.
        file_name_suffix: The end of every file's path.
        num_shards: The number of files; with 0, the runner decides.
        shard_name_template: The middle: ``S`` is the shard's number, ``N`` the number of shards, both padded with zeros
            to as many digits as letters; ``W`` is the window in seconds since 1970, ``V`` in dates and times; "" means
            one file without a number; None means ``-SSSSS-of-NNNNN``, and for the windows of a stream
            ``-W-SSSSS-of-NNNNN``.

    >>> Shards("/out/a", ".txt").name(1, 3)
    '/out/a-00001-of-00003.txt'
    """

    file_path_prefix: Path
    file_name_suffix: Path = ""
    num_shards: int = 0
    shard_name_template: str | None = None

    def describe(self, format: str) -> str:
        """Returns the format and the names of the files, for people."""
        return f"{format} {self.file_path_prefix}{self.template}{self.file_name_suffix}"

    def check(self) -> Shards:
        """Returns itself if Beam would accept the arguments."""
        check_path(self.file_path_prefix, "file_path_prefix")
        if self.file_name_suffix != "":
            check_path(self.file_name_suffix, "file_name_suffix")
        if self.num_shards is not None:
            check_whole_number("num_shards", self.num_shards)
            if self.num_shards < 0:
                what = f"num_shards is {self.num_shards}"
                raise refusal(ValueError, what, hint="pass 1 or more, or 0 to leave it to Spark")
        template = self.shard_name_template
        if template and "S" not in template:
            what = f"Shard number pattern S+ not found in shard_name_template: {template}"
            raise refusal(ValueError, what, hint=f"write, e.g., {DEFAULT_SHARD_NAME_TEMPLATE}")
        return self

    @property
    def count(self) -> int:
        """The requested number of files; 0 leaves it to the runner."""
        return 1 if self.shard_name_template == "" else self.num_shards or 0

    @property
    def template(self) -> str:
        """The template, with Beam's default for a bounded collection."""
        return DEFAULT_SHARD_NAME_TEMPLATE if self.shard_name_template is None else self.shard_name_template

    @property
    def prefix(self) -> str:
        """The prefix as text; a ValueError while it has no value."""
        return _text(self.file_path_prefix)

    @property
    def suffix(self) -> str:
        """The suffix as text; a ValueError while it has no value."""
        return _text(self.file_name_suffix)

    def name(self, shard: int, shards: int) -> str:
        """Returns the path of one file."""
        return self.prefix + self._fill(str(shard).zfill, shards) + self.suffix

    @property
    def names_windows(self) -> bool:
        """True if the template contains the window."""
        return any(letter in self.template for letter in "VW")

    def window_name(self, window: object, pane: int, shard: int, shards: int) -> str:
        """Returns the path of one file of a stream's window; the name of a later pane contains its number.

        >>> from penstock.transforms.window import IntervalWindow
        >>> Shards("/out/a", ".txt").window_name(IntervalWindow(0, 60), 0, 1, 3)
        '/out/a-[0.0, 60.0)-00001-of-00003.txt'
        >>> Shards("/out/a", "", 1, "-V-SS").window_name(IntervalWindow(0, 60), 2, 0, 1)
        '/out/a-[1970-01-01T00-00-00, 1970-01-01T00-01-00)-pane-2-00'
        """
        is_global = window == GlobalWindow()
        template = self.shard_name_template
        if template is None:
            template = DEFAULT_SHARD_NAME_TEMPLATE if is_global else DEFAULT_WINDOW_SHARD_NAME_TEMPLATE
        filled = _fill_first("N", template, str(shards).zfill)
        filled = _fill_first("S", filled, str(shard).zfill)
        later = f"-pane-{pane}" if pane else ""
        if not any(letter in template for letter in "VW"):
            return self.prefix + later + filled + self.suffix
        # Dates have no W in them; the name of the global window has.
        filled = _fill_first("V", filled, lambda _: _in_dates(window) + later)
        later = "" if "V" in template else later
        return self.prefix + _fill_first("W", filled, lambda _: _in_seconds(window) + later) + self.suffix

    def compression(self, compression_type: str) -> str:
        """The meaning of ``AUTO``: it follows the ending of prefix and suffix, not of the template, as in Beam."""
        return resolve_compression(os.path.basename(self.prefix) + self.suffix, compression_type)

    def _fill(self, shard: object, shards: int) -> str:
        filled = _fill_first("N", self.template, str(shards).zfill)
        return _fill_first("S", filled, shard)


def _fill_first(letter: str, template: str, text: Any) -> str:
    """Replaces the first run of a letter and all equal runs, as Beam's templates do."""
    found = re.search(f"{letter}+", template)
    return template.replace(found.group(), text(len(found.group()))) if found else template


def _in_seconds(window: Any) -> str:
    return "GlobalWindow" if window == GlobalWindow() else f"[{float(window.start)}, {float(window.end)})"


def _in_dates(window: Any) -> str:
    if window == GlobalWindow():
        return "GlobalWindow"
    start, end = (each.to_utc_datetime().strftime("%Y-%m-%dT%H-%M-%S") for each in (window.start, window.end))
    return f"[{start}, {end})"


def _text(path: Path) -> str:
    text = known_path(path)
    if text is None:
        raise refusal(ValueError, f"the path {path} has no value yet", hint="pass the option of that name")
    return text
