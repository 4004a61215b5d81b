"""The names that the files of a sink get, and which files of an earlier run they take the place of."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock_spark.files.file_system import folder_of

# Numbers that stand for those of a shard and of all shards where a pattern is made of a name.
SHARD, SHARDS = 777_777_778, 888_888_889


@dataclass(frozen=True)
class Naming:
    """The names that files get.

    Attributes:
        path_of: From the number of a file and that of all files to its path.
    """

    path_of: Callable[[int, int], str]

    @property
    def folder(self) -> str:
        """The folder that the names are in."""
        return folder_of(self.example())

    @property
    def beginning(self) -> str:
        """What all names in the folder begin with, so that a file system need not tell all that is there."""
        return re.split(f"{SHARD}|{SHARDS}", os.path.basename(self.example()))[0]

    def names(self, count: int) -> list[str]:
        """The paths of so many files."""
        return [self.path_of(shard, count) for shard in range(count)]

    def example(self) -> str:
        """A path in which large numbers stand for those of shards."""
        return example_of(self.path_of)

    def stale(self, count: int, present: Iterable[str]) -> list[str]:
        """The files that an earlier run has left and that so many new ones do not write over.

        Those are the names that this naming gives, and no others: shard 7 of 4 is somebody else's file. Where names do
        not tell how many files there were, those count that go on where the new ones end, without a gap. Two numbers
        without anything between them cannot be told apart: such files stay.

        Args:
            count: How many files are written now.
            present: The names in the folder.

        >>> naming = Naming(lambda shard, shards: f"/o/a-{shard:02}-of-{shards:02}")
        >>> naming.stale(2, ["a-00-of-02", "a-03-of-04", "a-03-of-03", "a-3-of-4", "a-b-00-of-04"])
        ['a-03-of-04']
        >>> Naming(lambda shard, shards: f"/o/{shard}.csv").stale(1, ["0.csv", "2.csv", "1.csv", "2026.csv"])
        ['2.csv', '1.csv']
        """
        pattern = _pattern(os.path.basename(self.example()))
        found = {name: match.groupdict() for name in present if (match := pattern.match(name))}
        if "shards" in pattern.groupindex:
            new = {os.path.basename(name) for name in self.names(count)}
            return [name for name, numbers in found.items() if name not in new and self._gives(name, numbers)]
        if "shard" not in pattern.groupindex:
            return [] if count else list(found)
        numbered = {int(numbers["shard"]): name for name, numbers in found.items()}
        last = count
        while last in numbered and self._is_named(numbered[last], last, last + 1):
            last += 1
        # From the last down, so that no gap hides any if this is cut short.
        return [numbered[shard] for shard in reversed(range(count, last))]

    def _gives(self, name: str, numbers: dict[str, str]) -> bool:
        shards = int(numbers["shards"])
        shard = int(numbers.get("shard", 0))
        return shard < shards and self._is_named(name, shard, shards)

    def _is_named(self, name: str, shard: int, shards: int) -> bool:
        return os.path.basename(self.path_of(shard, shards)) == name


def example_of(path_of: Callable[[int, int], str]) -> str:
    """A path in which `SHARD` and `SHARDS` stand for the numbers."""
    try:
        return path_of(SHARD, SHARDS)
    except Exception:
        # A naming of the user's may take no shard but the only one.
        return path_of(0, 1)


def _pattern(example: str) -> re.Pattern[str]:
    """Matches, as a whole, the names that differ from an example in what the large numbers stand for."""
    pattern = re.escape(example)
    for number, name in ((SHARD, "shard"), (SHARDS, "shards")):
        before, found, after = pattern.partition(str(number))
        if found:
            pattern = f"{before}(?P<{name}>[0-9]+){after.replace(found, f'(?P={name})')}"
    return re.compile(pattern + r"\Z")
