"""Asks questions in SQL about the history of a Git repository: who works when, and how the totals grew.

Each commit is a row. The first three queries are tables. The last one is a stream of changes: it shows the number
of commits of each week as it grew, with the rows that it undid, since commits do not arrive in the order in which they
were written.

    python examples/history_sql.py --repo path/to/repository
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import penstock as beam
from _git_history import RECORD, write_history, write_sample
from leaderboard import parse
from penstock.io import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.sql.console import format_change, format_table
from penstock.transforms.sql import Catalog, SqlTransform

CHANGES_SHOWN = 8


class Commit(NamedTuple):
    """A commit, as queries see it."""

    author: str
    written: datetime
    files: int
    added: int
    removed: int


CATALOG = Catalog()
CATALOG.create_view(
    "weeks",
    """SELECT window_start AS week, author, COUNT(*) AS commits, SUM(added) AS added
    FROM TUMBLE(TABLE commits, DESCRIPTOR(written), INTERVAL '7' DAYS, INTERVAL '4' DAYS)
    GROUP BY window_start, window_end, author""",
)

QUERIES = {
    "the most active authors": """SELECT author, COUNT(*) AS commits, SUM(added - removed) AS growth FROM commits
        GROUP BY author ORDER BY commits DESC, author LIMIT 3""",
    "the busiest week of each of them": """SELECT author, week, commits FROM weeks
        QUALIFY ROW_NUMBER() OVER (PARTITION BY author ORDER BY commits DESC, week) = 1
        ORDER BY commits DESC, author LIMIT 3""",
    "authors who change more files than others": """SELECT author, AVG(files) AS files FROM commits
        GROUP BY author HAVING AVG(files) > (SELECT AVG(files) FROM commits) ORDER BY files DESC, author LIMIT 3""",
    "the first changes of the weeks": """SELECT STREAM week, SUM(commits) AS commits, Sys.Undo FROM weeks
        GROUP BY week HAVING SUM(commits) <= 2""",
}


def commits_of(repository: Path | None) -> list[Commit]:
    """The commits of a repository, or of an invented project, in the order of arrival."""
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "history.txt"
        if repository is None:
            write_sample(history)
        else:
            write_history(repository, history)
        records = history.read_bytes().split(RECORD.encode())[1:]
    parsed = []
    for record in records:
        try:
            commit = parse(record)
        except ValueError:
            continue  # The leaderboard says which records these are.
        written = datetime.fromtimestamp(commit.authored, UTC)
        parsed.append(Commit(commit.author, written, commit.files, commit.added, commit.removed))
    return parsed


def run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, help="a Git repository; by default an invented history")
    known, rest = parser.parse_known_args(arguments)
    commits = commits_of(known.repo)
    for title, query in QUERIES.items():
        rows: list[object] = []
        with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
            history = pipeline | beam.Create(commits).with_output_types(Commit)
            transform = SqlTransform(query, CATALOG)
            _ = {"commits": history} | transform | WriteToMemory(rows)
        print(f"\n{title}:")
        for line in (
            map(format_change, rows[:CHANGES_SHOWN])
            if "STREAM" in query
            else format_table(rows, transform.order or ())
        ):
            print(line)


if __name__ == "__main__":
    run()
