"""The expected totals of the lines of each workload, in plain Python: the law for all contenders, and their floor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

Totals = dict[str, int]
"""Numbers by name; where a name has two parts, there is a space between them."""

WINDOW_SECONDS = 120
GAP_SECONDS = 60
HOUR_SECONDS = 3_600
STEPS = 20


def word_count(lines: Iterable[str]) -> Totals:
    """The count of each word."""
    totals: Counter[str] = Counter()
    for line in lines:
        totals.update(line.split())
    return totals


def team_sums(lines: Iterable[str]) -> Totals:
    """The sum of the scores of each team for every two minutes, by the team and the window's first second."""
    sums: dict[tuple[str, int], int] = {}
    for line in lines:
        _, team, score, seconds = line.split(",")
        key = team, int(seconds) // WINDOW_SECONDS * WINDOW_SECONDS
        sums[key] = sums.get(key, 0) + int(score)
    return {f"{team} {start}": total for (team, start), total in sums.items()}


def user_sessions(lines: Iterable[str]) -> Totals:
    """The sum of the scores of each session, by the user and the second of its first event.

    A session ends a minute after its last event; an event in that very moment opens the next one.

    >>> user_sessions(["ann,red,1,100", "ann,red,5,219", "ann,red,2,159"])
    {'ann 100': 3, 'ann 219': 5}
    """
    events: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        user, _, score, seconds = line.split(",")
        events.setdefault(user, []).append((int(seconds), int(score)))
    return {
        f"{user} {start}": total
        for user, found in events.items()
        for start, total in sessions_of(sorted(found)).items()
    }


def sessions_of(events: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The sum of each session, by its first second, from seconds and scores in order."""
    sums: dict[int, int] = {}
    start = end = -1
    for second, score in events:
        if second >= end:
            start = second
            sums[start] = 0
        end = second + GAP_SECONDS
        sums[start] += score
    return sums


def user_hours(lines: Iterable[str]) -> Totals:
    """The sum of the scores of each user in each hour, by the user and the hour's first second."""
    totals: Counter[str] = Counter()
    for line in lines:
        user, _, score, seconds = line.split(",")
        totals[f"{user} {int(seconds) // HOUR_SECONDS * HOUR_SECONDS}"] += int(score)
    return totals


def typed_sums(lines: Iterable[str]) -> Totals:
    """As `team_sums`, but without the window: a team and a total are written."""
    return numbered((name.partition(" ")[0], total) for name, total in team_sums(lines).items())


def numbered(pairs: Iterable[tuple[str, int]]) -> Totals:
    """Totals of which many have the same name, each by the name and how many smaller ones it has.

    >>> numbered([("red", 5), ("blue", 3), ("red", 4)])
    {'blue 0': 3, 'red 0': 4, 'red 1': 5}
    """
    counts: Counter[str] = Counter()
    found = {}
    for name, total in sorted(pairs):
        found[f"{name} {counts[name]}"] = total
        counts[name] += 1
    return found


def key_sums(lines: Iterable[str]) -> Totals:
    """The sum of the second fields, by the first."""
    totals: Counter[str] = Counter()
    for line in lines:
        key, number, *_ = line.split(",")
        totals[key] += int(number)
    return totals


def moment_counts(lines: Iterable[str]) -> Totals:
    """The count of each pair of a key and a second."""
    return Counter(line.rstrip("\n").replace(",", " ") for line in lines)


def stepped_sum(lines: Iterable[str]) -> Totals:
    """The sum of what comes out of the chain of steps."""
    return {"sum": sum(all_steps(int(line)) for line in lines)}


def step(number: int) -> int:
    """The function of each step of a chain."""
    return (number * 5 + 1) % 1_000_003


def all_steps(number: int) -> int:
    """The functions of all steps of a chain, in one."""
    for _ in range(STEPS):
        number = step(number)
    return number
