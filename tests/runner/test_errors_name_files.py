"""A file that cannot be read is named in the error, whichever transform reads it."""

from __future__ import annotations

import bz2
import gzip
import os
from itertools import chain
from pathlib import Path

import pytest

from penstock.io.files.file_readers import ReadFiles
from penstock.io.files.paths import files_of
from penstock.io.filesystem import FileMetadata
from penstock.io.formats.text_source import TextSource
from penstock.io.parquetio import ParquetSource
from penstock_spark.files.compressed import find_compression_error
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.finding import find_local_paths
from penstock_spark.formats import registry

assert registry  # It provides the readers of formats.

CUT = gzip.compress(b"line\n" * 100, mtime=0)[:-9]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"plain", None),
        ("a.bz2", bz2.compress(b"line"), None),
        ("a.bz2", bz2.compress(b""), None),
        ("a.bz2", b"", None),
        ("gone.bz2", None, None),
        ("a.BZ2", b"plain", "{} is not a complete bzip2 file"),
        ("a.bz2", bz2.compress(b"line")[:8], "{} is not a complete bzip2 file"),
        ("a.bz2", bz2.compress(b"line").replace(b"1AY", b"1BY"), "{} is not a complete bzip2 file"),
        ("a.lz4", b"", "Spark would decompress {}"),
        ("a.csv.xz", b"", "Spark's readers do not decompress {}"),
        ("a.zip", b"", "Spark's readers do not decompress {}"),
    ],
)
def test_a_file_that_spark_would_read_as_something_else_is_an_error(
    name: str, content: bytes | None, words: str | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    error = find_compression_error(str(path), "at step 'Read'", DiskFiles().open)
    assert (error is None) == (words is None)
    assert error is None or words is None or str(error).startswith(words.format(path))


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("bad", b"fine\n\xff\n", UnicodeDecodeError, "invalid start byte in {}"),
        ("cut.gz", CUT, EOFError, "{} cannot be read: Compressed file ended"),
        ("none.gz", b"no gzip", OSError, "{} cannot be read: Not a gzipped file"),
        ("gone", None, FileNotFoundError, "{}"),
        ("bad.parquet", b"PAR1", ValueError, "{} is not a Parquet file, or it is damaged"),
    ],
)
def test_the_error_about_a_file_that_an_element_names_has_its_name(
    name: str, content: bytes | None, error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    if content is not None:
        Path(path).write_bytes(content)
    read = ReadFiles(ParquetSource, False, columns=None, as_tables=False)
    files = [FileMetadata(path, 0)]
    found = map(read.process, files) if name.endswith("parquet") else [TextSource(path).read_file(path)]
    with pytest.raises(error) as caught:
        list(chain.from_iterable(found))
    assert words.format(path) in str(caught.value)


def test_a_pipe_among_the_files_is_refused_before_anybody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("line\n")
    for find in (files_of, find_local_paths):
        with pytest.raises(OSError, match=r"a\.txt is a pipe, a socket or a device, not a file"):
            find(f"{tmp_path}/*.txt")
    assert find_local_paths(f"{tmp_path}/b*") == (f"{tmp_path}/b.txt",)
