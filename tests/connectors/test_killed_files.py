"""Files in folders of partitions, after kills: of a stream that is started again, and of a batch that is."""

from __future__ import annotations

import csv
import importlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock as beam
from penstock.io import WriteToCsv, WriteToParquet
from tests.connectors.scores import FILES, Score, expected_of, put

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

PROGRAM = Path(__file__).with_name("files_program.py")
SOAK_SEEDS = 6
MOMENTS = ("before", "half", "after")


def rows_of(how: str, target: Path) -> list[dict[str, Any]]:
    """The rows that other readers find in the files and in the names of the folders."""
    found = []
    for path in target.glob("team=*/*"):
        team = path.parent.name.partition("=")[2]
        found += [{"team": team, "number": int(row["number"])} for row in READERS[how](path)]
    return sorted(found, key=repr)


def avro_rows(path: Path) -> list[Any]:
    fastavro = pytest.importorskip("fastavro", reason="needs the package fastavro")
    with path.open("rb") as file:
        return list(fastavro.reader(file))


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "parquet": lambda path: pq.ParquetFile(path).read().to_pylist(),
    "orc": lambda path: orc.ORCFile(path).read().to_pylist(),
    "csv": lambda path: list(csv.DictReader(path.read_text().splitlines())),
    "json": lambda path: list(map(json.loads, path.read_text().splitlines())),
    "avro": avro_rows,
}


@pytest.mark.soak
@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("seed", range(SOAK_SEEDS))
def test_a_killed_stream_leaves_each_element_once(
    how: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill of Parquet and of ORC is in every run, in test_killed_lakes.py."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    target.mkdir()
    for number in range(FILES):
        put(source, number)
    chance = random.Random(f"{how} {seed}")
    moments = [(chance.choice([0, 1]), "half"), (chance.choice([3, 4]), chance.choice(MOMENTS))]
    arguments = how, str(source), str(target), str(tmp_path / "checkpoint")
    for number, moment in moments:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *arguments, str(number), moment],
            start_new_session=True,
            capture_output=True,
            timeout=240,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-3000:]
    # The last run saves a start of Spark.
    importlib.import_module("tests.connectors.files_program").build(*arguments).run().wait_until_finish()
    assert rows_of(how, target) == expected_of("append")
    assert {path.name for path in target.iterdir()} == {"team=a", "team=b", "team=c"}


def test_a_batch_that_dies_half_way_is_replaced_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(scores: list[Score]) -> None:
        with beam.Pipeline() as pipeline:
            given = pipeline | beam.Create(scores).with_output_types(Score)
            _ = given | WriteToParquet(f"{tmp_path}/o", partition_by="team", num_shards=1)

    run([Score("a", 1), Score("b", 2)])
    replace, left = os.replace, [1]

    def dying(source: str, target: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyError("dead")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying)
        with pytest.raises(KeyError, match="dead"):
            run([Score("b", 3), Score("c", 4)])
    # Some of the old files and some of the new ones are there, as without partitions.
    assert rows_of("parquet", tmp_path) == [{"team": "a", "number": 1}, {"team": "b", "number": 3}]
    run([Score("b", 3), Score("c", 4)])
    assert rows_of("parquet", tmp_path) == [{"team": "b", "number": 3}, {"team": "c", "number": 4}]


@pytest.mark.parametrize("partition_by", [None, "team"])
def test_a_file_that_has_lost_its_end_does_not_get_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_by: str | None
) -> None:
    """As when the machine of a task goes down before its disk has everything: the file would only seem to be whole."""
    name_files = importlib.import_module("penstock_spark.sinks.files")._name_files

    def shortened(system: Any, written: Any, names: Any, old: Any) -> None:
        os.truncate(written[0].path, os.path.getsize(written[0].path) // 2)
        name_files(system, written, names, old)

    monkeypatch.setattr("penstock_spark.sinks.files._name_files", shortened)
    pipeline = beam.Pipeline()
    given = pipeline | beam.Create([Score("a", 1), Score("b", 2)]).with_output_types(Score)
    _ = given | "Write" >> WriteToCsv(f"{tmp_path}/o", partition_by=partition_by)
    with pytest.raises(Exception, match=r"a task wrote \d+ bytes, but the file has \d+") as caught:
        pipeline.run()
    assert "at step 'Write" in str(caught.value)
    assert not [*tmp_path.glob("**/o-*")]
