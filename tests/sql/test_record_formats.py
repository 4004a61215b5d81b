"""Values of records in each format: what is written is read, and what does not fit is told."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.elements.row import Row
from penstock.io.kafka import KafkaRecord
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.tables.columns import type_of_text
from penstock.sql.tables.declared_records import row_of_record
from penstock.sql.tables.records import Records


def columns(**types: str) -> Columns:
    found = []
    for name, text in types.items():
        kind = type_of_text(text.removesuffix(" NOT NULL"))
        assert kind is not None
        found.append(ColumnDef(name, kind.or_null("NOT NULL" not in text)))
    return tuple(found)


ALL = columns(
    team="STRING",
    points="BIGINT",
    price="DECIMAL(6, 2)",
    share="DOUBLE",
    won="BOOLEAN",
    at="TIMESTAMP",
    local="TIMESTAMP_NTZ",
    day="DATE",
)
ROW = Row(
    team='blue, "light"',
    points=-3,
    price=Decimal("1.50"),
    share=0.1,
    won=False,
    at=datetime.datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=datetime.UTC),
    local=datetime.datetime(2026, 1, 31, 12, 0, 0, 5),
    day=datetime.date(2026, 1, 31),
)


@pytest.mark.parametrize("form", ["json", "csv", "avro"])
@pytest.mark.parametrize("row", [ROW, Row(**dict.fromkeys(ROW.as_dict()))], ids=["values", "nulls"])
def test_what_is_written_is_read(form: str, row: Row) -> None:
    records = Records(ALL, form, sep=";")
    records.check()
    # Both are sent to tasks.
    write, read = (pickle.loads(pickle.dumps(each)) for each in (records.writer(ALL), records.reader()))
    assert read(write(row.as_dict())) == row


@pytest.mark.parametrize(
    ("form", "value", "told"),
    [
        ("json", b"[1]", "not a JSON object"),
        ("json", b"{", "a record is not JSON: Expecting"),
        ("json", b"\xff", "not UTF-8"),
        ("json", b'{"n": "1", "s": "a"}', "the field 'n' of a record is not BIGINT"),
        ("json", b'{"s": "a"}', "has no 'n'"),
        ("csv", b"1", "a record has 1 fields, and the table 2 columns"),
        ("csv", b"1.5,a", "the field 'n' of a record is not BIGINT"),
        ("csv", b",a", "has no 'n'"),
        ("csv", b'1,"a', "not CSV: unexpected end of data"),
        ("csv", b"1,\xff", "not UTF-8"),
        ("avro", b"", "a record is not Avro of the schema: EOFError"),
        ("avro", b"\2\0\0", "bytes are left over"),
        ("avro-confluent", b"\2\0", "no header of a schema registry"),
    ],
)
def test_a_value_that_does_not_fit_is_told(form: str, value: bytes, told: str) -> None:
    fields = '[{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]'
    schema = f'{{"type": "record", "name": "r", "fields": {fields}}}'
    records = Records(columns(n="BIGINT NOT NULL", s="STRING"), form, avro_schema=schema)
    with pytest.raises(ValueError, match=told) as raised:
        records.reader()(value)
    # Values are data, which errors do not show.
    assert "1.5" not in str(raised.value)


def test_a_schema_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}'
    )
    records = Records(columns(n="BIGINT"), "avro-confluent", avro_schema=f"{tmp_path}/a.avsc")
    assert records.reader()(b"\0\0\0\0\1\x06") == Row(n=3)
    with pytest.raises(ValueError, match="No such file"):
        Records(columns(n="BIGINT"), "avro", avro_schema=f"{tmp_path}/b.avsc").check()
    with pytest.raises(ValueError, match="the number of its schema"):
        records.writer(columns(n="BIGINT"))


def test_columns_have_what_is_known_of_a_record() -> None:
    declared = columns(k="STRING", n="BIGINT", at="TIMESTAMP", p="BIGINT", h="BINARY", none="STRING")
    known = (("k", "key"), ("at", "timestamp"), ("p", "partition"), ("h", "header.a"), ("none", "header.b"))
    row_of = row_of_record(Records(declared, metadata=known))
    headers = (("a", b"1"), ("a", b"2"), ("c", None))
    record = KafkaRecord("goals", 3, 17, 1_000, "CreateTime", headers, b"blue", Row(n=5))
    at = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert row_of(record) == Row(k="blue", n=5, at=at, p=3, h=b"2", none=None)
    assert row_of(record._replace(value=None)) is None
    none = row_of(record._replace(timestamp_millis=-1, key=None))
    assert none == Row(k=None, n=5, at=None, p=3, h=b"2", none=None)
