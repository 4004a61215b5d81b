"""The streams that are replayed: files of events, one after the other, and the totals that must come out of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from workloads import WINDOW_SECONDS, WORKLOADS, Totals

DISORDER_SECONDS = 120
"""The largest distance of a punctual event behind the latest event."""

LATENESS_SECONDS = 600
"""The time after its end in which a window takes late events."""

LAST_KEY = "last"
"""The user, and the team, of the event that ends a stream."""

_LATE_EVERY = 200
_LATE_SECONDS = 300
_FIRST_MODIFIED = 1_600_000_000
_SCORES = next(workload for workload in WORKLOADS if workload.name == "team_sums")


@dataclass(frozen=True)
class Replay:
    """A workload: sums by key in windows of event time, from files that are read as a stream."""

    name: str  # As the contenders know it.
    title: str  # For people.
    key: int  # The field of a line whose values are the keys.
    fires: bool  # Whether windows fire early and late; some events are then late.

    def make_files(self, folder: Path, events: int, files: int) -> Path:
        """Writes the files of a stream beside their totals, unless they exist; later files have later events."""
        target = folder / f"{self.name}-{events}-in-{files}"
        if not target.exists():
            lines = list(self._lines(events))
            write_totals(target, self._totals(lines))
            write_stream(target, cut([*lines, last_line(lines)], files))
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
    """The path of the totals of a stream."""
    return files.with_name(f"{files.name}.json")


def write_totals(files: Path, totals: Totals) -> None:
    """Writes the totals of a stream."""
    files.parent.mkdir(parents=True, exist_ok=True)
    totals_path(files).write_text(json.dumps(totals))


def write_stream(target: Path, parts: Iterable[Iterable[str]]) -> None:
    """Writes a folder with a file for each part of some lines; the folder is there only when all files are."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(parts):
        part = unfinished / f"part-{number:05}.txt"
        part.write_text("".join(f"{line}\n" for line in lines))
        # Spark reads the oldest file first.
        os.utime(part, (_FIRST_MODIFIED + number, _FIRST_MODIFIED + number))
    unfinished.rename(target)


def cut(lines: Sequence[str], parts: int) -> list[Sequence[str]]:
    """So many parts of lines, all but the last of the same size."""
    size = -(-len(lines) // parts)
    return [lines[number * size : (number + 1) * size] for number in range(parts)]


def last_line(lines: Iterable[str]) -> str:
    """The event that ends a stream: it is so much later than all others that whatever waits for them is over."""
    last = max(int(line.rpartition(",")[2]) for line in lines)
    return f"{LAST_KEY},{LAST_KEY},0,{last + WINDOW_SECONDS + DISORDER_SECONDS + LATENESS_SECONDS}"


def check(files: Path, written: Path, untimed: str = "on time") -> dict[str, int]:
    """Compares a contender's totals with the expected ones; returns the number of lines with each timing.

    A line is a name, such as ``key start``, a sum and, if windows fire more than once, a timing, between
    tabs. All sums of a name together are its total. `untimed` is the timing of lines without one.
    """
    found: Counter[str] = Counter()
    timings: Counter[str] = Counter()
    for part in sorted(path for path in written.rglob("part-*") if path.is_file()):
        for line in part.read_text().splitlines():
            name, total, *timing = line.split("\t")
            if name.partition(" ")[0] != LAST_KEY:
                found[name] += int(total)
                timings["".join(timing) or untimed] += 1
    expected: Totals = json.loads(totals_path(files).read_text())
    if found != expected:
        wrong = sorted(name for name, _ in found.items() ^ expected.items())
        raise AssertionError(f"{written.name}: {len(wrong)} totals are wrong, such as that of {wrong[0]!r}")
    return dict(sorted(timings.items()))


REPLAYS = (
    Replay("sums", "sums per team and two minutes", 1, fires=False),
    Replay("team_panes", "sums per team and two minutes, also early and late", 1, fires=True),
    Replay("user_panes", "sums per user and two minutes, also early and late", 0, fires=True),
)
