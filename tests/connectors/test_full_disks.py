"""Disks that are full under the writers of files, of Delta and Iceberg tables, and of checkpoints."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

import penstock as beam
from penstock.io import ReadFromSource, WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upsert
from penstock_spark.sinks.plan import MicroBatch
from tests.connectors.numbered_files import Files, add, wait_for

FULL = r"(?i)no space left|disk is full"

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, with room for half a megabyte."""
    folder = tmp_path / "full"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def writer(kind: str, folder: Path) -> Any:
    if kind == "text":
        return beam.Map(lambda row: row.name) | beam.io.WriteToText(f"{folder}/out/names")
    if kind == "parquet":
        return beam.io.WriteToParquet(f"{folder}/out/names")
    if kind == "orc":
        return beam.io.WriteToOrc(f"{folder}/out/names")
    schema = pa.schema([("name", pa.string()), ("again", pa.string())])
    upserts = beam.Map(lambda row: Upsert(row.name, row.name))
    if kind.startswith("iceberg"):
        pytest.importorskip("pyiceberg")
        pytest.importorskip("sqlalchemy")
        from penstock.io.iceberg import WriteToIceberg
        from tests.connectors.iceberg_tables import TABLE, make_namespace

        # The catalog has room.
        catalog = {**make_namespace(folder.parent / "lake"), "warehouse": f"file://{folder}/out"}
        if kind == "iceberg changes":
            return upserts | WriteToIceberg(TABLE, catalog, schema=schema, key="name", value="again")
        return WriteToIceberg(TABLE, catalog)
    pytest.importorskip("deltalake")
    from penstock.io.delta import WriteToDelta

    if kind == "changes":
        return upserts | WriteToDelta(f"{folder}/out", schema=schema, key="name", value="again")
    return WriteToDelta(f"{folder}/out")


def fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as stuffing:
        while True:
            stuffing.write(bytes(4096))


def names(count: int) -> list[str]:
    # Nothing makes them smaller.
    return [f"{number * 2654435761 % 2**32:x}" * 4 for number in range(count)]


@pytest.mark.parametrize("kind", ["text", "parquet", "orc", "delta", "changes", "iceberg", "iceberg changes"])
def test_a_full_disk_under_a_batch(full: Path, kind: str) -> None:
    def run(count: int) -> None:
        with beam.Pipeline() as pipeline:
            rows = pipeline | beam.Create(names(count)) | beam.Map(lambda name: beam.Row(name=name))
            _ = rows | "Write" >> writer(kind, full)

    with pytest.raises(Exception, match=FULL) as caught:
        # Iceberg's files are compressed more.
        run(120_000 if kind == "iceberg" else 60_000)
    assert "at step 'Write" in str(caught.value)
    # Another task may still hold its deleted file open when the run has failed.
    until = time.monotonic() + 60
    while True:
        try:
            run(100)
        except Exception as error:
            if time.monotonic() > until or not re.search(FULL, str(error)):
                raise
            time.sleep(0.1)
        else:
            break


@pytest.mark.parametrize("package", ["delta", "iceberg"])
def test_a_full_disk_under_the_commit_of_a_stream_is_left_to_the_runner(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """The runner says what to do. As a failure of the step, it would show penstock's own lines."""
    writer = importlib.import_module(f"penstock_connectors.{package}.writer")
    full_disk = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/scores")
    commit = object.__new__(writer._Commit)
    vars(commit).update(_sink=SimpleNamespace(place="/lake/scores"), _where="at step 'Write' (game.py:9)")
    monkeypatch.setattr(writer, "open_table", lambda *_: None)
    frame = SimpleNamespace(collect=Mock(side_effect=full_disk))
    with pytest.raises(OSError, match="No space left") as caught:
        commit(frame, MicroBatch(3, "a stream"))
    assert caught.value is full_disk


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["checkpoint", "text"])
def test_a_full_disk_under_a_stream(full: Path, tmp_path: Path, kind: str) -> None:
    checkpoint = (full if kind == "checkpoint" else tmp_path) / "checkpoint"
    source = tmp_path / "in"
    source.mkdir()
    into: list[Any] = []

    def run() -> Any:
        options = ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={checkpoint}"]
        pipeline = beam.Pipeline(options=PipelineOptions(options))
        pairs = pipeline | ReadFromSource(Files(source)).as_stream(max_records_per_batch=2)
        _ = pairs | WriteToMemory(into)
        if kind == "text":
            _ = pairs | beam.MapTuple(lambda number, word: word) | beam.io.WriteToText(f"{full}/out/names")
        return pipeline.run()

    add(source, "a", "1 a")
    stream = run()
    wait_for(lambda: len(into) == 1, stream)
    stuffing = full / "stuffing"
    fill(stuffing)
    add(source, "a", "2 b")
    with pytest.raises(Exception, match=FULL):
        stream.wait_until_finish(duration=60_000)
    stuffing.unlink()
    stream = run()
    add(source, "a", "3 c")

    def lines() -> list[str]:
        return sorted(line for file in full.glob("out/names*") for line in file.read_text().splitlines())

    if kind == "text":
        wait_for(lambda: lines() == ["a", "b", "c"], stream)
    else:
        wait_for(lambda: into == [(1, "a"), (2, "b"), (3, "c")], stream)
    stream.cancel()
