"""A file's names and shape change nothing: all ways that read it return the same records, or refuse it alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock_spark.columns.values import to_dicts
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.formats.parquet.records import footer_of
from penstock_spark.formats.parquet.scan import records_of_file
from tests.values.arrow_borders import read_all_parquet, read_content, read_groups, read_names
from tests.values.matrix import as_dict
from tests.values.other_borders import read_orc

PAIR = pa.list_(pa.float32(), 2)


@dataclass(frozen=True)
class Table:
    content: pa.Table
    records: list[dict[str, Any]]
    lacks: str = ""  # Why ORC has no such table.


TABLES = {
    "like names": Table(pa.table({"a": [1], "A": [2]}), [{"a": 1, "A": 2}]),
    "like names in a record": Table(pa.table({"r": [{"x": 1, "X": 2}]}), [{"r": {"x": 1, "X": 2}}]),
    "lists of one length": Table(
        pa.table(
            {
                "top": pa.array([[1.5, 2.5], None, [0.0, 0.0]], PAIR),
                "record": pa.array([{"x": [1.0, 2.0]}, {"x": None}, None], pa.struct([("x", PAIR)])),
                "list": pa.array([[[1.0, 2.0], None], None, []], pa.list_(PAIR)),
            }
        ),
        [
            {"top": [1.5, 2.5], "record": {"x": [1.0, 2.0]}, "list": [[1.0, 2.0], None]},
            {"top": None, "record": {"x": None}, "list": None},
            {"top": [0.0, 0.0], "record": None, "list": []},
        ],
    ),
    # The file itself has integers, and a note of Arrow's types.
    "lists of one length with durations": Table(
        pa.table(
            {
                "list": pa.array([[1, None], None], pa.list_(pa.duration("s"), 2)),
                "single": pa.array([1, None], pa.duration("us")),
                "repeated": pa.array(["a", None]).dictionary_encode(),
            }
        ),
        [
            {"list": [timedelta(seconds=1), None], "single": timedelta(microseconds=1), "repeated": "a"},
            {"list": None, "single": None, "repeated": None},
        ],
        lacks="ORC has no durations",
    ),
    "no columns": Table(pa.table({}), []),
    "no rows": Table(pa.table({"a": pa.array([], pa.int64())}), []),
    "only nulls in a column": Table(
        pa.table({"x": pa.nulls(2), "y": [1, 2]}),
        [{"x": None, "y": 1}, {"x": None, "y": 2}],
        lacks="ORC has no type of nulls",
    ),
}

DOUBLED = {
    "columns": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
    "fields": pa.table({"r": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])}),
}

Read = Callable[[Path], Iterable[Any]]

IN_PROCESS: dict[str, Read] = {
    f"{read.__name__}": lambda place, read=read: read((), place)  # type: ignore[misc]
    for read in (read_all_parquet, read_groups, read_content, read_names, read_orc)
}


def written(table: pa.Table, place: Path, *, as_orc: bool = True) -> Path:
    place.mkdir(exist_ok=True)
    pq.write_table(table, place / "values.parquet")
    if as_orc:
        orc.write_table(table, str(place / "values.orc"))
    return place


def plain(record: Any) -> Any:
    return {
        name: plain(value) if isinstance(value, beam.Row) else value
        for name, value in as_dict(record).items()
    }


@pytest.mark.parametrize("way", IN_PROCESS)
@pytest.mark.parametrize("name", TABLES)
def test_each_way_in_a_process_returns_the_records(name: str, way: str, tmp_path: Path) -> None:
    table = TABLES[name]
    if way == "read_orc" and table.lacks:
        pytest.skip(table.lacks)
    place = written(table.content, tmp_path, as_orc=not table.lacks)
    assert list(map(plain, IN_PROCESS[way](place))) == table.records


@pytest.mark.parametrize("way", ["read_all_parquet", "read_content", "read_orc"])
@pytest.mark.parametrize("name", DOUBLED)
def test_a_doubled_name_is_refused(name: str, way: str, tmp_path: Path) -> None:
    place = written(DOUBLED[name], tmp_path)
    with pytest.raises(ValueError, match="has the columns a twice"):
        list(IN_PROCESS[way](place))


def test_a_column_of_a_type_that_no_reader_has_is_refused(tmp_path: Path) -> None:
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    pq.write_table(pa.table({"key": keys, "a": [1]}), tmp_path / "values.parquet")
    with pytest.raises(
        UnsupportedByRunner, match="the column key has a type that no reader supports: extension"
    ):
        list(read_all_parquet((), tmp_path))
    with (tmp_path / "values.parquet").open("rb") as file:
        assert list(records_of_file(file, "values.parquet", ("a",), False)) == [{"a": 1}]


@pytest.mark.spark
@pytest.mark.parametrize("name", DOUBLED)
def test_a_doubled_name_is_refused_when_the_files_are_opened(name: str, spark: Any, tmp_path: Path) -> None:
    place = written(DOUBLED[name], tmp_path)
    reads = [*ways(place), ("ORC", beam.io.ReadFromOrc(f"{place}/*.orc"))]
    reads += [
        (f"stream of {way}", read.as_stream(existing_only=True)) for way, read in reads if way != "Batched"
    ]
    for way, read in reads:
        pipeline = beam.Pipeline(spark=spark)
        _ = pipeline | way >> read | beam.Map(print)
        with pytest.raises(ValueError, match="has the columns a twice"):
            pipeline.run()


def ways(place: Path) -> Iterable[tuple[str, Any]]:
    """The ways of a batch."""
    files = f"{place}/*.parquet"
    yield "dicts", beam.io.ReadFromParquet(files)
    yield "Hadoop", beam.io.ReadFromParquet(f"file://{files}")
    yield "Batched", beam.io.ReadFromParquetBatched(files)


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_each_way_of_a_pipeline_returns_the_records(mode: str, spark: Any, tmp_path: Path) -> None:
    expected: dict[str, Any] = {}
    found: dict[str, list[Any]] = {}
    pipeline = beam.Pipeline(spark=spark, mode=mode)

    def keep(label: str, records: Any, wanted: list[dict[str, Any]]) -> None:
        found[label], expected[label] = [], wanted
        _ = records | f"Keep {label}" >> beam.io.WriteToMemory(found[label])

    for name, table in TABLES.items():
        place = written(table.content, tmp_path / name.replace(" ", "_"), as_orc=not table.lacks)
        for way, read in ways(place):
            label = f"{name} {way}"
            if mode == "batch":
                records = pipeline | label >> read
                if way == "Batched":
                    records = records | f"Records {label}" >> beam.FlatMap(to_dicts)
                keep(label, records, table.records)
            elif way in ("dicts", "Hadoop") and table.records:
                keep(label, pipeline | label >> read.as_stream(existing_only=True), table.records)
        if mode == "batch" and not table.lacks:
            label = f"{name} ORC"
            keep(label, pipeline | label >> beam.io.ReadFromOrc(f"{place}/*.orc"), table.records)
    if mode == "batch":
        like = f"{tmp_path}/like_names/*.parquet"
        keep("A", pipeline | "A" >> beam.io.ReadFromParquet(like, columns=["A"]), [{"A": 2}])
        paths = pipeline | beam.Create([f"{tmp_path}/*/*.parquet"])
        together = [record for table in TABLES.values() for record in table.records]
        keep("ReadAll", paths | beam.io.ReadAllFromParquet(), together)
    pipeline.run().wait_until_finish()
    assert {label: in_order(map(plain, records)) for label, records in found.items()} == {
        label: in_order(records) for label, records in expected.items()
    }


def in_order(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(records, key=repr)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PAR1 and text", "is not a Parquet file, or it is damaged"),
        (b"PAR1\x15\x15\x15\x15\x04\x00\x00\x00PAR1", "pyarrow cannot read .*: Couldn't deserialize thrift"),
    ],
)
def test_a_file_that_is_damaged_is_told_from_one_that_pyarrow_does_not_read(
    content: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / "values.parquet").write_bytes(content)
    for read in (
        lambda: list(read_all_parquet((), tmp_path)),
        lambda: footer_of(str(tmp_path / "values.parquet"), DiskFiles(), ""),
    ):
        with pytest.raises(ValueError, match=told) as error:
            read()
        assert ("hint: delete it" in str(error.value)) == ("is not a Parquet file" in told)


def test_a_damaged_page_is_told_with_the_reason(tmp_path: Path) -> None:
    place = written(pa.table({"a": list(range(1000))}), tmp_path, as_orc=False)
    content = bytearray((place / "values.parquet").read_bytes())
    content[4:200] = bytes(196)
    (place / "values.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"pyarrow cannot read values\.parquet: \w+") as error:
        list(read_all_parquet((), place))
    assert "delete" not in str(error.value)
