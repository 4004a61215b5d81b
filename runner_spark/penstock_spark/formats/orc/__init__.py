"""ORC files by pyarrow: dicts or rows."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.orc.scan import (
    open_orc,
    open_orc_stream,
    open_orc_with_rejects,
    records_of_file,
    schema_before_opening,
    type_of_orc,
)
from penstock_spark.formats.orc.writer import orc_files

ORC = Format(
    open_orc,
    open_orc_stream,
    type_of_orc,
    records=lambda source: "row" if source.as_rows else "dict",
    schema=schema_before_opening,
    files=orc_files,
    read_file=records_of_file,
    open_with_rejects=open_orc_with_rejects,
)
