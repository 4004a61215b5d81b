"""Rows of a join that wait for the watermark are added once: a match that comes later takes nothing back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import penstock as beam
from penstock.construction.retractions import may_retract
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from tests.shards.toy_query import ToyQuery


class Order(NamedTuple):
    id: int
    country: str
    at: datetime


class Country(NamedTuple):
    code: str
    name: str


def order(number: int, country: str, second: int) -> Order:
    return Order(number, country, datetime.fromtimestamp(second, UTC))


JOIN = """SELECT o.id, c.name, o.at FROM orders AS o LEFT JOIN countries AS c ON c.code = o.country
    EMIT WHEN WATERMARK PAST at"""


def test_a_row_without_a_match_is_added_once() -> None:
    stream = (
        TestStream(output_tags=["orders", "countries"])
        .add_elements([Country("de", "Germany")], "countries")
        .add_elements([order(1, "de", 10), order(2, "fr", 11)], "orders")
        # A match that comes before the watermark has passed is seen, and the row without it is not.
        .add_elements([order(3, "jp", 12)], "orders")
        .add_elements([Country("jp", "Japan")], "countries")
        .advance_watermark_to(20, "countries")
        .advance_watermark_to(20, "orders")
        .add_elements([Country("fr", "France")], "countries")
        .add_elements([order(4, "fr", 13), order(5, "fr", 25)], "orders")
        .advance_watermark_to_infinity("countries")
        .advance_watermark_to_infinity("orders")
    )
    pipeline = beam.Pipeline()
    changes = pipeline | stream
    tables = {
        "orders": changes["orders"] | "Orders" >> beam.Map(lambda row: row).with_output_types(Order),
        "countries": changes["countries"]
        | "Countries" >> beam.Map(lambda row: row).with_output_types(Country),
    }
    rows = tables | SqlTransform(JOIN)
    assert not may_retract(rows)
    _ = rows | beam.Changelog() | WriteToMemory([])
    query = ToyQuery(pipeline, "streaming", 2, 1)
    found = [each for _ in range(query.timeline.batches) for sink in query.batch().values() for each in sink]
    assert not any(kind.is_retraction for kind, _ in found)
    assert sorted((row.id, row.name) for _, row in found) == [
        *((1, "Germany"), (2, None), (3, "Japan"), (5, "France"))
    ]
