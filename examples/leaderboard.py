"""Makes a leaderboard from the history of a Git repository, whose commits do not arrive in the order of their events.

A commit happens when its author writes it (the author date) and arrives when it enters the history (the
commit date): in the same second, or months later, after a review or a rebase. The input has the order of
arrival; all results use the time at which the work was done. They are files in the output folder:

  authors.csv     the commits and changed lines of each author, as `git shortlog -sn` counts commits
  weeks.csv       the most active authors of each week, from Monday to Sunday in UTC
  sessions.csv    each author's longest session of work: commits with less than two hours between them
  lateness.json   how long commits took to arrive after they were written, and how many arrived out of order
  unreadable.txt  the records of the history that could not be read, with the reason
  history.txt     the output of Git, which is the input

    python examples/leaderboard.py --repo path/to/repository --output out/leaderboard
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import penstock as beam
from _git_history import FIELD, RECORD, NoHistory, write_history, write_sample
from _leaderboard_report import TABLES, show
from penstock.coders import BytesCoder
from penstock.io import fileio
from penstock.metrics import Metrics
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampedValue

PROJECT = Path(__file__).resolve().parents[1]
HOUR, DAY = 3_600, 86_400
MONDAY = 4 * DAY  # Windows count from 1 January 1970, which was a Thursday.

LATENESS = Metrics.distribution("leaderboard", "lateness_seconds")
UNREADABLE = Metrics.counter("leaderboard", "unreadable")


class Commit(NamedTuple):
    """Who wrote a commit and when, when it was committed (both in seconds since 1970), and what it changed."""

    author: str
    authored: int
    committed: int
    files: int
    added: int
    removed: int


class Total(NamedTuple):
    """The sums over some commits."""

    commits: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0


class AuthorRow(NamedTuple):
    """A line of ``authors.csv``."""

    author: str
    commits: int
    files: int
    added: int
    removed: int


class WeekRow(NamedTuple):
    """A line of ``weeks.csv``."""

    monday: str
    rank: int
    author: str
    commits: int
    added: int
    removed: int


class Session(NamedTuple):
    """A session of work. Sessions compare by length, then by number of commits, then by time."""

    seconds: int
    commits: int
    start: int


class SessionRow(NamedTuple):
    """A line of ``sessions.csv``."""

    author: str
    seconds: int
    commits: int
    start: str


def parse(record: bytes) -> Commit:
    r"""Parses a record: a line about the commit, then one line for each file that it changed.

    >>> parse(b"f00\x1fAnn\x1f1700000000\x1f1700000060\n\n3\t1\ta.py\n-\t-\tlogo.png\n")
    Commit(author='Ann', authored=1700000000, committed=1700000060, files=2, added=3, removed=1)
    """
    header, *rest = record.decode("utf-8", "replace").strip("\n").split("\n")
    _, author, authored, committed = header.split(FIELD)
    changes = [line.split("\t", 2) for line in rest if line]
    # For a file that is not text, Git writes a dash instead of the number of lines.
    added = sum(int(count) for count, _, _ in changes if count != "-")
    removed = sum(int(count) for _, count, _ in changes if count != "-")
    return Commit(printable(author), moment(authored), moment(committed), len(changes), added, removed)


def moment(text: str) -> int:
    """Parses seconds since 1970; a clock that is thousands of years wrong is an error."""
    seconds = int(text)
    datetime.fromtimestamp(seconds, UTC)
    return seconds


def printable(name: str) -> str:
    r"""Makes a name printable on a terminal.

    >>> printable("Zoë\x1b[1m O’Hara ")
    'Zoë?[1m O’Hara'
    """
    return "".join(character if character.isprintable() else "?" for character in name).strip() or "?"


def at_author_date(commit: Commit) -> TimestampedValue:
    """Gives the commit the time when it was written, and records how much later it arrived."""
    LATENESS.update(commit.committed - commit.authored)
    return TimestampedValue(commit, commit.authored)


def unreadable(record: bytes, failure: tuple) -> str:
    """Formats a record that is not a commit as one line with the reason, and counts it."""
    UNREADABLE.inc()
    return f"{failure[1]}\t{record!r}"


class SumUp(beam.CombineFn):
    """Combines commits into their `Total`."""

    def create_accumulator(self) -> Total:
        return Total()

    def add_input(self, total: Total, commit: Commit) -> Total:
        commits, files, added, removed = total
        return Total(commits + 1, files + commit.files, added + commit.added, removed + commit.removed)

    def merge_accumulators(self, totals: Iterable[Total]) -> Total:
        return Total(*map(sum, zip(*totals, strict=True)))

    def extract_output(self, total: Total) -> Total:
        return total


def rank(author_and_total: tuple[str, Total]) -> tuple:
    """Sorts by most commits, then most changed lines, then name, so that no two authors are equal."""
    author, total = author_and_total
    return -total.commits, -total.added - total.removed, author


def week_rows(best: list, window=beam.DoFn.WindowParam) -> Iterable[WeekRow]:
    """Makes the rows of a week from its best authors."""
    monday = f"{window.start.to_utc_datetime():%Y-%m-%d}"
    for number, (author, total) in enumerate(best, 1):
        yield WeekRow(monday, number, author, total.commits, total.added, total.removed)


def session(
    author: str, total: Total, gap: int = 2 * HOUR, window=beam.DoFn.WindowParam
) -> tuple[str, Session]:
    """Makes a session from a window, which ends a gap after the last commit."""
    start, end = int(window.start), int(window.end)
    return author, Session(end - gap - start, total.commits, start)


def session_row(author: str, longest: Session) -> SessionRow:
    """Makes the row of an author."""
    start = datetime.fromtimestamp(longest.start, UTC)
    return SessionRow(author, longest.seconds, longest.commits, f"{start:%Y-%m-%d %H:%M}")


def lateness(times: list[tuple[int, int]]) -> dict:
    """Summarises how late commits arrived, from the arrival time and the author time of each.

    A commit is out of order if one that was written after it had arrived before it.

    >>> lateness([(30, 30), (10, 10), (50, 20)])
    {'commits': 3, 'median_seconds': 0, 'nine_in_ten_seconds': 30, 'out_of_order': 1}
    """
    delays = sorted(committed - authored for committed, authored in times)
    newest, out_of_order = None, 0
    for _, authored in sorted(times):
        if newest is not None and authored < newest:
            out_of_order += 1
        else:
            newest = authored
    return {
        "commits": len(times),
        "median_seconds": delays[(len(delays) - 1) // 2] if delays else 0,
        "nine_in_ten_seconds": delays[(len(delays) * 9 - 1) // 10] if delays else 0,
        "out_of_order": out_of_order,
    }


class ReadCommits(beam.PTransform):
    """Reads the commits of a history, each at its author date; records that are not commits go to a file."""

    def __init__(self, history: Path) -> None:
        super().__init__()
        self.history = history

    def expand(self, pipeline):
        source = beam.io.ReadFromText(str(self.history), delimiter=RECORD.encode(), coder=BytesCoder())
        # The mark opens each record, so an empty record comes before the first one.
        records = pipeline | source | "Records" >> beam.Filter(bytes.strip)
        commits, failures = records | beam.Map(parse).with_exception_handling()
        (
            failures
            | "Unreadable" >> beam.MapTuple(unreadable)
            | beam.io.WriteToText(str(self.history.with_name("unreadable.txt")), shard_name_template="")
        )
        return commits | "AtAuthorDate" >> beam.Map(at_author_date)


class TotalOfAuthors(beam.PTransform):
    """Gives (author, `Total`) for each author in each window."""

    def expand(self, commits):
        return (
            commits
            | "ByAuthor" >> beam.Map(lambda commit: (commit.author, commit))
            | "SumUp" >> beam.CombinePerKey(SumUp())
        )


class BestOfWeeks(beam.PTransform):
    """Gives a `WeekRow` for each of the n most active authors of each week."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def expand(self, commits):
        return (
            commits
            | "Weeks" >> beam.WindowInto(FixedWindows(7 * DAY, offset=MONDAY))
            | TotalOfAuthors()
            | beam.combiners.Top.Of(self.n, key=rank, reverse=True).without_defaults()
            | "WeekRows" >> beam.FlatMap(week_rows)
        )


class LongestSessions(beam.PTransform):
    """Gives a `SessionRow` for each author, with the author's longest session."""

    def __init__(self, gap: int) -> None:
        super().__init__()
        self.gap = gap

    def expand(self, commits):
        return (
            commits
            | "Sessions" >> beam.WindowInto(Sessions(self.gap))
            | TotalOfAuthors()
            | "Session" >> beam.MapTuple(session, gap=self.gap)
            | "AllTime" >> beam.WindowInto(GlobalWindows())
            | "Longest" >> beam.CombinePerKey(max)
            | "SessionRows" >> beam.MapTuple(session_row)
        )


class Lateness(beam.PTransform):
    """Gives one dictionary (see `lateness`). Only two numbers per commit are collected in one place."""

    def expand(self, commits):
        return (
            commits
            | "Times" >> beam.Map(lambda commit: (commit.committed, commit.authored))
            | beam.combiners.ToList()
            | "Lateness" >> beam.Map(lateness)
        )


def write_csv(folder: Path, name: str) -> beam.PTransform:
    """Writes rows as one file."""
    return f"Write{name.title()}" >> beam.io.WriteToCsv(
        str(folder), num_shards=1, file_naming=fileio.single_file_naming(name, ".csv")
    )


def leaderboard(pipeline: beam.Pipeline, history: Path, weekly: int = 3, gap: int = 2 * HOUR) -> None:
    """Adds all steps to a pipeline, from reading the history file to writing the result files beside it."""
    folder = history.parent
    commits = pipeline | ReadCommits(history)
    (
        commits
        | TotalOfAuthors()
        | "AuthorRows" >> beam.MapTuple(lambda author, total: AuthorRow(author, *total))
        | write_csv(folder, "authors")
    )
    commits | BestOfWeeks(weekly) | write_csv(folder, "weeks")
    commits | LongestSessions(gap) | write_csv(folder, "sessions")
    (
        commits
        | Lateness()
        | "Json" >> beam.Map(json.dumps)
        | "WriteLateness" >> beam.io.WriteToText(str(folder / "lateness.json"), shard_name_template="")
    )


def prepare(repository: Path | None, history: Path) -> str:
    """Writes the history file and deletes earlier results; returns a name for the history."""
    history.parent.mkdir(parents=True, exist_ok=True)
    # A run without rows writes no file; then a file of an earlier run must not be read.
    for name in TABLES:
        (history.parent / f"{name}.csv").unlink(missing_ok=True)
    chosen = repository or PROJECT
    try:
        shallow = write_history(chosen, history)
    except NoHistory as error:
        if repository:
            raise
        print(f"{error}\nThis is the sample that comes with the example instead.\n")
        write_sample(history)
        return "a sample history"
    name = chosen.resolve().name.removesuffix(".git") or chosen.resolve().parent.name
    return f"{name} (a shallow clone: its oldest commits stand for all before them)" if shallow else name


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repo", type=Path, help="the repository; the project's own if left out")
    parser.add_argument("--output", type=Path, default=Path("out/leaderboard"), help="the folder of results")
    parser.add_argument("--weekly", type=int, default=3, help="how many authors of a week to keep")
    parser.add_argument("--gap_hours", type=float, default=2, help="the pause that ends a session")
    known, rest = parser.parse_known_args(argv)

    history = known.output / "history.txt"
    name = prepare(known.repo, history)
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        leaderboard(pipeline, history, known.weekly, int(known.gap_hours * HOUR))
    show(name, known.output, pipeline.result)


if __name__ == "__main__":
    try:
        run()
    except NoHistory as error:
        sys.exit(str(error))
