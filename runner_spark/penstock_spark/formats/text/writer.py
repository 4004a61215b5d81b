"""Lines as text files: tasks write shards, or blocks of lines for Spark's writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.error import UnsupportedByRunner
from penstock.io.formats.text_sink import TextFileSink
from penstock_spark.files.compressed import open_for_writing
from penstock_spark.sinks.file_names import TemplateNames
from penstock_spark.sinks.files import FileSink, SparkFiles
from penstock_spark.sinks.plan import Encoder
from penstock_spark.sinks.text_blocks import SPARK_CODECS, make_text_files, make_text_rows


def text_files(sink: TextFileSink, where: str) -> FileSink:
    """Lines, between a header and a footer."""
    compression = sink.shards.compression(sink.compression_type)
    header, footer = sink.frame_of(sink.header), sink.frame_of(sink.footer)

    def by_spark() -> SparkFiles:
        _check_spark_writes(sink, compression, where)
        return make_text_files(lambda: TextBlocks(sink.encode, header, footer), header + footer, compression)

    return FileSink(
        TemplateNames(sink.shards),
        sink.shards.count,
        0 if sink.skip_if_empty else max(sink.shards.count, 1),
        # A class and not a function made here: that would travel to each task with its code.
        partial(_TextShard, compression=compression, sink=sink),
        by_spark,
        limits=tuple(sink.limits()),
    )


def _check_spark_writes(sink: TextFileSink, compression: str, where: str) -> None:
    asked = {
        "append_trailing_newlines=False": not sink.append_trailing_newlines,
        **sink.limits(),
        f"compression_type={compression!r}": compression not in SPARK_CODECS,
    }
    for name, wanted in asked.items():
        if wanted:
            raise UnsupportedByRunner(
                f"{name} is not supported for {sink.shards.prefix}",
                where=where,
                hint="write to a path without a scheme, on a disk that all workers share",
            )


class _TextShard:
    def __init__(self, path: str, compression: str, sink: TextFileSink) -> None:
        self._file = open_for_writing(path, compression)
        self._sink = sink
        self._end = b"\n" if sink.append_trailing_newlines else b""
        self._records = 0
        self._bytes = 0
        self._put(sink.frame_of(sink.header))

    def write(self, values: Sequence[Any]) -> int:
        """Writes lines, up to the limits of a shard."""
        if not self._sink.max_records_per_shard and not self._sink.max_bytes_per_shard:
            encode, end = self._sink.encode, self._end
            self._put(end.join([*map(encode, values), b""]) if end else b"".join(map(encode, values)))
            return len(values)
        for taken, value in enumerate(values):
            if self._is_full():
                return taken
            self._put(self._sink.encode(value) + self._end)
            self._records += 1
        return len(values)

    def close(self) -> None:
        self._put(self._sink.frame_of(self._sink.footer))
        self._file.close()

    def _is_full(self) -> bool:
        records, size = self._sink.max_records_per_shard, self._sink.max_bytes_per_shard
        # A shard takes one element at least: with a header above the limit, there would be no end of empty shards.
        has_one = self._records > 0
        return has_one and bool((records and self._records >= records) or (size and self._bytes >= size))

    def _put(self, data: bytes) -> None:
        self._bytes += len(data)
        self._file.write(data)


@dataclass
class TextBlocks(Encoder):
    """Makes one row of many lines, for Spark's text writer, which adds the last line end.

    A task without elements makes no row, and so writes no file.
    """

    encode_one: Callable[[Any], bytes]  # The bytes of an element, without the line end.
    header: bytes = b""  # The bytes before the first line of a task that has elements.
    footer: bytes = b""  # The bytes after its last line.
    has_elements: bool = False

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        if not values:
            return make_text_rows()
        first, self.has_elements = not self.has_elements, True
        return make_text_rows((self.header if first else b"") + b"\n".join(map(self.encode_one, values)))

    def finish(self) -> pa.RecordBatch | None:
        return make_text_rows(self.footer.removesuffix(b"\n")) if self.footer and self.has_elements else None
