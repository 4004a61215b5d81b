"""Tables of Kafka in jobs of SQL: formats of values, keys, what Kafka knows of a record, and rows that change."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import pytest

from penstock.sql.jobs.running import Job

if TYPE_CHECKING:
    from tests.connectors.brokers import Mock

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SCHEMA = {
    "type": "record",
    "name": "goal",
    "fields": [
        {"name": "team", "type": ["null", "string"]},
        {"name": "points", "type": "int"},
        {"name": "more", "type": "boolean"},
    ],
}


def table(name: str, columns: str, mock: Mock, topic: str, settings: str) -> str:
    """The statement of a table of Kafka."""
    return f"""CREATE TABLE {name} {columns} WITH (connector = 'kafka', topic = '{topic}',
        properties.bootstrap.servers = '{mock.servers}', {settings});\n"""


def avro(value: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), value)
    return stream.getvalue()


def test_each_format_is_read_and_written(mock: Mock, tmp_path: Path) -> None:
    (tmp_path / "goal.avsc").write_text(json.dumps(SCHEMA))
    record = avro({"team": "blue", "points": 3, "more": True})
    sources = {
        "c": (
            "csv",
            "(team STRING, points BIGINT, at TIMESTAMP)",
            b"blue;3;2026-01-01T12:00:00Z",
            "sep = ';'",
        ),
        "a": ("avro", "(points BIGINT, team STRING)", record, f"avro_schema = '{tmp_path}/goal.avsc'"),
        "h": (
            "avro-confluent",
            "(points BIGINT, team STRING)",
            b"\0\0\0\0\7" + record,
            f"avro_schema = '{json.dumps(SCHEMA)}'",
        ),
        "r": ("raw", "(team STRING)", b"blue", "start_offsets = 'earliest'"),
    }
    statements = "SET mode = batch; SET shuffle_partitions = 1;\n"
    for name, (form, columns, value, more) in sources.items():
        mock.produce(mock.make(f"read-{name}"), [(0, None, value)])
        statements += table(name, columns, mock, f"read-{name}", f"format = '{form}', {more}")
    written = "(team STRING, points BIGINT, price DECIMAL(6, 2), at TIMESTAMP, day DATE)"
    for form in ("csv", "avro", "json"):
        statements += table(f"to_{form}", written, mock, mock.make(f"write-{form}"), f"format = '{form}'")
        statements += f"""INSERT INTO to_{form} SELECT c.team, a.points + h.points, CAST(1.5 AS DECIMAL(6, 2)), c.at,
            CAST(NULL AS DATE) FROM c JOIN a ON a.team = c.team JOIN h ON h.team = c.team JOIN r ON r.team = c.team;"""
    statements += table("to_raw", "(line STRING)", mock, mock.make("write-raw"), "format = 'raw'")
    statements += "INSERT INTO to_raw SELECT team FROM r;"
    Job(statements, "job.sql").run()

    def values(form: str) -> list[bytes]:
        return [record.value() for record in mock.consume(f"write-{form}", 4)]

    assert values("csv") == [b"blue,6,1.50,2026-01-01T12:00:00+00:00,"]
    assert values("raw") == [b"blue"]
    [text] = values("json")
    assert json.loads(text)["points"] == 6
    lines: list[str] = []
    # What is written as Avro is read by the schema of the same columns.
    Job(
        table("t", written, mock, "write-avro", "format = 'avro'")
        + "SELECT team, points, price, CAST(at AS STRING) AS at, day FROM t",
        show=lines.append,
        mode="batch",
    ).run()
    assert lines[2:] == ["blue | 6      | 1.50  | 2026-01-01 12:00:00 | NULL", "(1 row)"]


def test_what_kafka_knows_of_a_record_has_columns_and_times(mock: Mock, tmp_path: Path) -> None:
    topic = mock.make("known")
    millis = 1_767_268_800_000  # 2026-01-01 12:00 UTC
    for number, (key, value) in enumerate(
        [("blue", b'{"points": 3}'), ("red", b'{"points": 5}'), ("blue", b"{")]
    ):
        headers = [("source", b"old"), ("source", b"app")]
        mock.produce(topic, [(0, key.encode(), value)], timestamp=millis + number, headers=headers)
    mock.produce(topic, [(0, b"gone", None)], timestamp=millis + 10)
    columns = """(team STRING METADATA FROM 'key', points BIGINT, at TIMESTAMP METADATA FROM 'timestamp',
        partition INT METADATA VIRTUAL, `offset` BIGINT METADATA, source STRING METADATA FROM 'header.source',
        WATERMARK FOR at AS at - INTERVAL '1' SECOND)"""
    statements = table(
        "goals", columns, mock, topic, "format = 'json', existing_only = true, rejects = 'bad'"
    )
    statements += f"""SET shuffle_partitions = 1;
    CREATE TABLE bad (record STRING, reason STRING) WITH (format = 'json', path = '{tmp_path}/bad');
    CREATE TABLE o WITH (format = 'json', path = '{tmp_path}/o') AS
    SELECT window_start AS start, team, source, SUM(points) AS points, MAX(`offset`) AS last, MAX(partition) AS p
    FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, team, source
    EMIT AFTER WATERMARK"""
    Job(statements).run()
    rows = [
        json.loads(line) for file in (tmp_path / "o").glob("*.json") for line in file.read_text().splitlines()
    ]
    known = {"start": "2026-01-01T12:00:00.000Z", "source": "app", "p": 0}
    assert sorted(rows, key=lambda row: str(row["team"])) == [
        {**known, "team": "blue", "points": 3, "last": 0},
        {**known, "team": "red", "points": 5, "last": 1},
    ]
    [bad] = (tmp_path / "bad").glob("*.json")
    assert json.loads(bad.read_text())["record"] == "{"


@pytest.mark.parametrize(("key_format", "key"), [("json", b'{"team": "blue"}'), ("raw", b"blue")])
def test_a_row_that_goes_is_a_record_without_a_value(mock: Mock, key_format: str, key: bytes) -> None:
    source, sink = mock.make(f"scored-{key_format}"), mock.make(f"totals-{key_format}")
    for team, points in [("blue", 3), ("red", 5), ("blue", 4), ("blue", -7)]:
        mock.produce(source, [(0, None, json.dumps({"team": team, "points": points}).encode())])
    goals = "format = 'json', existing_only = true, max_records_per_batch = 1"
    statements = table("goals", "(team STRING, points BIGINT)", mock, source, goals)
    keyed = "(total BIGINT, team STRING, PRIMARY KEY (team) NOT ENFORCED)"
    totals = table("totals", keyed, mock, sink, f"format = 'csv', key_format = '{key_format}'")
    statements += totals
    statements += (
        "INSERT INTO totals SELECT SUM(points) AS total, team FROM goals GROUP BY team HAVING SUM(points) > 0"
    )
    Job(f"SET shuffle_partitions = 1; {statements}").run()
    changes = [(record.key(), record.value()) for record in mock.consume(sink, 4)]
    assert [change for change in changes if change[0] == key] == [
        (key, b"3,blue"),
        (key, b"7,blue"),
        (key, None),
    ]
    # The newest record of a key is its row.
    lines: list[str] = []
    Job(f"{totals} SELECT team, total FROM totals", show=lines.append, mode="batch").run()
    assert lines == ["team | total", "-----+------", "red  | 5", "(1 row)"]
