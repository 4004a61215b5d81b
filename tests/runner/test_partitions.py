"""Rows that are kept apart in folders: what a task writes, in which order, and what it holds meanwhile."""

from __future__ import annotations

import datetime
import decimal
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.avroio import AvroSink
from penstock.io.csvio import CsvSink
from penstock.io.files.shards import Shards
from penstock.io.formats.partition_folders import (
    escape_value,
    folder_of_value,
    is_lost,
    unescape_value,
    values_of_path,
)
from penstock.io.jsonio import JsonSink
from penstock.io.parquetio import ParquetSink, WriteToParquet, WriteToParquetBatched
from penstock_spark.columns.records import to_plain
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.partition_pages import PartitionPages
from penstock_spark.formats.registry import plan_sink
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.partitions import Partitions, PartitionWriter, RecordsFile
from penstock_spark.sources.partition_values import partition_values

WHERE = "at step 'Write' (game.py:41)"
SCHEMA = pa.schema([("country", pa.string()), ("day", pa.date32()), ("n", pa.int64())])
DAY = datetime.date(2026, 1, 2)


class Folders:
    """Notes what is written where, and how many files are open at a time."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.open = self.most_open = 0

    def __call__(self, folder: str) -> Any:
        assert folder not in self.rows, "a second file in the same folder"
        into = self.rows.setdefault(folder, [])
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        owner = self

        class File:
            def write(self, rows: pa.RecordBatch) -> None:
                into.extend(rows.to_pylist())

            def close(self) -> None:
                owner.open -= 1

        return File()


def writer(folders: Folders, columns: tuple[str, ...] = ("country",), **arguments: Any) -> PartitionWriter:
    return PartitionWriter(Partitions(columns, SCHEMA, folders, WHERE, **arguments), folders)


@given(st.text())
def test_the_name_of_a_folder_tells_every_text_that_is_not_lost(text: str) -> None:
    assert unescape_value(escape_value(text)) == text
    if not is_lost(text):
        name = folder_of_value("a=b/c", text)
        assert "/" not in name
        assert name not in (".", "..")
        assert values_of_path(f"/out/{name}/file", ["a=b/c"]) == [text]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), min_size=1), max_size=6),
    st.sampled_from([1, 200, 1 << 30]),
)
def test_rows_come_back_by_folder_in_their_order_wherever_pages_are_cut(
    batches: list[list[tuple[int, int]]], limit: int
) -> None:
    pages, expected = PartitionPages(limit), {}
    for batch in batches:
        pages.add(pa.RecordBatch.from_pydict({"n": [n for _, n in batch]}), [str(part) for part, _ in batch])
        for part, n in batch:
            expected.setdefault(str(part), []).append(n)
    found = {
        folder: [n for rows in parts for n in rows.column("n").to_pylist()]
        for folder, parts in pages.by_folder()
    }
    assert found == expected


def test_a_task_with_thousands_of_folders_holds_few_rows_and_one_open_file() -> None:
    folders, before = Folders(), pa.total_allocated_bytes()
    pages, most = PartitionPages(limit_bytes=1 << 20), 0
    for number in range(40):
        rows = pa.RecordBatch.from_pydict({"text": [f"{number:05d}" * 50] * 1000})
        pages.add(rows, [str(place) for place in range(1000)])
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 4 << 20, "the rows are ten million bytes"
    assert {folder: sum(rows.num_rows for rows in parts) for folder, parts in pages.by_folder()} == {
        str(place): 40 for place in range(1000)
    }
    write = writer(folders)
    for start in range(0, 6000, 500):
        write.write([{"country": str(n % 3000), "day": DAY, "n": n} for n in range(start, start + 500)])
    write.close()
    assert len(folders.rows) == 3000
    assert folders.rows["country=7"] == [{"day": DAY, "n": 7}, {"day": DAY, "n": 3007}]
    assert folders.most_open == 1


def test_without_elements_nothing_is_opened() -> None:
    folders = Folders()
    write = writer(folders)
    write.write([])
    write.close()
    assert folders.rows == {}


def test_none_and_every_type_that_a_folder_can_hold_have_sparks_names() -> None:
    schema = pa.schema(
        [("t", pa.string()), ("n", pa.int8()), ("b", pa.bool_()), ("d", pa.date32()), ("x", pa.int64())]
    )
    folders = Folders()
    columns = ("t", "n", "b", "d")
    write = PartitionWriter(Partitions(columns, schema, folders, WHERE), folders)
    write.write([{"t": "a/b", "n": -3, "b": False, "d": DAY, "x": 1}, {"x": 2}])
    write.close()
    nothing = "__HIVE_DEFAULT_PARTITION__"
    assert folders.rows == {
        "t=a%2Fb/n=-3/b=false/d=2026-01-02": [{"x": 1}],
        f"t={nothing}/n={nothing}/b={nothing}/d={nothing}": [{"x": 2}],
    }
    values = partition_values(columns, schema, WHERE)
    found = [
        {name: value.as_py() for name, value in values.of_file(f"/o/{each}/f").items()}
        for each in folders.rows
    ]
    assert found == [dict.fromkeys(columns), {"t": "a/b", "n": -3, "b": False, "d": DAY}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an empty string"),
        ("__HIVE_DEFAULT_PARTITION__", "read as None"),
        ("secret" * 50, "too long for the name of a folder"),
    ],
)
def test_a_text_that_no_folder_can_tell_is_refused_and_not_shown(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        writer(Folders()).write([{"country": "DE", "n": 1}, {"country": text, "n": 2}])
    assert WHERE in str(caught.value)
    assert "hint: " in str(caught.value)
    assert "secret" not in str(caught.value)


def test_tables_are_kept_apart_too() -> None:
    folders = Folders()
    write = writer(folders, batched=True)
    table = pa.table({"country": ["DE", "FR"], "day": [DAY, None], "n": [1, 2]})
    write.write([table, table.slice(1), table.slice(0, 0)])
    with pytest.raises(ValueError, match="a table of n has different columns than the schema"):
        write.write([pa.table({"n": [1]})])
    write.close()
    assert folders.rows == {
        "country=DE": [{"day": DAY, "n": 1}],
        "country=FR": [{"day": None, "n": 2}, {"day": None, "n": 2}],
    }


def test_records_of_text_keep_values_that_no_column_has(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, list[Any]] = {}

    class Shard:
        def __init__(self, folder: str) -> None:
            self.records = written.setdefault(folder, [])

        def write(self, values: list[Any]) -> None:
            assert len(values) <= 2
            self.records += values

        def close(self) -> None:
            self.records.append("closed")

    monkeypatch.setattr("penstock_spark.sinks.partitions._VALUES_AT_ONCE", 2)
    open_file = partial(RecordsFile, Shard)
    keys = pa.schema([("country", pa.string()), ("day", pa.date32())])
    partitions = Partitions(("country", "day"), keys, open_file, WHERE, record_of=to_plain)
    write = PartitionWriter(partitions, open_file)
    odd = {"n": 1 << 80, "price": decimal.Decimal("1.50"), "any": {"a": [1, "x"]}}
    write.write(
        [{"country": "DE", "day": DAY, **odd}, {"country": None, "n": 2}, {"more": 1, "country": "DE"}]
    )
    write.write([{"country": "DE", "day": DAY, "n": n} for n in range(3)])
    write.close()
    nothing = "__HIVE_DEFAULT_PARTITION__"
    assert written == {
        "country=DE/day=2026-01-02": [odd, {"n": 0}, {"n": 1}, {"n": 2}, "closed"],
        f"country=DE/day={nothing}": [{"more": 1}, "closed"],
        f"country={nothing}/day={nothing}": [{"n": 2}, "closed"],
    }
    with pytest.raises(TypeError, match="an element of type str has no named fields") as caught:
        write.write([{"country": "DE"}, "secret"])
    assert WHERE in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match="a value of the field country does not fit the type string"):
        write.write([{"country": 3}])


class Visit(NamedTuple):
    country: str
    tags: list[str]
    price: float
    n: int


AVRO: Any = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "country", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}, "default": "b"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "new", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "price", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "mixed", "type": ["int", "string"]},
    ],
}


@pytest.mark.parametrize("column", ["tags", "price"])
@pytest.mark.parametrize("kind", [CsvSink, JsonSink])
def test_a_type_that_no_folder_can_hold_is_refused_for_text_too(kind: Any, column: str) -> None:
    for place in ("/out/o", "file:///out/o"):
        sink = kind(place, columns=Visit._fields, element_type=Visit, partition_by=("country", column))
        with pytest.raises(
            ValueError, match=rf"cannot hold the column '{column}' of partition_by, of type"
        ) as caught:
            plan_sink(sink, WHERE)
        assert WHERE in str(caught.value)
        assert "hint: " in str(caught.value)


class Untyped(NamedTuple):
    country: Any
    n: int


def test_a_column_of_no_known_type_is_refused_where_only_the_type_tells() -> None:
    sink = JsonSink("/o", columns=Untyped._fields, element_type=Untyped, partition_by=("country",))
    with pytest.raises(
        ValueError, match=r"cannot hold the column 'country' of partition_by, of type .*Any"
    ) as caught:
        plan_sink(sink, WHERE)
    assert "hint: give the elements a NamedTuple type" in str(caught.value)


def test_fields_of_avro_become_folders_if_they_can(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro", reason="needs the package fastavro")
    for column in ("tags", "price", "at", "mixed"):
        with pytest.raises(
            ValueError, match=rf"cannot hold the column '{column}' of partition_by, of Avro's"
        ) as caught:
            plan_sink(AvroSink(Shards("/o"), AVRO, partition_by=("country", column)), WHERE)
        assert WHERE in str(caught.value)
    from penstock_connectors.avro.writer import avro_files

    columns = ("day", "country", "kind", "new")
    partitions = avro_files(AvroSink(Shards("/o"), AVRO, partition_by=columns), WHERE).partitions
    assert partitions is not None
    paths: list[str] = []

    def open_in(folder: str) -> Any:
        paths.append(folder)
        return partitions.open_file(str(tmp_path / str(len(paths))))

    write = PartitionWriter(partitions, open_in)
    rest = {
        "tags": ["x"],
        "price": 1.5,
        "at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "mixed": "y",
    }
    write.write(
        [{"day": DAY, "new": True, **rest}, {"day": DAY, "new": True, "country": "DE", "kind": "a", **rest}]
    )
    write.close()
    assert paths == [
        "day=2026-01-02/country=DE/kind=a/new=true",
        "day=2026-01-02/country=__HIVE_DEFAULT_PARTITION__/kind=b/new=true",
    ]
    for number in (1, 2):
        with (tmp_path / str(number)).open("rb") as file:
            assert list(fastavro.reader(file)) == [rest]
    with pytest.raises(TypeError, match="a value of the field new does not fit"):
        write.write([{"day": DAY, "new": "yes", **rest}])


def test_files_of_text_leave_the_columns_of_the_folders_out(tmp_path: Path) -> None:
    from penstock_spark.formats.csv.writer import csv_files
    from penstock_spark.formats.json import json_files

    class Row(NamedTuple):
        team: str
        n: int
        price: decimal.Decimal

    common = {"columns": Row._fields, "element_type": Row, "partition_by": ("team",)}
    rows = [Row("a", 1, decimal.Decimal("1.50")), Row("a", 2, decimal.Decimal("2"))]
    for files, expected in [
        (csv_files(CsvSink("/o", **common), WHERE), "n,price\n1,1.50\n2,2\n"),
        (
            csv_files(CsvSink("/o", options=(("columns", ["team", "price"]),), **common), WHERE),
            "price\n1.50\n2\n",
        ),
        (
            json_files(JsonSink("/o", options=(("lines", True),), **common), WHERE),
            '{"n":1,"price":1.5}\n{"n":2,"price":2.0}\n',
        ),
    ]:
        assert files.partitions is not None
        path = tmp_path / "file"
        opened = partial(files.partitions.open_file, str(path))
        write = PartitionWriter(files.partitions, lambda folder, opened=opened: opened())
        write.write(rows)
        write.close()
        assert path.read_text() == expected
    # A list is one text.
    whole = json_files(JsonSink("/o", options=(("lines", False),), **common), WHERE).partitions
    assert whole is not None
    write = PartitionWriter(whole, lambda folder: whole.open_file(str(path)))
    write.write(rows)
    write.close()
    assert [each["n"] for each in json.loads(path.read_text())] == [1, 2]


@pytest.mark.parametrize(("column", "kind"), [("tags", "list<"), ("price", "double")])
def test_a_column_that_no_folder_can_hold_is_refused_when_it_is_planned(column: str, kind: str) -> None:
    for place in ("/out/o", "file:///out/o"):
        sink = ParquetSink(Shards(place), element_type=Visit, partition_by=("country", column))
        with pytest.raises(
            ValueError, match=rf"cannot hold the column '{column}' of partition_by, of type {kind}"
        ) as caught:
            plan_sink(sink, WHERE)
        assert WHERE in str(caught.value)
        assert "hint: " in str(caught.value)


def test_a_value_that_is_not_of_the_type_is_an_error_that_names_the_file() -> None:
    values = partition_values(["day"], pa.schema([("day", pa.date32())]), WHERE)
    paths = ["/out/day=2026-01-02/f", "/out/day=monday/f"]
    with pytest.raises(ValueError, match=r"the column day of /out/day=monday/f is in the name") as refused:
        values.check(paths)
    assert WHERE in str(refused.value)
    assert "hint: " in str(refused.value)
    rows = pa.RecordBatch.from_pydict({"n": [1]})
    assert values.added(rows, paths[0]).to_pylist() == [{"n": 1, "day": DAY}]
    with pytest.raises(StepFailure) as caught:
        values.added(rows, paths[1])
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert failure.message == str(refused.value)
    with pytest.raises(
        ValueError, match="has the type double, which cannot be read from the names of folders"
    ):
        partition_values(["day"], pa.schema([("day", pa.float64())]), WHERE)
    with pytest.raises(ValueError, match="has the type list"):
        partition_values(["tags"], Visit, WHERE)


def test_names_below_folders_are_those_of_the_levels_only(tmp_path: Path) -> None:
    for name in ("a=1/b=2/o-1", "a=1/b=2/p-1", "a=1/o-1", "a=1/c=2/o-1", "a=2/b=3/o-2", "o-1", "a=3"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = DiskFiles().names_below(str(tmp_path), ["a=", "b=", "o-"])
    assert found == {"a=1/b=2": ["o-1"], "a=2/b=3": ["o-2"]}


def test_files_leave_the_columns_of_the_folders_out(tmp_path: Path) -> None:
    from penstock_spark.formats.parquet.writer import parquet_files

    for transform, values in [
        (
            WriteToParquet("/o", SCHEMA, partition_by="country", codec="gzip"),
            [{"country": "DE", "day": DAY, "n": 1}],
        ),
        (
            WriteToParquetBatched("/o", SCHEMA, partition_by="country", codec="gzip"),
            [pa.table({"country": ["DE"], "day": [DAY], "n": [1]})],
        ),
    ]:
        files: FileSink = parquet_files(transform.sink, WHERE)
        assert files.partitions is not None
        path = str(tmp_path / "file")
        write = PartitionWriter(
            files.partitions, lambda folder, open=files.partitions.open_file, path=path: open(path)
        )
        write.write(values)
        write.close()
        assert pq.ParquetFile(path).read().to_pylist() == [{"day": DAY, "n": 1}]
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "GZIP"
