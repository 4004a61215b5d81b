"""Prints the files that the leaderboard has written, as tables."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

TABLES = ("authors", "weeks", "sessions")
AUTHORS, WEEKS, NAME_WIDTH = 10, 6, 28

Row = Mapping[str, str]


def show(name: str, folder: Path, result: Any) -> None:
    """Prints the best authors of all time and of the last weeks, and how late commits arrived.

    Args:
        name: The name of the history.
        folder: The folder of the result files.
        result: The result of the pipeline, for its metrics.
    """
    authors, weeks, sessions = (rows(folder / f"{table}.csv") for table in TABLES)
    commits = sum(int(row["commits"]) for row in authors)
    print(f"Leaderboard of {name}: {count(commits, 'commit')} by {count(len(authors), 'author')}")
    if commits:
        print_authors(authors, sessions)
        print_weeks(weeks)
        print_lateness(json.loads((folder / "lateness.json").read_text(encoding="utf-8")), result)
    counters = result.metrics().query()["counters"]
    unreadable = sum(metric.committed for metric in counters if metric.key.metric.name == "unreadable")
    if unreadable:
        print(f"\n{count(unreadable, 'record')} could not be read: see {folder / 'unreadable.txt'}")
    print(f"\nEverything is in {folder}: authors.csv, weeks.csv, sessions.csv, lateness.json")


def rows(file: Path) -> list[Row]:
    """Reads the rows of a CSV file; a missing file has none."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def print_authors(authors: Sequence[Row], sessions: Sequence[Row]) -> None:
    """Prints the authors with the most commits."""
    session_of = {row["author"]: row for row in sessions}
    best = sorted(authors, key=lambda row: (-int(row["commits"]), -changed(row), row["author"]))[:AUTHORS]
    table: list[tuple[str, ...]] = [
        ("", "author", "commits", "lines added", "removed", "longest session", "")
    ]
    for number, row in enumerate(best, 1):
        session = session_of[row["author"]]
        numbers = (f"{int(row[column]):,}" for column in ("commits", "added", "removed"))
        when = f"{count(int(session['commits']), 'commit')} on {session['start'][:10]}"
        table.append(
            (str(number), shortened(row["author"]), *numbers, duration(int(session["seconds"])), when)
        )
    print()
    print_table(table, "><>>>><")
    if len(authors) > len(best):
        print(f"      and {len(authors) - len(best):,} more")


def changed(row: Row) -> int:
    """The number of lines that were added or removed."""
    return int(row["added"]) + int(row["removed"])


def print_weeks(weeks: Sequence[Row]) -> None:
    """Prints the best authors of the last weeks that have commits."""
    ordered = sorted(weeks, key=lambda row: (row["monday"], int(row["rank"])))
    table = [
        (monday, ", ".join(f"{shortened(row['author'])} {row['commits']}" for row in best))
        for monday, best in groupby(ordered, key=lambda row: row["monday"])
    ]
    print()
    print_table([("week of", "most commits"), *table[-WEEKS:]], "<<")


def print_lateness(found: Mapping[str, int], result: Any) -> None:
    """Prints two lines about the time from author date to commit date."""
    distributions = result.metrics().query()["distributions"]
    delay = next(metric.committed for metric in distributions if metric.key.metric.name == "lateness_seconds")
    median, most = duration(found["median_seconds"]), duration(found["nine_in_ten_seconds"])
    print(
        f"\nFrom author date to commit date: median {median}, nine in ten within {most}, "
        f"mean {duration(delay.mean)}, maximum {duration(delay.max)}."
        f"\n{found['out_of_order'] / found['commits']:.1%} of the commits arrived out of order, "
        "after one that was written later."
    )


def print_table(table: Sequence[Sequence[str]], alignments: str) -> None:
    """Prints rows in aligned columns; ``<`` is left, ``>`` is right."""
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (padded(*cell) for cell in zip(row, widths, alignments, strict=True))
        print(("  " + "  ".join(cells)).rstrip())


def width(text: str) -> int:
    """Counts the columns that a text takes in a terminal.

    >>> width("Zoë"), width("林さん")
    (3, 6)
    """
    return sum(
        0 if unicodedata.category(character) in ("Mn", "Me") else columns(character) for character in text
    )


def columns(character: str) -> int:
    """Returns two for a wide character, such as a Chinese one, or else one."""
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def padded(text: str, wanted: int, alignment: str) -> str:
    """Pads a text with spaces on one side.

    >>> padded("林", 4, ">")
    '  林'
    """
    spaces = " " * (wanted - width(text))
    return spaces + text if alignment == ">" else text + spaces


def shortened(name: str) -> str:
    """Shortens a name so that it fits into its column.

    >>> shortened("Hubert Blaine Wolfeschlegelsteinhausen")
    'Hubert Blaine Wolfeschlegel…'
    """
    if width(name) <= NAME_WIDTH:
        return name
    while width(name) >= NAME_WIDTH:
        name = name[:-1]
    return name + "…"


def count(number: int, what: str) -> str:
    """Formats a number with its noun.

    >>> count(1, "commit"), count(1200, "commit")
    ('1 commit', '1,200 commits')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Formats a length of time for people.

    >>> [duration(seconds) for seconds in (0, 59, 3_660, 200_000, -90)]
    ['0 s', '59 s', '1 h 1 min', '2.3 days', '-1 min']
    """
    sign, whole = ("-" if seconds <= -1 else ""), int(abs(seconds))
    if whole < 60:
        return f"{sign}{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if hours < 24:
        return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min"
    return f"{sign}{whole / 86_400:,.1f} days"
