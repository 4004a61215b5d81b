"""Transforms for whole files: match, read, write (Beam's ``apache_beam.io.fileio``)."""

from __future__ import annotations

from penstock.io.file_naming import (
    FileNaming,
    default_file_naming,
    destination_prefix_naming,
    prefix_naming,
    single_file_naming,
)
from penstock.io.match_files import (
    EmptyMatchTreatment,
    MatchAll,
    MatchContinuously,
    MatchFiles,
    ReadableFile,
    ReadMatches,
)
from penstock.io.write_files import FileMetadata, FileResult, FileSink, TextSink, WriteToFiles
from penstock.utils.timestamp import MAX_TIMESTAMP

__all__ = [
    "MAX_TIMESTAMP",
    "EmptyMatchTreatment",
    "FileMetadata",
    "FileNaming",
    "FileResult",
    "FileSink",
    "MatchAll",
    "MatchContinuously",
    "MatchFiles",
    "ReadMatches",
    "ReadableFile",
    "TextSink",
    "WriteToFiles",
    "default_file_naming",
    "destination_prefix_naming",
    "prefix_naming",
    "single_file_naming",
]
