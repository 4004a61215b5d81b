"""Avro files: what Beam and fastavro read and write, and what no Avro file can hold."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import io
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.avroio import ReadAllFromAvro, ReadFromAvro, WriteToAvro
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

fastavro = pytest.importorskip("fastavro", reason="needs the package fastavro")

pytestmark = pytest.mark.spark

USERS = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "number", "type": ["null", "long"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]}],
        },
        {"name": "points", "type": {"type": "map", "values": "double"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def users(count: int) -> list[dict[str, Any]]:
    chance = random.Random(7)
    return [
        {
            "name": f"user {number}",
            "number": None if number % 3 == 0 else chance.randrange(-(1 << 63), 1 << 63),
            "tags": ["t"] * (number % 4),
            "seen": datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
            + datetime.timedelta(microseconds=number),
            "inner": {"x": number} if number % 2 else None,
            "points": {"p": number / 7},
            "raw": bytes([number % 256, 0]),
            "kind": "AB"[number % 2],
        }
        for number in range(count)
    ]


def put(
    path: Path, records: list[Any], schema: Any = USERS, codec: str = "deflate", block: int = 400
) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, sync_interval=block)


def content(folder: Path, pattern: str = "*") -> list[Any]:
    found: list[Any] = []
    for path in sorted(folder.glob(pattern)):
        with path.open("rb") as file:
            found += list(fastavro.reader(file))
    return found


def test_a_file_that_is_not_avro_or_is_cut_off_or_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.avro").write_text("no Avro")
    (tmp_path / "empty.avro").write_bytes(b"")
    put(tmp_path / "whole.avro", users(50))
    data = (tmp_path / "whole.avro").read_bytes()
    (tmp_path / "cut.avro").write_bytes(data[:-5])
    (tmp_path / "half.avro").write_bytes(data[: len(data) // 2])
    (tmp_path / "header.avro").write_bytes(data[:20])
    for name in ("text", "empty", "cut", "half", "header"):
        pipeline = beam.Pipeline()
        _ = pipeline | "ReadIt" >> ReadFromAvro(str(tmp_path / f"{name}.avro")) | beam.Map(len)
        with pytest.raises(ValueError, match=rf"{name}.avro is not an Avro file, or it is damaged") as caught:
            pipeline.run()
        assert "ReadIt" in str(caught.value)
        assert "hint: " in str(caught.value)
    with pytest.raises(OSError, match="none"):
        beam.Pipeline() | ReadFromAvro(str(tmp_path / "none*"))


@pytest.mark.skipif(
    importlib.util.find_spec("cramjam") is not None, reason="the package for snappy is installed"
)
def test_a_codec_whose_package_is_not_installed_is_no_damage(tmp_path: Path) -> None:
    from penstock_connectors.avro.scan import records_of_file

    put(tmp_path / "a.avro", users(3), codec="null")
    # The lengths of both names are before them, twice as large.
    data = (tmp_path / "a.avro").read_bytes().replace(b"\x08null", b"\x0csnappy", 1)
    with pytest.raises(ValueError, match=r"a.avro is compressed with snappy") as caught:
        list(records_of_file(io.BytesIO(data), "a.avro"))
    assert "hint: install one of these: 'cramjam'" in str(caught.value)


def test_a_block_that_cannot_be_decoded_is_a_reject_in_a_batch_and_in_a_stream(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    put(source / "a.avro", users(60))
    data = (source / "a.avro").read_bytes()
    # The package's own reader of blocks says where they are.
    blocks = list(fastavro.block_reader(io.BytesIO(data)))
    third = blocks[2]
    # Deflate has no checksum: without its first bytes, it is not deflate any more.
    data = data[: third.offset + 4] + b"\xff" * 8 + data[third.offset + 12 :]
    (source / "a.avro").write_bytes(data)
    (source / "b.avro").write_text("no Avro")
    before = sum(block.num_records for block in blocks[:2])
    expected = [*range(before), *range(before + third.num_records, 60)]
    bad = [
        (f"{source}/a.avro", third.offset, "the block cannot be decoded"),
        (f"{source}/b.avro", None, "the file is not an Avro file, or it is damaged"),
    ]
    read = ReadFromAvro(f"{source}/*", rejects=True)
    for mode, one in (("batch", read), ("streaming", read.as_stream(existing_only=True))):
        with beam.Pipeline(mode=mode) as pipeline:
            records, rejected = pipeline | one
            numbers = records | beam.Map(lambda user: int(user["name"].removeprefix("user ")))
            assert_that(numbers, equal_to(expected), "good")
            found = rejected | beam.Map(lambda each: (each.source, each.offset, each.reason))
            assert_that(found, equal_to(bad), "bad")


class Numbered(NamedTuple):
    name: str
    number: int


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_null_where_the_declared_type_excludes_none_is_a_reject_or_an_error(
    tmp_path: Path, mode: str
) -> None:
    put(tmp_path / "a.avro", users(7))
    [block] = fastavro.block_reader(io.BytesIO((tmp_path / "a.avro").read_bytes()))

    def read(**rejects: bool) -> Any:
        one: Any = ReadFromAvro(f"{tmp_path}/*.avro", as_rows=True, **rejects).with_output_types(Numbered)
        return one if mode == "batch" else one.as_stream(existing_only=True)

    why = "the value of number is missing, and its type int excludes None"
    with beam.Pipeline(mode=mode) as pipeline:
        records, rejected = pipeline | read(rejects=True)
        names = records | beam.Map(lambda user: user.name)
        assert_that(names, equal_to([f"user {number}" for number in (1, 2, 4, 5)]), "good")
        found = rejected | beam.Map(lambda each: (each.source, each.offset, each.field, each.reason))
        assert_that(found, equal_to([(f"{tmp_path}/a.avro", block.offset, "number", why)] * 3), "bad")
    pipeline = beam.Pipeline(mode=mode)
    _ = pipeline | read() | beam.Map(repr)
    with pytest.raises(ValueError, match=f"{tmp_path}/a.avro cannot be read: {why}"):
        pipeline.run().wait_until_finish()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_records_are_those_that_beam_reads(codec: str, tmp_path: Path) -> None:
    avroio = pytest.importorskip("apache_beam.io.avroio")
    put(tmp_path / "a.avro", users(1500), codec=codec)
    put(tmp_path / "b.avro", [], codec=codec)
    source = avroio._create_avro_source(str(tmp_path / "*.avro"))
    theirs = list(source.read(source.get_range_tracker(None, None)))
    assert len(theirs) == 1500
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | ReadFromAvro(str(tmp_path / "*.avro")), equal_to(theirs))


def test_splits_of_every_size_give_each_record_once(tmp_path: Path) -> None:
    from penstock_connectors.avro.parts import open_part
    from penstock_spark.files.splits import Split

    path = tmp_path / "a.avro"
    put(path, users(60), block=100)
    size = path.stat().st_size
    whole = [user["name"] for user in users(60)]
    for length in [*range(1, 40), 97, 500, 1000, size - 1, size, size + 1]:
        found: list[str] = []
        for start in range(0, size, length):
            with open_part(Split(str(path), "a", start, min(start + length, size))) as part:
                found += [record["name"] for record in fastavro.reader(part)]
        assert found == whole, length


def test_records_become_rows_and_files_of_a_collection_are_read(tmp_path: Path) -> None:
    put(tmp_path / "a.avro", users(4))
    put(tmp_path / "numbers.avro", [1, 2], {"type": "long"})
    with beam.Pipeline() as pipeline:
        rows = pipeline | "Rows" >> ReadFromAvro(str(tmp_path / "a.avro"), as_rows=True)
        inner = rows | beam.Map(lambda row: (row.name, row.inner.x if row.inner else None))
        assert_that(
            inner, equal_to([("user 0", None), ("user 1", 1), ("user 2", None), ("user 3", 3)]), "inner"
        )
        numbers = pipeline | "Numbers" >> ReadFromAvro(str(tmp_path / "n*"), as_rows=True)
        assert_that(
            numbers | beam.Map(lambda row: row.record) | "Sum" >> beam.CombineGlobally(sum), equal_to([3])
        )
        files = pipeline | beam.Create([str(tmp_path / "numbers.avro")])
        pairs = (
            files | ReadAllFromAvro(with_filename=True) | beam.MapTuple(lambda name, n: (Path(name).name, n))
        )
        assert_that(pairs, equal_to([("numbers.avro", 1), ("numbers.avro", 2)]), "pairs")


def test_files_have_beams_names_and_what_beam_and_fastavro_read(tmp_path: Path) -> None:
    with beam.Pipeline() as pipeline:
        given = pipeline | beam.Create(users(300))
        names = given | WriteToAvro(str(tmp_path / "out"), USERS, file_name_suffix=".avro", num_shards=2)
        assert_that(names, equal_to([str(tmp_path / f"out-0000{n}-of-00002.avro") for n in range(2)]))
    assert sorted(content(tmp_path), key=repr) == sorted(users(300), key=repr)
    avroio = pytest.importorskip("apache_beam.io.avroio")
    source = avroio._create_avro_source(str(tmp_path / "*.avro"))
    theirs = list(source.read(source.get_range_tracker(None, None)))
    assert sorted(theirs, key=repr) == sorted(users(300), key=repr)


class Inner(NamedTuple):
    x: int


class Everything(NamedTuple):
    number: int
    text: str | None
    price: decimal.Decimal
    day: datetime.date
    at: datetime.datetime
    raw: bytes
    inner: Inner | None
    items: list[int | None]
    table: dict[str, float]
    truth: bool


def test_the_type_of_rows_gives_the_schema(tmp_path: Path) -> None:
    at = datetime.datetime(2026, 5, 1, 1, 2, 3, 4, datetime.UTC)
    row = Everything(
        -5,
        None,
        decimal.Decimal("1.500000000000000001"),
        at.date(),
        at,
        b"\xff",
        Inner(2),
        [1, None],
        {},
        True,
    )
    with beam.Pipeline() as pipeline:
        given = pipeline | beam.Create([row]).with_output_types(Everything)
        _ = given | WriteToAvro(str(tmp_path / "out"))
    assert content(tmp_path) == [{**row._asdict(), "inner": {"x": 2}}]
    with pytest.raises(ValueError, match="An explicit schema is required"):
        beam.Pipeline() | beam.Create([1]) | WriteToAvro(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        *(({"truth": True, "number": number}, "number does not fit the type long") for number in ("x", 1.5)),
        ({"truth": True, "number": 1 << 70}, "a value of the field number does not fit the type long"),
        ({"truth": True, "number": None}, "a value of the field number is None"),
        ({"truth": True}, "a record has no field number"),
        ({"truth": "no", "number": 1}, "a value of the field truth does not fit the type boolean"),
        *((each, "an element does not fit the schema of the Avro files") for each in ("text", None)),
    ],
)
def test_an_element_that_does_not_fit_the_schema_is_refused_without_being_shown(
    wrong: Any, told: str, tmp_path: Path
) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "number", "type": "long"}]}
    schema["fields"] += [{"name": "truth", "type": "boolean"}]  # type: ignore[operator]
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([wrong]) | WriteToAvro(str(tmp_path / "out"), schema)
    with pytest.raises((TypeError, KeyError), match=told):
        pipeline.run()
    assert not list(tmp_path.glob("out*"))


def test_what_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for path, schema, words in [
        (str(tmp_path / "out"), {"type": "recrd"}, "cannot be written with this schema"),
        ("hdfs://lake/out", {"type": "long"}, "Avro files cannot be written to hdfs://lake/out"),
    ]:
        pipeline = beam.Pipeline()
        _ = pipeline | beam.Create([1]) | WriteToAvro(path, schema)
        with pytest.raises((ValueError, UnsupportedByRunner), match=words):
            pipeline.run()


def test_a_stream_reads_files_that_arrive_and_writes_each_record_once(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    records = users(90)
    for number in range(3):
        put(source / f"{number}.avro", records[number * 30 : number * 30 + 30])
    for more in (0, 1):
        if more:
            put(source / "more.avro", records[:1])
        flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
        with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
            read = ReadFromAvro(f"{source}/*.avro").as_stream(max_files_per_batch=1, existing_only=True)
            _ = pipeline | read | WriteToAvro(f"{out}/users", USERS, file_name_suffix=".avro")
        assert sorted(content(out), key=repr) == sorted([*records, *records[:more]], key=repr)
    assert {path.name.partition("-0")[0] for path in out.glob("*.avro")} == {"users-batch"}


def test_without_the_package_the_pipeline_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sys

    put(tmp_path / "a.avro", users(1))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    for make in (
        lambda pipeline: pipeline | ReadFromAvro(str(tmp_path / "a.avro")) | beam.Map(len),
        lambda pipeline: pipeline | beam.Create([1]) | WriteToAvro(str(tmp_path / "out"), {"type": "long"}),
    ):
        pipeline = beam.Pipeline()
        make(pipeline)
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'penstock\[avro\]'"):
            pipeline.run()


def test_a_reader_takes_a_file_that_is_open(tmp_path: Path) -> None:
    from penstock_connectors.avro.scan import records_of_file

    put(tmp_path / "a.avro", users(3))
    assert list(records_of_file(io.BytesIO((tmp_path / "a.avro").read_bytes()), "a")) == users(3)


def test_records_at_any_depth_become_rows() -> None:
    from penstock_connectors.avro.scan import AvroRecords
    from penstock_spark.sources.partition_values import partition_values

    point = {"type": "record", "name": "Point", "namespace": "maps", "fields": [{"name": "x", "type": "int"}]}
    place = {"type": "record", "name": "Place", "fields": [{"name": "y", "type": "int"}]}
    fields = {
        "first": point,
        "again": "Point",
        "either": [
            "null",
            "Point",
            place,
            {"type": "map", "values": "Point"},
            {"type": "array", "items": "Point"},
        ],
        "next": ["null", "Path"],
    }
    schema = {
        "type": "record",
        "name": "Path",
        "namespace": "maps",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }
    one, row = {"x": 1}, beam.Row(x=1)
    eithers = [(None, None), (one, row), ({"y": 2}, beam.Row(y=2)), ({"k": one}, {"k": row}), ([one], [row])]
    for either, wanted in eithers:
        last = {"first": one, "again": one, "either": either, "next": None}
        file = io.BytesIO()
        fastavro.writer(file, schema, [{**last, "next": last}])
        file.seek(0)
        records = AvroRecords(True, partition_values((), None, ""), "")
        [[found]] = records.all_of(file, "a.avro")
        end = beam.Row(first=row, again=row, either=wanted, next=None)
        assert found == beam.Row(first=row, again=row, either=wanted, next=end)
