"""Beam's text files as penstock's, which Spark reads and writes faster, where both mean the same."""

from __future__ import annotations

import os
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.coders.coders import StrUtf8Coder, ToBytesCoder
from apache_beam.io.filebasedsource import FileBasedSource
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.textio import _TextSink, _TextSource, _TextSourceWithFilename
from apache_beam.options.value_provider import StaticValueProvider

from penstock.io.files.shards import Shards
from penstock.io.formats.text_sink import TextFileSink
from penstock.io.formats.text_source import TextSource

if TYPE_CHECKING:
    from apache_beam.io.iobase import BoundedSource


def text_source_of(source: BoundedSource) -> TextSource | None:
    """The source that reads the same lines; None if there is none for sure.

    The files must be local, plain and not hidden: Spark leaves out files whose names begin with ``_`` or ``.``, and
    decompresses more suffixes than Beam.
    """
    if type(source) is not _TextSource or not _reads_plain_lines(source):
        return None
    pattern = source._pattern.get()
    if "://" in pattern:
        return None
    names = [Path(found.path).name for match in FileSystems.match([pattern]) for found in match.metadata_list]
    if not names or any(name.startswith(("_", ".")) or name.endswith(_COMPRESSED) for name in names):
        return None
    return TextSource(pattern, skip_header_lines=source._skip_header_lines)


def with_absolute_paths(source: FileBasedSource) -> FileBasedSource:
    """A source of files that workers also find, whose working directory need not be the program's.

    Beam reads no elements, and reports no error, for files that are missing where it splits a source. A source that
    yields the names of its files keeps them in the user's spelling.
    """
    if not isinstance(source, FileBasedSource) or isinstance(source, _TextSourceWithFilename):
        return source
    if not source._pattern.is_accessible() or "://" in source._pattern.get():
        return source
    found = copy(source)
    found._pattern = StaticValueProvider(str, os.path.abspath(source._pattern.get()))
    found._concat_source = None
    return found


_COMPRESSED = (".bz2", ".deflate", ".gz", ".lz4", ".lzma", ".snappy", ".xz", ".zip", ".zst", ".zstd")


def _reads_plain_lines(source: BoundedSource) -> bool:
    """True if a source of text has only arguments that mean the same to Spark."""
    special = (source._header_matcher, source._header_processor, source._delimiter, source._escapechar)
    return (
        source._pattern.is_accessible()
        and type(source._coder) is StrUtf8Coder
        and source._compression_type in (CompressionTypes.AUTO, CompressionTypes.UNCOMPRESSED)
        and source._strip_trailing_newlines
        and all(argument is None for argument in special)
    )


def text_sink_of(sink: _TextSink) -> TextFileSink | None:
    """The sink that writes the same files from a bounded collection; None if there is none for sure."""
    if type(sink) is not _TextSink or type(sink.coder) is not ToBytesCoder:
        return None
    prefix, suffix = sink.file_path_prefix, sink.file_name_suffix
    if not (prefix.is_accessible() and suffix.is_accessible()) or "://" in prefix.get():
        return None
    return TextFileSink(
        Shards(prefix.get(), suffix.get(), sink.num_shards, sink.shard_name_template),
        append_trailing_newlines=sink._append_trailing_newlines,
        compression_type=sink.compression_type,
        header=sink._header,
        footer=sink._footer,
        max_records_per_shard=sink.max_records_per_shard,
        max_bytes_per_shard=sink.max_bytes_per_shard,
        skip_if_empty=sink.skip_if_empty,
    ).check()
