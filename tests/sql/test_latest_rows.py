"""Tables whose records replace each other by key, as relations that change, without Spark."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.elements.row import Row
from penstock.io import WriteToMemory
from penstock.io.kafka import KafkaRecord
from penstock.scalars.types import BIGINT, STRING
from penstock.sql.plan.relations import ColumnDef
from penstock.sql.tables.latest_rows import LatestRows
from penstock.sql.tables.records import RowOfRecord
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from tests.shards.toy_query import ToyQuery

COLUMNS = (ColumnDef("team", STRING), ColumnDef("points", BIGINT))
ROW_OF = RowOfRecord(("team", "points"))


def record(offset: int, team: str, points: int | None, partition: int = 0) -> KafkaRecord:
    value = None if points is None else Row(team=team, points=points)
    return KafkaRecord("scores", partition, offset, -1, "NoTimestampType", (), team.encode(), value)


def totals(batches: list[list[KafkaRecord]]) -> list[dict[str, int]]:
    """The sums by the parity of points, after each micro-batch."""
    stream = TestStream()
    for batch in batches:
        stream = stream.add_elements(batch)
    pipeline = beam.Pipeline()
    records = pipeline | stream.advance_watermark_to_infinity()
    rows = records | LatestRows(ROW_OF, COLUMNS)
    sums = rows | SqlTransform(
        "SELECT points % 2 AS odd, SUM(points) AS total FROM PCOLLECTION GROUP BY points % 2"
    )
    _ = sums | beam.Changelog() | WriteToMemory([])
    query = ToyQuery(pipeline, "streaming", 2, 1)
    found: list[dict[str, int]] = []
    now: dict[Any, int] = {}
    for _number in range(query.timeline.batches):
        changes = [each for sink in query.batch().values() for each in sink]
        for kind, row in sorted(changes, key=lambda change: not change[0].is_retraction):
            if kind.is_retraction:
                assert now.pop(row.odd) == row.total
            else:
                now[row.odd] = row.total
        found.append(dict(now))
    # The first micro-batch has no elements, and the last ones only move the watermark.
    return found[1 : len(batches) + 1]


def expected(batches: list[list[KafkaRecord]]) -> list[dict[str, int]]:
    """The same of the newest record of each key."""
    newest: dict[bytes, KafkaRecord] = {}
    found = []
    for batch in batches:
        for each in batch:
            if each.key not in newest or each.offset > newest[each.key].offset:
                newest[each.key] = each
        sums: dict[Any, int] = {}
        for each in newest.values():
            if each.value is not None:
                sums[each.value.points % 2] = sums.get(each.value.points % 2, 0) + each.value.points
        found.append(sums)
    return found


def test_the_newest_record_of_a_key_is_its_row() -> None:
    batches = [
        [record(0, "blue", 3), record(1, "red", 5)],
        [record(2, "blue", 4)],
        [record(3, "red", None)],
        [record(5, "red", 8), record(4, "red", 7)],
        [record(6, "green", None)],
    ]
    assert totals(batches) == [{1: 8}, {1: 5, 0: 4}, {0: 4}, {0: 12}, {0: 12}]


@pytest.mark.parametrize("seed", range(5))
def test_records_in_any_order_have_the_same_rows(seed: int) -> None:
    random = Random(seed)
    batches = []
    for start in range(0, 40, 8):
        batch = [
            record(start + number, random.choice("abc"), random.choice([None, *range(1, 9)]))
            for number in range(8)
        ]
        random.shuffle(batch)
        batches.append(batch)
    assert totals(batches) == expected(batches)


def test_another_partition_begins_again() -> None:
    batches = [[record(7, "blue", 3)], [record(0, "blue", 4, partition=1)]]
    assert totals(batches) == [{1: 3}, {0: 4}]
