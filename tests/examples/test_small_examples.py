"""The examples that read and write files, and the one of the paper."""

import csv
import doctest
from collections import Counter, defaultdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name", sorted(path.stem for folder in (EXAMPLES, EXAMPLES / "cookbook") for path in folder.glob("*.py"))
)
def test_what_the_docstrings_of_an_example_say_is_true(name):
    module = import_module(name)
    assert module.__doc__
    assert hasattr(module, "run") != name.startswith("_"), "an example runs, and its helpers do not"
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_wordcount_prints_and_writes_what_counting_by_hand_gives(tmp_path, capsys):
    wordcount = import_module("wordcount")
    text = "The cat\u2019s hat; the CAT'S hat -- the well-known 12 hats.\n\nDas Maß, das Maß!\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "b.txt").write_text("the end", encoding="utf-8")
    wordcount.run([f"--input={tmp_path}/?.txt", f"--output={tmp_path}/out/counts", "--top=3"])
    assert capsys.readouterr().out.splitlines() == ["       4  the", "       2  das", "       2  hat"]
    lines = [
        line
        for file in tmp_path.glob("out/counts-*.tsv")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    rest = {"cat\u2019s": 1, "cat's": 1, "well-known": 1, "hats": 1, "maß": 2, "end": 1}
    assert dict(line.split("\t") for line in lines) == {
        word: str(count) for word, count in {"the": 4, "das": 2, "hat": 2, **rest}.items()
    }


def test_expand_prefixes_gives_the_numbers_of_the_paper():
    expand_prefixes = import_module("expand_prefixes")
    with TestPipeline() as p:
        pairs = p | beam.Create(expand_prefixes.parse("fix=1,fit=2"))
        expanded = pairs | "Alone" >> beam.ParDo(expand_prefixes.ExpandPrefixes())
        assert_that(
            expanded,
            equal_to([("f", 1), ("fi", 1), ("fix", 1), ("f", 2), ("fi", 2), ("fit", 2)]),
            label="prefixes",
        )
        assert_that(
            expand_prefixes.values_by_prefix(pairs),
            equal_to([("f", [1, 2]), ("fi", [1, 2]), ("fix", [1]), ("fit", [2])]),
            label="values",
        )


def scores_of(file):
    """The readable lines of a file of scores, read without the example's help."""
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if len(row) == 4 and row[2].isdigit():
                yield row[0], row[1], int(row[2]), datetime.fromtimestamp(int(row[3]) / 1000, UTC)


def test_user_score_sums_up_what_can_be_read_and_counts_the_rest(tmp_path, capsys):
    user_score = import_module("user_score")
    user_score.run([f"--output={tmp_path}"])
    expected = Counter()
    for player, _, points, _ in scores_of(user_score.SCORES):
        expected[player] += points
    *printed, bad = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed] == [[str(sum_), name] for name, sum_ in expected.most_common()]
    assert bad.startswith("3 lines could not be read")
    letters = (tmp_path / "bad_lines.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(letter.split("\t")[0] for letter in letters) == [
        "kim,RedKite,4",
        "mei,BlueHeron,twelve,1447704000000",
        "this line is not a score",
    ]


def test_hourly_team_score_counts_points_in_the_hour_in_which_they_were_won(tmp_path):
    hourly_team_score = import_module("hourly_team_score")
    start, stop = "2015-11-16T19:30", "2015-11-16T22:00"
    hourly_team_score.run([f"--output={tmp_path}", f"--start={start}", f"--stop={stop}"])
    expected = defaultdict(int)
    late = 0
    newest = datetime.min.replace(tzinfo=UTC)
    for _, team, points, when in scores_of(import_module("user_score").SCORES):
        late += when < newest
        newest = max(newest, when)
        if start <= f"{when:%Y-%m-%dT%H:%M}" < stop:
            expected[f"{when:%Y-%m-%d %H}:00,{team}"] += points
    assert late > 0, "the data are to arrive out of order"
    lines = (tmp_path / "totals.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"{hour},{points}" for hour, points in expected.items())


def test_live_scores_says_of_each_hour_what_is_so_on_time(capfd):
    live_scores = import_module("live_scores")
    live_scores.run(["--shuffle_partitions=2"])
    lines = [line for line in capfd.readouterr().out.splitlines() if line and "Streaming" not in line]
    assert [line for line in lines if line.startswith("no score: ")] == [
        "no score: mei,BlueHeron,twelve,1447704000000",
        "no score: this line is not a score",
        "no score: kim,RedKite,4",
    ]
    in_the_end = {tuple(line.split()[:2]): int(line.split()[2]) for line in lines if line[0].isdigit()}
    expected = Counter()
    for line in Path(EXAMPLES / "data" / "scores.csv").read_text(encoding="utf-8").splitlines():
        try:
            score = import_module("user_score").parse(line)
        except ValueError:
            continue
        hour = datetime.fromtimestamp(score.seconds // 3600 * 3600, UTC)
        expected[f"{hour:%H:%M}", score.team] += score.points
    assert in_the_end == expected
    assert {line.split(maxsplit=3)[3] for line in lines if line[0].isdigit()} == {"early", "on time"}
