"""The questions in SQL against answers in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from importlib import import_module

MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
WEEK = timedelta(days=7)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]


def test_the_answers_are_those_of_plain_python(spark, capsys):
    module = import_module("history_sql")
    module.run([])
    parts = capsys.readouterr().out.split("\n\n")
    tables = [[cells(line) for line in part.strip().splitlines()[3:-1]] for part in parts[:3]]
    commits = module.commits_of(None)
    assert len(commits) == 149

    counts = Counter(commit.author for commit in commits)
    growth: Counter[str] = Counter()
    for commit in commits:
        growth[commit.author] += commit.added - commit.removed
    most = sorted(counts, key=lambda author: (-counts[author], author))[:3]
    assert tables[0] == [[author, str(counts[author]), str(growth[author])] for author in most]

    weeks = Counter((commit.author, MONDAY + (commit.written - MONDAY) // WEEK * WEEK) for commit in commits)
    busiest = {
        author: min((-count, week) for (name, week), count in weeks.items() if name == author)
        for author in counts
    }
    first = sorted(busiest, key=lambda author: (busiest[author][0], author))[:3]
    assert tables[1] == [[author, str(busiest[author][1]), str(-busiest[author][0])] for author in first]

    files = defaultdict(list)
    for commit in commits:
        files[commit.author].append(commit.files)
    means = {author: sum(some) / len(some) for author, some in files.items()}
    mean = sum(commit.files for commit in commits) / len(commits)
    above = sorted((author for author in means if means[author] > mean), key=lambda author: -means[author])[
        :3
    ]
    assert tables[2] == [[author, str(means[author])] for author in above]

    assert [line[0] for line in parts[3].strip().splitlines()[1:]].count("+") == 4
