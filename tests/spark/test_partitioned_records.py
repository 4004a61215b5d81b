"""CSV, JSON and Avro files in folders of partitions, in whole pipelines: what is refused, written and read back."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import ReadFromCsv, ReadFromJson, WriteToCsv, WriteToJson
from penstock.io.avroio import ReadFromAvro, WriteToAvro
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue

DAY = datetime.date(2026, 1, 2)


@dataclass(frozen=True)
class Format:
    write: Callable[..., Any]
    read: Callable[..., Any]


CSV = Format(WriteToCsv, ReadFromCsv)
JSON = Format(WriteToJson, ReadFromJson)
AVRO = Format(WriteToAvro, lambda place, **arguments: ReadFromAvro(place, as_rows=True, **arguments))
AVRO_PARAM = pytest.param(
    AVRO,
    id="avro",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("fastavro") is None, reason="needs the package fastavro"
    ),
)
TEXTS = [pytest.param(CSV, id="csv"), pytest.param(JSON, id="json")]
FORMATS = pytest.mark.parametrize("format", [*TEXTS, AVRO_PARAM])


class Visit(NamedTuple):
    country: str | None
    year: int
    day: datetime.date | None
    new: bool
    name: str
    n: int


VISITS = [
    Visit("DE", 2026, DAY, True, "a", 1),
    Visit("a/b = 100%", 7, None, False, 'b, "quoted"', 2),
    Visit("007", -1, datetime.date(1, 2, 3), True, "c", 3),
    Visit(None, 2026, DAY, False, "d", 4),
    Visit("DE", 2026, DAY, True, "é", 5),
]
PARTS = ("country", "year", "day", "new")


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def write(values: list[Any], transform: Any, kind: Any = Visit) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(values).with_output_types(kind) | "WriteThem" >> transform


def read(transform: Any) -> list[Any]:
    into: list[Any] = []
    with beam.Pipeline() as pipeline:
        _ = pipeline | transform | beam.io.WriteToMemory(into)
    return into


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


@FORMATS
def test_columns_that_do_not_fit_are_refused_when_the_write_is_applied(format: Format) -> None:
    cases: list[tuple[Any, Any, str]] = [
        (Visit, "contry", "partition_by has the column 'contry', which the elements lack"),
        (Visit, list(Visit._fields), "partition_by has all columns"),
    ]
    if format is not AVRO:
        cases.append((dict[str, Any], "country", "partition_by needs the columns of the elements"))
    for kind, parts, words in cases:
        given = beam.Pipeline() | beam.Create([]).with_output_types(kind)
        with pytest.raises(ValueError, match=words) as caught:
            given | "WriteThem" >> format.write("/out/o", partition_by=parts)
        assert "at step 'WriteThem' (test_partitioned_records.py:" in str(caught.value)
        assert "hint: " in str(caught.value)


def test_arguments_that_cannot_work_are_refused_where_they_stand() -> None:
    for make, kind, words in [
        (lambda: WriteToCsv("/o", partition_by=["a", "a"]), ValueError, "each once"),
        (lambda: WriteToJson("/o", partition_by=[1]), TypeError, "the name of a column"),
        (lambda: WriteToAvro("/o", partition_by=""), ValueError, "an empty name"),
        (lambda: ReadFromCsv("/o", schema=Visit), ValueError, "which is missing"),
        (lambda: ReadFromJson("/o", partition_by="dya", schema=Visit), ValueError, "no column 'dya'"),
        (lambda: ReadFromAvro("/o*/p", partition_by="day"), ValueError, "has wildcards"),
        (
            lambda: ReadFromCsv("/o", partition_by="f", filename_column="f"),
            ValueError,
            "is both filename_col",
        ),
    ]:
        with pytest.raises(kind, match=words) as caught:
            make()  # type: ignore[no-untyped-call]
        assert "at test_partitioned_records.py:" in str(caught.value)
        assert "hint: " in str(caught.value)
    given = beam.Pipeline() | beam.Create([]).with_output_types(Visit)
    with pytest.raises(ValueError, match="partition_by has all columns"):
        given | WriteToCsv("/o", partition_by=("day", "n"), columns=["n"])
    with pytest.raises(ValueError, match="partition_by needs the columns of the elements"):
        given | WriteToAvro("/o", {"type": "long"}, partition_by="day")


class Tagged(NamedTuple):
    tags: list[str]
    n: int


@FORMATS
def test_a_type_that_no_folder_can_hold_is_refused_before_anything_starts(
    format: Format, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.txt").write_text("a\n")

    def effect(line: str) -> Tagged:
        (tmp_path / "started").write_text("")
        return Tagged([line], 1)

    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming"]))
    lines = pipeline | beam.io.ReadFromText(f"{source}/*.txt").as_stream(existing_only=True)
    rows = lines | beam.Map(effect).with_output_types(Tagged)
    _ = rows | "WriteThem" >> format.write(str(tmp_path / "out/o"), partition_by="tags")
    with pytest.raises(ValueError, match="cannot hold the column 'tags' of partition_by") as caught:
        pipeline.run().wait_until_finish()
    assert "at step 'WriteThem' (test_partitioned_records.py:" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize(
    ("format", "scheme"),
    [
        pytest.param(CSV, "", id="csv"),
        pytest.param(CSV, "file://", id="csv by Spark"),
        pytest.param(JSON, "", id="json"),
        pytest.param(JSON, "file://", id="json by Spark", marks=pytest.mark.soak),
        pytest.param(AVRO, "", id="avro", marks=AVRO_PARAM.marks),
    ],
)
def test_a_run_is_read_back_with_its_types_and_replaced_by_the_next_one(
    tmp_path: Path, format: Format, scheme: str
) -> None:
    place = f"{scheme}{tmp_path}"
    transform = format.write(f"{place}/o", num_shards=1, partition_by=PARTS)
    write(VISITS, transform)
    (tmp_path / "country=DE" / "year=2026" / "day=2026-01-02" / "new=true" / "o-notes").write_text("mine")
    texts = [(1, "2026", "2026-01-02", "true"), (2, "7", None, "false"), (3, "-1", "0001-02-03", "true")]
    texts += [(4, "2026", "2026-01-02", "false"), (5, "2026", "2026-01-02", "true")]
    with beam.Pipeline() as pipeline:
        typed = pipeline | "Typed" >> format.read(f"{place}/o-0*", partition_by=PARTS, schema=Visit)
        names = ["name", "n", *PARTS]
        rows = [[(name, getattr(visit, name)) for name in names] for visit in VISITS]
        assert_that(
            typed | "In order" >> beam.Map(lambda row: list(vars(row).items())), equal_to(rows), "typed"
        )
        plain = pipeline | "Plain" >> format.read(f"{place}/o-0*", partition_by=PARTS)
        assert_that(
            plain | beam.Map(lambda row: (row.n, row.year, row.day, row.new)), equal_to(texts), "plain"
        )
    before = files(tmp_path)
    with pytest.raises(ValueError, match="which readers would read as None") as caught:
        write([*VISITS, VISITS[0]._replace(country="")], transform)
    assert "WriteThem" in str(caught.value)
    assert files(tmp_path) == before
    write(VISITS[2:3] if scheme else [], transform)
    kept = {"country=DE/year=2026/day=2026-01-02/new=true/o-notes"}
    new = {"country=007/year=-1/day=0001-02-03/new=true/o-00000-of-00001"} if scheme else set()
    assert files(tmp_path) == kept | new


class Text(NamedTuple):
    text: str
    n: int


@pytest.mark.parametrize(
    ("format", "scheme"),
    [
        pytest.param(CSV, "", id="csv"),
        pytest.param(JSON, "file://", id="json by Spark", marks=pytest.mark.soak),
    ],
)
def test_folders_and_values_are_those_of_sparks_own_writer_and_reader(
    tmp_path: Path, spark: SparkSession, format: Format, scheme: str
) -> None:
    # Each character is written on its own, and a folder of four costs as much as a folder of one.
    texts = ["".join(map(chr, [*b"x", *range(code, min(code + 4, 128)), *b"y"])) for code in range(1, 128, 4)]
    texts += ["é", " ", ".", "a%20b", "007"]
    values = [Text(text, number) for number, text in enumerate(texts)]
    ours, theirs, name = tmp_path / "ours", tmp_path / "theirs", "csv" if format is CSV else "json"
    write(values, format.write(f"{scheme}{ours}/o", partition_by="text"), Text)
    frame = spark.createDataFrame(values, "text string, n long")
    frame.write.option("header", True).partitionBy("text").format(name).save(str(theirs))
    folders = {path.name for path in theirs.iterdir() if path.is_dir()}
    assert {path.name for path in ours.iterdir()} == folders
    assert len(folders) == len(texts)
    reader = spark.read.schema("text string, n long").option("header", True).format(name)
    found = reader.load(str(ours)).collect()
    assert sorted((Text(row.text, row.n) for row in found), key=lambda row: row.n) == values
    suffix = f"{theirs}/part*"
    back = read(format.read(f"{scheme}{suffix}", partition_by="text"))
    assert sorted((Text(row.text, row.n) for row in back), key=lambda row: row.n) == values


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_each_csv_file_has_one_header_at_its_beginning(tmp_path: Path, scheme: str) -> None:
    class Number(NamedTuple):
        last: int
        text: str

    with beam.Pipeline() as pipeline:
        numbers = pipeline | beam.Create(range(2)) | beam.FlatMap(lambda n: range(n, 20_000, 2))
        rows = numbers | beam.Map(lambda n: Number(n % 3, f"{n}\n")).with_output_types(Number)
        _ = rows | WriteToCsv(f"{scheme}{tmp_path}/o", num_shards=1, partition_by="last", sep=";")
    found: dict[str, list[str]] = {}
    for path in tmp_path.rglob("o-*"):
        head, *records = path.read_text().split('"')
        assert head == "text\n"
        found[path.parent.name] = [text for text in records if text != "\n"]
    assert {name: sorted(map(int, texts)) for name, texts in found.items()} == {
        f"last={last}": list(range(last, 20_000, 3)) for last in range(3)
    }


def test_columns_of_files_with_the_names_of_folders_are_hidden_and_some_columns_are_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "day=7" / "team=a"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("day,n,m\nmonday,1,2\n")
    (folder / "a.json").write_text('{"day": "monday", "n": 1, "m": 2}\n')
    schema = pa.schema([("day", pa.int32()), ("team", pa.string())])
    common = {"partition_by": ("day", "team"), "schema": schema}
    cases = [
        (ReadFromCsv(f"{tmp_path}/*.csv", **common), {"n": 1, "m": 2, "day": 7, "team": "a"}),
        (ReadFromJson(f"{tmp_path}/*.json", **common), {"n": 1, "m": 2, "day": 7, "team": "a"}),
        (ReadFromCsv(f"{tmp_path}/*.csv", usecols=["m", "day"], **common), {"m": 2, "day": 7}),
        (ReadFromCsv(f"{tmp_path}/*.csv", usecols=["team"], **common), {"team": "a"}),
        (
            ReadFromCsv(f"{tmp_path}/*.csv", usecols=["m", "team"], filename_column="file", **common),
            {"m": 2, "file": f"{folder}/a.csv", "team": "a"},
        ),
    ]
    with beam.Pipeline() as pipeline:
        for number, (transform, expected) in enumerate(cases):
            rows = pipeline | f"read {number}" >> transform
            hints = dict(rows.element_type._fields)
            assert list(hints) == list(expected)
            assert all("int" in str(hints[name]) for name in ("m", "day") if name in hints)
            items = rows | f"items {number}" >> beam.Map(lambda row: list(vars(row).items()))
            assert_that(items, equal_to([list(expected.items())]), f"check {number}")
    wrong = pa.schema([("day", pa.date32()), ("team", pa.string())])
    for transform in (
        ReadFromCsv(f"{tmp_path}/*.csv", partition_by=("day", "team"), schema=wrong),
        ReadFromJson(f"{tmp_path}/*.json", partition_by=("day", "team"), schema=wrong),
    ):
        pipeline = beam.Pipeline()
        _ = pipeline | "ReadIt" >> transform | beam.Map(len)
        with pytest.raises(
            ValueError, match=r"the column day of .* has no value of the type date32"
        ) as caught:
            pipeline.run()
        assert "ReadIt" in str(caught.value)


def run_stream(tmp_path: Path, transform: Any, mode: str = "streaming") -> None:
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", f"--mode={mode}", "--shuffle_partitions=2"]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        transform(pipeline)


@pytest.mark.parametrize(
    ("format", "mode"),
    [
        pytest.param(CSV, "streaming", id="csv"),
        pytest.param(JSON, "micro_batch", id="json"),
        pytest.param(AVRO, "streaming", id="avro", marks=AVRO_PARAM.marks),
    ],
)
def test_a_stream_reads_files_that_arrive_in_old_and_new_folders_and_goes_on_after_a_restart(
    tmp_path: Path, format: Format, mode: str
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"

    def copy(pipeline: beam.Pipeline) -> None:
        found = format.read(str(source), partition_by=PARTS, schema=Visit).as_stream(
            max_files_per_batch=2, existing_only=True
        )
        visits = pipeline | found | beam.Map(lambda row: Visit(**vars(row))).with_output_types(Visit)
        _ = visits | format.write(f"{out}/o", partition_by=("year", "country", "day"))

    for number, visits in enumerate([VISITS[:2], VISITS[2:]]):
        write(visits, format.write(f"{source}/{number}", partition_by=PARTS))
        run_stream(tmp_path, copy, mode)
    back = read(format.read(str(out), partition_by=("year", "country", "day"), schema=Visit))
    assert sorted((Visit(**vars(row)) for row in back), key=repr) == sorted(VISITS, key=repr)
    assert {path.name.partition("-0")[0] for path in out.rglob("o-*")} == {"o-batch"}


def test_files_in_a_folder_of_no_value_are_rejects_of_a_stream(tmp_path: Path) -> None:
    for folder, text in [("day=1", '{"n": 1}\n'), ("day=monday", '{"n": 2}\n'), ("day=2", "no json\n")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text(text)
    read_it = ReadFromJson(str(tmp_path), partition_by="day", schema=pa.schema([("day", pa.int64())]))
    with TestPipeline(mode="streaming") as pipeline:
        good, bad = pipeline | read_it.as_stream(existing_only=True, rejects=True)
        pairs = good | beam.Map(lambda row: (row.n, row.day))
        assert_that(pairs, equal_to([(1, 1)]))
        words = bad | beam.Map(lambda found: (found.record, "no value of" in found.reason))
        assert_that(words, equal_to([('{"n": 2}', True), ("no json", False)]), "rejects")


class Score(NamedTuple):
    team: str | None
    points: int


@pytest.mark.parametrize("format", [pytest.param(CSV, id="csv"), AVRO_PARAM])
def test_files_of_windows_are_kept_apart_and_their_names_are_elements(tmp_path: Path, format: Format) -> None:
    with TestPipeline(mode="streaming") as pipeline:
        stream = TestStream().add_elements(
            [TimestampedValue(Score(*each), each[1]) for each in [("a", 1), ("b/c", 2), (None, 3), ("a", 70)]]
        )
        scores = pipeline | stream | beam.WindowInto(FixedWindows(60))
        typed = scores | beam.Map(lambda score: score).with_output_types(Score)
        # The usual names of windows have colons in them, which Spark's readers do not take.
        named = {"file_naming": lambda window, *_: f"o-{int(window.start)}"} if format is CSV else {}
        place = tmp_path if format is CSV else tmp_path / "o"
        results = typed | format.write(str(place), num_shards=1, partition_by="team", **named)
        names = results | beam.Map(lambda result: getattr(result, "file_name", result))
        # Names of Avro files are whole paths.
        assert_that(names | beam.Map(lambda name: (tmp_path / name).is_file()), equal_to([True] * 4))
    found = read(format.read(str(tmp_path), partition_by="team"))
    assert sorted((row.team or "", row.points) for row in found) == [("", 3), ("a", 1), ("a", 70), ("b/c", 2)]
    assert {path.name for path in tmp_path.iterdir()} == {
        "team=a",
        "team=b%2Fc",
        "team=__HIVE_DEFAULT_PARTITION__",
    }
