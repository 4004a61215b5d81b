"""The leaderboard against a computation of its own, over a history whose dates are out of order."""

import csv
import json
import random
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "leaderboard.py"
AUTHORS = ['Zoë "Zo", O\'Hara', "林 さん", "ann", "A\x1b[31mnsi", "x" * 60]
GAP = 2 * 3600
START = 1_700_000_000


def git(folder, *arguments, **more):
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, **more
    ).stdout.decode("utf-8", "surrogateescape")


def fast_import(folder, commits):
    """Makes a repository of (author, author time, commit time, {file name: content}), the oldest first."""
    git(folder.parent, "init", "--quiet", "--initial-branch=main", str(folder))
    stream = b""
    for author, authored, committed, files in commits:
        name = author if isinstance(author, bytes) else author.encode()
        stream += b"commit refs/heads/main\nauthor %s <a@b> %d +0900\n" % (name, authored)
        stream += b"committer c <c@d> %d -0330\ndata 1\nm\n" % committed
        for file, content in files.items():
            stream += b'M 644 inline "%s"\ndata %d\n%s\n' % (file.encode(), len(content), content)
    git(folder, "fast-import", "--quiet", input=stream)
    return folder


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A repository of many authors, with work that arrives late, and files that are not text."""
    chance = random.Random(5)
    commits = []
    committed = START
    for number in range(60):
        committed += chance.choice([0, 60, 3_000, GAP, 40_000, 400_000])
        authored = committed - chance.choice([0, 0, 0, 50, 3_600, 90_000, 700_000, -30])
        lines = b"".join(b"%d\n" % chance.randrange(9) for _ in range(chance.randrange(1, 30)))
        files = {f"{chance.randrange(4)} é.txt": lines}
        if number % 7 == 0:
            files["logo.png"] = b"\0%d" % number
        commits.append((chance.choice(AUTHORS), authored, committed, files))
    return fast_import(tmp_path_factory.mktemp("made_up") / "repository", commits)


def told_by_git(repository):
    """Each commit by other commands than those of the example: (author, author time, commit time, changes)."""
    for commit in git(repository, "rev-list", "--reverse", "HEAD").split():
        raw = git(repository, "cat-file", "commit", commit)
        author, committer = (
            next(line for line in raw.splitlines() if line.startswith(who)) for who in ("author", "committer")
        )
        name = author.removeprefix("author ").partition(" <")[0].replace("\x1b", "?")
        stat = git(repository, "diff-tree", "--root", "--no-commit-id", "-r", "--numstat", "-M", commit)
        changes = [line.split("\t")[:2] for line in stat.splitlines()]
        yield name, int(author.split()[-2]), int(committer.split()[-2]), changes


def total(commits):
    added = sum(int(plus) for *_, changes in commits for plus, _ in changes if plus != "-")
    removed = sum(int(minus) for *_, changes in commits for _, minus in changes if minus != "-")
    return len(commits), added, removed


def by_author(commits):
    groups = defaultdict(list)
    for commit in commits:
        groups[commit[0]].append(commit)
    return groups


def ranked(commits):
    totals = [(name, *total(some)) for name, some in by_author(commits).items()]
    return sorted(totals, key=lambda row: (-row[1], -row[2] - row[3], row[0]))


def longest_session(commits):
    sessions = []
    for time in sorted(authored for _, authored, _, _ in commits):
        if sessions and time - sessions[-1][-1] < GAP:
            sessions[-1].append(time)
        else:
            sessions.append([time])
    seconds, number, start = max((times[-1] - times[0], len(times), times[0]) for times in sessions)
    return str(seconds), str(number), f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M}"


def rows(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def run(repository, output, *more):
    import_module("leaderboard").run([f"--repo={repository}", f"--output={output}", *more])


def test_the_results_are_those_of_plain_python(made_up, tmp_path, capsys):
    commits = list(told_by_git(made_up))
    run(made_up, tmp_path, "--weekly=2")

    authors = {
        row["author"]: tuple(int(row[name]) for name in ("commits", "added", "removed"))
        for row in rows(tmp_path / "authors.csv")
    }
    assert authors == {name: tuple(numbers) for name, *numbers in ranked(commits)}
    files = Counter(
        {name: sum(len(changes) for *_, changes in some) for name, some in by_author(commits).items()}
    )
    assert {row["author"]: int(row["files"]) for row in rows(tmp_path / "authors.csv")} == files

    weeks = defaultdict(list)
    for commit in commits:
        day = datetime.fromtimestamp(commit[1], UTC)
        weeks[f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"].append(commit)
    expected = [
        (monday, str(number), *map(str, row))
        for monday, some in sorted(weeks.items())
        for number, row in enumerate(ranked(some)[:2], 1)
    ]
    assert sorted(tuple(row.values()) for row in rows(tmp_path / "weeks.csv")) == expected

    sessions = {
        row["author"]: (row["seconds"], row["commits"], row["start"])
        for row in rows(tmp_path / "sessions.csv")
    }
    assert sessions == {name: longest_session(some) for name, some in by_author(commits).items()}
    check_what_is_printed(capsys.readouterr().out, commits, expected)
    check_lateness(json.loads((tmp_path / "lateness.json").read_text()), commits)
    assert (tmp_path / "unreadable.txt").read_text() == ""


def check_what_is_printed(printed, commits, weeks):
    lines = printed.splitlines()
    assert lines[0] == "Leaderboard of repository: 60 commits by 5 authors"
    for number, (name, *numbers) in enumerate(ranked(commits), 1):
        cells = lines[2 + number].split()
        assert cells[:2] == [str(number), name[:27] + "…" if len(name) > 28 else name.split()[0]]
        assert [f"{value:,}" in cells for value in numbers] == [True] * 3
    monday, _, name, count, *_ = [week for week in weeks if week[1] == "1"][-1]
    assert any(
        line.split()[:1] == [monday] and f"{name[:27]}" in line and f" {count}" in line for line in lines
    )
    mean = statistics.fmean(committed - authored for _, authored, committed, _ in commits)
    assert f"mean {mean / 86_400:,.1f} days, maximum 8.1 days" in printed


def check_lateness(found, commits):
    delays = sorted(committed - authored for _, authored, committed, _ in commits)
    late = [
        commit
        for commit in commits
        if any(other[2] < commit[2] and other[1] > commit[1] for other in commits)
    ]
    assert late
    assert found == {
        "commits": 60,
        "median_seconds": statistics.median_low(delays),
        "nine_in_ten_seconds": delays[53],
        "out_of_order": len(late),
    }


def test_records_that_make_no_sense_are_kept_counted_and_left_out(tmp_path, capsys):
    day = {"a": b"x\n"}
    strange = [
        ("eve", START, START, day),
        ("two\x1ffields", START, START, {"a": b"y\n"}),
        ("year 11000", 285_000_000_000, START, {"a": b"z\n"}),
        (b"Ren\xe9", START, START + 5, {"a": b"v\n"}),
    ]
    run(fast_import(tmp_path / "strange", strange), tmp_path / "out")
    assert {row["author"] for row in rows(tmp_path / "out" / "authors.csv")} == {"eve", "Ren\ufffd"}
    letters = (tmp_path / "out" / "unreadable.txt").read_text(encoding="utf-8").splitlines()
    assert len(letters) == 2
    assert all(letter.startswith("ValueError(") for letter in letters)
    assert "\n2 records could not be read" in capsys.readouterr().out


def test_a_history_without_any_readable_commit_gives_empty_tables(tmp_path, capsys):
    run(fast_import(tmp_path / "strange", [("a\x1fb", START, START, {"a": b"x\n"})]), tmp_path / "out")
    printed = capsys.readouterr().out
    assert printed.startswith("Leaderboard of strange: 0 commits by 0 authors\n\n1 record could not be read")
    assert rows(tmp_path / "out" / "weeks.csv") == []


def test_a_bare_and_shallow_clone_of_one_commit_will_do(made_up, tmp_path, capsys):
    clone = tmp_path / "clone.git"
    git(tmp_path, "clone", "--quiet", "--bare", "--depth=1", made_up.as_uri(), str(clone))
    run(clone, tmp_path / "out")
    printed = capsys.readouterr().out
    assert printed.startswith("Leaderboard of clone (a shallow clone")
    assert ": 1 commit by 1 author\n" in printed
    assert "0.0% of the commits arrived out of order" in printed


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: git(folder, "init", "--quiet"), "the repository has no commits yet"),
        (lambda folder: None, "Git cannot read the history: not a git repository"),
        (lambda folder: folder.rmdir(), "Git cannot read the history: cannot change to"),
    ],
    ids=["no commits", "no repository", "no folder"],
)
def test_without_a_history_there_is_an_error_of_three_parts(prepare, message, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    prepare(folder)
    with pytest.raises(import_module("leaderboard").NoHistory) as raised:
        run(folder, tmp_path / "out")
    what, where, hint = str(raised.value).splitlines()
    assert what.startswith(message)
    assert where == f"  in {folder}"
    assert hint.startswith("  hint: ")


def test_without_git_the_error_says_so_and_the_default_is_a_sample(tmp_path, monkeypatch, capsys):
    leaderboard = import_module("leaderboard")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(leaderboard.NoHistory, match=r"there is no git command\n  .*\n  hint: install Git"):
        leaderboard.prepare(tmp_path, tmp_path / "history.txt")
    assert leaderboard.prepare(None, tmp_path / "history.txt") == "a sample history"
    assert "the sample that comes with the example" in capsys.readouterr().out
    records = (tmp_path / "history.txt").read_bytes().split(b"\x1e")[1:]
    assert len({leaderboard.parse(record) for record in records}) == 149


def test_the_program_prints_its_tables_and_nothing_else(made_up, tmp_path, monkeypatch, capfd):
    """That the start of a program prints nothing, test_printing_examples.py says."""
    monkeypatch.chdir(tmp_path)
    import_module("leaderboard").run(["--repo", str(made_up)])
    printed, told = capfd.readouterr()
    assert told == ""
    assert printed.startswith("Leaderboard of repository: 60 commits by 5 authors\n")
    assert printed.endswith(
        "Everything is in out/leaderboard: authors.csv, weeks.csv, sessions.csv, lateness.json\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    refused = subprocess.run(
        [sys.executable, str(PROGRAM), "--repo", "nowhere"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
