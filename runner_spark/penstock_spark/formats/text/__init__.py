"""Text files: lines, or records that other bytes end."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.text.scan import open_text
from penstock_spark.formats.text.stream import open_text_stream, open_text_with_rejects
from penstock_spark.formats.text.writer import text_files

TEXT = Format(open_text, open_text_stream, files=text_files, open_with_rejects=open_text_with_rejects)
