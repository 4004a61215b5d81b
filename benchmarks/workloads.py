"""The work that is measured: what its input looks like, and what must come out, computed in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

WINDOW_SECONDS = 120

_SEED = 7
_VOCABULARY = 100_000
_POOL = 1_000_000
_WORDS_PER_LINE = 12
_SYLLABLES = [first + vowel for first in "bdfghklmnprstvwz" for vowel in "aeiou"]
_EVENTS_PER_SECOND = 250
_FIRST_SECOND = 1_600_000_000
_LATE_SECONDS_MAX = 60

Totals = dict[str, int]


@dataclass(frozen=True)
class Workload:
    """Lines in, totals by name out.

    Attributes:
        name: What the contenders know it by.
        title: What people know it by.
        unit: What sizes count: ``bytes`` or ``lines``.
        size: The size at full scale.
        lines: Gives the same endless lines at every call.
        totals: What has to come out for some lines.
    """

    name: str
    title: str
    unit: str
    size: int
    lines: Callable[[], Iterator[str]]
    totals: Callable[[Iterable[str]], Totals]

    def make_input(self, folder: Path, size: int) -> Path:
        """Writes an input and its totals, unless they are there already; a smaller one is a larger one's
        beginning.
        """
        path = folder / f"{self.name}-{size}.txt"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".unfinished")
            with unfinished.open("w", encoding="ascii") as file:
                file.writelines(f"{line}\n" for line in self._first_lines(size))
            with unfinished.open(encoding="ascii") as file:
                path.with_suffix(".json").write_text(json.dumps(self.totals(file)))
            unfinished.rename(path)
        return path

    def _first_lines(self, size: int) -> Iterator[str]:
        used = 0
        for line in self.lines():
            used += len(line) + 1 if self.unit == "bytes" else 1
            if used > size:
                return
            yield line


def check(source: Path, target: Path) -> None:
    """Compares what a contender has written, total by total, with what had to come out.

    Raises:
        AssertionError: A total is missing, wrong, there twice, or should not be there.
    """
    expected: Totals = json.loads(source.with_suffix(".json").read_text())
    written: Totals = {}
    for part in sorted(target.glob("part-*")):
        for line in part.read_text().splitlines():
            name, _, total = line.partition("\t")
            if name in written:
                raise AssertionError(f"{target.name}: {name!r} is there twice")
            written[name] = int(total)
    if written != expected:
        wrong = sorted(name for name, _ in written.items() ^ expected.items())
        raise AssertionError(f"{target.name}: {len(wrong)} totals are wrong, such as that of {wrong[0]!r}")


def _text() -> Iterator[str]:
    """Lines of words whose frequencies fall with their rank as those of a natural language do (Zipf's law)."""
    chance = random.Random(_SEED)
    words = [_word(number) for number in range(_VOCABULARY)]
    weights = list(accumulate((rank + 2.7) ** -1.05 for rank in range(1, _VOCABULARY + 1)))
    pool = chance.choices(words, cum_weights=weights, k=_POOL)
    while True:
        yield " ".join(chance.choices(pool, k=_WORDS_PER_LINE))


def _word(number: int) -> str:
    """A word for a rank; the more frequent the shorter.

    >>> _word(0), _word(81), _word(99_999)
    ('ba', 'babe', 'fupozu')
    """
    word = ""
    while number >= 0:
        number, digit = divmod(number, len(_SYLLABLES))
        word = _SYLLABLES[digit] + word
        number -= 1
    return word


def _scores() -> Iterator[str]:
    """Lines of user, team, score and the second of the event, up to a minute out of order."""
    draw = random.Random(_SEED).random
    number = 0
    while True:
        second = _FIRST_SECOND + number // _EVENTS_PER_SECOND + int((2 * draw() - 1) * _LATE_SECONDS_MAX)
        yield f"user{int(draw() * 10_000)},team{int(draw() * 100)},{int(draw() * 20)},{second}"
        number += 1


def _word_totals(lines: Iterable[str]) -> Totals:
    totals: Counter[str] = Counter()
    for line in lines:
        totals.update(line.split())
    return totals


def _team_totals(lines: Iterable[str]) -> Totals:
    totals: Counter[str] = Counter()
    for line in lines:
        _, team, score, seconds = line.split(",")
        totals[f"{team} {int(seconds) // WINDOW_SECONDS * WINDOW_SECONDS}"] += int(score)
    return totals


WORKLOADS = (
    Workload("word_count", "word count", "bytes", 200_000_000, _text, _word_totals),
    Workload("team_sums", "sums per team and two minutes", "lines", 2_500_000, _scores, _team_totals),
)
