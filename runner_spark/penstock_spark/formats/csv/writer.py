"""Records as CSV files."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from penstock.io.columnar import CsvSink
from penstock.io.naming_errors import encoded
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.record_text import RecordText, check_arguments, record_files

if TYPE_CHECKING:
    import pandas as pd


def csv_files(sink: CsvSink, where: str) -> FileSink:
    """Rows below a header, by the options of pandas."""
    check_arguments("to_csv", sink, where)
    options = {**dict(sink.options), "index": False}
    encoding = options.pop("encoding", None) or "utf-8"
    if options.get("columns"):
        options["columns"] = [name for name in options["columns"] if name not in sink.partition_by]

    def write(table: pd.DataFrame, first: bool) -> bytes:
        chosen = options if first else {**options, "header": False}
        text = str(table.to_csv(**chosen))
        if "\r" in text and not options.keys() & {"quoting", "lineterminator"}:
            # Pandas leaves a return without quotes, and a reader takes it for the end of a record.
            text = str(table.to_csv(**chosen, quoting=csv.QUOTE_ALL))
        return encoded(text, encoding)

    text = RecordText(write, sink.columns, where, has_header=True)
    # A collection of nothing still makes a file if it is known what the header says.
    return record_files(sink, text, 1 if sink.columns else 0, where)
