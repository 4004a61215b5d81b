"""A stream that goes on with another number of shards, or another plan, gives what one that is left alone gives."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock_spark import state_rows
from penstock_spark.checkpoints.resharding import Rewriting
from penstock_spark.session.spark_versions import version_of
from tests.spark import kept, lasting
from tests.spark.lasting import Changes

CHANGED = Changes(more_source=True, deeper=True, names_first=False)


@pytest.fixture
def begun(spark: Any, tmp_path: Path) -> dict[str, list[str]]:
    """A program in the middle of its input, with two shards; what it writes in the end."""
    if version_of(spark.version) < (4, 3):
        pytest.skip("a newer Spark has made the checkpoint")
    return kept.unpack(kept.VERSIONS[-1], tmp_path)


def folders(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "checkpoint").glob("spark*"))


def more(source: Path) -> list[str]:
    """Writes the files of a second source."""
    lines = [f"team{number},1,{60 * number},{number}" for number in range(6)]
    for number, line in enumerate(lines):
        (source / f"{number}.more").write_text(f"{line}\n")
    return lines


def dies_in(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the driver die once, when a step of the writing is done."""
    whole = getattr(Rewriting, step)

    def cut(self: Any, *arguments: Any) -> None:
        whole(self, *arguments)
        monkeypatch.setattr(Rewriting, step, whole)
        raise KeyboardInterrupt

    monkeypatch.setattr(Rewriting, step, cut)


@pytest.mark.parametrize(
    "steps",
    [[], pytest.param(["_stage", "_seed", "_renumber", "_copy_logs", "_check"], marks=pytest.mark.soak)],
    ids=["at once", "although its driver dies"],
)
def test_a_program_with_other_shards_levels_and_sources_goes_on(
    steps: list[str],
    begun: dict[str, list[str]],
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = tmp_path / "in"
    lines = more(source)
    before = lasting.plan_in(tmp_path / "checkpoint")
    for step in steps:
        dies_in(step, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            lasting.start(source, tmp_path, 1, CHANGED)
        # Nothing refers to what it has written.
        assert lasting.plan_in(tmp_path / "checkpoint") == before
    lasting.run_until(lasting.start(source, tmp_path, 1, CHANGED), tmp_path, 3)
    # What those that died have left is gone.
    written = f"spark-{2 + len(steps)}"
    assert folders(tmp_path) == ["spark", written]
    # One shard has one operator, with the state of all levels.
    states = tmp_path / "checkpoint" / written / "state"
    assert [each.name for each in states.iterdir() if each.name.isdecimal()] == ["0"]
    levels = lasting.plan_in(tmp_path / "checkpoint")["levels"]
    stored = {(row.level, row.grouping) for row in state_rows(tmp_path / "checkpoint", spark)}
    assert {level for level, _ in stored} >= {1, 2, 3}
    assert all(grouping in levels[level - 1] for level, grouping in stored)
    without_names = Changes(more_source=True, deeper=True, names=False)
    result = lasting.start(source, tmp_path, None, without_names, "--drop_state=Names")
    assert result.wait_until_finish() == "DONE"
    # Without a number, a run has the shards of its checkpoint, and not as many as the machine has processors.
    assert lasting.plan_in(tmp_path / "checkpoint")["shards"] == 1
    assert folders(tmp_path) == [written, f"spark-{3 + len(steps)}"]
    content = lasting.content_of(tmp_path)
    assert content.pop("more") == sorted(lines)
    weekly = content.pop("weekly")
    assert content == begun
    # The new groupings have what the one before them has given since, which is everything.
    teams: Counter[str] = Counter()
    for line in begun["best"]:
        team, points, *_ = line.split()
        teams[team] += int(points)
    assert {(line.split()[0], int(line.split()[1])) for line in weekly} == {*teams.items()}
    assert json.loads((tmp_path / "checkpoint" / "ended.json").read_text())["state"] == "DONE"


@pytest.mark.soak
@pytest.mark.every_spark
def test_the_state_is_divided_anew_as_often_as_one_likes(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    lasting.write_scores(source)
    for shards, last in ((2, 1), (3, 2), (1, 3)):
        lasting.run_until(lasting.start(source, tmp_path, shards), tmp_path, last)
    assert lasting.start(source, tmp_path, 4).wait_until_finish() == "DONE"
    assert lasting.content_of(tmp_path) == kept.expected(kept.VERSIONS[-1])
