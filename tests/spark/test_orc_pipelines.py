"""ORC files in whole pipelines: what fails, what is read of several files, and streams."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import ReadAllFromOrc, ReadFromOrc, ReadFromText, WriteToOrc
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import TimestampedValue
from tests.spark.schemes import SCHEMES

DAY = datetime.date(2026, 1, 2)


class Visit(NamedTuple):
    country: str | None
    day: datetime.date | None
    at: datetime.datetime
    pages: list[str]


def visit(number: int) -> Visit:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, number, datetime.UTC)
    return Visit([None, "DE", "a/b"][number % 3], DAY if number % 2 else None, at, ["p"] * (number % 4))


VISITS = [visit(number) for number in range(60)]


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def put(path: Path, columns: dict[str, Any], **arguments: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    orc.write_table(pa.table(columns), path, **arguments)


def write(values: list[Visit], transform: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(values).with_output_types(Visit) | "WriteThem" >> transform


def read(transform: Any) -> list[Any]:
    into: list[Any] = []
    with beam.Pipeline() as pipeline:
        _ = pipeline | "ReadIt" >> transform | beam.io.WriteToMemory(into)
    return into


@SCHEMES
def test_a_damaged_file_is_an_error_of_the_step_that_reads_it(tmp_path: Path, scheme: str) -> None:
    put(tmp_path / "whole.orc", {"n": list(range(3000)), "t": ["secret"] * 3000}, compression="zlib")
    data = (tmp_path / "whole.orc").read_bytes()
    hidden = data[:3] + bytes(len(data) // 2) + data[3 + len(data) // 2 :]
    for name, content in {"text": b"no ORC, but text", "cut": data[:-9], "hidden": hidden}.items():
        (tmp_path / f"{name}.orc").write_bytes(content)
        for pattern in (f"{name}.orc", "*.orc"):
            with pytest.raises(Exception, match=rf"{name}.orc") as caught:
                read(ReadFromOrc(f"{scheme}{tmp_path}/{pattern}"))
            assert "at step 'ReadIt' (test_orc_pipelines.py:" in str(caught.value)
            assert "hint: " in str(caught.value)
            assert "secret" not in str(caught.value)
        (tmp_path / f"{name}.orc").unlink()
    with pytest.raises(OSError, match="No files found"):
        read(ReadFromOrc(f"{scheme}{tmp_path}/none*"))
    assert read(ReadFromOrc(f"{scheme}{tmp_path}/none*", validate=False)) == []


def test_a_file_that_changes_between_its_footer_and_its_records_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_spark.formats.orc import scan

    put(tmp_path / "a.orc", {"n": list(range(10))})
    survey = scan._survey

    def changing(*arguments: Any) -> Any:
        found = survey(*arguments)
        put(tmp_path / "a.orc", {"n": list(range(1000))})
        return found

    pipeline = beam.Pipeline()
    _ = pipeline | "ReadIt" >> ReadFromOrc(f"{tmp_path}/a.orc") | beam.Map(len)
    monkeypatch.setattr(scan, "_survey", changing)
    with pytest.raises(OSError, match=r"a.orc cannot be read: it changed") as caught:
        pipeline.run()
    assert "ReadIt" in str(caught.value)


@SCHEMES
def test_files_with_other_columns_give_none_for_what_they_lack(tmp_path: Path, scheme: str) -> None:
    put(tmp_path / "1.orc", {"n": [1, 2], "s": [{"x": 1}, None]})
    put(tmp_path / "2.orc", {"z": ["u"], "n": [3]})
    put(tmp_path / "3.orc", {"n": pa.array([], pa.int64())})
    place = f"{scheme}{tmp_path}/*.orc"
    with beam.Pipeline() as pipeline:
        whole = pipeline | "Whole" >> ReadFromOrc(place)
        expected = [
            {"n": 1, "s": {"x": 1}, "z": None},
            {"n": 2, "s": None, "z": None},
            {"n": 3, "s": None, "z": "u"},
        ]
        assert_that(whole, equal_to(expected), "whole")
        some = pipeline | "Some" >> ReadFromOrc(place, columns=["z"])
        assert_that(some, equal_to([{"z": None}, {"z": None}, {"z": "u"}]), "some")
        rows = pipeline | "Rows" >> ReadFromOrc(place, as_rows=True)
        assert_that(
            rows | beam.Map(lambda row: (row.n, row.s.x if row.s else None)),
            equal_to([(1, 1), (2, None), (3, None)]),
            "rows",
        )
        files = pipeline | beam.Create([str(tmp_path / "1.orc")])
        pairs = files | ReadAllFromOrc(with_filename=True, columns=["n"])
        names = pairs | beam.MapTuple(lambda name, row: (Path(name).name, row["n"]))
        assert_that(names, equal_to([("1.orc", 1), ("1.orc", 2)]), "names")
    with pytest.raises(ValueError, match=r"the files have no columns q\n.*ReadIt.*\n.*they have n, s, z"):
        read(ReadFromOrc(place, columns=["q"]))


def test_the_types_of_the_rows_are_known_while_the_pipeline_is_built(tmp_path: Path) -> None:
    write(VISITS, WriteToOrc(f"{tmp_path}/o"))
    rows = beam.Pipeline() | ReadFromOrc(f"{tmp_path}/o*", as_rows=True)
    assert list(dict(rows.element_type._fields)) == list(Visit._fields)
    assert "datetime.datetime" in str(dict(rows.element_type._fields)["at"])
    with pytest.raises(Exception, match="did you mean 'country'"):
        rows | beam.Select("contry")


def test_what_is_written_has_the_names_of_other_files_and_replaces_an_earlier_run(tmp_path: Path) -> None:
    write(VISITS, WriteToOrc(f"{tmp_path}/o", file_name_suffix=".orc", num_shards=3, codec="snappy"))
    write(VISITS[:9], WriteToOrc(f"{tmp_path}/o", file_name_suffix=".orc", num_shards=2, codec="snappy"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"o-0000{n}-of-00002.orc" for n in range(2)]
    back = read(ReadFromOrc(f"{tmp_path}/o*"))
    assert sorted((Visit(**row) for row in back), key=repr) == sorted(VISITS[:9], key=repr)
    assert all(orc.ORCFile(path).compression == "SNAPPY" for path in tmp_path.iterdir())
    write([], WriteToOrc(f"{tmp_path}/o", file_name_suffix=".orc"))
    [none] = tmp_path.iterdir()
    assert orc.ORCFile(none).schema.names == list(Visit._fields)


def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write(VISITS[:1], WriteToOrc(f"{tmp_path}/o"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    wrong = VISITS[0]._replace(pages=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a value of the field pages does not fit") as caught:
        write([*VISITS, wrong], WriteToOrc(f"{tmp_path}/o"))
    assert "at step 'WriteThem' (test_orc_pipelines.py:" in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_spark_reads_what_is_written_and_what_spark_writes_is_read(
    tmp_path: Path, spark: SparkSession
) -> None:
    schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32())])
    at = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)
    rows = [{"n": 1, "at": at, "day": DAY}, {"n": None, "at": None, "day": None}]
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(rows) | WriteToOrc(f"{tmp_path}/ours/o", schema, codec="zstd")
    found = spark.read.orc(str(tmp_path / "ours")).toArrow().to_pylist()
    assert sorted(found, key=repr) == sorted(rows, key=repr)
    values = [(1, "x", [1, None], True), (None, None, None, None)]
    frame = spark.createDataFrame(values, "n long, s string, l array<int>, b boolean")
    frame.write.orc(str(tmp_path / "theirs"))
    back = read(ReadFromOrc(f"{tmp_path}/theirs/*.orc"))
    assert sorted(map(repr, back)) == sorted(repr(row.asDict()) for row in frame.collect())


@SCHEMES
def test_columns_of_folders_come_back_with_their_types(tmp_path: Path, scheme: str) -> None:
    parts = ("country", "day")
    write(VISITS, WriteToOrc(f"{tmp_path}/o", partition_by=parts))
    nothing = "__HIVE_DEFAULT_PARTITION__"
    assert {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("o*")} == {
        f"country={country}/day={day}" for country in (nothing, "DE", "a%2Fb") for day in (nothing, str(DAY))
    }
    place = f"{scheme}{tmp_path}"
    back = read(ReadFromOrc(place, partition_by=parts, schema=Visit))
    assert sorted((Visit(**row) for row in back), key=repr) == sorted(VISITS, key=repr)
    only = read(ReadFromOrc(f"{place}/o*", partition_by=parts, columns=["day"]))
    assert sorted(only, key=repr) == sorted(
        ({"day": None if each.day is None else str(each.day)} for each in VISITS), key=repr
    )
    wrong = pa.schema([("country", pa.string()), ("day", pa.int64())])
    with pytest.raises(ValueError, match=r"the column day of .* has no value of the type int64 there"):
        read(ReadFromOrc(place, partition_by=parts, schema=wrong))


def run_stream(tmp_path: Path, transform: Any, mode: str = "streaming") -> None:
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", f"--mode={mode}", "--shuffle_partitions=2"]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        transform(pipeline)


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_a_stream_reads_files_that_arrive_and_writes_each_record_once(tmp_path: Path, mode: str) -> None:
    source, out = tmp_path / "in", tmp_path / "out"

    def copy(pipeline: beam.Pipeline) -> None:
        found = ReadFromOrc(f"{source}/*.orc", as_rows=True).as_stream(
            max_files_per_batch=1, existing_only=True
        )
        rows = pipeline | found | beam.Map(lambda row: Visit(*row)).with_output_types(Visit)
        _ = rows | WriteToOrc(f"{out}/o", file_name_suffix=".orc", codec="lz4")

    source.mkdir()
    for number, visits in enumerate([VISITS[:20], VISITS[20:]]):
        write(visits, WriteToOrc(f"{source}/{number}", file_name_suffix=".orc", num_shards=2))
        for _ in range(2):
            # The second time, nothing is new.
            run_stream(tmp_path, copy, mode)
    back = read(ReadFromOrc(f"{out}/*.orc"))
    assert sorted((Visit(**row) for row in back), key=repr) == sorted(VISITS, key=repr)
    assert {path.name.partition("-0")[0] for path in out.glob("*.orc")} == {"o-batch"}


def test_damaged_files_of_a_stream_are_rejects_or_errors(tmp_path: Path) -> None:
    source = tmp_path / "in"
    put(source / "a.orc", {"n": [1]})

    def rejecting(pipeline: beam.Pipeline) -> None:
        rows, rejected = pipeline | ReadFromOrc(f"{source}/*.orc").as_stream(rejects=True, existing_only=True)
        _ = rows | "Rows" >> beam.io.WriteToMemory(good)
        _ = rejected | "Bad" >> beam.io.WriteToMemory(bad)

    good: list[Any] = []
    bad: list[Any] = []
    run_stream(tmp_path, rejecting)
    (source / "b.orc").write_bytes(b"no ORC, but text")
    run_stream(tmp_path, rejecting)
    assert good == [{"n": 1}]
    reason = "the file is not an ORC file, or it is damaged"
    assert [(each.source, each.reason, each.record) for each in bad] == [(f"{source}/b.orc", reason, "")]
    once: list[Any] = []
    with beam.Pipeline() as pipeline:
        rows, rejected = pipeline | ReadFromOrc(f"{source}/*.orc", rejects=True)
        _ = rows | "Rows" >> beam.io.WriteToMemory(once)
        _ = rejected | "Bad" >> beam.io.WriteToMemory(once)
    assert sorted(once, key=len) == [{"n": 1}, *bad]


def test_a_stream_of_an_empty_folder_needs_the_names_of_columns(tmp_path: Path) -> None:
    source, into = tmp_path / "in", []
    source.mkdir()
    with pytest.raises(ValueError, match="no file there has any yet") as caught:
        run_stream(
            tmp_path,
            lambda p: (
                p | "ReadIt" >> ReadFromOrc(f"{source}/*.orc").as_stream(existing_only=True) | beam.Map(len)
            ),
        )
    assert "columns=[...]" in str(caught.value)

    def named(pipeline: beam.Pipeline) -> None:
        rows = pipeline | ReadFromOrc(f"{source}/*.orc", columns=["n"]).as_stream(existing_only=True)
        _ = rows | beam.io.WriteToMemory(into)

    run_stream(tmp_path / "named", named)
    put(source / "a.orc", {"m": [1], "n": [2]})
    run_stream(tmp_path / "named", named)
    assert into == [{"n": 2}]


def test_files_of_windows_are_written_and_their_names_are_elements(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])
    with TestPipeline(mode="streaming") as pipeline:
        stream = TestStream().add_elements([TimestampedValue({"n": n}, n) for n in (1, 2, 70)])
        names = pipeline | stream | WriteToOrc(f"{tmp_path}/o", schema, triggering_frequency=60)
        counts = names | beam.Map(lambda name: orc.ORCFile(name).nrows)
        assert_that(counts, equal_to([2, 1]))


def test_lines_of_text_become_orc_in_a_stream_with_folders(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.txt").write_text("DE,1\nFR,2\nDE,3\n")
    schema = pa.schema([("country", pa.string()), ("n", pa.int64())])

    def pipe(pipeline: beam.Pipeline) -> None:
        lines = pipeline | ReadFromText(f"{source}/*.txt").as_stream(existing_only=True)
        rows = lines | beam.Map(lambda line: {"country": line[:2], "n": int(line[3:])})
        _ = rows | WriteToOrc(f"{out}/o", schema, partition_by="country")

    for _ in range(2):
        run_stream(tmp_path, pipe)
    back = read(ReadFromOrc(str(out), partition_by="country"))
    assert sorted(back, key=repr) == [
        {"n": 1, "country": "DE"},
        {"n": 2, "country": "FR"},
        {"n": 3, "country": "DE"},
    ]
