"""Tables in records with a key and a value of bytes: formats of values, keys, and what a system knows of a record."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.kafka import KafkaRecord
from penstock.relations.upserts import Upsert
from penstock.sql.plan.relations import Columns
from penstock.sql.tables.avro_rows import AvroOfRows, RowsOfAvro, read_schema, schema_of
from penstock.sql.tables.columns import row_hint
from penstock.sql.tables.json_rows import RowsOfJson, write_json
from penstock.sql.tables.text_rows import CsvOfRows, RowsOfBytes, RowsOfCsv, write_bytes
from penstock.transforms.elements.pardo import FlatMap, Map
from penstock.typehints import KV, Optional

Encode: TypeAlias = Callable[[Mapping[str, object]], bytes | None]

FORMATS = ("json", "csv", "avro", "avro-confluent", "raw")
"""The formats of values."""

KEY_FORMATS = ("json", "raw")
"""The formats of keys."""

METADATA: Mapping[str, tuple[str, ...]] = {
    "key": ("STRING", "BINARY"),
    "topic": ("STRING",),
    "partition": ("BIGINT",),
    "offset": ("BIGINT",),
    "timestamp": ("TIMESTAMP",),
}
"""The names of what the system knows of a record, with the types that a column may have; and ``header.NAME``."""

HEADER = "header."


@dataclass(frozen=True)
class Records:
    """The form that the rows of a table have in records.

    Attributes:
        columns: The columns of the table; empty if the query that fills it has them.
        format: The format of values.
        metadata: The columns that are not in the value, and what they have of the record.
        sep: What separates the fields of CSV.
        avro_schema: The schema of Avro, as JSON or as a path; None takes the schema of the columns.
        key_format: The format of keys.
    """

    columns: Columns = ()
    format: str = "json"
    metadata: tuple[tuple[str, str], ...] = ()
    sep: str = ","
    avro_schema: str | None = None
    key_format: str = "json"

    @property
    def value_columns(self) -> Columns:
        """The columns that are in the value."""
        outside = {name for name, _ in self.metadata}
        return tuple(each for each in self.columns if each.name not in outside)

    def check(self) -> None:
        """Refuses columns that the format does not have.

        Raises:
            ValueError: There are such columns, or the schema of Avro cannot be read.
        """
        columns = self.value_columns
        if len(self.sep) != 1:
            what = f"{self.sep!r} cannot separate fields"
            raise refusal(ValueError, what, where="", hint="write one character, such as sep = ';'")
        if self.format == "raw" and columns:
            _check_raw(columns)
        if self.format == "avro-confluent" and self.avro_schema is None:
            what = "the schema of the records is unknown: no schema registry is used"
            raise refusal(ValueError, what, where="", hint="write avro_schema = '/data/goals.avsc'")
        if self.format.startswith("avro"):
            self._schema(columns)
            if importlib.util.find_spec("fastavro") is None:
                hint = "pip install 'penstock[avro]'"
                raise refusal(ValueError, "records in Avro need the package fastavro", where="", hint=hint)

    def _schema(self, columns: Columns) -> dict[str, object]:
        return schema_of(columns) if self.avro_schema is None else read_schema(self.avro_schema)

    def reader(self) -> Callable[[bytes], Row]:
        """Returns a function that makes a row of the columns in a value."""
        columns = self.value_columns
        match self.format:
            case "csv":
                return RowsOfCsv(columns, self.sep)
            case "raw":
                return RowsOfBytes(columns)
            case "json":
                return RowsOfJson(columns)
        return RowsOfAvro(self._schema(columns), columns, self.format == "avro-confluent")

    def writer(self, columns: Columns) -> Encode:
        """Returns a function that makes a value of the values of a row with these columns.

        Raises:
            ValueError: They are not known in the format.
        """
        match self.format:
            case "csv":
                return CsvOfRows(self.sep)
            case "raw":
                _check_raw(columns)
                return write_bytes
            case "json":
                return write_json
        if self.format == "avro-confluent":
            what = "a record for a schema registry needs the number of its schema there"
            raise refusal(ValueError, what, where="", hint="write format = 'avro'")
        return AvroOfRows(self._schema(columns))


def _check_raw(columns: Columns) -> None:
    """Refuses columns that are not the whole value."""
    if len(columns) > 1 or columns[0].type.name not in ("STRING", "BINARY"):
        what = "the value of a raw record is one column of STRING or BINARY"
        raise refusal(ValueError, what, where="", hint="declare one, or write format = 'json'")


@dataclass(frozen=True)
class RowOfRecord:
    """Makes a row of an element that is read: of a pair, or if there are columns of metadata, of a whole record.

    Attributes:
        columns: The names of the columns.
        metadata: The columns that are not in the value, what they have of the record, and whether they are text.

    >>> RowOfRecord(("team",))((None, Row(team="blue"))), RowOfRecord(("team",))((b"blue", None))
    (Row(team='blue'), None)
    """

    columns: tuple[str, ...]
    metadata: tuple[tuple[str, str, bool], ...] = ()

    def __call__(self, element: tuple[object, Row | None] | KafkaRecord) -> Row | None:
        """The row of an element; None if the record deletes its key."""
        if not isinstance(element, KafkaRecord):
            return element[1]
        if element.value is None or not self.metadata:
            value: Row | None = element.value
            return value
        values = element.value.as_dict()
        for name, of_record, is_text in self.metadata:
            values[name] = _known_of(element, of_record, is_text)
        return Row(**{name: values[name] for name in self.columns})


def _known_of(record: KafkaRecord, name: str, is_text: bool) -> object:
    """The value that the system knows of a record."""
    if name == "timestamp":
        millis = record.timestamp_millis
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return None if millis < 0 else start + datetime.timedelta(milliseconds=millis)
    if name.startswith(HEADER):
        # As for a reader of Kafka in other languages, the last one of a name counts.
        found: object = dict(record.headers).get(name.removeprefix(HEADER))
    else:
        found = getattr(record, name)
    return found.decode("utf-8", "replace") if is_text and isinstance(found, bytes) else found


class RowsOfRecords(PTransform[Any, Any]):
    """Makes rows of what is read; a record without a value deletes its key, and is not a row.

    Args:
        row_of: Makes one.
        columns: The columns of the rows.
    """

    def __init__(self, row_of: RowOfRecord, columns: Columns) -> None:
        super().__init__()
        self._row_of = row_of
        self._columns = columns

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        row_of = self._row_of

        def rows_of(element: tuple[object, Row | None] | KafkaRecord) -> Iterable[Row]:
            row = row_of(element)
            return () if row is None else (row,)

        rows: PCollection[Any] = pcoll | "Rows" >> FlatMap(rows_of).with_output_types(row_hint(self._columns))
        return rows


@dataclass(frozen=True)
class FieldOfRecord:
    """The field of the row of an element; the start of 1970 for one that is not a row."""

    row_of: RowOfRecord
    name: str

    def __call__(self, element: tuple[object, Row | None] | KafkaRecord) -> object:
        """The value of the field."""
        row = self.row_of(element)
        return 0 if row is None else getattr(row, self.name)


class RecordsOfRows(PTransform[Any, Any]):
    """Makes pairs of a key and a value of rows, or of their changes.

    Args:
        encode: Makes the value.
        key: The columns of the key; without any, pairs have no key.
        key_format: The format of keys.
    """

    def __init__(self, encode: Encode, key: tuple[str, ...], key_format: str = "json") -> None:
        super().__init__()
        self._make: Callable[..., object] = (
            UpsertsAsPairs(key, encode, key_format) if key else RowsAsPairs(encode)
        )

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        make = Map(self._make).with_output_types(KV[Optional[bytes], Optional[bytes]])
        pairs: PCollection[Any] = pcoll | "Pairs" >> make
        return pairs


@dataclass(frozen=True)
class RowsAsPairs:
    """Makes a pair without a key of a row.

    >>> RowsAsPairs(write_json)(Row(points=3))
    (None, b'{"points": 3}')
    """

    encode: Encode

    def __call__(self, row: Row) -> tuple[None, bytes | None]:
        """The pair of a row."""
        return None, self.encode(row.as_dict())


@dataclass(frozen=True)
class UpsertsAsPairs:
    """Makes a pair of a change of a row; without a value, it deletes the row.

    >>> UpsertsAsPairs(("team",))(Upsert("blue", Row(team="blue", points=3)))
    (b'{"team": "blue"}', b'{"team": "blue", "points": 3}')
    >>> UpsertsAsPairs(("team",), key_format="raw")(Upsert("blue", None, is_deleted=True))
    (b'blue', None)
    """

    names: tuple[str, ...]
    encode: Encode = write_json
    key_format: str = "json"

    def __call__(self, upsert: Upsert) -> tuple[bytes | None, bytes | None]:
        """The pair of a change."""
        values = upsert.key if len(self.names) > 1 else (upsert.key,)
        key = dict(zip(self.names, values, strict=True))
        encoded = write_bytes(key) if self.key_format == "raw" else write_json(key)
        return encoded, None if upsert.is_deleted else self.encode(upsert.value.as_dict())
