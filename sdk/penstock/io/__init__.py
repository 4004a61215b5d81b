"""Sources and sinks as descriptions, under Beam's names; the runner opens and writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.absent import make_attribute_error
from penstock.io import fileio as fileio
from penstock.io import filesystem as filesystem
from penstock.io import filesystems as filesystems
from penstock.io import iobase as iobase
from penstock.io import range_trackers as range_trackers
from penstock.io import restriction_trackers as restriction_trackers
from penstock.io import watermarks as watermarks
from penstock.io.avroio import ReadAllFromAvro as ReadAllFromAvro
from penstock.io.avroio import ReadAllFromAvroContinuously as ReadAllFromAvroContinuously
from penstock.io.avroio import ReadFromAvro as ReadFromAvro
from penstock.io.avroio import WriteToAvro as WriteToAvro
from penstock.io.console import WriteToConsole as WriteToConsole
from penstock.io.custom.ranges import NumberedSource as NumberedSource
from penstock.io.custom.ranges import PartitionedSource as PartitionedSource
from penstock.io.custom.ranges import RangesOfSource as RangesOfSource
from penstock.io.custom.ranges import RangeSource as RangeSource
from penstock.io.custom.ranges import ReadFromSource as ReadFromSource
from penstock.io.custom.ranges import SourceRange as SourceRange
from penstock.io.custom.ranges import TimedElements as TimedElements
from penstock.io.custom.ranges import UnreadableElement as UnreadableElement
from penstock.io.each_batch import ForEachBatch as ForEachBatch
from penstock.io.each_batch import WriteToMemory as WriteToMemory
from penstock.io.filesystem import CompressionTypes as CompressionTypes
from penstock.io.iobase import Read as Read
from penstock.io.iobase import Sink as Sink
from penstock.io.iobase import Write as Write
from penstock.io.iobase import Writer as Writer
from penstock.io.orcio import ReadAllFromOrc as ReadAllFromOrc
from penstock.io.orcio import ReadFromOrc as ReadFromOrc
from penstock.io.orcio import WriteToOrc as WriteToOrc
from penstock.io.parquetio import ReadAllFromParquet as ReadAllFromParquet
from penstock.io.parquetio import ReadAllFromParquetBatched as ReadAllFromParquetBatched
from penstock.io.parquetio import ReadFromParquet as ReadFromParquet
from penstock.io.parquetio import ReadFromParquetBatched as ReadFromParquetBatched
from penstock.io.parquetio import WriteToParquet as WriteToParquet
from penstock.io.parquetio import WriteToParquetBatched as WriteToParquetBatched
from penstock.io.range_trackers import LexicographicKeyRangeTracker as LexicographicKeyRangeTracker
from penstock.io.range_trackers import OffsetRangeTracker as OffsetRangeTracker
from penstock.io.range_trackers import OrderedPositionRangeTracker as OrderedPositionRangeTracker
from penstock.io.range_trackers import UnsplittableRangeTracker as UnsplittableRangeTracker
from penstock.io.rejects import RejectedRecord as RejectedRecord
from penstock.io.sink_transforms import SinkTransform as SinkTransform
from penstock.io.source_transforms import SourceTransform as SourceTransform
from penstock.io.sparkio import ReadFromSpark as ReadFromSpark
from penstock.io.sparkio import WriteToSpark as WriteToSpark
from penstock.io.sparkio import from_dataframe as from_dataframe
from penstock.io.sparkio import to_dataframe as to_dataframe
from penstock.io.sparkio import to_streaming_dataframe as to_streaming_dataframe
from penstock.io.streaming.stream_sources import Streamable as Streamable
from penstock.io.textio import ReadAllFromText as ReadAllFromText
from penstock.io.textio import ReadAllFromTextContinuously as ReadAllFromTextContinuously
from penstock.io.textio import ReadFromCsv as ReadFromCsv
from penstock.io.textio import ReadFromJson as ReadFromJson
from penstock.io.textio import ReadFromText as ReadFromText
from penstock.io.textio import ReadFromTextWithFilename as ReadFromTextWithFilename
from penstock.io.textio import WriteToCsv as WriteToCsv
from penstock.io.textio import WriteToJson as WriteToJson
from penstock.io.textio import WriteToText as WriteToText
from penstock.io.tfrecordio import ReadAllFromTFRecord as ReadAllFromTFRecord
from penstock.io.tfrecordio import ReadFromTFRecord as ReadFromTFRecord
from penstock.io.tfrecordio import WriteToTFRecord as WriteToTFRecord

if not TYPE_CHECKING:

    def __getattr__(name):
        raise make_attribute_error("penstock.io", name)
