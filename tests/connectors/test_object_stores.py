"""Files on object stores without Hadoop: what goes wrong with a store, and what is read and written there."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import http.server
import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io import fileio
from penstock.io.files.object_stores import settings_of_stores
from penstock.io.filesystem import BeamIOError
from penstock.io.filesystems import FileSystems
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import GlobalWindows
from penstock_spark.session.classic.backend import ClassicBackend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("s3fs", reason="needs the package s3fs")
server = pytest.importorskip("moto.server", reason="needs the package moto")

pytestmark = pytest.mark.spark

SECRET = "hush-hush"

# The record "four": its length, a checksum, the data, and a checksum.
TWENTY_BYTES_OF_TFRECORD = bytes.fromhex("040000000000000042455204666f7572bebc6017")


@pytest.fixture(scope="module", autouse=True)
def store(spark: SparkSession) -> Iterator[str]:
    """The address of a server of S3 that has the bucket ``lake``; the environment tells all where it is."""
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        import boto3

        boto3.client("s3").create_bucket(Bucket="lake")
        yield settings["AWS_ENDPOINT_URL"]
    for name in settings:
        spark.sparkContext.environment.pop(name, None)
    running.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A folder for one test."""
    return f"s3://lake/{request.node.name.partition('[')[0]}"


def put(path: str, content: bytes) -> None:
    with FileSystems.create(path, compression_type="uncompressed") as file:
        file.write(content)


def test_tasks_get_the_programs_variables_except_what_the_session_sets_for_them(store: str) -> None:
    """Workers may reach a store by another address than the driver."""
    context = SimpleNamespace(
        environment={"AWS_ENDPOINT_URL": "http://inside"},
        master="spark://10.0.0.1:7077",
        _conf={"spark.executorEnv.AWS_ENDPOINT_URL": "http://inside"},
    )
    session = cast("SparkSession", SimpleNamespace(sparkContext=context, _jvm=None))
    ClassicBackend(session).hand_settings(settings_of_stores())
    assert context.environment["AWS_ENDPOINT_URL"] == "http://inside"
    assert context.environment["AWS_SECRET_ACCESS_KEY"] == SECRET


def names(place: str) -> list[str]:
    """The names of all files below a folder."""
    return [each.path[len(place) + 1 :] for each in FileSystems.match([f"{place}/**"])[0].metadata_list]


def get(path: str) -> bytes:
    with FileSystems.open(path, compression_type="uncompressed") as file:
        return file.read()


def check(read: Any, expected: list[Any]) -> None:
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | read, equal_to(expected))


def write(values: list[Any], sink: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(values) | sink


def refused(transform: Any, kind: Any, words: str) -> str:
    """The text of the error of a pipeline with a source, in three parts and without secrets."""
    pipeline = beam.Pipeline()
    _ = pipeline | "ReadIt" >> transform | beam.Map(print)
    with pytest.raises(kind, match=words) as caught:
        pipeline.run()
    text = str(caught.value)
    assert "ReadIt" in text
    assert "hint: " in text
    assert SECRET not in text
    assert "java" not in text
    return text


@contextmanager
def other_server(status: int | None) -> Iterator[None]:
    """A server that answers everything with one status; None for a server that is away."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
            self.send_response(status or 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *arguments: Any) -> None:
            """Nothing is said."""

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as other,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{other.server_port}")
        if status is None:
            other.server_close()
            yield
            return
        thread = threading.Thread(target=other.serve_forever, args=[0.01], daemon=True)
        thread.start()
        yield
        other.shutdown()
        thread.join()


READS = {
    "text": beam.io.ReadFromText,
    "json": beam.io.ReadFromJson,
    "csv": beam.io.ReadFromCsv,
    "parquet": beam.io.ReadFromParquet,
    "tfrecord": beam.io.ReadFromTFRecord,
}

# What goes wrong.


@pytest.mark.parametrize("format", ["text", pytest.param("parquet", marks=pytest.mark.soak)])
def test_an_empty_match_a_server_that_is_away_and_one_that_denies_are_told_before_anything_runs(
    format: str, place: str
) -> None:
    read = READS[format]
    refused(read(f"{place}/none*"), OSError, "No files found based on the file pattern s3://")
    with other_server(None):
        refused(read(f"{place}/a*"), OSError, "the store of .* does not answer")
    with other_server(403):
        refused(read(f"{place}/a*"), PermissionError, "the store refuses access to")
    assert names(place) == [], "the right address is used again"


def test_writing_to_a_server_that_is_away_or_denies_is_told(place: str) -> None:
    for status, kind, words in ((None, OSError, "does not answer"), (403, PermissionError, "refuses access")):
        with other_server(status), pytest.raises(kind, match=words) as caught:
            write(["a"], "WriteIt" >> beam.io.WriteToText(f"{place}/a"))
        assert "WriteIt" in str(caught.value)
        assert SECRET not in str(caught.value)
    assert names(place) == []


@pytest.mark.parametrize("package", ["s3fs", "fsspec"])
def test_without_the_package_the_error_says_what_to_install(
    package: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    words = r"need the package s3fs(.|\n)*pip install 'penstock\[s3\]'"
    with pytest.raises(ModuleNotFoundError, match=words):
        FileSystems.match([f"{place}/*"])
    refused(beam.io.ReadFromText(f"{place}/*"), ModuleNotFoundError, words)
    with pytest.raises(ModuleNotFoundError, match=words):
        write(["a"], beam.io.WriteToText(f"{place}/a"))


def test_a_url_with_credentials_is_refused_and_they_are_not_shown() -> None:
    for act in (
        lambda: FileSystems.open(f"s3://me:{SECRET}@lake/a"),
        lambda: write(["a"], beam.io.WriteToText(f"s3://me:{SECRET}@lake/a")),
    ):
        with pytest.raises(ValueError, match="has credentials in it") as caught:
            act()
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "format",
    ["text", "parquet", *(pytest.param(name, marks=pytest.mark.soak) for name in ("json", "tfrecord"))],
)
def test_a_file_that_disappears_or_becomes_shorter_fails_the_run(
    format: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if format == "tfrecord":
        pytest.importorskip("google_crc32c", reason="needs the package google-crc32c")
    from penstock_spark.files import finding

    table = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(100))}), table)
    content = {
        "text": b"a\n" * 100,
        "parquet": table.getvalue(),
        "json": b'{"a": 1}\n' * 100,
        "tfrecord": TWENTY_BYTES_OF_TFRECORD * 100,
    }[format]
    put(f"{place}/a", content)
    put(f"{place}/b", content)
    found = finding._on_store

    def then_gone(*arguments: Any) -> dict[str, int]:
        put(f"{place}/b", content)
        sizes = found(*arguments)
        FileSystems.delete([f"{place}/b"])
        return sizes

    def then_shorter(*arguments: Any) -> dict[str, int]:
        put(f"{place}/b", content)
        sizes = found(*arguments)
        put(f"{place}/b", content[:20])
        return sizes

    acts = [(then_gone, "No such file"), (then_shorter, "truncated|changed|not a Parquet file")]
    for act, words in acts[: 1 if format == "json" else 2]:
        monkeypatch.setattr(finding, "_on_store", act)
        refused(READS[format](f"{place}/*"), (OSError, ValueError), f"/b .*({words})")


def test_files_that_are_damaged_or_of_another_kind_are_named(place: str) -> None:
    put(f"{place}/a.txt.gz", gzip.compress(b"a\n" * 1000)[:-20])
    put(f"{place}/a.json.gz", gzip.compress(b'{"a": 1}\n' * 1000)[:-20])
    put(f"{place}/a.parquet", b"PAR1 or not")
    put(f"{place}/1.csv", b"a,b\n1,2\n")
    put(f"{place}/2.csv", b"a,c\n1,2\n")
    refused(beam.io.ReadFromText(f"{place}/a.txt.gz"), ValueError, "is not a complete gzip file")
    refused(beam.io.ReadFromJson(f"{place}/a.json.gz"), ValueError, "is not a complete gzip file")
    refused(beam.io.ReadFromParquet(f"{place}/a.parquet"), ValueError, "a.parquet is not a Parquet file")
    refused(beam.io.ReadFromCsv(f"{place}/*.csv"), ValueError, "the header of .*2.csv has different columns")
    content = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2], "s": ["a", "b"]}), content)
    # The footer is whole, so only the task that reads the rows can see it.
    put(f"{place}/b.parquet", b"PAR1" + bytes(30) + content.getvalue()[34:])
    refused(beam.io.ReadFromParquet(f"{place}/b.parquet"), OSError, "b.parquet cannot be read: [^<]*at step")


def test_a_file_is_stored_whole_or_not_at_all(place: str) -> None:
    file = FileSystems.create(f"{place}/b")
    file.write(b"half")
    del file
    with contextlib.suppress(ZeroDivisionError), FileSystems.create(f"{place}/a") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert names(place) == []


def test_a_run_that_fails_leaves_the_files_of_the_run_before(place: str) -> None:
    write(["a", "b"], beam.io.WriteToText(f"{place}/out", num_shards=2))
    before = {name: get(f"{place}/{name}") for name in names(place)}
    pipeline = beam.Pipeline()
    divided = pipeline | beam.Create([1, 2, 0]) | beam.Reshuffle() | beam.Map(lambda n: str(1 // n))
    _ = divided | beam.io.WriteToText(f"{place}/out", num_shards=3)
    with pytest.raises(ZeroDivisionError):
        pipeline.run()
    assert {name: get(f"{place}/{name}") for name in names(place)} == before


def test_a_store_that_fails_while_files_get_their_names_leaves_none_of_the_new_names(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_spark.files.file_store import StoreFiles

    replace = StoreFiles.replace
    calls = iter([True, True, False])

    def failing(self: Any, source: str, target: str) -> None:
        if not next(calls):
            raise OSError(5, "the store is full")
        replace(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(StoreFiles, "replace", failing)
        with pytest.raises(OSError, match="the store is full"):
            write(["a", "b", "c"], beam.io.WriteToText(f"{place}/out", num_shards=3))
    assert names(place) == []


def test_streams_from_a_store_and_checkpoints_there_are_refused_before_the_start(
    place: str, tmp_path: Path
) -> None:
    put(f"{place}/a", b"a\n")
    text = refused(
        beam.io.ReadFromText(f"{place}/*").as_stream(existing_only=True),
        UnsupportedByRunner,
        "no file system for s3",
    )
    assert "spark.jars.packages" in text
    (tmp_path / "a").write_text("a\n")
    options = PipelineOptions([f"--checkpoint_location={place}/checkpoint"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.io.ReadFromText(f"{tmp_path}/*").as_stream(existing_only=True) | beam.Map(print)
    with pytest.raises(ValueError, match=r"cannot access the folder(.|\n)*hint: use a path on a disk"):
        pipeline.run()


# What goes right.


def test_the_file_systems_find_read_copy_and_delete(place: str) -> None:
    with FileSystems.create(f"{place}/a.txt.gz") as file:
        file.write(b"hello")
    put(f"{place}/deep/b 1%20.txt", b"b")
    assert names(place) == ["a.txt.gz", "deep/b 1%20.txt"]
    for pattern, count in {
        "*": 1,
        "**": 2,
        "a*": 1,
        "*/b*": 1,
        "[ab].*": 1,
        "?.txt*": 1,
        "": 1,
        "c": 0,
    }.items():
        assert len(FileSystems.match([f"{place}/{pattern}"])[0].metadata_list) == count, pattern
    with FileSystems.open(f"{place}/a.txt.gz") as file:
        assert file.read() == b"hello"
    assert FileSystems.exists(place)
    assert FileSystems.last_updated(f"{place}/a.txt.gz") > 1e9
    FileSystems.rename([f"{place}/a.txt.gz"], [f"{place}/c.gz"])
    assert FileSystems.checksum(f"{place}/c.gz")
    FileSystems.copy([f"{place}/deep"], [f"{place}/copy"])
    assert names(place) == ["c.gz", "copy/b 1%20.txt", "deep/b 1%20.txt"]
    FileSystems.delete([f"{place}/c.gz", f"{place}/*/b*"])
    assert names(place) == []
    with pytest.raises(BeamIOError, match="Delete operation failed"):
        FileSystems.delete([f"{place}/c.gz"])
    with pytest.raises(FileNotFoundError):
        FileSystems.open(f"{place}/c.gz")


def test_matched_files_are_read_in_tasks(place: str) -> None:
    put(f"{place}/a.txt", b"a")
    put(f"{place}/b.txt", b"b")
    with beam.Pipeline() as pipeline:
        files = pipeline | fileio.MatchFiles(f"{place}/*.txt") | fileio.ReadMatches()
        assert_that(files | beam.Map(lambda file: file.read_utf8()), equal_to(["a", "b"]))


def test_text_is_read_plain_compressed_in_splits_and_with_names(place: str, spark: SparkSession) -> None:
    put(f"{place}/a b.txt", b"head\r\na\r\nb\n\nc")
    put(f"{place}/d.txt.gz", gzip.compress(b"head\nd\n"))
    put(f"{place}/_hidden.txt", b"head\nhidden\n")
    put(f"{place}/empty.txt", b"")
    check(beam.io.ReadFromText(f"{place}/*.txt*", skip_header_lines=1), ["a", "b", "", "c", "d"])
    check(beam.io.ReadFromTextWithFilename(f"{place}/d*", skip_header_lines=1), [(f"{place}/d.txt.gz", "d")])
    put(f"{place}/many", b"".join(b"%d\n" % number for number in range(20_000)))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "10001")
    try:
        check(beam.io.ReadFromText(f"{place}/many"), [str(number) for number in range(20_000)])
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))


def test_json_and_csv_are_read(place: str) -> None:
    put(f"{place}/a.json", '{"a": 1}\n{"a": 2, "b": "ü"}\n'.encode())
    put(f"{place}/b.json.gz", gzip.compress(b'{"a": 3}\n'))
    rows = [beam.Row(a=1, b=None), beam.Row(a=2, b="ü"), beam.Row(a=3, b=None)]
    check(beam.io.ReadFromJson(f"{place}/*.json*"), rows)
    put(f"{place}/list", b'[{"a": 1}, {"a": 2}]')
    check(beam.io.ReadFromJson(f"{place}/list", lines=False), [beam.Row(a=1), beam.Row(a=2)])
    put(f"{place}/a.csv", '\ufeffn,s\n1,"x, ü"\n\n2,\n'.encode())
    put(f"{place}/b.csv.gz", gzip.compress(b"n,s\r\n3,z\r\n"))
    table = [beam.Row(n=1, s="x, ü"), beam.Row(n=2, s=None), beam.Row(n=3, s="z")]
    check(beam.io.ReadFromCsv(f"{place}/*.csv*"), table)
    put(f"{place}/quoted", b'n,s\n1,"x\ny"\n2,"q""r"\n')
    quoted = [beam.Row(n=1, s="x\ny"), beam.Row(n=2, s='q"r')]
    check(beam.io.ReadFromCsv(f"{place}/quoted", splittable=False), quoted)
    put(f"{place}/latin", "1;ü\n2;3\n".encode("latin-1"))
    read = beam.io.ReadFromCsv(f"{place}/latin", sep=";", encoding="latin-1", names=["n", "s"])
    check(read, [beam.Row(n=1, s="ü"), beam.Row(n=2, s="3")])
    put(f"{place}/open", b'n,s\n1,"x\n2,y\n')
    refused(beam.io.ReadFromCsv(f"{place}/open"), ValueError, "malformed line of CSV.*open")


def test_avro_is_read_in_splits_and_written(place: str, spark: SparkSession) -> None:
    fastavro = pytest.importorskip("fastavro", reason="needs the package fastavro")
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
    content = io.BytesIO()
    records = [{"n": number} for number in range(5_000)]
    fastavro.writer(content, schema, records, sync_interval=1000)
    put(f"{place}/a.avro", content.getvalue())
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "3001")
    try:
        check(beam.io.ReadFromAvro(f"{place}/*.avro"), records)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))
    write(records[:3], beam.io.WriteToAvro(f"{place}/out", schema, num_shards=1))
    assert list(fastavro.reader(io.BytesIO(get(f"{place}/out-00000-of-00001")))) == records[:3]


def test_tfrecord_files_are_read_and_written(place: str) -> None:
    pytest.importorskip("google_crc32c", reason="needs the package google-crc32c")
    records = [b"%d" % number for number in range(5_000)]
    for shards, suffix in ((3, ""), (1, ".gz")):
        write(records, beam.io.WriteToTFRecord(f"{place}/out", file_name_suffix=suffix, num_shards=shards))
    put(f"{place}/out-empty", b"")
    names = [f"{place}/out-0000{number}-of-00003" for number in range(3)]
    check(beam.io.ReadFromTFRecord(f"{place}/out*"), records * 2)
    with beam.Pipeline() as pipeline:
        read = pipeline | beam.Create(names) | beam.io.ReadAllFromTFRecord(with_filename=True)
        assert_that(read | beam.Values(), equal_to(records), "records")
        assert_that(read | beam.Keys() | beam.Distinct(), equal_to(names), "names")
    put(f"{place}/cut", get(names[0])[:-1])
    about = r"/cut is not a TFRecord file, or it is damaged: the record at byte \d+ is truncated"
    refused(beam.io.ReadFromTFRecord(f"{place}/*"), ValueError, about)


@pytest.mark.parametrize("int96", [False, True])
def test_parquet_has_the_values_that_it_has_on_a_disk(place: str, tmp_path: Path, int96: bool) -> None:
    columns = {
        "n": pa.array([0, 1]),
        "unsigned": pa.array([2**64 - 1, None], pa.uint64()),
        "length": pa.array([1_500_000, None], pa.duration("ns")),
        "at": pa.array([1_500_000, None], pa.timestamp("ns", "UTC")),
        "time": pa.array([7, None], pa.time64("us")),
        "digits": pa.array([decimal.Decimal(10**50), None], pa.decimal256(60, 2)),
        "a.b": pa.array(["x", None]),
    }
    table = pa.table(columns if not int96 else {name: columns[name] for name in ("n", "at", "a.b")})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=int96)
    put(f"{place}/a.parquet", (tmp_path / "a.parquet").read_bytes())
    micros = datetime.timedelta(microseconds=1500)
    expected = {
        "n": 0,
        "unsigned": 2**64 - 1,
        "length": micros,
        "time": datetime.time(microsecond=7),
        "digits": decimal.Decimal(10**50),
        "a.b": "x",
        "at": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + micros,
    }
    expected = {name: expected[name] for name in table.column_names}
    found: list[list[Any]] = []
    with beam.Pipeline() as pipeline:
        for folder in (place, str(tmp_path), f"file://{tmp_path}"):
            for as_rows in (False, True):
                read = beam.io.ReadFromParquet(
                    f"{folder}/*.parquet", as_rows=as_rows, columns=table.column_names
                )
                label = f"{len(found)}"
                found.append([])
                _ = pipeline | label >> read | f"Keep {label}" >> beam.io.WriteToMemory(found[-1])
    for number, records in enumerate(found):
        rows = [vars(each) if number % 2 else each for each in records]
        first, second = sorted(rows, key=lambda row: row["n"])
        assert dict(first) == expected
        assert list(map(type, first.values())) == list(map(type, expected.values()))
        assert second == {**dict.fromkeys(table.column_names), "n": 1}


def test_parquet_is_read_with_the_columns_of_all_files_and_written(place: str) -> None:
    for number, table in enumerate([{"n": [1, 2], "s": [{"x": 1, "y": 2}] * 2}, {"n": [3], "z": ["u"]}]):
        content = io.BytesIO()
        pq.write_table(pa.table(table), content, row_group_size=1)
        put(f"{place}/{number}.parquet", content.getvalue())
    inner = {"x": 1, "y": 2}
    expected = [
        {"n": 1, "s": inner, "z": None},
        {"n": 2, "s": inner, "z": None},
        {"n": 3, "s": None, "z": "u"},
    ]
    check(beam.io.ReadFromParquet(f"{place}/*"), expected)
    check(beam.io.ReadFromParquet(f"{place}/0*", columns=["s.y"]), [{"s": {"y": 2}}] * 2)
    refused(beam.io.ReadFromParquet(f"{place}/*", columns=["q"]), ValueError, "the files have no columns q")
    write([{"n": 7}], beam.io.WriteToParquet(f"{place}/out", pa.schema([("n", pa.int64())])))
    assert pq.read_table(io.BytesIO(get(f"{place}/out-00000-of-00001"))).to_pylist() == [{"n": 7}]
    with beam.Pipeline() as pipeline:
        read = pipeline | beam.io.ReadFromParquet(f"{place}/out*", as_rows=True)
        _ = read | "again" >> beam.io.WriteToParquet(f"{place}/again")
    assert pq.read_table(io.BytesIO(get(f"{place}/again-00000-of-00001"))).to_pylist() == [{"n": 7}]


def test_a_run_replaces_the_files_of_a_run_before_and_no_others(place: str) -> None:
    put(f"{place}/out-notes", b"mine")
    write(["a", "b", "c"], beam.io.WriteToText(f"{place}/out", num_shards=3, header="h"))
    write(["d"], beam.io.WriteToText(f"{place}/out", num_shards=1, header="h"))
    assert names(place) == ["out-00000-of-00001", "out-notes"]
    assert get(f"{place}/out-00000-of-00001") == b"h\nd\n"
    write([beam.Row(a=1)], beam.io.WriteToJson(f"{place}/j"))
    write([beam.Row(a=1)], beam.io.WriteToCsv(f"{place}/c"))
    assert get(f"{place}/j-00000-of-00001") == b'{"a":1}\n'
    assert get(f"{place}/c-00000-of-00001") == b"a\n1\n"


@pytest.mark.parametrize("is_native", [False, True], ids=["lines", "sums by Spark"])
def test_a_stream_that_dies_while_it_names_files_writes_each_element_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_native: bool
) -> None:
    from penstock_spark.files.file_store import StoreFiles

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{number}\n" for number in range(9)))

    def run() -> None:
        flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--shuffle_partitions=2"]
        options = PipelineOptions([*flags, *(["--mode=micro_batch"] if is_native else [])])
        with beam.Pipeline(options=options) as pipeline:
            lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/in/*").as_stream(existing_only=True)
            if is_native:
                pairs = lines | "Pair" >> beam.Map(lambda line: (line, 1)).with_output_types(tuple[str, int])
                rounds = AfterWatermark(early=AfterProcessingTime(10))
                windows = beam.WindowInto(GlobalWindows(), rounds, AccumulationMode.ACCUMULATING)
                lines = pairs | windows | beam.CombinePerKey(sum) | beam.Keys()
                assert "then by Spark" in pipeline.explain()
            _ = lines | beam.io.WriteToText(f"{place}/out", num_shards=3)

    place += f"/{is_native}"
    replace, remove, delete = StoreFiles.replace, StoreFiles.remove, StoreFiles.delete
    calls = iter([True, False])

    def dying(self: Any, source: str, target: str) -> None:
        if not next(calls):
            raise OSError(5, "the driver dies")
        replace(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(StoreFiles, "replace", dying)
        # A driver that dies tidies nothing up.
        patch.setattr(StoreFiles, "remove", lambda self, path: None)
        patch.setattr(StoreFiles, "delete", lambda self, path: None)
        with pytest.raises(Exception, match="the driver dies"):
            run()
    assert (remove, delete) == (StoreFiles.remove, StoreFiles.delete)
    assert len(names(place)) > 1
    run()
    left = names(place)
    assert left == [f"out-batch-000000-0000{number}-of-00003" for number in range(3)]
    lines = b"".join(get(f"{place}/{name}") for name in left).split()
    assert sorted(map(int, lines)) == list(range(9))


def test_a_file_that_the_store_does_not_delete_is_an_error(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the files of an earlier run would be read beside the new ones."""
    from penstock_spark.files.file_store import StoreFiles

    files = StoreFiles()
    files.remove(f"{place}/absent")
    put(f"{place}/old", b"1")

    def denied(self: object, pattern: str) -> None:
        raise PermissionError(13, "Access Denied")

    with monkeypatch.context() as patch:
        patch.setattr("penstock.io.files.object_stores.ObjectStore._delete", denied)
        with pytest.raises(BeamIOError):
            files.remove(f"{place}/old")
    files.remove(f"{place}/old")
    assert names(place) == []


def test_parquet_in_folders_of_partitions_is_written_replaced_and_read(place: str) -> None:
    schema = pa.schema([("team", pa.string()), ("year", pa.int64()), ("n", pa.int64())])
    rows = [
        {"team": "a/b", "year": 7, "n": 1},
        {"team": None, "year": None, "n": 2},
        {"team": "c", "year": 7, "n": 3},
    ]
    sink = beam.io.WriteToParquet(f"{place}/out", schema, partition_by=("team", "year"), num_shards=1)
    write(rows, sink)
    put(f"{place}/team=c/year=7/out-notes", b"mine")
    nothing = "__HIVE_DEFAULT_PARTITION__"
    folders = {"team=a%2Fb/year=7", "team=c/year=7", f"team={nothing}/year={nothing}"}
    files = {f"{folder}/out-00000-of-00001" for folder in folders}
    assert set(names(place)) == {*files, "team=c/year=7/out-notes"}
    read = beam.io.ReadFromParquet(f"{place}/out-0*", partition_by=("team", "year"), schema=schema)
    check(read, rows)
    only = beam.io.ReadFromParquet(f"{place}/out-0*", partition_by=("team", "year"), columns=["year"])
    check(only, [{"year": "7"}, {"year": None}, {"year": "7"}])
    wrong = pa.schema([("team", pa.int64()), ("year", pa.int64())])
    read = beam.io.ReadFromParquet(f"{place}/out-0*", partition_by=("team", "year"), schema=wrong)
    refused(read, ValueError, "the column team of .* has no value of the type int64 there")
    with pytest.raises(ValueError, match="has an empty string"):
        write([*rows, {"team": "", "year": 1, "n": 1}], sink)
    assert set(names(place)) == {*files, "team=c/year=7/out-notes"}
    write(rows[:1], sink)
    assert set(names(place)) == {"team=a%2Fb/year=7/out-00000-of-00001", "team=c/year=7/out-notes"}


class Score(NamedTuple):
    team: str | None
    year: int | None
    n: int


def test_records_of_other_formats_in_folders_of_partitions_are_written_replaced_and_read(place: str) -> None:
    pytest.importorskip("fastavro", reason="needs the package fastavro")
    scores, parts = [Score("a/b", 7, 1), Score(None, None, 2), Score("c", 7, 3)], ("team", "year")
    formats = {
        "csv": (beam.io.WriteToCsv, beam.io.ReadFromCsv),
        "json": (beam.io.WriteToJson, beam.io.ReadFromJson),
        "avro": (beam.io.WriteToAvro, partial(beam.io.ReadFromAvro, as_rows=True)),
    }
    for given in ([Score("gone", 7, 0), Score("c", 8, 0)], scores):
        with beam.Pipeline() as pipeline:
            typed = pipeline | beam.Create(given).with_output_types(Score)
            for name, (sink, _) in formats.items():
                _ = typed | name >> sink(f"{place}/{name}/o", partition_by=parts, num_shards=1)
    nothing = "__HIVE_DEFAULT_PARTITION__"
    folders = {"team=a%2Fb/year=7", "team=c/year=7", f"team={nothing}/year={nothing}"}
    with beam.Pipeline() as pipeline:
        for name, (_, source) in formats.items():
            assert set(names(f"{place}/{name}")) == {f"{folder}/o-00000-of-00001" for folder in folders}
            read = pipeline | f"read {name}" >> source(f"{place}/{name}", partition_by=parts, schema=Score)
            found = read | f"as scores {name}" >> beam.Map(lambda row: Score(row.team, row.year, row.n))
            assert_that(found, equal_to(scores), name)


def test_orc_is_read_by_stripes_with_the_columns_of_all_files_and_written(place: str) -> None:
    from pyarrow import orc

    rows = [{"n": number, "text": f"{number * 2654435761 % 2**32:x}" * 9} for number in range(4_000)]
    for number, table in enumerate([pa.Table.from_pylist(rows), pa.table({"n": [-1], "z": ["u"]})]):
        content = io.BytesIO()
        orc.write_table(table, content, stripe_size=1 << 16)
        put(f"{place}/{number}.orc", content.getvalue())
    assert orc.ORCFile(io.BytesIO(get(f"{place}/0.orc"))).nstripes > 1
    check(
        beam.io.ReadFromOrc(f"{place}/*.orc", columns=["n", "z"]),
        [*({"n": row["n"], "z": None} for row in rows), {"n": -1, "z": "u"}],
    )
    put(f"{place}/cut.orc", get(f"{place}/0.orc")[:-9])
    refused(
        beam.io.ReadFromOrc(f"{place}/cut.orc"), ValueError, "cut.orc is not an ORC file, or it is damaged"
    )
    schema = pa.schema([("team", pa.string()), ("n", pa.int64())])
    values = [{"team": "a/b", "n": 1}, {"team": None, "n": 2}]
    sink = beam.io.WriteToOrc(f"{place}/out/o", schema, partition_by="team", codec="zstd")
    write([{"team": "gone", "n": 3}], sink)
    write(values, sink)
    check(beam.io.ReadFromOrc(f"{place}/out", partition_by="team"), values)
