"""Records as Avro files, written by the tasks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.avroio import AvroSink
from penstock.io.compression import CompressionTypes
from penstock_spark.arrow.records import plain, schema_of
from penstock_spark.files.compressed import open_for_writing
from penstock_spark.formats.avro.exact import keeps_of
from penstock_spark.formats.avro.package import fastavro
from penstock_spark.reports.failure import step_failed
from penstock_spark.sinks.file_names import TemplateNames
from penstock_spark.sinks.files import FileSink, SparkFiles

_SIMPLE: dict[pa.DataType, Any] = {
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.bool_(): "boolean",
    pa.null(): "null",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def avro_files(sink: AvroSink, where: str) -> FileSink:
    schema = sink.schema or avro_schema(schema_of(sink.element_type, where), "Row", where)
    names = TemplateNames(sink.shards)

    def by_spark() -> SparkFiles:
        raise UnsupportedByRunner(
            f"Avro files cannot be written to {sink.shards.prefix}",
            where=where,
            hint="write to a path without a scheme, on a disk that all workers share",
        )

    _try_out(schema, sink, where)
    return FileSink(
        names,
        sink.shards.count,
        max(sink.shards.count, 1),
        lambda path: _AvroShard(path, schema, sink.codec, where),
        by_spark,
    )


def avro_schema(fields: Any, name: str, where: str) -> dict[str, Any]:
    """The Avro schema of columns.

    >>> avro_schema(pa.schema([("team", pa.string())]), "Row", "")["fields"]
    [{'name': 'team', 'type': ['null', 'string']}]
    """
    parts = []
    for field in fields:
        kind = _type_of(field.type, f"{name}_{field.name}", where)
        parts.append(
            {"name": field.name, "type": ["null", kind] if field.nullable and kind != "null" else kind}
        )
    return {"type": "record", "name": name, "fields": parts}


def _type_of(kind: pa.DataType, name: str, where: str) -> Any:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return avro_schema(kind, name, where)
    if pa.types.is_list(kind):
        return {"type": "array", "items": _inner(kind.value_field, name, where)}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": _inner(kind.item_field, name, where)}
    what = f"Avro has no type for {name.partition('_')[2]}, of type {kind}"
    raise refusal(ValueError, what, where=where, hint="pass a schema, or convert the values first")


def _inner(field: pa.Field, name: str, where: str) -> Any:
    kind = _type_of(field.type, name, where)
    return ["null", kind] if field.nullable and kind != "null" else kind


def _try_out(schema: Any, sink: AvroSink, where: str) -> None:
    """Refuses a schema or a codec that cannot be used, before anything starts."""
    package = fastavro(where)
    try:
        package.writer(io.BytesIO(), schema, [], codec=sink.codec)
    except Exception as error:
        about = str(error).partition("\n")[0]
        what = f"Avro files cannot be written with this schema and the codec {sink.codec}: {about}"
        hint = "correct the schema, or install the package that the codec needs"
        raise refusal(ValueError, what, where=where, hint=hint) from None


class _AvroShard:
    """One Avro file on a local disk."""

    def __init__(self, path: str, schema: Any, codec: str, where: str) -> None:
        fastavro(where)
        from fastavro.write import Writer

        self._file: Any = open_for_writing(path, CompressionTypes.UNCOMPRESSED)
        self._writer = Writer(self._file, schema, codec=codec)
        # The package's own validator takes five times as long as writing.
        self._keeps = keeps_of(schema)
        self._where = where

    def write(self, values: Sequence[Any]) -> int:
        write = self._writer.write
        try:
            records = [value if type(value) is dict else plain(value) for value in values]
            fits = self._keeps is None or self._keeps(records)
            for record in records if fits else ():
                write(record)
        except OSError:
            raise
        except Exception:
            fits = False
        if not fits:
            self._refuse()
        return len(values)

    def close(self) -> None:
        self._writer.flush()
        self._file.close()

    def _refuse(self) -> NoReturn:
        # The message of the package would show the value.
        what = "an element does not fit the schema of the Avro files"
        hint = "correct the schema, or convert the elements first"
        step_failed(refusal(TypeError, what, where=self._where, hint=hint), self._where)
