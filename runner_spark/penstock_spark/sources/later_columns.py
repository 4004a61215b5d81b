"""Says which columns of later files a stream leaves out, because no file had them when it began."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

_LOGGER = logging.getLogger(__name__)
_HINT = "start the pipeline again to read them from then on, or name the wanted columns with columns=[...]"

_told: set[tuple[str, str]] = set()
"""The steps and columns of which this worker has spoken: a task looks at its files anew."""


@dataclass
class LaterColumns:
    """Logs a warning when a file has columns that its stream did not find at the start.

    >>> later_columns = LaterColumns(("a", "B"), "at step 'Read' (game.py:41)")
    >>> later_columns.look("/in/2.parquet", lambda: ("A", "b"))
    """

    known: Collection[str]  # The columns of the files that the stream began with.
    where: str
    _seen: set[str] = field(default_factory=set, init=False)
    _folded: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        # Spark does not tell capital letters from small ones.
        self._folded = frozenset(name.casefold() for name in self.known)

    def look(self, file: str, names_of: Callable[[], Iterable[str]]) -> None:
        """Looks at a file once; `names_of` gives its columns."""
        if file in self._seen:
            return
        self._seen.add(file)
        new = [name for name in names_of() if name.casefold() not in self._folded]
        untold = [name for name in new if (self.where, name) not in _told]
        if untold:
            _told.update((self.where, name) for name in untold)
            listed = ", ".join(untold)
            what = "%s has columns that the stream leaves out, because no file had them when it started: %s"
            _LOGGER.warning(f"{what}\n  %s\n  hint: {_HINT}", file, listed, self.where)
