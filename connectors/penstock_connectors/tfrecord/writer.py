"""Records as TFRecord files, written by the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from penstock.error import refusal
from penstock.io.tfrecordio import TFRecordSink
from penstock_connectors.tfrecord.checksums import load_masked_crc32c
from penstock_connectors.tfrecord.records import encode_records
from penstock_spark.connecting.files import FileSink, make_task_file_sink, open_for_writing
from penstock_spark.connecting.running import fail_step


def tfrecord_files(sink: TFRecordSink, where: str) -> FileSink:
    load_masked_crc32c(where)
    compression = sink.shards.compression(sink.compression_type)

    open_shard = partial(_TFRecordShard, compression=compression, coder=sink.coder, where=where)
    return make_task_file_sink(sink.shards, "TFRecord files", open_shard, where)


class _TFRecordShard:
    """One TFRecord file on a local disk."""

    def __init__(self, path: str, compression: str, coder: Any, where: str) -> None:
        self._checksum = load_masked_crc32c(where)
        self._file = open_for_writing(path, compression)
        self._coder = coder
        self._where = where

    def write(self, values: Sequence[Any]) -> int:
        records = values if self._coder is None else self._encoded(values)
        for record in records:
            if not isinstance(record, bytes):
                self._refuse(record)
        self._file.write(encode_records(records, self._checksum))
        return len(values)

    def close(self) -> None:
        self._file.close()

    def _encoded(self, values: Sequence[Any]) -> list[Any]:
        try:
            return [self._coder.encode(value) for value in values]
        except Exception as error:
            fail_step(error, self._where)

    def _refuse(self, record: object) -> NoReturn:
        kind = type(record).__name__
        if self._coder is None:
            what = f"an element has the type {kind}, and TFRecord files take only bytes"
            hint = "make bytes of the elements first, or pass a coder that does"
        else:
            what = f"the coder of the TFRecord files returns {kind}, not bytes"
            hint = "let the coder's encode return bytes"
        fail_step(refusal(TypeError, what, where=self._where, hint=hint), self._where)
