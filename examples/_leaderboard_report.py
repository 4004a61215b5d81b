"""Prints the files that the leaderboard has written, as tables."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

AUTHORS, WEEKS, NAME_WIDTH = 10, 6, 28


def show(name: str, folder: Path, result: Any) -> None:
    """Prints the best authors of all time, those of the last weeks, and how late commits arrived.

    Args:
        name: Of the repository.
        folder: Where the files are.
        result: The pipeline's, for its metrics.
    """
    authors = sorted(
        rows(folder / "authors.csv"),
        key=lambda row: (-int(row["commits"]), -int(row["added"]) - int(row["removed"]), row["author"]),
    )
    sessions = {row["author"]: row for row in rows(folder / "sessions.csv")}
    commits = sum(int(row["commits"]) for row in authors)
    print(f"Leaderboard of {name}: {count(commits, 'commit')} by {count(len(authors), 'author')}\n")
    print_authors(authors, sessions)
    print_weeks(rows(folder / "weeks.csv"))
    print_lateness(json.loads((folder / "lateness.json").read_text(encoding="utf-8")), result)
    print(f"All results are in {folder}: authors.csv, weeks.csv, sessions.csv, lateness.json, unreadable.txt")


def rows(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def print_authors(authors: Sequence[dict[str, str]], sessions: dict[str, dict[str, str]]) -> None:
    table = [("", "author", "commits", "lines added", "removed", "longest session", "")]
    for number, row in enumerate(authors[:AUTHORS], 1):
        session = sessions[row["author"]]
        numbers = (f"{int(row[column]):,}" for column in ("commits", "added", "removed"))
        start = datetime.fromtimestamp(int(session["start"]), UTC)
        longest = f"{count(int(session['commits']), 'commit')}, {start:%Y-%m-%d}"
        table.append((str(number), row["author"], *numbers, duration(int(session["seconds"])), longest))
    print_table(table, ">< >>>><".replace(" ", ""))
    if len(authors) > AUTHORS:
        print(f"  and {len(authors) - AUTHORS:,} more")
    print()


def print_weeks(weeks: Sequence[dict[str, str]]) -> None:
    by_week = groupby(sorted(weeks, key=lambda row: (row["monday"], int(row["rank"]))), itemgetter("monday"))
    table = [
        (monday, ", ".join(f"{shorten(row['author'])} {row['commits']}" for row in best))
        for monday, best in by_week
    ]
    print_table([("week of", "most commits"), *table[-WEEKS:]], "<<")
    print()


def print_lateness(found: dict[str, int], result: Any) -> None:
    metrics = result.metrics().query()
    counted = Counter({metric.key.metric.name: metric.committed for metric in metrics["counters"]})
    for metric in metrics["distributions"]:
        if metric.key.metric.name == "lateness_seconds":
            delay = metric.committed
            share = found["out_of_order"] / found["commits"]
            print(
                f"From author date to commit date: half of the commits within "
                f"{duration(found['median_seconds'])}, nine in ten within "
                f"{duration(found['nine_in_ten_seconds'])}, on average {duration(delay.mean)}, at most "
                f"{duration(delay.max)}; {share:.1%} arrived out of order."
            )
    if counted["unreadable"]:
        print(f"{count(counted['unreadable'], 'record')} made no sense: see unreadable.txt.")


def print_table(table: Sequence[Sequence[str]], alignments: str) -> None:
    table = [
        [shorten(cell) if column == 1 and len(alignments) > 2 else cell for column, cell in enumerate(row)]
        for row in table
    ]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (pad(cell, *how) for cell, *how in zip(row, widths, alignments, strict=True))
        print("  " + "  ".join(cells).rstrip())


def width(text: str) -> int:
    """How many columns of a terminal a text takes.

    >>> width("Zoë"), width("林さん")
    (3, 6)
    """
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def pad(text: str, columns: int, alignment: str) -> str:
    spaces = " " * (columns - width(text))
    return spaces + text if alignment == ">" else text + spaces


def shorten(name: str) -> str:
    """A name that fits into its column.

    >>> shorten("Hubert Blaine Wolfeschlegelsteinhausen")
    'Hubert Blaine Wolfeschlegel…'
    """
    if width(name) <= NAME_WIDTH:
        return name
    while width(name) >= NAME_WIDTH:
        name = name[:-1]
    return name + "…"


def count(number: int, what: str) -> str:
    """
    >>> count(1, "commit"), count(1200, "commit")
    ('1 commit', '1,200 commits')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A length of time for people.

    >>> [duration(seconds) for seconds in (0, 59, 3_660, 200_000, -90)]
    ['0 s', '59 s', '1 h 1 min', '2.3 days', '-1 min']
    """
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 60:
        return f"{sign}{int(seconds)} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{sign}{minutes} min"
    if minutes < 24 * 60:
        return f"{sign}{minutes // 60} h {minutes % 60} min"
    return f"{sign}{seconds / 86_400:,.1f} days"
