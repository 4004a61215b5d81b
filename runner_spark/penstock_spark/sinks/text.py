"""Text files: lines in, shards with Beam's names out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.error import UnsupportedByRunner
from penstock.io.compression import CompressionTypes, open_compressed
from penstock.io.filesystems import FileSystems
from penstock.io.text_sink import Shards, TextSink
from penstock_spark.files.hadoop import write_files
from penstock_spark.files.naming import Naming
from penstock_spark.formats.text.scan import decompress
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink
from penstock_spark.sinks.shard_files import ShardWriter, local_plan

# Spark's names of the compressions that it writes.
_SPARK_CODECS = {
    CompressionTypes.UNCOMPRESSED: "none",
    CompressionTypes.GZIP: "gzip",
    CompressionTypes.BZIP2: "bzip2",
    CompressionTypes.DEFLATE: "deflate",
}
_ARROW_CODECS = {CompressionTypes.ZSTD: "zstd"}


@plan_sink.register
def plan_text(sink: TextSink, where: str) -> SinkPlan:
    """Local paths are written by the tasks, all others by Spark's text writer."""
    refuse_streaming(sink.triggering_frequency, sink.shards, where)
    empty = 0 if sink.skip_if_empty else max(sink.shards.count, 1)
    return text_plan(sink, shard_naming(sink.shards), empty, where)


def text_plan(sink: TextSink, naming: Naming, empty: int, where: str) -> SinkPlan:
    """A plan for files with the names of a `Naming`; `empty` is how many files an empty collection gives."""
    shards, kind = sink.shards, sink.shards.compression(sink.compression_type)
    if FileSystems.get_scheme(shards.prefix) is None:
        folder = os.path.dirname(shards.prefix) or "."
        return local_plan(folder, text_shards(sink, where), naming, shards=shards.count, empty_shards=empty)
    _refuse_on_hadoop(sink, kind, where)
    return text_plan_on_hadoop(
        shards.prefix.rpartition("/")[0],
        lambda: TextBlocks(sink.encode, sink.frame_of(sink.header), sink.frame_of(sink.footer)),
        naming,
        codec=kind,
        shards=shards.count,
        empty_shards=empty,
        frame=sink.frame_of(sink.header) + sink.frame_of(sink.footer),
    )


def text_shards(sink: TextSink, where: str) -> Callable[[str], ShardWriter]:
    """What opens a local file of a sink."""
    kind = sink.shards.compression(sink.compression_type)
    return lambda path: _TextShard(path, kind, sink)


def refuse_streaming(triggering_frequency: float | None, shards: Shards, where: str) -> None:
    """Raises UnsupportedByRunner for files that are written again and again, and for windows in their
    names.
    """
    if triggering_frequency:
        raise UnsupportedByRunner(
            "triggering_frequency is for unbounded collections", where=where, hint="leave it out"
        )
    refuse_letters("WVU", shards, where)


def refuse_letters(letters: str, shards: Shards, where: str) -> None:
    """Raises UnsupportedByRunner for a template with one of the letters."""
    for letter in letters:
        if letter in shards.template:
            raise UnsupportedByRunner(
                f"the letter {letter} in shard_name_template {shards.template!r} is not supported",
                where=where,
                hint="leave it out" if letter == "U" else "files of windows need an unbounded input",
            )


def shard_naming(shards: Shards) -> Naming:
    """Beam's names."""
    return Naming(shards.name)


def _refuse_on_hadoop(sink: TextSink, kind: str, where: str) -> None:
    asked = {
        "append_trailing_newlines=False": not sink.append_trailing_newlines,
        "max_records_per_shard": sink.max_records_per_shard,
        "max_bytes_per_shard": sink.max_bytes_per_shard,
        f"compression_type={kind!r}": kind not in _SPARK_CODECS,
    }
    for name, wanted in asked.items():
        if wanted:
            raise UnsupportedByRunner(
                f"{name} is not supported for {sink.shards.prefix}",
                where=where,
                hint="write to a path without a scheme, on a disk that all workers share",
            )


class _TextShard:
    """One text file on a local disk."""

    def __init__(self, path: str, compression: str, sink: TextSink) -> None:
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
        """Writes the footer."""
        self._put(self._sink.frame_of(self._sink.footer))
        self._file.close()

    def _is_full(self) -> bool:
        records, size = self._sink.max_records_per_shard, self._sink.max_bytes_per_shard
        # A shard takes one element at least, or a header above the limit would make empty shards for ever.
        has_one = self._records > 0
        return has_one and bool((records and self._records >= records) or (size and self._bytes >= size))

    def _put(self, data: bytes) -> None:
        self._bytes += len(data)
        self._file.write(data)


def open_for_writing(path: str, compression: str) -> BinaryIO:
    """A local file that compresses what is written to it."""
    if compression in _ARROW_CODECS:
        stream: BinaryIO = pa.output_stream(path, compression=_ARROW_CODECS[compression])
        return stream
    return open_compressed(path, "wb", compression)


@dataclass
class TextBlocks(Encoder):
    """Makes one row of many lines, for Spark's text writer, which adds the last line end.

    Attributes:
        encode_one: The bytes of an element, without the line end.
        header: The bytes before the first line of a task that has elements.
        footer: The bytes after its last.
    """

    encode_one: Callable[[Any], bytes]
    header: bytes = b""
    footer: bytes = b""
    has_elements: bool = False

    def start(self) -> pa.RecordBatch | None:
        """Nothing: a task without elements writes no file."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """One row, or none without elements."""
        if not values:
            return text_rows()
        first, self.has_elements = not self.has_elements, True
        return text_rows((self.header if first else b"") + b"\n".join(map(self.encode_one, values)))

    def finish(self) -> pa.RecordBatch | None:
        """The footer, if there were elements."""
        return text_rows(self.footer.removesuffix(b"\n")) if self.footer and self.has_elements else None


def text_rows(*blocks: bytes) -> pa.RecordBatch:
    """Rows for `text_plan_on_hadoop`."""
    return pa.RecordBatch.from_arrays([pa.array(blocks, pa.binary())], names=["value"])


def text_plan_on_hadoop(
    folder: str,
    make_encoder: Callable[[], Encoder],
    naming: Naming,
    *,
    codec: str,
    shards: int,
    empty_shards: int,
    frame: bytes,
) -> SinkPlan:
    """A plan for blocks of text on any file system, through Spark's text writer.

    Args:
        folder: Where the files go.
        make_encoder: Makes encoders of `text_rows`.
        naming: The final names.
        codec: A name of ``CompressionTypes``.
        shards: How many files are asked for; 0 leaves it to Spark.
        empty_shards: How many files an empty collection gives.
        frame: The content of a file without elements.
    """

    def write(rows: DataFrame, target: str) -> None:
        lines = rows.selectExpr("cast(value as string) as value")
        lines.write.format("text").options(compression=_SPARK_CODECS[codec], lineSep="\n").save(target)

    def commit(rows: DataFrame) -> list[Any]:
        return write_files(
            rows,
            folder,
            write,
            naming,
            shards=shards,
            empty_shards=empty_shards,
            has_elements=lambda content: bool(decompress(content, codec, "a file of Spark's", "")),
            empty_file=compressed(frame, codec),
        )

    return SinkPlan("value binary", make_encoder, shards or None, commit)


def compressed(content: bytes, codec: str) -> bytes:
    """The content of a whole file with that compression."""
    from penstock.io.compression import compress

    data = compress(content, codec)
    return content if data is None else data
