"""Sources and sinks as descriptions, under Beam's names; the runner opens and writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.absent import no_attribute
from penstock.io import (
    fileio,
    filesystem,
    filesystems,
    iobase,
    range_trackers,
    restriction_trackers,
    watermarks,
)

# Only for what it does: sources can be read as streams from then on.
from penstock.io import streams as streams
from penstock.io.console import WriteToConsole
from penstock.io.each_batch import ForEachBatch, WriteToMemory
from penstock.io.filesystem import CompressionTypes
from penstock.io.iobase import Read, Sink, Write, Writer
from penstock.io.parquetio import (
    ReadAllFromParquet,
    ReadAllFromParquetBatched,
    ReadFromParquet,
    ReadFromParquetBatched,
    WriteToParquet,
    WriteToParquetBatched,
)
from penstock.io.range_trackers import (
    LexicographicKeyRangeTracker,
    OffsetRangeTracker,
    OrderedPositionRangeTracker,
    UnsplittableRangeTracker,
)
from penstock.io.sparkio import ReadFromSpark, WriteToSpark, from_dataframe, to_dataframe
from penstock.io.textio import (
    ReadAllFromText,
    ReadAllFromTextContinuously,
    ReadFromCsv,
    ReadFromJson,
    ReadFromText,
    ReadFromTextWithFilename,
    WriteToCsv,
    WriteToJson,
    WriteToText,
)

__all__ = [
    "CompressionTypes",
    "ForEachBatch",
    "LexicographicKeyRangeTracker",
    "OffsetRangeTracker",
    "OrderedPositionRangeTracker",
    "Read",
    "ReadAllFromParquet",
    "ReadAllFromParquetBatched",
    "ReadAllFromText",
    "ReadAllFromTextContinuously",
    "ReadFromCsv",
    "ReadFromJson",
    "ReadFromParquet",
    "ReadFromParquetBatched",
    "ReadFromSpark",
    "ReadFromText",
    "ReadFromTextWithFilename",
    "Sink",
    "UnsplittableRangeTracker",
    "Write",
    "WriteToConsole",
    "WriteToCsv",
    "WriteToJson",
    "WriteToMemory",
    "WriteToParquet",
    "WriteToParquetBatched",
    "WriteToSpark",
    "from_dataframe",
    "to_dataframe",
    "WriteToText",
    "Writer",
    "fileio",
    "filesystem",
    "filesystems",
    "iobase",
    "range_trackers",
    "restriction_trackers",
    "watermarks",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        raise no_attribute("penstock.io", name)
