"""Records as Avro files, written by the tasks."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.error import refusal
from penstock.io.avroio import AvroSink
from penstock.io.files.compression import CompressionTypes
from penstock.utils.timestamp import PreciseTimestamp, Timestamp
from penstock_connectors.avro.field_errors import SPELLINGS, find_refusal_by_package
from penstock_connectors.avro.value_checks import check_of
from penstock_connectors.packages import FASTAVRO
from penstock_spark.connecting.files import (
    FileSink,
    Partitions,
    RecordsFile,
    make_task_file_sink,
    open_for_writing,
)
from penstock_spark.connecting.running import fail_step
from penstock_spark.connecting.values import schema_of, to_plain, value_of

_TIMESTAMPS = frozenset({Timestamp, PreciseTimestamp})


def avro_files(sink: AvroSink, where: str) -> FileSink:
    schema = sink.schema or avro_schema(schema_of(sink.element_type, where), "Row", where)
    _try_out(schema, sink, where)
    partitions = None
    if sink.partition_by:
        fields = _columns_of_folders(schema, sink.partition_by, where)
        rest = _without(schema, sink.partition_by)
        _try_out(rest, sink, where)
        open_file = partial(RecordsFile, partial(_AvroShard, schema=rest, codec=sink.codec, where=where))
        record_of = _with_defaults({field["name"]: field for field in schema["fields"]}, sink.partition_by)
        partitions = Partitions(sink.partition_by, fields, open_file, where, record_of=record_of)
    # The tasks need not know the type of the elements, whose module they may lack.
    open_shard = partial(_AvroShard, schema=schema, codec=sink.codec, where=where)
    return make_task_file_sink(sink.shards, "Avro files", open_shard, where, partitions)


def _without(schema: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] not in columns]}


def _columns_of_folders(schema: dict[str, Any], columns: Sequence[str], where: str) -> pa.Schema:
    """The fields of ``partition_by`` as Arrow has them; ValueError for a type that no folder can hold."""
    kinds = {field["name"]: field["type"] for field in schema["fields"]}
    fields = []
    for name in columns:
        kind = kinds[name]
        branches = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
        found = _of_folder(branches[0]) if len(branches) == 1 else None
        if found is None:
            what = (
                f"the name of a folder cannot hold the column {name!r} of partition_by, of Avro's type {kind}"
            )
            hint = "partition by strings, integers, dates or booleans; make such a field in a Map first"
            raise refusal(ValueError, what, where=where, hint=hint)
        fields.append(pa.field(name, found, isinstance(kind, list) and "null" in kind))
    return pa.schema(fields)


def _of_folder(kind: object) -> pa.DataType | None:
    match kind:
        case {"type": "int", "logicalType": "date"}:
            return pa.date32()
        case {"logicalType": _}:
            return None
        case "string" | {"type": "string" | "enum"}:
            return pa.string()
        case "int" | "long" | {"type": "int" | "long"}:
            return pa.int64()
        case "boolean" | {"type": "boolean"}:
            return pa.bool_()
    return None


def _with_defaults(fields: dict[str, Any], columns: Sequence[str]) -> Callable[[Any], Any]:
    """Makes dicts of elements, with the defaults of the schema for columns of folders that an element lacks."""
    defaults = {name: fields[name]["default"] for name in columns if "default" in fields[name]}

    def record_of(value: object) -> dict[str, Any]:
        record = value if type(value) is dict else to_plain(value)
        return {**defaults, **record} if defaults and isinstance(record, dict) else record

    return record_of


def avro_schema(fields: Iterable[pa.Field], name: str, where: str) -> dict[str, Any]:
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


def _type_of(kind: pa.DataType, name: str, where: str) -> object:
    value = value_of(kind)
    if value in SPELLINGS:
        return SPELLINGS[value]
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


def _try_out(schema: dict[str, Any], sink: AvroSink, where: str) -> None:
    """Refuses a schema or a codec that cannot be used, before anything starts."""
    package = FASTAVRO.load(where)
    try:
        package.writer(io.BytesIO(), schema, [], codec=sink.codec)
    except Exception as error:
        about = str(error).partition("\n")[0]
        what = f"Avro files cannot be written with this schema and the codec {sink.codec}: {about}"
        hint = "correct the schema, or install the package that the codec needs"
        raise refusal(ValueError, what, where=where, hint=hint) from None


def _records_of(values: Sequence[Any]) -> list[Any]:
    """The elements as the package takes them; a dict keeps its pairs, which name branches of unions."""
    dicts = [value for value in values if type(value) is dict]
    # One loop in C over all values: nearly always, there are no such times.
    have_times = not _TIMESTAMPS.isdisjoint(map(type, chain.from_iterable(map(dict.values, dicts))))
    if len(dicts) == len(values) and not have_times:
        return dicts
    return [_with_datetimes(value) if type(value) is dict else to_plain(value) for value in values]


def _with_datetimes(record: dict[Any, Any]) -> dict[Any, Any]:
    return {
        name: to_plain(value, name) if type(value) in _TIMESTAMPS else value for name, value in record.items()
    }


class _AvroShard:
    """One Avro file on a local disk."""

    def __init__(self, path: str, schema: dict[str, Any], codec: str, where: str) -> None:
        FASTAVRO.check(where)
        from fastavro.write import Writer

        self._file: Any = open_for_writing(path, CompressionTypes.UNCOMPRESSED)
        self._writer = Writer(self._file, schema, codec=codec)
        # The package's own validator takes five times as long as writing.
        self._check = check_of(FASTAVRO.load(where).parse_schema(schema))
        self._schema = schema
        self._where = where

    def write(self, values: Sequence[Any]) -> int:
        try:
            records = _records_of(values)
        except ValueError as error:
            fail_step(error, self._where)
        write = self._writer.write
        try:
            lost = None if self._check is None else self._check(records)
            for record in records if lost is None else ():
                write(record)
        except OSError:
            raise
        except Exception:
            # The message of the package would show the value.
            lost = find_refusal_by_package(records, self._schema)
        if lost is not None:
            fail_step(lost.refused(self._where), self._where)
        return len(values)

    def close(self) -> None:
        self._writer.flush()
        self._file.close()
