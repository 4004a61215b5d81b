"""The parts of connectors for formats of files: how to find, divide, read and write them, in a batch and a stream."""

from penstock_spark.files.compressed import open_for_reading, open_for_writing, translate_decompression_errors
from penstock_spark.files.file_store import disk_path, file_store, size_of
from penstock_spark.files.finding import find_files, make_unreadable_error
from penstock_spark.files.splits import (
    BLOCK_BYTES,
    SHORTENED_FILE,
    Split,
    leaves_files_out,
    splits_of,
    whole_files,
)
from penstock_spark.sinks.files import FileSink, make_task_file_sink
from penstock_spark.sinks.partitions import Partitions, RecordsFile
from penstock_spark.sources.contents import scan_of_contents, stream_of_contents
from penstock_spark.sources.needed_columns import NOTHING_NEEDED, NeededColumns
from penstock_spark.sources.partition_values import PartitionValues, add_folder_values, partition_values
from penstock_spark.sources.stream_files import stream_files

__all__ = [
    "BLOCK_BYTES",
    "NOTHING_NEEDED",
    "SHORTENED_FILE",
    "FileSink",
    "NeededColumns",
    "PartitionValues",
    "Partitions",
    "RecordsFile",
    "Split",
    "add_folder_values",
    "disk_path",
    "file_store",
    "make_task_file_sink",
    "find_files",
    "leaves_files_out",
    "open_for_reading",
    "open_for_writing",
    "partition_values",
    "scan_of_contents",
    "size_of",
    "splits_of",
    "stream_files",
    "stream_of_contents",
    "translate_decompression_errors",
    "make_unreadable_error",
    "whole_files",
]
