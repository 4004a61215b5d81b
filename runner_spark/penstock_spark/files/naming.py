"""Names the files of a sink, and finds the files of an earlier run that they replace."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock_spark.files.file_store import folder_of

SHARD, SHARDS = 777_777_778, 888_888_889
"""They stand for a shard's number and the number of shards when a name becomes a pattern."""


@dataclass(frozen=True)
class Naming:
    path_of: Callable[[int, int], str]  # Returns the path for the number of a file and the number of files.

    @property
    def folder(self) -> str:
        return folder_of(self.example())

    @property
    def beginning(self) -> str:
        """The common beginning of all names in the folder, so that a file system need not list everything in it."""
        return re.split(f"{SHARD}|{SHARDS}", os.path.basename(self.example()))[0]

    def names(self, count: int) -> list[str]:
        return [self.path_of(shard, count) for shard in range(count)]

    def example(self) -> str:
        return example_of(self.path_of)

    def find_stale(self, count: int, present: Iterable[str]) -> list[str]:
        """Returns the files of an earlier run that `count` new files do not replace.

        Only names of this naming count: shard 7 of 4 belongs to another run. If names do not contain the
        number of files, the stale files are those whose numbers continue the new ones without a gap. If
        nothing separates the two numbers, nothing is stale, because they cannot be distinguished.

        >>> naming = Naming(lambda shard, shards: f"/o/a-{shard:02}-of-{shards:02}")
        >>> naming.find_stale(2, ["a-00-of-02", "a-03-of-04", "a-03-of-03", "a-3-of-4", "a-b-00-of-04"])
        ['a-03-of-04']
        >>> Naming(lambda shard, shards: f"/o/{shard}.csv").find_stale(1, ["0.csv", "2.csv", "1.csv", "2026.csv"])
        ['2.csv', '1.csv']
        """
        pattern = match_names_like(os.path.basename(self.example()), {SHARD: "shard", SHARDS: "shards"})
        found = {name: match.groupdict() for name in present if (match := pattern.match(name))}
        if "shards" in pattern.groupindex:
            new = {os.path.basename(name) for name in self.names(count)}
            return [
                name for name, numbers in found.items() if name not in new and self._is_own(name, numbers)
            ]
        if "shard" not in pattern.groupindex:
            return [] if count else list(found)
        shards = {name: int(numbers["shard"]) for name, numbers in found.items()}
        numbered = {shard: name for name, shard in shards.items() if self._is_named(name, shard, shard + 1)}
        last = count
        while last in numbered:
            last += 1
        # The last one first: if a deletion is cut short, no gap hides the rest.
        return [numbered[shard] for shard in reversed(range(count, last))]

    def _is_own(self, name: str, numbers: dict[str, str]) -> bool:
        shards = int(numbers["shards"])
        shard = int(numbers.get("shard", 0))
        return shard < shards and self._is_named(name, shard, shards)

    def _is_named(self, name: str, shard: int, shards: int) -> bool:
        return os.path.basename(self.path_of(shard, shards)) == name


def example_of(path_of: Callable[[int, int], str]) -> str:
    """Returns a path with `SHARD` and `SHARDS` instead of the numbers."""
    try:
        return path_of(SHARD, SHARDS)
    except Exception:
        # A naming by the user may accept only one shard.
        return path_of(0, 1)


def match_names_like(example: str, numbers: Mapping[int, str]) -> re.Pattern[str]:
    """Returns a pattern that matches the whole of each name that differs from an example only in some large numbers.

    Args:
        example: A name with large numbers in it.
        numbers: These numbers, each with the name of the group that is its first place in the example.

    >>> like = match_names_like("o-666666667-777777778", {666666667: "batch", 777777778: "shard"})
    >>> like.match("o-000012-00001").groupdict(), like.match("o-000012-1.csv")
    ({'batch': '000012', 'shard': '00001'}, None)
    """
    pattern = re.escape(example)
    for number, name in numbers.items():
        before, found, after = pattern.partition(str(number))
        if found:
            pattern = f"{before}(?P<{name}>[0-9]+){after.replace(found, '[0-9]+')}"
    return re.compile(pattern + r"\Z")
