"""A micro-batch that a table has and the checkpoint has not: no changed program and no file makes it wrong."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.delta import WriteToDelta
from penstock.io.iceberg import WriteToIceberg
from penstock.io.watermarks import BoundedDisorder
from penstock_spark.lowering.batch_writer import BatchWriter

pytest.importorskip("sqlalchemy", reason="needs the package sqlalchemy")
pytest.importorskip("deltalake", reason="needs the package deltalake")
pytest.importorskip("pyiceberg", reason="needs the package pyiceberg")

import deltalake

from tests.connectors.iceberg_tables import TABLE, make_namespace, properties, rows_of
from tests.connectors.scores import pipeline_of

pytestmark = pytest.mark.spark

WINDOW_SECONDS = 10
FILES = 4


class Total(NamedTuple):
    team: str
    second: int
    total: int


class Line(NamedTuple):
    line: str


TOTALS = sorted(Total(team, WINDOW_SECONDS * number, 3) for number in range(FILES) for team in "ab")


def event_time(line: str) -> float:
    return float(line.split(",")[1])


def put_files(source: Path) -> None:
    """Each file has the points of one window."""
    source.mkdir()
    for number in range(FILES):
        start = WINDOW_SECONDS * number
        rows = [f"{team},{start + second},1" for team in "ab" for second in (0, 4, 9)]
        (source / f"{number}.txt").write_text("".join(f"{row}\n" for row in rows))


def total_of(pair: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> Total:
    return Total(pair[0], int(window.start.seconds()), pair[1])


def as_tuples(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


def database(folder: Path) -> tuple[Any, Callable[[], list[tuple[Any, ...]]]]:
    def rows() -> list[tuple[Any, ...]]:
        with sqlite3.connect(folder / "rows.db") as connection:
            return connection.execute("select * from rows").fetchall()

    return WriteToDatabase(f"sqlite:///{folder}/rows.db", "rows", create=True), rows


def delta(folder: Path) -> tuple[Any, Callable[[], list[tuple[Any, ...]]]]:
    path = folder / "delta"
    return WriteToDelta(path), lambda: as_tuples(deltalake.DeltaTable(path).to_pyarrow_table().to_pylist())


def iceberg(folder: Path) -> tuple[Any, Callable[[], list[tuple[Any, ...]]]]:
    make_namespace(folder / "lake")
    return WriteToIceberg(TABLE, properties(folder / "lake")), lambda: as_tuples(rows_of(folder / "lake"))


SINKS = (database, delta, iceberg)


class Tables:
    """A table of a database, a Delta table, an Iceberg table, and files, all with the same rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sinks = {make.__name__: make(folder) for make in SINKS}

    def write(self, rows: Any) -> None:
        for name, (write, _) in self.sinks.items():
            _ = rows | name >> write
        _ = rows | "Lines" >> beam.Map(str) | "Files" >> beam.io.WriteToText(f"{self.folder}/files/part")

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        return {name: sorted(read()) for name, (_, read) in self.sinks.items()}

    def lines(self) -> list[str]:
        files = (self.folder / "files").glob("part*")
        return sorted(line for file in files for line in file.read_text().splitlines())


def run_totals(folder: Path, tables: Tables, delay_seconds: int) -> str:
    pipeline = pipeline_of(folder / "checkpoint")
    policy = BoundedDisorder(delay_seconds)
    read = beam.io.ReadFromText(f"{folder}/source/*.txt").as_stream(
        event_time, policy, max_files_per_batch=1, existing_only=True
    )
    pairs = beam.Map(lambda line: (line[0], int(line.split(",")[2]))).with_output_types(tuple[str, int])
    windows = beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
    totals = pipeline | "Read" >> read | pairs | windows | beam.CombinePerKey(sum)
    tables.write(totals | beam.Map(total_of).with_output_types(Total))
    return str(pipeline.run().wait_until_finish())


def run_lines(folder: Path, write: Callable[[Any], Any]) -> str:
    pipeline = pipeline_of(folder / "checkpoint")
    read = beam.io.ReadFromText(f"{folder}/source/*.txt").as_stream(existing_only=True)
    _ = pipeline | "Read" >> read | beam.Map(Line).with_output_types(Line) | write
    return str(pipeline.run().wait_until_finish())


@pytest.mark.parametrize(("first", "second"), [(0, 30), (10, 0)], ids=["longer", "less long"])
def test_a_program_that_waits_otherwise_after_a_crash_gives_each_pane_once(
    first: int, second: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_files(tmp_path / "source")
    tables = Tables(tmp_path)
    write = BatchWriter._write

    def then_die(self: BatchWriter, frame: Any, batch_id: int, *args: Any) -> None:
        write(self, frame, batch_id, *args)
        if batch_id == 2:
            raise RuntimeError("the machine is gone")

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_write", then_die)
        with pytest.raises(RuntimeError, match="the machine is gone"):
            run_totals(tmp_path, tables, first)
    assert "2" not in [file.name for file in (tmp_path / "checkpoint" / "spark" / "commits").iterdir()]
    with caplog.at_level(logging.WARNING):
        assert run_totals(tmp_path, tables, second) == "DONE"
    assert "the micro-batch 2 is in the sinks" in caplog.text
    assert tables.rows() == dict.fromkeys(("database", "delta", "iceberg"), TOTALS)
    assert tables.lines() == sorted(map(str, TOTALS))


def test_tables_get_nothing_of_a_micro_batch_that_files_cannot_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(tmp_path / "source")
    tables = Tables(tmp_path)
    encode = BatchWriter._encode

    def no_room(self: BatchWriter, sink: Any, batch: Any, pages: Any) -> None:
        if "Files" in sink.step.label and batch.number == 2:
            raise OSError("no space left on device")
        encode(self, sink, batch, pages)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_encode", no_room)
        with pytest.raises(OSError, match="no space left"):
            run_totals(tmp_path, tables, 0)
    before = tables.rows()
    assert 0 < len(before["database"]) < len(TOTALS)
    assert before == dict.fromkeys(before, before["database"])
    # The program is changed, and yields other rows.
    assert run_totals(tmp_path, tables, 30) == "DONE"
    assert tables.rows() == dict.fromkeys(before, TOTALS)


@pytest.mark.parametrize("sink", SINKS)
def test_lines_that_a_file_had_lost_for_a_while_are_in_the_table_in_the_end(
    sink: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(tmp_path / "source")
    file = tmp_path / "source" / "1.txt"
    whole = file.read_text()
    write, rows = sink(tmp_path)
    write_batch = BatchWriter._write

    def shorter(self: BatchWriter, *args: Any) -> None:
        file.write_text(whole.splitlines()[0] + "\n")
        write_batch(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_write", shorter)
        with pytest.raises(OSError, match="was truncated"):
            run_lines(tmp_path, write)
    file.write_text(whole)
    assert run_lines(tmp_path, write) == "DONE"
    lines = [
        line
        for number in range(FILES)
        for line in (tmp_path / "source" / f"{number}.txt").read_text().split()
    ]
    assert sorted(rows()) == sorted((line,) for line in lines)
    # No file is left over of the micro-batch that failed.
    data = list((tmp_path / "delta").glob("*.parquet"))
    assert len(data) == (len(deltalake.DeltaTable(tmp_path / "delta").file_uris()) if data else 0)
