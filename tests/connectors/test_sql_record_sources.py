"""Tables of Kafka as their sources read them, without Spark: values, metadata and times of records."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import cloudpickle

from penstock.elements.row import Row
from penstock.io.custom.ranges import UnreadableElement
from penstock.io.kafka import KafkaRecord
from penstock.sql.statements.forms import CreateTable
from penstock.sql.statements.parsing import parse_script
from penstock.sql.statements.words import Script
from penstock.sql.tables.declared_records import row_of_record
from penstock.sql.tables.records import FieldOfRecord
from penstock.sql.tables.table import Table, make_table
from penstock.sql.tables.transforms import ReadTable
from penstock_connectors.kafka.source import Topics

if TYPE_CHECKING:
    from tests.connectors.brokers import Mock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def table_of(mock: Mock, topic: str, columns: str, settings: str) -> Table:
    script = Script(
        f"""CREATE TABLE goals {columns} WITH (connector = 'kafka', topic = '{topic}',
        properties.bootstrap.servers = '{mock.servers}', {settings})"""
    )
    [statement] = parse_script(script)
    assert isinstance(statement, CreateTable)
    return make_table(statement, script)


def elements_of(table: Table) -> list[Any]:
    """The elements that the source of a table reads."""
    topics = Topics(ReadTable(table, as_stream=False)._read(False).source)
    start = topics.first_position()
    ranges = topics.ranges(start, topics.last_position(start, None), 1)
    return [element for piece in ranges for page in topics.read(piece) for element in page]


def test_a_table_has_what_kafka_knows_of_a_record(mock: Mock) -> None:
    topic = mock.make("known-of-records")
    records = [(b"blue", b'{"points": 3}'), (None, b'{"points": 5}'), (b"red", b"{"), (b"gone", None)]
    for number, (key, value) in enumerate(records):
        headers = [("source", b"old"), ("source", b"app")]
        millis = round(NOON.timestamp() * 1000) + number
        mock.produce(topic, [(0, key, value)], timestamp=millis, headers=headers)
    columns = """(team STRING METADATA FROM 'key', points BIGINT, at TIMESTAMP METADATA FROM 'timestamp',
        partition INT METADATA VIRTUAL, `offset` BIGINT METADATA, source STRING METADATA FROM 'header.source',
        WATERMARK FOR at AS at)"""
    table = table_of(mock, topic, columns, "format = 'json'")
    assert table.records is not None
    # Both are sent to tasks.
    row_of, time_of = (
        pickle.loads(cloudpickle.dumps(each))
        for each in (row_of_record(table.records), FieldOfRecord(row_of_record(table.records), "at"))
    )
    blue, red, broken, gone = elements_of(table)
    assert row_of(blue) == Row(team="blue", points=3, at=NOON, partition=0, offset=0, source="app")
    later = NOON + timedelta(milliseconds=1)
    assert row_of(red) == Row(team=None, points=5, at=later, partition=0, offset=1, source="app")
    assert time_of(red) == later
    assert isinstance(broken, UnreadableElement)
    assert isinstance(gone, KafkaRecord)
    assert row_of(gone) is None


def test_a_table_without_metadata_has_pairs(mock: Mock) -> None:
    topic = mock.make("pairs-of-csv")
    mock.produce(topic, [(0, b"k", b"blue;3"), (0, b"k", None)])
    table = table_of(mock, topic, "(team STRING, points BIGINT)", "format = 'csv', sep = ';'")
    assert table.records is not None
    row_of = row_of_record(table.records)
    assert [row_of(each) for each in elements_of(table)] == [Row(team="blue", points=3), None]
