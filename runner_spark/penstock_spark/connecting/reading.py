"""Reading for connectors: in parts that it hands out to tasks, or as the ranges of a `penstock.io.RangeSource`."""

from penstock_spark.files.splits import SHARE_BYTES, distribute_parts
from penstock_spark.formats.ranges.batch import open_ranges
from penstock_spark.formats.ranges.stream import open_range_stream, read_range_columns
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.sources.parts import PartsReader, make_empty_scan, scan_of_parts
from penstock_spark.sources.scan import Scan, StreamScan, prune_schema
from penstock_spark.sources.table_rows import decoder_of, hint_of_table, schema_in_spark
from penstock_spark.sources.whole_read import scan_with_rejects

__all__ = [
    "SHARE_BYTES",
    "PartsReader",
    "Scan",
    "StreamScan",
    "read_range_columns",
    "decoder_of",
    "hint_of_table",
    "make_empty_scan",
    "open_range_stream",
    "open_ranges",
    "distribute_parts",
    "parallelism_of",
    "prune_schema",
    "scan_of_parts",
    "scan_with_rejects",
    "schema_in_spark",
]
