"""Records as CSV files."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Sequence
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal
from penstock.io.csvio import CsvSink
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.record_text import RecordText, encode_rows, record_files


def csv_files(sink: CsvSink, where: str) -> FileSink:
    """Rows below a header, by the options of pandas."""
    _check_arguments(sink, where)
    options = {**dict(sink.options), "index": False}
    encoding = options.pop("encoding", None) or "utf-8"
    if options.get("columns"):
        options["columns"] = [name for name in options["columns"] if name not in sink.partition_by]

    def write(names: Sequence[str], rows: Sequence[Sequence[Any]], first: bool) -> bytes:
        # Every program imports this module, and few write such files: pandas takes a fifth of a second.
        import pandas as pd

        # Columns of Python objects keep integers as integers where some are missing.
        table = pd.DataFrame(rows, columns=list(names), dtype=object)
        chosen = options if first else {**options, "header": False}
        text = str(table.to_csv(**chosen))
        if "\r" in text and not options.keys() & {"quoting", "lineterminator"}:
            # Pandas leaves a return without quotes, and a reader takes it for the end of a record.
            text = str(table.to_csv(**chosen, quoting=csv.QUOTE_ALL))
        return encode_rows(text, encoding, names, rows, str)

    text = RecordText(write, sink.columns, where, has_header=True)
    # A collection of nothing still makes a file if it is known what the header says.
    return record_files(sink, text, 1 if sink.columns else 0, where)


def _check_arguments(sink: CsvSink, where: str) -> None:
    """Refuses arguments that the method of pandas, which writes the records, does not have."""
    if not sink.options:
        return
    import pandas as pd

    known = list(inspect.signature(pd.DataFrame.to_csv).parameters)[1:]
    for name, _ in sink.options:
        if name not in known:
            hint = hint_at_name(name, known, "see the arguments of pandas.DataFrame.to_csv", 0.75)
            raise refusal(TypeError, f"to_csv of pandas has no argument {name!r}", where=where, hint=hint)
