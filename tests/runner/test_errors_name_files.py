"""A file that cannot be read is named in the error, whichever transform reads it."""

from __future__ import annotations

import gzip
from itertools import chain
from pathlib import Path

import pytest

from penstock.io.file_readers import ReadFiles
from penstock.io.filesystem import FileMetadata
from penstock.io.text_source import TextSource
from penstock_spark.formats import registry

assert registry  # It provides the readers of formats.

CUT = gzip.compress(b"line\n" * 100)[:-9]


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("bad", b"fine\n\xff\n", UnicodeDecodeError, "invalid start byte in {}"),
        ("cut.gz", CUT, EOFError, "{} cannot be read: Compressed file ended"),
        ("none.gz", b"no gzip", OSError, "{} cannot be read: Not a gzipped file"),
        ("gone", None, FileNotFoundError, "{}"),
        ("bad.parquet", b"PAR1", ValueError, "{} cannot be read: "),
    ],
)
def test_the_error_about_a_file_that_an_element_names_has_its_name(
    name: str, content: bytes | None, error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    if content is not None:
        Path(path).write_bytes(content)
    read = ReadFiles("Parquet", False, columns=None, as_tables=False)
    files = [FileMetadata(path, 0)]
    found = map(read.process, files) if name.endswith("parquet") else [TextSource(path).read_file(path)]
    with pytest.raises(error) as caught:
        list(chain.from_iterable(found))
    assert words.format(path) in str(caught.value)
