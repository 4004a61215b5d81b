"""A table that follows another one through its changes, from one end to the other."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.delta import ReadChangesFromDelta
from penstock.options.pipeline_options import PipelineOptions

deltalake = pytest.importorskip("deltalake", reason="needs the package deltalake")
pytest.importorskip("sqlalchemy", reason="needs the package sqlalchemy")


class Score(NamedTuple):
    team: str
    points: int | None


def change(path: Path, random: Random, commits: int) -> None:
    """Commits that merge and delete some rows."""
    for _ in range(commits):
        teams = random.sample("abcdefgh", 3)
        table = deltalake.DeltaTable(str(path))
        if random.random() < 0.3:
            table.delete(f"team = '{teams[0]}'")
            continue
        points = pa.array([random.choice([None, random.randrange(100)]) for _ in teams], pa.int64())
        updates = table.merge(
            pa.table({"team": teams, "points": points}), "old.team = new.team", "new", "old"
        )
        updates.when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.spark
def test_a_database_follows_a_delta_table(spark: object, tmp_path: Path) -> None:
    path, database = tmp_path / "scores", tmp_path / "mirror.db"
    start = pa.table({"team": ["a", "b"], "points": pa.array([1, None], pa.int64())})
    deltalake.write_deltalake(str(path), start, configuration={"delta.enableChangeDataFeed": "true"})
    random = Random(7)
    for commits in (0, 5, 5):
        change(path, random, commits)
        flags = ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={tmp_path}/checkpoint"]
        with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
            changes = pipeline | ReadChangesFromDelta(path).as_stream(
                max_records_per_batch=5, existing_only=True
            )
            _ = changes | WriteToDatabase(
                f"sqlite:///{database}", "scores", mode="upsert", key="team", create=True, schema=Score
            )
        with sqlite3.connect(database) as connection:
            found = connection.execute("select * from scores").fetchall()
        wanted = deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist()
        assert sorted(found) == sorted((row["team"], row["points"]) for row in wanted)
