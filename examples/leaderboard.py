"""A leaderboard over the history of a Git repository: data whose order of arrival is not that of its events.

A commit happens when its author writes it (the author date) and arrives when it enters the history (the
commit date): minutes later, or months, after a review or a rebase. The history is read in the order of
arrival, and all results are by the time at which the work was done:

  authors.csv      the commits and changed lines of each author, as `git shortlog -sn` counts them
  weeks.csv        the authors with the most commits of each week, Monday to Sunday, in UTC
  sessions.csv     the longest stretch of work of each author: commits with less than two hours between them
  lateness.json    how long after they were written commits arrived, and how many of them out of order
  unreadable.txt   the records of the history that make no sense, with the reason
  history.txt      what Git said, which is the input

    python examples/leaderboard.py --repo ../other/repository --output out/other
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import penstock as beam
from leaderboard_report import show
from penstock.error import BeamError
from penstock.io import fileio
from penstock.metrics import Metrics
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampedValue

PROJECT = Path(__file__).resolve().parents[1]
SAMPLE = Path(__file__).resolve().parent / "data" / "history.txt"

RECORD, FIELD = "\x1e", "\x1f"
FORMAT = f"{RECORD}%h{FIELD}%aN{FIELD}%at{FIELD}%ct"
DAY, HOUR = 86_400, 3_600
MONDAY = 4 * DAY  # 1 January 1970, where windows without an offset begin, was a Thursday.

LATENESS = Metrics.distribution("leaderboard", "lateness_seconds")
UNREADABLE = Metrics.counter("leaderboard", "unreadable")


class NoHistory(BeamError):
    """There is no history to make a leaderboard of."""


class Commit(NamedTuple):
    """A commit: by whom, when written and when committed (seconds since 1970), and what it changed."""

    author: str
    authored: int
    committed: int
    files: int
    added: int
    removed: int


class Total(NamedTuple):
    """What some commits are together."""

    commits: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0


class Session(NamedTuple):
    """A stretch of work; the longest is the greatest, and of those the one with the most commits."""

    seconds: int
    commits: int
    start: int


# ------------------------------------------------------------------------------------- the pipeline's functions


def parse(record: bytes) -> Commit:
    r"""The commit of a record of the history: its header, then a line for each changed file.

    >>> parse(b"f00\x1fAnn\x1f1700000000\x1f1700000060\n\n3\t1\ta.py\n-\t-\tlogo.png\n")
    Commit(author='Ann', authored=1700000000, committed=1700000060, files=2, added=3, removed=1)
    """
    header, *changes = record.decode("utf-8", "replace").strip("\n").split("\n")
    _, author, authored, committed = header.split(FIELD)
    counts = [change.split("\t")[:2] for change in changes if change]
    # Git writes a dash instead of a number of lines for a file that is not text.
    added, removed = (sum(int(count) for count in side if count != "-") for side in zip(*counts)) if counts else (0, 0)
    return Commit(printable(author), int(authored), int(committed), len(counts), added, removed)


def printable(name: str) -> str:
    r"""A name that a terminal can show as it is.

    >>> printable("Zoë\x1b[31m O’Hara ")
    'Zoë?[31m O’Hara'
    """
    return "".join(character if character.isprintable() else "?" for character in name).strip() or "?"


def at_author_date(commit: Commit) -> TimestampedValue:
    """The commit at the time when it was written; notes how much later it arrived."""
    LATENESS.update(commit.committed - commit.authored)
    return TimestampedValue(commit, commit.authored)


def dead_letter(record: bytes, failure) -> str:
    """A record that cannot be read, on one line with the reason; counts it."""
    UNREADABLE.inc()
    _, error, _ = failure
    return f"{error}\t{record!r}"


class Sum(beam.CombineFn):
    """From commits to their `Total`."""

    def create_accumulator(self) -> Total:
        return Total()

    def add_input(self, total: Total, commit: Commit) -> Total:
        return Total(
            total.commits + 1,
            total.files + commit.files,
            total.added + commit.added,
            total.removed + commit.removed,
        )

    def merge_accumulators(self, totals) -> Total:
        return Total(*map(sum, zip(*totals)))

    def extract_output(self, total: Total) -> Total:
        return total
