"""Parquet files in folders of partitions, in whole pipelines: what is refused, what fails, and what is read back."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock import field
from penstock.io import ReadFromParquet, ReadFromParquetBatched, WriteToParquet, WriteToParquetBatched
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.value_provider import RuntimeValueProvider
from penstock.testing.util import assert_that, equal_to
from tests.spark.schemes import SCHEMES

DAY = datetime.date(2026, 1, 2)


class Visit(NamedTuple):
    country: str | None
    year: int
    day: datetime.date | None
    new: bool
    name: str


VISITS = [
    Visit("DE", 2026, DAY, True, "a"),
    Visit("a/b = 100%", 7, None, False, "b"),
    Visit("007", -1, datetime.date(1, 2, 3), True, "c"),
    Visit(None, 2026, DAY, False, "d"),
    Visit("DE", 2026, DAY, True, "e"),
]
PARTS = ("country", "year", "day", "new")


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def write(values: list[Any], transform: Any, kind: Any = Visit) -> None:
    with beam.Pipeline() as pipeline:
        create = beam.Create(values)
        _ = pipeline | (create.with_output_types(kind) if kind else create) | "WriteThem" >> transform


def folders(place: Path) -> set[str]:
    """The folders that have files, without what is hidden."""
    return {str(path.parent.relative_to(place)) for path in place.rglob("o-*")}


def read(transform: Any) -> list[Any]:
    into: list[Any] = []
    with beam.Pipeline() as pipeline:
        _ = pipeline | transform | beam.io.WriteToMemory(into)
    return into


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("contry", "partition_by has the column 'contry', which the elements lack"),
        (["country", "year", "day", "new", "name"], "partition_by has all columns"),
    ],
)
def test_columns_that_do_not_fit_are_refused_when_the_write_is_applied(parts: Any, words: str) -> None:
    schema = pa.schema([(name, pa.string()) for name in Visit._fields])
    for transform, kind in [
        (WriteToParquet("/out/o", partition_by=parts), Visit),
        (WriteToParquet("/out/o", schema, partition_by=parts), dict),
        (WriteToParquetBatched("/out/o", schema, partition_by=parts), pa.Table),
    ]:
        given = beam.Pipeline() | beam.Create([]).with_output_types(kind)
        with pytest.raises(ValueError, match=words) as caught:
            given | "WriteThem" >> transform
        assert "at step 'WriteThem' (test_partitioned_parquet.py:" in str(caught.value)
        assert "hint: " in str(caught.value)


def test_arguments_that_cannot_work_are_refused_where_they_stand() -> None:
    twins = pa.schema([("team", pa.string()), ("Team", pa.string()), ("n", pa.int64())])
    option = RuntimeValueProvider("path", str, None)
    for make, kind, words in [
        (lambda: WriteToParquet("/o", partition_by=["a", "a"]), ValueError, "each once"),
        (lambda: WriteToParquet("/o", partition_by=[1]), TypeError, "the name of a column"),
        (lambda: WriteToParquet("/o", partition_by=""), ValueError, "an empty name"),
        (lambda: ReadFromParquet("/o", schema=Visit), ValueError, "which is missing"),
        (lambda: ReadFromParquet("/o", partition_by="dya", schema=Visit), ValueError, "no column 'dya'"),
        (lambda: ReadFromParquet("/o", partition_by="day", schema=3), TypeError, "or a type of rows"),
        (lambda: ReadFromParquet("/o*/p", partition_by="day"), ValueError, "has wildcards"),
        (lambda: ReadFromParquet(option, partition_by="day"), ValueError, "is not yet known"),
    ]:
        with pytest.raises(kind, match=words) as caught:
            make()  # type: ignore[no-untyped-call]
        assert "at test_partitioned_parquet.py:" in str(caught.value)
        assert "hint: " in str(caught.value)
    given = beam.Pipeline() | beam.Create([])
    with pytest.raises(ValueError, match="the name of another column differs only in case"):
        given | WriteToParquet("/o", twins, partition_by="team")
    with pytest.raises(ValueError, match="partition_by needs the columns of the elements"):
        given | WriteToParquetBatched("/o", partition_by="team")


@pytest.mark.parametrize("mode", ["batch", "micro_batch", "streaming"])
def test_a_type_that_no_folder_can_hold_is_refused_before_anything_starts(mode: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.txt").write_text("a\n")

    def effect(line: str) -> dict[str, Any]:
        (tmp_path / "started").write_text("")
        return {"tags": [line], "n": 1}

    schema = pa.schema([("tags", pa.list_(pa.string())), ("n", pa.int64())])
    pipeline = beam.Pipeline(options=PipelineOptions([f"--mode={mode}"]))
    lines = beam.io.ReadFromText(f"{source}/*.txt")
    lines = lines if mode == "batch" else lines.as_stream(existing_only=True)
    rows = pipeline | lines | beam.Map(effect)
    _ = rows | "WriteThem" >> WriteToParquet(str(tmp_path / "out/o"), schema, partition_by="tags")
    with pytest.raises(ValueError, match="cannot hold the column 'tags' of partition_by") as caught:
        pipeline.run().wait_until_finish()
    assert "at step 'WriteThem' (test_partitioned_parquet.py:" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@SCHEMES
def test_a_text_that_would_be_read_as_none_fails_and_leaves_what_was_there(
    tmp_path: Path, scheme: str
) -> None:
    transform = WriteToParquet(f"{scheme}{tmp_path}/o", partition_by="country")
    write(VISITS[:1], transform)
    before = folders(tmp_path)
    for text in ("", "__HIVE_DEFAULT_PARTITION__"):
        with pytest.raises(ValueError, match="which readers would read as None") as caught:
            write([*VISITS, VISITS[0]._replace(country=text)], transform)
        assert "WriteThem" in str(caught.value)
        assert folders(tmp_path) == before == {"country=DE"}
        assert [path.name for path in tmp_path.iterdir()] == ["country=DE"]


@SCHEMES
def test_a_run_replaces_the_files_of_a_run_before_in_all_folders_and_no_others(
    tmp_path: Path, scheme: str
) -> None:
    def names() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}

    transform = WriteToParquet(f"{scheme}{tmp_path}/o", partition_by="country", num_shards=1)
    write([VISITS[0], VISITS[2]], transform)
    (tmp_path / "country=DE" / "o-notes").write_text("mine")
    (tmp_path / "o-00000-of-00001").write_text("mine")
    kept = {"country=DE/o-notes", "o-00000-of-00001"}
    write([VISITS[3], VISITS[2]], transform)
    assert names() == kept | {
        "country=007/o-00000-of-00001",
        "country=__HIVE_DEFAULT_PARTITION__/o-00000-of-00001",
    }
    write([], transform)
    assert names() == kept
    with pytest.raises(OSError, match=r"No files found based on the file pattern .*country=\*/p\*"):
        read(ReadFromParquet(f"{tmp_path}/p*", partition_by="country"))


@SCHEMES
def test_folders_and_values_are_those_of_sparks_own_writer_and_reader(
    tmp_path: Path, spark: SparkSession, scheme: str
) -> None:
    # Each character is written on its own, and a folder of four costs as much as a folder of one.
    texts = ["".join(map(chr, [*b"x", *range(code, min(code + 4, 128)), *b"y"])) for code in range(1, 128, 4)]
    texts += ["é", " ", ".", "a%20b", "007"]
    values = [{"text = 1": text, "n": number} for number, text in enumerate(texts)]
    schema = pa.schema([("text = 1", pa.string()), ("n", pa.int64())])
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write(values, WriteToParquet(f"{scheme}{ours}/o", schema, partition_by="text = 1"), None)
    frame = spark.createDataFrame(values, "`text = 1` string, n long")
    frame.write.partitionBy("text = 1").parquet(str(theirs))
    assert folders(ours) == {path.name for path in theirs.iterdir() if path.is_dir()}
    assert len(folders(ours)) == len(texts)
    found = spark.read.schema("`text = 1` string, n long").parquet(str(ours)).collect()
    assert {row["text = 1"]: row.n for row in found} == {text: n for n, text in enumerate(texts)}
    back = read(ReadFromParquet(f"{scheme}{theirs}", partition_by="text = 1"))
    assert sorted(back, key=lambda row: row["n"]) == values


@SCHEMES
def test_the_columns_come_back_with_their_types(tmp_path: Path, scheme: str) -> None:
    write(VISITS, WriteToParquet(f"{scheme}{tmp_path}/o", partition_by=PARTS))
    assert pq.ParquetFile(next(tmp_path.rglob("o-*"))).schema_arrow.names == ["name"]
    whole = [visit._asdict() for visit in VISITS]
    place = f"{scheme}{tmp_path}"
    kinds = pa.schema(
        [("country", pa.large_string()), ("year", pa.int16()), ("day", pa.date32()), ("new", pa.bool_())]
    )
    texts = [
        {
            name: None if row[name] is None else str(row[name]).replace("F", "f").replace("T", "t")
            for name in PARTS[1:]
        }
        for row in whole
    ]
    with beam.Pipeline() as pipeline:
        for name, transform, expected in [
            ("row type", ReadFromParquet(place, partition_by=PARTS, schema=Visit), whole),
            ("schema", ReadFromParquet(f"{place}/o*", partition_by=PARTS, schema=kinds), whole),
            (
                "columns",
                ReadFromParquet(place, partition_by=PARTS, schema=Visit, columns=["year", "name"]),
                [{"name": row["name"], "year": row["year"]} for row in whole],
            ),
            (
                "only folders",
                ReadFromParquet(place, partition_by=PARTS, schema=Visit, columns=["day"]),
                [{"day": row["day"]} for row in whole],
            ),
            (
                "text",
                ReadFromParquet(place, partition_by=PARTS, columns=["year", "day", "new"]),
                texts,
            ),
        ]:
            assert_that(pipeline | name >> transform, equal_to(expected), f"check {name}")
        rows = pipeline | "Rows" >> ReadFromParquet(place, partition_by=PARTS, schema=Visit, as_rows=True)
        assert_that(
            rows | beam.Map(lambda row: (row.year, row.name)), equal_to([(v.year, v.name) for v in VISITS])
        )
        tables = pipeline | "Tables" >> ReadFromParquetBatched(place, partition_by=PARTS, schema=Visit)
        flat = tables | beam.FlatMap(lambda table: table.to_pylist())
        assert_that(flat, equal_to(whole), "tables")


def test_the_types_of_the_rows_are_known_while_the_pipeline_is_built(tmp_path: Path) -> None:
    write(VISITS, WriteToParquet(f"{tmp_path}/o", partition_by=("country", "year")))
    read = ReadFromParquet(str(tmp_path), partition_by=("country", "year"), schema=Visit, as_rows=True)
    element_type = (beam.Pipeline() | read).element_type
    fields = dict(element_type._fields)
    assert list(fields) == ["day", "new", "name", "country", "year"]
    assert "int" in str(fields["year"])
    assert "str" in str(fields["country"])


def test_spark_alone_writes_and_reads_folders_where_no_python_is_needed(tmp_path: Path) -> None:
    write(VISITS, WriteToParquet(f"{tmp_path}/in/o", partition_by=("country", "year")))
    schema = pa.schema([("country", pa.string()), ("year", pa.int64()), ("name", pa.string())])

    def copy(place: str) -> beam.Pipeline:
        pipeline = beam.Pipeline()
        source = ReadFromParquet(str(tmp_path / "in"), partition_by=("country", "year"), schema=Visit)
        rows = pipeline | source | beam.Filter(field("year") > 0) | beam.Select("country", "year", "name")
        _ = rows | "WriteThem" >> WriteToParquet(str(tmp_path / place / "o"), schema, partition_by="country")
        return pipeline

    pipeline = copy("out")
    assert "takes the columns unchanged" in pipeline.explain()
    pipeline.run()
    assert folders(tmp_path / "out") == {
        "country=DE",
        "country=a%2Fb %3D 100%25",
        "country=__HIVE_DEFAULT_PARTITION__",
    }
    expected = [{"year": v.year, "name": v.name, "country": v.country} for v in VISITS if v.year > 0]
    found = read(ReadFromParquet(str(tmp_path / "out"), partition_by="country"))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_spark_alone_does_not_lose_a_text_either(tmp_path: Path) -> None:
    pq.write_table(pa.table({"country": ["DE", ""], "n": [1, 2]}), tmp_path / "in")
    schema = pa.schema([("country", pa.string()), ("n", pa.int64())])
    pipeline = beam.Pipeline()
    rows = pipeline | ReadFromParquet(str(tmp_path / "in")) | beam.Filter(field("n") > 0)
    _ = rows | "WriteThem" >> WriteToParquet(str(tmp_path / "out/o"), schema, partition_by="country")
    assert "takes the columns unchanged" in pipeline.explain()
    with pytest.raises(
        ValueError, match="the column 'country' of partition_by has an empty string"
    ) as caught:
        pipeline.run()
    assert "at step 'WriteThem' (test_partitioned_parquet.py:" in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_whose_name_is_not_of_the_type_is_an_error(tmp_path: Path) -> None:
    write(VISITS[:1], WriteToParquet(f"{tmp_path}/o", partition_by="name"))
    for kind in (pa.int64(), pa.date32(), pa.bool_()):
        schema = pa.schema([("name", kind)])
        pipeline = beam.Pipeline()
        _ = (
            pipeline
            | "ReadIt" >> ReadFromParquet(str(tmp_path), partition_by="name", schema=schema)
            | beam.Map(len)
        )
        with pytest.raises(ValueError, match="has no value of the type") as caught:
            pipeline.run()
        assert "ReadIt" in str(caught.value)
        assert "hint: " in str(caught.value)


def test_a_stream_reads_the_files_that_arrive_in_old_and_new_folders(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    for number, visits in enumerate([VISITS[:2], VISITS[2:]]):
        write(visits, WriteToParquet(f"{source}/{number}", partition_by=PARTS))
        flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
        with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
            found = ReadFromParquet(str(source), partition_by=PARTS, schema=Visit).as_stream(
                max_files_per_batch=1, existing_only=True
            )
            visits_again = pipeline | found | beam.Map(lambda row: Visit(**row)).with_output_types(Visit)
            _ = visits_again | WriteToParquet(f"{out}/o", partition_by=("year", "country"))
    back = read(ReadFromParquet(str(out), partition_by=("year", "country"), schema=Visit))
    assert sorted((Visit(**row) for row in back), key=repr) == sorted(VISITS, key=repr)
    assert {path.name.partition("-0")[0] for path in out.rglob("o-*")} == {"o-batch"}
