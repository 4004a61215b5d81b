"""Delta tables by version: what is added as a stream, and changes, beside what deltalake says of them."""

from __future__ import annotations

import datetime
import decimal
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.custom.ranges import RangeSource
from penstock.io.delta import ReadChangesFromDelta, ReadFromDelta
from penstock.io.each_batch import ForEachBatch, WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.utils.windowed_value import ValueKind
from tests.connectors.s3_server import options_of, s3_server

deltalake = pytest.importorskip("deltalake", reason="needs the package deltalake")

FEED = {"delta.enableChangeDataFeed": "true"}


def add(path: Path, *numbers: int, **arguments: Any) -> None:
    rows = pa.table({"n": pa.array(numbers, pa.int64())})
    deltalake.write_deltalake(str(path), rows, mode="append", **arguments)


def added(path: Path, **arguments: Any) -> RangeSource[Any]:
    from penstock_connectors.delta.stream import AddedRows

    return AddedRows(ReadFromDelta(path).as_stream(**arguments).source.source, "at step 'Read'")


def changed(path: Path, *arguments: Any, **named: Any) -> RangeSource[Any]:
    from penstock_connectors.delta.stream import ChangedRows

    return ChangedRows(ReadChangesFromDelta(path, *arguments, **named).source, "at step 'Read'")


def between(source: RangeSource[Any], start: Any, end: Any) -> list[Any]:
    ranges = source.ranges(start, end, 2)
    assert [piece.start for piece in ranges] == sorted({piece.start for piece in ranges})
    return [element for piece in ranges for part in source.read(piece) for element in part]


def everything(source: RangeSource[Any], limit: int | None = None) -> list[list[Any]]:
    """The rows that each micro-batch reads until there is nothing more."""
    start = source.first_position()
    batches = []
    while (end := source.last_position(start, limit)) != start:
        batches.append(between(source, start, end))
        start = end
    return batches


def numbers(batches: list[list[Any]]) -> list[list[int]]:
    return [sorted(row["n"] for row in batch) for batch in batches]


# Rows that are added.


def test_a_stream_that_may_lose_or_repeat_rows_stops_instead(tmp_path: Path) -> None:
    add(tmp_path, 1, 2)
    source = added(tmp_path)
    start = source.last_position(source.first_position(), None)
    table = deltalake.DeltaTable(str(tmp_path))
    table.delete("n = 1")
    with pytest.raises(ValueError, match=f"version 1 of the Delta table {tmp_path} removes or changes rows"):
        source.last_position(start, None)
    add(tmp_path, 3)
    assert numbers(everything(added(tmp_path, starting_version=1, skip_change_commits=True))) == [[3]]
    assert numbers(everything(added(tmp_path))) == [[2, 3]], "the newest rows need no history"
    # The log is cleaned up to version 3.
    add(tmp_path, 4)
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    for version in (0, 1, 2):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(LookupError, match="version 1 is no longer in the log"):
        source.last_position(start, None)
    with pytest.raises(LookupError, match="version 1 is no longer in the log"):
        source.ranges(start, {**start, "version": 3}, 2)
    with pytest.raises(LookupError, match="version 1 is no longer in the log"):
        added(tmp_path, starting_version=1).first_position()


def test_a_table_that_goes_or_comes_again_or_changes_its_columns_stops_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "table"
    add(path, 1)
    add(path, 2)
    source = added(path)
    start = source.last_position(source.first_position(), None)
    deltalake.DeltaTable(str(path)).alter.set_table_properties(FEED)
    start = source.last_position(start, None)
    assert start["version"] == 3, "properties are nothing to stop for"
    rows = pa.table({"n": [3], "team": ["a"]})
    deltalake.write_deltalake(str(path), rows, mode="append", schema_mode="merge")
    with pytest.raises(ValueError, match="version 3 has changed the columns") as caught:
        source.last_position(start, None)
    assert "start the pipeline again" in str(caught.value)
    again = added(path)
    assert between(again, start, again.last_position(start, None)) == [{"n": 3, "team": "a"}]
    assert everything(added(path, starting_version=1))[0][0] == {"n": 2, "team": None}
    shutil.rmtree(path)
    with pytest.raises(LookupError, match="no longer has a log"):
        source.last_position(start, None)
    add(path, 1)
    with pytest.raises(LookupError, match="ends with version 0, but it was read up to version 2"):
        source.last_position(start, None)
    with pytest.raises(ValueError, match="is not the same as before"):
        added(path).last_position(start, None)


@pytest.mark.parametrize("open_source", [added, changed])
@pytest.mark.parametrize("later", [0, 1, 3])
def test_a_table_that_comes_again_with_as_many_versions_stops_a_stream_that_runs(
    tmp_path: Path, open_source: Any, later: int
) -> None:
    add(tmp_path, 1, configuration=FEED)
    add(tmp_path, 2)
    source = open_source(tmp_path)
    end = source.last_position(source.first_position(), None)
    assert source.last_position(end, None) == end
    add(tmp_path, 3)
    after = source.last_position(end, None)
    assert len(between(source, end, after)) == 1
    shutil.rmtree(tmp_path)
    for number in range(3 + later):
        add(tmp_path, number, configuration=FEED)
    for _ in range(2):
        with pytest.raises(ValueError, match="is not the same as before: it was deleted and created again"):
            source.last_position(after, None)


def test_a_log_whose_files_were_copied_or_cleaned_is_the_same(tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path, number)
    source = added(tmp_path)
    end = source.last_position(source.first_position(), None)
    for file in (tmp_path / "_delta_log").iterdir():
        file.touch()
    assert source.last_position(end, None) == end
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    add(tmp_path, 3)
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    assert numbers([between(source, end, source.last_position(end, None))]) == [[3]]


def test_versions_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no Delta table"):
        added(tmp_path / "none")
    add(tmp_path, 1)
    for source in (added(tmp_path, starting_version=7),):
        with pytest.raises(ValueError, match="has no version 7"):
            source.first_position()
    assert everything(added(tmp_path, starting_version=1)) == []
    assert everything(added(tmp_path, starting_version="latest")) == []
    with pytest.raises(ValueError, match="does not record its changes in version 0"):
        changed(tmp_path, 0)


def test_files_that_a_reader_must_not_read_as_they_are_are_refused(tmp_path: Path) -> None:
    add(tmp_path, 1)
    source = added(tmp_path, starting_version=0)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    text = log.read_text()
    log.write_text(
        text.replace('"dataChange":true', '"dataChange":true,"deletionVector":{"storageType":"u"}')
    )
    with pytest.raises(UnsupportedByRunner, match="marks rows of a file as deleted"):
        everything(source)
    log.write_text(text.replace('"path":"', '"path":"s3://other/'))
    with pytest.raises(UnsupportedByRunner, match="outside of its folder"):
        everything(source)
    log.write_text(text)
    [data] = tmp_path.glob("*.parquet")
    data.unlink()
    with pytest.raises(OSError, match=r"the file .* cannot be read"):
        everything(source)


def test_the_present_rows_come_first_and_then_each_version_within_the_limit(tmp_path: Path) -> None:
    for number in range(4):
        add(tmp_path, number * 10, number * 10 + 1)
    assert [len(batch) for batch in everything(added(tmp_path), 3)] == [2, 2, 2, 2]
    assert sorted(chain(*numbers(everything(added(tmp_path), 5)))) == [0, 1, 10, 11, 20, 21, 30, 31]
    assert numbers(everything(added(tmp_path, starting_version=2), 2)) == [[20, 21], [30, 31]]
    assert numbers(everything(added(tmp_path, starting_version=2), 1)) == [[20, 21], [30, 31]]
    source = added(tmp_path)
    start = source.last_position(source.first_position(), 3)
    deltalake.DeltaTable(str(tmp_path)).optimize.compact()
    add(tmp_path, 40)
    end = source.last_position(start, None)
    rows = between(source, start, end)
    assert rows == between(added(tmp_path), start, end), "the same rows after a restart"
    assert len(rows) == 7, "what only moves rows is nothing new"
    old = ReadFromDelta(tmp_path, version=1).as_stream().source.source
    from penstock_connectors.delta.stream import AddedRows

    assert numbers(everything(AddedRows(old, "")))[0] == [0, 1, 10, 11, 20, 21, 30, 31, 40]


def test_partitions_of_all_types_come_from_the_log(tmp_path: Path) -> None:
    values = {
        "text": ["ü/=% x", None],
        "day": [datetime.date(2026, 1, 2), None],
        "truth": [True, None],
        "price": [decimal.Decimal("1.50"), None],
        "at": [datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.UTC), None],
        "whole": [-7, None],
    }
    types = [pa.string(), pa.date32(), pa.bool_(), pa.decimal128(9, 2), pa.timestamp("us", "UTC"), pa.int32()]
    schema = pa.schema([*zip(values, types, strict=True), ("n", pa.int64())])
    rows = pa.table({**values, "n": [1, 2]}, schema=schema)
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=list(values))
    expected = sorted(rows.to_pylist(), key=repr)
    for start in (None, 0):
        [batch] = everything(added(tmp_path, starting_version=start))
        assert sorted(batch, key=repr) == expected


@pytest.mark.soak
def test_the_log_on_s3_is_read_as_it_grows() -> None:
    with s3_server() as address:
        options = options_of(address)
        path = "s3://lake/added"
        rows = pa.table({"n": [1], "p": ["ü x"]})
        deltalake.write_deltalake(path, rows, storage_options=options, partition_by=["p"])
        from penstock_connectors.delta.stream import AddedRows

        source = AddedRows(ReadFromDelta(path, storage_options=options).as_stream().source.source, "")
        start = source.last_position(source.first_position(), None)
        assert source.last_position(start, None) == start
        deltalake.write_deltalake(path, rows, mode="append", storage_options=options)
        assert between(source, start, source.last_position(start, None)) == rows.to_pylist()


# Changes.


def of_deltalake(path: Path, first: int, last: int | None = None) -> list[tuple[Any, dict[str, Any]]]:
    """The changes by deltalake's own reader, without versions and times."""
    from penstock_connectors.delta.stream import _KINDS

    found = pa.table(deltalake.DeltaTable(str(path)).load_cdf(first, last)).to_pylist()
    rows = [{name: value for name, value in row.items() if name[0] != "_"} for row in found]
    return sorted(zip((_KINDS[row["_change_type"]] for row in found), rows, strict=True), key=repr)


def change_much(path: Path, text: str = "ab") -> None:
    rows = pa.table({"n": [1, 2, 3, 4], "p": [text, "c", text, None]})
    deltalake.write_deltalake(str(path), rows, partition_by=["p"], configuration=FEED)
    table = deltalake.DeltaTable(str(path))
    table.update(updates={"n": "n + 10"}, predicate="n <= 2")
    table.delete("n = 3")
    new = pa.table({"n": [4, 9], "p": [None, "c"]})
    merge = table.merge(new, "s.n = t.n", "s", "t")
    merge.when_matched_update({"p": "'z'"}).when_not_matched_insert_all().execute()
    table.optimize.compact()
    deltalake.write_deltalake(str(path), pa.table({"n": [5], "p": ["c"]}), mode="append")
    table.delete("p = 'z'")


def test_changes_are_those_that_deltalake_reads(tmp_path: Path) -> None:
    change_much(tmp_path)
    for arguments in [(0,), (1,), (2, 3), (6, 6)]:
        read = chain(*everything(changed(tmp_path, *arguments)))
        assert sorted(read, key=repr) == of_deltalake(tmp_path, *arguments)
    kinds = [[int(kind) for kind, _ in batch] for batch in everything(changed(tmp_path, 1), 1)]
    assert [sorted(set(batch)) for batch in kinds] == [[1, 2], [3], [0, 1, 2], [0], [3]], (
        "a version stays whole"
    )
    assert kinds[0] == [1, 1, 2, 2], "what goes comes before what comes"
    assert len(everything(changed(tmp_path, 0))) == 1


def test_what_remains_after_all_changes_is_the_table(tmp_path: Path) -> None:
    # deltalake's own reader does not find the files of such a partition.
    change_much(tmp_path, "ü/=% x")
    left: list[Any] = []
    for batch in everything(changed(tmp_path, 0), 1):
        for kind, row in batch:
            if kind.is_retraction:
                left.remove(row)
            else:
                left.append(row)
    own = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert sorted(left, key=repr) == sorted(own, key=repr)


def test_an_overwritten_table_gives_the_rows_that_go_and_come(tmp_path: Path) -> None:
    add(tmp_path, 1, 2, configuration=FEED)
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [3]}), mode="overwrite")
    [changes] = everything(changed(tmp_path, 1))
    assert [kind for kind, _ in changes] == [ValueKind.DELETE, ValueKind.DELETE, ValueKind.INSERT]
    assert sorted(changes, key=repr) == of_deltalake(tmp_path, 1)
    [rows] = everything(changed(tmp_path))
    assert rows == [(ValueKind.INSERT, {"n": 3})], "without a version, the present rows come first"


def test_a_table_that_stops_to_record_its_changes_stops_the_stream(tmp_path: Path) -> None:
    add(tmp_path, 1)
    table = deltalake.DeltaTable(str(tmp_path))
    table.alter.set_table_properties(FEED)
    add(tmp_path, 2)
    with pytest.raises(ValueError, match="does not record its changes in version 0"):
        changed(tmp_path, 0)
    source = changed(tmp_path, 1)
    assert everything(source) == [[(ValueKind.INSERT, {"n": 2})]]
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    table.delete("n = 1")
    for stopped in (source, changed(tmp_path, 1)):
        with pytest.raises(ValueError, match="does not record its changes in version 3"):
            everything(stopped)
    with pytest.raises(ValueError, match="has no version 9"):
        changed(tmp_path, 1, 9)
    with pytest.raises(ValueError, match="has no columns z"):
        changed(tmp_path, 1, columns=["z"])


# On Spark.


@pytest.mark.spark
def test_a_batch_of_changes_and_a_stream_that_starts_again(spark: Any, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    change_much(path)
    with beam.Pipeline() as pipeline:
        changes = pipeline | ReadChangesFromDelta(path, 1, 3)
        assert_that(changes, equal_to(of_deltalake(path, 1, 3)))
    batches: list[list[Any]] = []
    flags = [f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=2"]

    def run() -> None:
        with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
            read = ReadFromDelta(path, columns=["n"], storage_options={"aws_secret_access_key": "hush-hush"})
            stream = read.as_stream(max_records_per_batch=1, existing_only=True)
            _ = pipeline | stream | ForEachBatch(lambda elements, number: batches.append(elements))

    run()
    present = sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table().column("n").to_pylist())
    assert sorted(row["n"] for batch in batches for row in batch) == present
    assert len(batches) >= 2
    batches.clear()
    deltalake.write_deltalake(str(path), pa.table({"n": [70, 71], "p": ["q", "q"]}), mode="append")
    run()
    assert [sorted(row["n"] for row in batch) for batch in batches] == [[70, 71]]
    kept = [file.read_bytes() for file in checkpoint.rglob("*") if file.is_file()]
    assert any(b'"version": 8' in content or b'"version":8' in content for content in kept)
    assert not any(b"hush-hush" in content for content in kept)


@pytest.mark.spark
@pytest.mark.soak
def test_a_stream_names_its_step_when_rows_are_removed(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1, 2)
    deltalake.DeltaTable(str(tmp_path)).delete("n = 1")
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming"]))
    _ = pipeline | "Rows" >> ReadFromDelta(tmp_path).as_stream(starting_version=0) | WriteToMemory([])
    with pytest.raises(Exception, match="removes or changes rows") as caught:
        pipeline.run().wait_until_finish()
    assert "Rows" in str(caught.value)


@pytest.mark.spark
@pytest.mark.soak
def test_a_stream_of_changes_follows_the_table(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    change_much(path)
    seen: list[Any] = []
    with beam.Pipeline(options=PipelineOptions(["--mode=streaming"])) as pipeline:
        _ = pipeline | ReadChangesFromDelta(path, 0).as_stream(existing_only=True) | WriteToMemory(seen)
    assert sorted(seen, key=repr) == of_deltalake(path, 0)
