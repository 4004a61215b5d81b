"""The streams that are replayed: files of events, one after the other, and the totals that must come out of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from workloads import WINDOW_SECONDS, WORKLOADS, Totals

DISORDER_SECONDS = 120
"""How far behind the latest event a punctual one is at most."""

LATENESS_SECONDS = 600
"""How long after its end a window takes late events."""

LAST_KEY = "last"
"""The user, and the team, of the event that ends a stream: it is so much later that all other windows are over."""

_LATE_EVERY = 200
_LATE_SECONDS = 300
_FIRST_MODIFIED = 1_600_000_000
_SCORES = next(workload for workload in WORKLOADS if workload.name == "team_sums")


@dataclass(frozen=True)
class Replay:
    """A workload: sums by key in windows of event time, from files that are read as a stream.

    Attributes:
        name: What the contenders know it by.
        title: What people know it by.
        key: The field of a line whose values are the keys.
        fires: Whether windows fire early and late; some events are then late.
    """

    name: str
    title: str
    key: int
    fires: bool

    def make_files(self, folder: Path, events: int, files: int) -> Path:
        """Writes the files of a stream, beside their totals, unless they are there already.

        Args:
            folder: Where the folder of the files is put.
            events: How many there are.
            files: How many files they are in; later files have later events.

        Returns:
            The folder of the files.
        """
        target = folder / f"{self.name}-{events}-in-{files}"
        if not target.exists():
            unfinished = folder / f"{target.name}.unfinished"
            unfinished.mkdir(parents=True, exist_ok=True)
            lines = list(self._lines(events))
            totals_path(target).write_text(json.dumps(self._totals(lines)))
            lines.append(_after(lines))
            size = -(-len(lines) // files)
            for number in range(files):
                part = unfinished / f"part-{number:05}.txt"
                part.write_text("".join(f"{line}\n" for line in lines[number * size : (number + 1) * size]))
                # Spark reads the oldest file first.
                os.utime(part, (_FIRST_MODIFIED + number, _FIRST_MODIFIED + number))
            unfinished.rename(target)
        return target

    def _lines(self, events: int) -> Iterator[str]:
        for number, line in enumerate(islice(_SCORES.lines(), events)):
            if self.fires and number % _LATE_EVERY == 0:
                fields, _, second = line.rpartition(",")
                line = f"{fields},{int(second) - _LATE_SECONDS}"
            yield line

    def _totals(self, lines: Iterable[str]) -> Totals:
        totals: Counter[str] = Counter()
        for line in lines:
            key, score, second = parsed(line, self.key)
            totals[f"{key} {window_start(second)}"] += score
        return totals


def parsed(line: str, key: int) -> tuple[str, int, int]:
    """The key, the score and the second of a line; what Python does for each contender.

    >>> parsed("user7,team3,11,1600000061", 1)
    ('team3', 11, 1600000061)
    """
    fields = line.split(",")
    return fields[key], int(fields[2]), int(fields[3])


def window_start(second: int) -> int:
    """The second at which a window starts."""
    return second // WINDOW_SECONDS * WINDOW_SECONDS


def totals_path(files: Path) -> Path:
    """Where the totals of a stream are."""
    return files.with_name(f"{files.name}.json")


def check(files: Path, written: Path) -> dict[str, int]:
    """Compares what a contender has written, total by total, with what had to come out.

    A line is ``key start``, a sum, and, where windows fire more than once, when it fired, between tabs. What a window
    has given all together is its total.

    Returns:
        How many lines there are of each timing.

    Raises:
        AssertionError: A total is missing or wrong, or should not be there.
    """
    found: Counter[str] = Counter()
    timings: Counter[str] = Counter()
    for part in sorted(path for path in written.rglob("part-*") if path.is_file()):
        for line in part.read_text().splitlines():
            name, total, *timing = line.split("\t")
            if not name.startswith(f"{LAST_KEY} "):
                found[name] += int(total)
                timings["".join(timing) or "on time"] += 1
    expected: Totals = json.loads(totals_path(files).read_text())
    if found != expected:
        wrong = sorted(name for name, _ in found.items() ^ expected.items())
        raise AssertionError(f"{written.name}: {len(wrong)} totals are wrong, such as that of {wrong[0]!r}")
    return dict(sorted(timings.items()))


def _after(lines: list[str]) -> str:
    last = max(int(line.rpartition(",")[2]) for line in lines)
    return f"{LAST_KEY},{LAST_KEY},0,{last + WINDOW_SECONDS + DISORDER_SECONDS + LATENESS_SECONDS}"


REPLAYS = (
    Replay("sums", "sums per team and two minutes", 1, fires=False),
    Replay("team_panes", "sums per team and two minutes, also early and late", 1, fires=True),
    Replay("user_panes", "sums per user and two minutes, also early and late", 0, fires=True),
)
