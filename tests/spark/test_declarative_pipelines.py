"""Flows of Spark Declarative Pipelines that penstock computes, with the command of PySpark's wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from penstock_spark.session.java import find_java, wrap_java

pytestmark = pytest.mark.soak

_EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"
_CHANGES = '''
"""A table with one row for each team that has points, which AUTO CDC keeps."""

from typing import NamedTuple

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import from_dataframe, to_streaming_dataframe
from penstock.relations.upserts import Upserts

spark = SparkSession.active()


class Team(NamedTuple):
    team: str
    points: int | None
    is_deleted: bool


changes_of_teams = to_streaming_dataframe(
    beam.Pipeline(spark=spark)
    | from_dataframe(spark.readStream.schema("team string, points bigint").json("SCORES"))
    | beam.Map(lambda row: (row.team, row.points)).with_output_types(tuple[str, int])
    | Upserts()
    | beam.Map(lambda each: Team(*each)).with_output_types(Team),
    sequence="sequence",
)


@dp.temporary_view
def changes():
    return changes_of_teams


dp.create_streaming_table("teams")
dp.create_auto_cdc_flow(
    target="teams",
    source="changes",
    keys=["team"],
    sequence_by="sequence",
    apply_as_deletes="is_deleted",
    except_column_list=["sequence", "is_deleted"],
    stored_as_scd_type=1,
)
'''


def _project(folder: Path) -> None:
    shutil.copytree(_EXAMPLE, folder, dirs_exist_ok=True)
    spec = folder / "spark-pipeline.yml"
    text = spec.read_text()
    assert "file:///tmp/scores" in text
    spec.write_text(text.replace("file:///tmp/scores", (folder / "storage").as_uri()))


def _command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    pyspark = pytest.importorskip("pyspark")
    environment = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "JAVA_HOME": wrap_java(find_java()) or "",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # The command's own Connect server then takes a free port.
        "SPARK_TESTING": "1",
    }
    command = Path(sys.executable).with_name("spark-pipelines")
    hive = ("--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false")
    return subprocess.run(
        [command, *words, *hive],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=900,
    )


def _totals(folder: Path) -> list[tuple[str, int, int]]:
    files = sorted((folder / "spark-warehouse" / "totals").glob("*.parquet"))
    rows = [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]
    return sorted((row["team"], row["start"] - 1767225600, row["points"]) for row in rows)


def test_an_append_flow_of_the_example_continues_in_the_next_run(tmp_path: Path) -> None:
    pytest.importorskip("grpc_status")
    _project(tmp_path)
    first = _command(tmp_path, "run")
    assert first.returncode == 0, first.stdout
    assert _totals(tmp_path) == [("red", 0, 3)]
    later = '{"team": "red", "points": 7, "at": "2026-01-01T00:09:00Z"}\n'
    (tmp_path / "scores" / "1.json").write_text(later)
    second = _command(tmp_path, "run")
    assert second.returncode == 0, second.stdout
    assert _totals(tmp_path) == [("blue", 120, 5), ("red", 0, 3)]


def test_changes_of_keys_are_the_source_of_an_auto_cdc_flow(tmp_path: Path) -> None:
    pytest.importorskip("grpc_status")
    _project(tmp_path)
    scores = (tmp_path / "scores").as_uri()
    (tmp_path / "definitions" / "changes.py").write_text(_CHANGES.replace("SCORES", scores))
    dry = _command(tmp_path, "dry-run")
    assert dry.returncode == 0, dry.stdout
    assert "Run is COMPLETED" in dry.stdout
