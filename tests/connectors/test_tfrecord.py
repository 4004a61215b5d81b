"""TFRecord files: what Beam and penstock write is the same, and what is damaged is named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock as beam
from penstock.coders import coders
from penstock.error import UnsupportedByRunner
from penstock.io import WriteToMemory
from penstock.io.tfrecordio import ReadAllFromTFRecord, ReadFromTFRecord, WriteToTFRecord
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.typehints import typehints

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

value = pytest.importorskip("google_crc32c", reason="needs the package google-crc32c").value

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def some_records(count: int) -> list[bytes]:
    chance = random.Random(7)
    return [b"", *(chance.randbytes(chance.randrange(300)) for _ in range(count - 1))]


def crc(data: bytes) -> bytes:
    found = value(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) % (1 << 32))


def content(records: list[bytes]) -> bytes:
    """The bytes of a file with these records, made without penstock's code."""
    lengths = [struct.pack("<Q", len(record)) for record in records]
    parts = zip(lengths, records, strict=True)
    return b"".join(length + crc(length) + record + crc(record) for length, record in parts)


def records_of(data: bytes) -> list[bytes]:
    """The records in the bytes of a file, without a look at the checksums."""
    found = []
    while data:
        end = 12 + struct.unpack_from("<Q", data)[0]
        found.append(data[12:end])
        data = data[end + 4 :]
    return found


def read_in_beam(pattern: str) -> list[bytes]:
    tfrecordio = pytest.importorskip("apache_beam.io.tfrecordio")
    from apache_beam.coders import BytesCoder

    source = tfrecordio._create_tfrecordio_source(pattern, BytesCoder(), "auto")
    return list(source.read(source.get_range_tracker(None, None)))


def write(elements: list[Any], sink: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(elements) | "WriteIt" >> sink


def check(read: Any, expected: list[Any]) -> None:
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | read, equal_to(expected))


def refused(build: Callable[[Any], Any], kind: type[Exception], step: str = "ReadIt") -> list[str]:
    """The three parts of the error of a pipeline; the second one names the step and this file."""
    pipeline = beam.Pipeline()
    _ = build(pipeline) | "Then" >> beam.Map(repr)
    with pytest.raises(kind) as caught:
        pipeline.run().wait_until_finish()
    parts = str(caught.value).split("\n  ")
    assert len(parts) == 3, parts
    assert parts[1].startswith(f"at step '{step}' ({Path(__file__).name}:")
    assert parts[2].startswith("hint: ")
    return parts


def read_it(path: Any, **options: Any) -> Callable[[Any], Any]:
    """Builds a pipeline with the step ``ReadIt``, which reads a path."""
    return lambda pipeline: pipeline | "ReadIt" >> ReadFromTFRecord(str(path), **options)


# What is wrong with files, elements and machines.

WHOLE = content([b"a secret", b"another secret"])
HUGE = struct.pack("<Q", 1 << 60)

DAMAGED = {
    "a head that is truncated": (WHOLE[:30], 24, "is truncated"),
    "data that is truncated": (WHOLE[:-6], 24, "is truncated"),
    "a checksum that is truncated": (WHOLE[:-1], 24, "is truncated"),
    "a huge length": (WHOLE + HUGE + crc(HUGE) + b"secret", 54, "is truncated"),
    "a wrong length": (WHOLE[:24] + HUGE + WHOLE[32:], 24, "has a length that does not match its checksum"),
    "wrong data": (WHOLE[:-5] + b"!" + WHOLE[-4:], 24, "has data that does not match its checksum"),
    "a wrong checksum": (WHOLE[:-1] + b"!", 24, "has data that does not match its checksum"),
    "another file": (b"a secret text", 0, "has a length that does not match its checksum"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_the_byte_and_its_content_is_not_shown(
    name: str, tmp_path: Path
) -> None:
    """A pipeline reads two of them; all readers of records are the same below it."""
    from penstock_connectors.tfrecord.scan import records_of_file

    data, offset, words = DAMAGED[name]
    about = f"{tmp_path}/b is not a TFRecord file, or it is damaged: the record at byte {offset} {words}"
    with pytest.raises(ValueError, match="hint: ") as caught:
        list(records_of_file(io.BytesIO(data), f"{tmp_path}/b", "uncompressed"))
    told = [str(caught.value).split("\n  ")]
    if name in ("wrong data", "another file"):
        (tmp_path / "a").write_bytes(WHOLE)
        (tmp_path / "b").write_bytes(data)
        told.append(refused(read_it(tmp_path / "*"), ValueError))
    for what, *_, hint in told:
        assert what == about
        assert ("compression_type" in hint) is (offset == 0)


def test_every_way_of_reading_names_a_damaged_file(tmp_path: Path) -> None:
    path, packed = tmp_path / "a", tmp_path / "a.gz"
    path.write_bytes(WHOLE[:-1])
    packed.write_bytes(gzip.compress(WHOLE[:-1]))
    unpacked = "byte 24 of the uncompressed content is truncated"
    assert unpacked in refused(read_it(packed), ValueError)[0]
    assert f"file://{packed} is not" in refused(read_it(f"file://{packed}"), ValueError)[0]
    assert "byte 24 is truncated" in refused(read_it(f"file://{path}"), ValueError)[0]
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([str(packed)]) | "ReadIt" >> ReadAllFromTFRecord() | beam.Map(len)
    with pytest.raises(ValueError, match=rf"{packed} is not a TFRecord file(.|\n)*ReadIt(.|\n)*hint: "):
        pipeline.run()


COMPRESSIONS: dict[str, tuple[str, Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (".gz", gzip.compress, gzip.decompress),
    "bzip2": (".bz2", bz2.compress, bz2.decompress),
    "deflate": (".deflate", zlib.compress, zlib.decompress),
    "lzma": (".xz", lzma.compress, lzma.decompress),
    "zstd": (
        ".zst",
        lambda data: pa.compress(data, "zstd", asbytes=True),
        lambda data: pa.input_stream(pa.py_buffer(data), compression="zstd").read(),
    ),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_whose_compressed_content_is_damaged_is_named(compression: str, tmp_path: Path) -> None:
    """A pipeline reads one of them; all readers of records are the same below it."""
    from penstock_connectors.tfrecord.scan import records_of_file

    suffix, pack, _ = COMPRESSIONS[compression]
    packed = pack(content(some_records(300)))
    wanted = f"is not a complete {compression} file"
    for name, data in {"cut": packed[: len(packed) // 2], "other": WHOLE}.items():
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=rf"{path} {wanted}\n(.|\n)*hint: check the file"):
            list(records_of_file(io.BytesIO(data), str(path), compression))
        if compression == "gzip":
            what, _, hint = refused(read_it(path), ValueError)
            assert (what, hint) == (f"{path} {wanted}", "hint: check the file, or compression_type")


class Words(coders.Coder):
    """Texts as bytes, in an order of its own."""

    def encode(self, value: str) -> bytes:
        return value.encode()[::-1]

    def decode(self, encoded: bytes) -> str:
        return encoded[::-1].decode()

    def to_type_hint(self) -> type:
        return str


class Lengths(coders.Coder):
    """Gives what no file takes."""

    def encode(self, value: bytes) -> Any:
        return len(value)


@pytest.mark.parametrize("wrong", ["a secret", 7, None, bytearray(b"a secret")])
def test_an_element_that_is_not_bytes_is_refused_with_its_type_and_is_not_shown(
    wrong: Any, tmp_path: Path
) -> None:
    def build(pipeline: Any) -> Any:
        return pipeline | beam.Create([wrong]) | "WriteIt" >> WriteToTFRecord(str(tmp_path / "out"))

    what, _, hint = refused(build, TypeError, "WriteIt")
    assert what == f"an element has the type {type(wrong).__name__}, and TFRecord files take only bytes"
    assert "coder" in hint
    assert list(tmp_path.iterdir()) == []


def test_a_coder_that_gives_no_bytes_is_refused(tmp_path: Path) -> None:
    def build(pipeline: Any) -> Any:
        sink = WriteToTFRecord(str(tmp_path / "out"), coder=Lengths())
        return pipeline | beam.Create([b"a secret"]) | "WriteIt" >> sink

    assert refused(build, TypeError, "WriteIt")[0] == "the coder of the TFRecord files returns int, not bytes"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_becomes_shorter_by_whole_records_before_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.tfrecord import scan

    found = scan.whole_files

    def then_shorter(*arguments: Any) -> Any:
        splits = found(*arguments)
        path.write_bytes(WHOLE[:left])
        return splits

    monkeypatch.setattr(scan, "whole_files", then_shorter)
    path = tmp_path / "a"
    for left in (24, 30, 0):  # noqa: B007 - the function above reads it.
        path.write_bytes(WHOLE)
        what = refused(read_it(path), OSError)[0]
        assert what.endswith(f"{path} cannot be read: it was truncated after the pipeline found it")


def test_a_file_that_becomes_shorter_by_whole_records_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    records = [b"%084d" % number for number in range(5_000)]
    path.write_bytes(content(records))

    def shorten(record: bytes) -> bytes:
        # The reader is still among the first 2,000 records of 100 bytes.
        if record == records[0]:
            os.truncate(path, 400_000)
        return record

    what = refused(lambda pipeline: read_it(path)(pipeline) | beam.Map(shorten), OSError)[0]
    assert what.endswith(f"{path} cannot be read: it was truncated after the pipeline found it")


def test_what_cannot_be_read_or_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    def write_away(pipeline: Any) -> Any:
        return pipeline | beam.Create([b""]) | "WriteIt" >> WriteToTFRecord("hdfs://lake/out")

    what = refused(write_away, UnsupportedByRunner, "WriteIt")[0]
    assert what == "TFRecord files cannot be written to hdfs://lake/out"
    with pytest.raises(OSError, match="none"):
        beam.Pipeline() | ReadFromTFRecord(str(tmp_path / "none*"))
    for transform in (ReadFromTFRecord, WriteToTFRecord):
        with pytest.raises(TypeError, match="compression_type must be"):
            transform("a", compression_type="zip")


# What is read and written.


def test_beam_and_penstock_write_the_same_bytes_and_read_what_the_other_writes(tmp_path: Path) -> None:
    tfrecordio = pytest.importorskip("apache_beam.io.tfrecordio")
    records = some_records(300)
    ours = tmp_path / "ours-00000-of-00001"
    write(records, WriteToTFRecord(str(tmp_path / "ours"), num_shards=1))
    written = records_of(ours.read_bytes())
    assert sorted(written) == sorted(records)
    theirs = io.BytesIO()
    for record in written:
        tfrecordio._TFRecordUtil.write_record(theirs, record)
    assert ours.read_bytes() == theirs.getvalue() == content(written)
    assert read_in_beam(str(ours)) == written
    (tmp_path / "theirs").write_bytes(theirs.getvalue())
    check(ReadFromTFRecord(str(tmp_path / "theirs")), records)


@pytest.mark.parametrize(
    "compression",
    ["gzip", "zstd", *(pytest.param(name, marks=pytest.mark.soak) for name in ("bzip2", "deflate", "lzma"))],
)
def test_compressed_files_are_written_and_read(compression: str, tmp_path: Path) -> None:
    suffix, pack, unpack = COMPRESSIONS[compression]
    records = some_records(300)
    named, unnamed = tmp_path / f"a{suffix}", tmp_path / "b"
    with beam.Pipeline() as pipeline:
        made = pipeline | beam.Create(records)
        options: Any = {"shard_name_template": ""}
        _ = made | "ByName" >> WriteToTFRecord(str(tmp_path / "a"), file_name_suffix=suffix, **options)
        _ = made | "ByType" >> WriteToTFRecord(str(unnamed), compression_type=compression, **options)
    for path in (named, unnamed):
        assert sorted(records_of(unpack(path.read_bytes()))) == sorted(records)
    if compression != "zstd":
        # Beam would need a package for it.
        assert sorted(read_in_beam(str(named))) == sorted(records)
    # Several compressed pieces in a row are one file.
    named.write_bytes(pack(content(records[:100])) + pack(content(records[100:])))
    unnamed.write_bytes(named.read_bytes())
    with beam.Pipeline() as pipeline:
        by_name = pipeline | "ByName" >> ReadFromTFRecord(str(named))
        assert_that(by_name, equal_to(records), "by_name")
        by_type = pipeline | "ByType" >> ReadFromTFRecord(str(unnamed), compression_type=compression)
        assert_that(by_type, equal_to(records), "by_type")
        in_spark = pipeline | "InSpark" >> ReadFromTFRecord(f"file://{named}")
        assert_that(in_spark, equal_to(records), "in_spark")
        each = pipeline | beam.Create([str(named)]) | ReadAllFromTFRecord()
        assert_that(each, equal_to(records), "each")


def test_many_files_are_read_by_pattern_and_by_element(tmp_path: Path) -> None:
    files = {f"{tmp_path}/{number:02}.tfrecord": some_records(number)[:number] for number in range(20)}
    for name, records in files.items():
        Path(name).write_bytes(content(records))
    everything = [record for records in files.values() for record in records]
    pairs = [(name, record) for name, records in files.items() for record in records]
    with beam.Pipeline() as pipeline:
        read = pipeline | "Pattern" >> ReadFromTFRecord(f"{tmp_path}/*.tfrecord")
        assert_that(read, equal_to(everything), "pattern")
        in_spark = pipeline | "InSpark" >> ReadFromTFRecord(f"file://{tmp_path}/*.tfrecord")
        assert_that(in_spark, equal_to(everything), "in_spark")
        patterns = pipeline | beam.Create([f"{tmp_path}/0*", f"{tmp_path}/1*", f"{tmp_path}/none*"])
        assert_that(patterns | "All" >> ReadAllFromTFRecord(), equal_to(everything), "all")
        named = patterns | "Named" >> ReadAllFromTFRecord(with_filename=True)
        assert_that(named, equal_to(pairs), "named")
        none = pipeline | "None" >> ReadFromTFRecord(f"{tmp_path}/none*", validate=False)
        assert_that(none, equal_to([]), "none")


def test_an_empty_file_has_no_records_and_no_records_make_an_empty_file(tmp_path: Path) -> None:
    write([], WriteToTFRecord(str(tmp_path / "a")))
    assert (tmp_path / "a-00000-of-00001").read_bytes() == b""
    check(ReadFromTFRecord(f"{tmp_path}/a*"), [])
    write([b""], WriteToTFRecord(str(tmp_path / "b")))
    assert (tmp_path / "b-00000-of-00001").read_bytes() == content([b""])
    check(ReadFromTFRecord(f"{tmp_path}/b*"), [b""])


def test_a_file_of_many_batches_is_read_in_order(tmp_path: Path) -> None:
    from penstock_connectors.tfrecord.scan import records_of_file

    records = [*(b"%d" % number for number in range(5_000)), bytes(9 << 20), b"end"]
    (tmp_path / "a").write_bytes(content(records))
    found: list[bytes] = []
    with beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromTFRecord(f"{tmp_path}/a") | WriteToMemory(found)
    assert found == records
    assert list(records_of_file(io.BytesIO(content(records)), "a", "uncompressed")) == records


def test_a_coder_makes_the_records_and_the_elements_and_gives_their_type(tmp_path: Path) -> None:
    with beam.Pipeline() as pipeline:
        names = pipeline | beam.Create(["abc", ""]) | WriteToTFRecord(f"{tmp_path}/a", Words(), num_shards=1)
        assert_that(names, equal_to([f"{tmp_path}/a-00000-of-00001"]))
    assert sorted(records_of((tmp_path / "a-00000-of-00001").read_bytes())) == [b"", b"cba"]
    with beam.Pipeline() as pipeline:
        read = pipeline | "Read" >> ReadFromTFRecord(f"{tmp_path}/a*", Words())
        assert_that(read, equal_to(["abc", ""]), "read")
        files = pipeline | beam.Create([f"{tmp_path}/a*"])
        each = files | "All" >> ReadAllFromTFRecord(Words())
        assert_that(each, equal_to(["abc", ""]), "each")
        named = files | "Named" >> ReadAllFromTFRecord(with_filename=True)
        plain = pipeline | "Plain" >> ReadFromTFRecord(f"{tmp_path}/a*")
    assert [read.element_type, each.element_type, plain.element_type] == [str, str, bytes]
    assert named.element_type == typehints.KV[str, bytes]


class BytesCoder(coders.BytesCoder):
    """A coder with the name of the default one that changes what it reads and writes."""

    def encode(self, value: bytes) -> bytes:
        return value.upper()

    def decode(self, encoded: bytes) -> bytes:
        return encoded + b"!"


def test_a_coder_that_derives_from_the_default_one_is_used(tmp_path: Path) -> None:
    write([b"hello"], WriteToTFRecord(f"{tmp_path}/a", BytesCoder(), shard_name_template=""))
    assert (tmp_path / "a").read_bytes() == content([b"HELLO"])
    check(ReadFromTFRecord(f"{tmp_path}/a", BytesCoder()), [b"HELLO!"])


def streaming(tmp_path: Path) -> PipelineOptions:
    flags = [f"--checkpoint_location={tmp_path}/checkpoint", "--mode=streaming", "--shuffle_partitions=2"]
    return PipelineOptions(flags)


def test_a_stream_reads_files_that_arrive_and_writes_each_record_once(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    records = some_records(90)
    for number in range(3):
        packed = gzip.compress(content(records[number * 30 : number * 30 + 30]))
        (source / f"{number}.gz").write_bytes(packed)
    for more in (0, 1):
        if more:
            (source / "more.gz").write_bytes(gzip.compress(content([b"more"])))
        with beam.Pipeline(options=streaming(tmp_path)) as pipeline:
            read = ReadFromTFRecord(f"{source}/*.gz").as_stream(max_files_per_batch=1, existing_only=True)
            _ = pipeline | read | WriteToTFRecord(f"{out}/some", file_name_suffix=".tfrecord")
        written = [record for path in out.iterdir() for record in records_of(path.read_bytes())]
        assert sorted(written) == sorted([*records, *[b"more"][:more]])
    assert {path.name.partition("-0")[0] for path in out.iterdir()} == {"some-batch"}
    assert {path.suffix for path in out.iterdir()} == {".tfrecord"}


def test_a_damaged_file_is_an_error_of_a_stream_or_one_of_its_rejects(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_bytes(content([b"fine"]))
    (source / "b").write_bytes(WHOLE[:-1])
    stream = ReadFromTFRecord(f"{source}/*").as_stream(existing_only=True)
    what = refused(lambda pipeline: pipeline | "ReadIt" >> stream, ValueError)[0]
    assert what.endswith("b is not a TFRecord file, or it is damaged: the record at byte 24 is truncated")
    accepted: list[Any] = []
    rejected: list[Any] = []
    with beam.Pipeline(options=streaming(tmp_path)) as pipeline:
        rejecting = ReadFromTFRecord(f"{source}/*").as_stream(rejects=True, existing_only=True)
        good, bad = pipeline | rejecting
        _ = good | "Good" >> WriteToMemory(accepted)
        _ = bad | "Bad" >> WriteToMemory(rejected)
    assert accepted == [b"fine"]
    reason = "the file is not a TFRecord file, or it is damaged: the record at byte 24 is truncated"
    assert [(each.source, each.reason, each.record) for each in rejected] == [(f"{source}/b", reason, "")]
    accepted.clear()
    rejected.clear()
    with beam.Pipeline() as pipeline:
        good, bad = pipeline | ReadFromTFRecord(f"{source}/*", rejects=True)
        _ = good | "Good" >> WriteToMemory(accepted)
        _ = bad | "Bad" >> WriteToMemory(rejected)
    assert accepted == [b"fine"]
    assert [(each.source, each.reason) for each in rejected] == [(f"{source}/b", reason)]


def test_the_files_of_windows_have_the_records_of_these_windows(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_bytes(content([b"1", b"61", b"2"]))
    with beam.Pipeline(options=streaming(tmp_path)) as pipeline:
        read = ReadFromTFRecord(f"{source}/*").as_stream(existing_only=True)
        timed = pipeline | read | beam.Map(lambda data: beam.window.TimestampedValue(data, int(data)))
        _ = timed | WriteToTFRecord(f"{tmp_path}/out", num_shards=1, triggering_frequency=60)
    found = {path.name: sorted(records_of(path.read_bytes())) for path in tmp_path.glob("out*")}
    assert found == {
        "out-[0.0, 60.0)-00000-of-00001": [b"1", b"2"],
        "out-[60.0, 120.0)-00000-of-00001": [b"61"],
    }
