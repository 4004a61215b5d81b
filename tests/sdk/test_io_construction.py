"""Sources and sinks as they are written down: arguments, refusals, and what is read without Spark."""

from __future__ import annotations

import bz2
import errno
import gzip
import inspect
import io
import lzma
import os
import pickle
import re
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest

import penstock.io
from penstock.coders import coders
from penstock.io import (
    fileio,
    filesystem,
    iobase,
    orcio,
    parquetio,
    range_trackers,
    restriction_trackers,
    textio,
)
from penstock.io.files.compression import inflate
from penstock.io.filesystem import BeamIOError, CompressionTypes, LocalFileSystem
from penstock.io.filesystems import FileSystems
from penstock.io.formats.record_splitter import split_records
from penstock.io.formats.record_types import field_names
from penstock.io.formats.text_source import TextSource
from penstock.io.watermark_estimators import MonotonicWatermarkEstimator
from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.utils.timestamp import Timestamp

READERS = [penstock.io.ReadFromText, penstock.io.ReadFromParquet, penstock.io.ReadFromParquetBatched]


def applied(reader: Any) -> Any:
    return penstock.Pipeline() | "Read logs" >> reader


@pytest.mark.parametrize("reader", [*READERS, penstock.io.ReadFromCsv, penstock.io.ReadFromJson])
def test_a_pattern_that_matches_nothing_is_refused_with_its_step_where_it_is_written(
    tmp_path: Path, reader: Any
) -> None:
    with pytest.raises(OSError, match="No files found based on the file pattern") as caught:
        applied(reader(f"{tmp_path}/*.txt"))
    where, hint = str(caught.value).splitlines()[1:]
    assert where.startswith("  at step 'Read logs' (test_io_construction.py:")
    assert ("validate=False" in hint) is (reader in READERS)
    # Only Spark reaches other file systems; the runner looks there before anything starts.
    assert applied(reader("hdfs://nowhere/x")).is_bounded
    if reader in READERS:
        assert applied(reader(f"{tmp_path}/*.txt", validate=False)).is_bounded


@pytest.mark.parametrize("reader", [penstock.io.ReadFromText, penstock.io.ReadFromCsv])
@pytest.mark.parametrize("rejects", [False, True])
def test_a_stream_may_begin_before_its_first_file_but_not_before_its_folder(
    tmp_path: Path, reader: Any, rejects: bool
) -> None:
    (tmp_path / "in").mkdir()
    for pattern in ("in", "in/", "in/*.txt", "i*/*.txt", "*/new/*.txt"):
        applied(reader(f"{tmp_path}/{pattern}").as_stream(rejects=rejects))
    for pattern in ("on", "on/*.txt", "in/new/*.txt", "in/a.txt"):
        with pytest.raises(
            OSError, match=r"(?s)watches .*, which does not exist.*at step 'Read logs'.*check the path"
        ):
            applied(reader(f"{tmp_path}/{pattern}").as_stream(rejects=rejects))
    applied(penstock.io.ReadFromText(f"{tmp_path}/on/*.txt", validate=False).as_stream(rejects=rejects))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"file_pattern": 3}, TypeError, "file_pattern must be of type string"),
        ({"file_pattern": None}, TypeError, "file_pattern must be of type string"),
        ({"compression_type": "zip"}, TypeError, "compression_type must be CompressionType object"),
        ({"skip_header_lines": -1}, ValueError, "negative number of header lines: -1"),
        ({"delimiter": "\n"}, ValueError, "non-empty bytes"),
        ({"delimiter": b""}, ValueError, "non-empty bytes"),
        ({"delimiter": b"abca"}, ValueError, "must not self-overlap"),
        ({"escapechar": "\\"}, ValueError, "escapechar must be bytes of size 1"),
        ({"escapechar": b"ab"}, ValueError, "escapechar must be bytes of size 1"),
    ],
)
def test_text_sources_refuse_what_beam_refuses(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        textio.ReadFromText(**{"file_pattern": "a", "validate": False, **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"file_path_prefix": 3}, TypeError, "file_path_prefix must be"),
        ({"file_name_suffix": None}, TypeError, "file_name_suffix must be"),
        ({"shard_name_template": "-NN"}, ValueError, r"S\+ not found"),
        ({"compression_type": "zip"}, TypeError, "compression_type"),
    ],
)
def test_text_sinks_refuse_what_beam_refuses(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        textio.WriteToText(**{"file_path_prefix": "a", **arguments})


def test_what_is_not_supported_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="does not support the arguments nrows"):
        textio.ReadFromCsv("a.csv", nrows=3)
    with pytest.raises(ValueError, match="only orient='records'"):
        textio.ReadFromJson("a.json", orient="split")
    with pytest.raises(ValueError, match="only orient='records'"):
        textio.WriteToJson("a.json", orient="split")
    with pytest.raises(ValueError, match="not a save mode"):
        penstock.io.WriteToSpark("orc", "x", mode="replace")


def test_descriptions_survive_pickling_and_say_what_they_are() -> None:
    for transform in (
        textio.ReadFromText("/a", validate=False),
        textio.ReadFromCsv("/a", sep=";"),
        parquetio.ReadFromParquet("/a", validate=False, columns=["x"]),
        penstock.io.ReadFromSpark("orc", "/a", mergeSchema=True),
    ):
        assert cloudpickle.loads(cloudpickle.dumps(transform.source)) == transform.source
        assert "/a" in transform.source.describe()
    assert textio.ReadFromText("/a", validate=False, coder=coders.StrUtf8Coder()).source.coder is None


def test_a_coder_of_the_user_may_be_called_as_the_default_one() -> None:
    class StrUtf8Coder(coders.StrUtf8Coder):
        def decode(self, encoded: bytes) -> str:
            return super().decode(encoded).upper()

    read = textio.ReadFromText("/a", validate=False, coder=StrUtf8Coder())
    assert isinstance(read.source.coder, StrUtf8Coder)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("data", "arguments", "expected"),
    [
        (b"a\r\nb\rc\n\nd", {}, [b"a", b"b\rc", b"", b"d"]),
        (b"a\r\nb", {"strip": False}, [b"a\r\n", b"b"]),
        (b"a\nb\nc", {"skip": 2}, [b"c"]),
        (b"a<>b<c<>", {"delimiter": b"<>"}, [b"a", b"b<c"]),
        (b"a\r\nb", {"delimiter": b"\n"}, [b"a\r", b"b"]),
        (b"a\\\nb\\\\\nc", {"escapechar": b"\\"}, [b"a\\\nb\\\\", b"c"]),
        (b"a\\\r\nb", {"escapechar": b"\\"}, [b"a\\\r", b"b"]),
        (b"", {}, []),
        (b"\n", {}, [b""]),
    ],
)
def test_records_do_not_depend_on_how_the_bytes_arrive(
    data: bytes, arguments: dict[str, Any], expected: list[bytes], size: int
) -> None:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(split_records(chunks, **arguments)) == expected


def test_a_record_of_many_chunks_is_not_copied_for_each_of_them() -> None:
    begin = time.process_time()
    assert [len(record) for record in split_records([bytes([65]) * 1024] * 16_000)] == [16_000 << 10]
    # It takes a tenth of a second, and took half a minute.
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("kind", "compress"),
    [("gzip", gzip.compress), ("bzip2", bz2.compress), ("lzma", lzma.compress), ("deflate", zlib.compress)],
)
def test_files_are_written_and_read_through_their_compression(
    tmp_path: Path, kind: str, compress: Any
) -> None:
    suffix = {"gzip": ".gz", "bzip2": ".bz2", "lzma": ".xz", "deflate": ".deflate"}[kind]
    path = f"{tmp_path}/sub/a{suffix}"
    with FileSystems.create(path) as file:
        file.write(b"a\nb")
    with FileSystems.open(path) as file:
        assert file.read() == b"a\nb"
    Path(path).write_bytes(compress(b"h\nc\n"))
    assert list(TextSource("", skip_header_lines=1, with_filename=True).read_file(path)) == [(path, "c")]
    assert CompressionTypes.detect_compression_type(path) == kind
    Path(path).write_bytes(compress(b"h\nc\n") + compress(b"d\n"))
    assert list(TextSource("", skip_header_lines=1).read_file(path)) == ["c", "d"]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_compressed_file_is_read_to_its_end_or_not_at_all(
    tmp_path: Path, suffix: str, compress: Any
) -> None:
    content = bytes(range(256)) * 1_000
    first, second = compress(content), compress(b"second")
    file = tmp_path / f"a{suffix}"

    def read(stored: bytes) -> bytes:
        file.write_bytes(stored)
        with FileSystems.open(str(file)) as opened:
            return opened.read()

    assert read(first + second) == read(first + second + bytes(100_000)) == content + b"second"
    for damaged in (b"x" + second[1:], second[:2], second[:-1], b"text"):
        with pytest.raises((OSError, EOFError, lzma.LZMAError)):
            read(first + damaged)
    read(first + second)
    with FileSystems.open(str(file)) as opened:
        assert opened.seek(-6, io.SEEK_END) == len(content)
        assert opened.read() == b"second"
        assert opened.seek(255) == 255
        assert (opened.read(2), opened.tell()) == (b"\xff\0", 257)


@pytest.mark.parametrize("names", ["folder", "file"])
def test_what_cannot_be_looked_at_is_not_taken_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("x")
    (tmp_path / "b" / "nowhere.txt").symlink_to(tmp_path / "none")
    denied = str(tmp_path / ("b" if names == "folder" else "b/x.txt"))
    look = getattr(os, "scandir" if names == "folder" else "stat")

    def look_as_another_user(path: Any, *args: Any, **arguments: Any) -> Any:
        if str(path) == denied:
            raise PermissionError(errno.EACCES, "Permission denied", denied)
        return look(path, *args, **arguments)

    pattern = f"{tmp_path}/*/*.txt"
    assert len(FileSystems.match([pattern])[0].metadata_list) == 2
    monkeypatch.setattr(os, look.__name__, look_as_another_user)
    with pytest.raises(filesystem.BeamIOError, match=f"{denied} cannot be inspected: Permission denied"):
        FileSystems.match([pattern])


@pytest.mark.parametrize("cut", [b"", zlib.compress(b"a" * 99)[:-1], zlib.compress(b"a") + b"tail"])
def test_deflate_that_is_cut_short_or_followed_by_something_else_is_an_error(cut: bytes) -> None:
    with pytest.raises(zlib.error):
        inflate(cut)


def test_local_files_can_be_matched_moved_copied_and_deleted(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    found = [each.path for each in FileSystems.match([f"{tmp_path}/*.txt"])[0].metadata_list]
    assert found == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    assert len(FileSystems.match([f"{tmp_path}/**"], [2])[0].metadata_list) == 2
    FileSystems.rename([found[0]], [f"{tmp_path}/z"])
    FileSystems.copy([f"{tmp_path}/sub"], [f"{tmp_path}/sub2"])
    assert FileSystems.checksum(f"{tmp_path}/sub2/c.txt") == "9"
    FileSystems.delete([f"{tmp_path}/sub", f"{tmp_path}/*.txt"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sub2", "z"]
    with pytest.raises(BeamIOError, match="Rename operation failed") as caught:
        FileSystems.rename([f"{tmp_path}/none"], [f"{tmp_path}/y"])
    assert caught.value.exception_details
    with pytest.raises(BeamIOError, match="Delete operation failed"):
        FileSystems.delete([f"{tmp_path}/none"])
    with pytest.raises(ValueError, match="Unable to get filesystem"):
        FileSystems.exists("nowhere://x")


def test_a_file_system_of_the_users_own_is_found_by_its_scheme() -> None:
    class Memory(filesystem.FileSystem):
        @classmethod
        def scheme(cls) -> str:
            return "memory-of-test"

        def exists(self, path: str) -> bool:
            return path.endswith("x")

    assert FileSystems.exists("memory-of-test://x")
    assert not FileSystems.exists("memory-of-test://y")


def test_file_names_have_the_limits_of_their_window() -> None:
    name = fileio.default_file_naming("out", ".txt")(IntervalWindow(0, 60), None, 0, 2, "", None)
    assert name == "out-1970-01-01T00:00:00-1970-01-01T00:01:00-00000-of-00002.txt"
    assert fileio.single_file_naming("all")(GlobalWindow(), None, 0, 1, "", None) == "all"
    with pytest.raises(ValueError, match="shard 1 of 2"):
        fileio.single_file_naming("all")(GlobalWindow(), None, 1, 2, "", None)


def test_readable_files_read_through_their_compression(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress("é".encode()))
    file = fileio.ReadableFile(filesystem.FileMetadata(f"{tmp_path}/a.gz", 0))
    assert pickle.loads(pickle.dumps(file)).read_utf8() == "é"
    assert fileio.ReadableFile(file.metadata, CompressionTypes.UNCOMPRESSED).read()[:2] == b"\x1f\x8b"


def test_a_text_sink_of_fileio_writes_lines() -> None:
    file = io.BytesIO()
    sink = fileio.TextSink()
    sink.open(file)
    sink.write("é")
    sink.flush()
    assert file.getvalue() == "é\n".encode()


def test_offset_trackers_refuse_claims_out_of_order() -> None:
    tracker = range_trackers.OffsetRangeTracker(0, 10)
    assert tracker.try_split(5) is None
    assert tracker.try_claim(3)
    with pytest.raises(ValueError, match="not greater than the last-attempted record"):
        tracker.try_claim(3)
    assert tracker.fraction_consumed() == 0.3
    assert tracker.split_points() == (0, iobase.RangeTracker.SPLIT_POINTS_UNKNOWN)
    restriction = restriction_trackers.OffsetRestrictionTracker(restriction_trackers.OffsetRange(0, 3))
    with pytest.raises(ValueError, match="has not been claimed"):
        restriction.check_done()
    assert [restriction.try_claim(at) for at in range(4)] == [True, True, True, False]
    restriction.check_done()


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.99])
def test_keys_at_a_fraction_are_found_at_that_fraction(fraction: float) -> None:
    keys = range_trackers.LexicographicKeyRangeTracker
    key = keys.fraction_to_position(fraction, b"abc", b"abd")
    assert b"abc" < key < b"abd"
    assert keys.position_to_fraction(key, b"abc", b"abd") == pytest.approx(fraction)


def test_field_names_are_those_of_record_types_only() -> None:
    class Score(NamedTuple):
        team: str
        points: int

    assert field_names(Score) == ("team", "points")
    assert field_names(int) is None


BEAM_MODULES = [
    "textio",
    "parquetio",
    "avroio",
    "tfrecordio",
    "fileio",
    "iobase",
    "range_trackers",
    "restriction_trackers",
    "watermark_estimators",
    "filesystems",
]


@pytest.mark.parametrize("module", BEAM_MODULES)
def test_every_public_name_takes_the_arguments_that_it_takes_in_beam(module: str) -> None:
    ours = pytest.importorskip(f"penstock.io.{module}")
    theirs = pytest.importorskip(f"apache_beam.io.{module}")
    defined = [
        name for name, value in vars(theirs).items() if getattr(value, "__module__", "") == theirs.__name__
    ]
    for name in getattr(theirs, "__all__", None) or [each for each in defined if not each.startswith("_")]:
        mine, beam = getattr(ours, name), getattr(theirs, name)
        if not callable(beam) or name in {"Sink", "Writer"}:
            continue
        wanted = dict(inspect.signature(beam).parameters)
        known = inspect.signature(mine).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in known.values())
        missing = [
            each for each in wanted if each not in known and each not in {"args", "kwargs"} and not takes_any
        ]
        assert not missing, (name, missing)


def test_a_path_that_is_no_text_is_of_no_file_system():
    with pytest.raises(BeamIOError, match=r"^Unable to get the Filesystem") as raised:
        FileSystems.match([None])
    assert list(raised.value.exception_details) == [None]


def test_a_file_system_translates_patterns_whose_names_may_hold_line_ends():
    pattern = filesystem.LocalFileSystem.translate_pattern("a/*.txt")
    assert pattern == r"(?ms)a/[^/\\]*\.txt\Z"
    assert not re.match(pattern, "a/b.txt\n")


def test_the_state_of_an_estimator_is_the_watermark_that_was_told():
    estimator = MonotonicWatermarkEstimator(Timestamp(10))
    estimator.observe_timestamp(Timestamp(15))
    assert estimator.get_estimator_state() == Timestamp(10)
    assert estimator.current_watermark() == estimator.get_estimator_state() == Timestamp(15)


@pytest.mark.parametrize(
    ("pattern", "found", "looked_at"),
    [
        ("{}/*.txt", ["a.txt"], 1),
        ("{}/*/*.txt", ["one/b.txt"], 2),
        ("{}/o*/t*/*.txt", ["one/two/c.txt"], 3),
        ("{}/**.txt", ["a.txt", "one/b.txt", "one/two/c.txt"], 3),
        ("{}/one?b.txt", ["one/b.txt"], 3),
    ],
)
def test_a_pattern_is_looked_for_no_deeper_than_it_can_match(
    pattern: str, found: list[str], looked_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "one/b.txt", "one/two/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    seen: list[str] = []
    look = LocalFileSystem.metadata
    monkeypatch.setattr(
        LocalFileSystem, "metadata", lambda self, path: (seen.append(path), look(self, path))[1]
    )
    (result,) = FileSystems.match([pattern.format(tmp_path)])
    assert [str(Path(each.path).relative_to(tmp_path)) for each in result.metadata_list] == found
    assert len(seen) == looked_at


@pytest.mark.parametrize(
    "read", [parquetio.ReadFromParquet, parquetio.ReadFromParquetBatched, orcio.ReadFromOrc]
)
def test_a_name_alone_is_one_column(read: Any) -> None:
    assert read("/a", validate=False, columns="name").source.columns == ("name",)
    assert read("/a", validate=False, columns=["a", "b"]).source.columns == ("a", "b")
