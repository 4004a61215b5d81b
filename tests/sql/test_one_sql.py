"""*One SQL to Rule Them All*: each of its tables, row by row."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.sql import SqlTransform
from tests.shards.toy_query import Placed, ToyQuery
from tests.sql.listings import Listing, at
from tests.sql.one_sql import BIDS, LISTINGS, Bid
from tests.sql.playing import played


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.name)
def test_the_tables_of_one_sql(listing: Listing) -> None:
    assert played(listing) == listing.rows


AFTER_DELAY = next(each for each in LISTINGS if each.name == "EMIT STREAM AFTER DELAY")


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
@pytest.mark.parametrize("events_per_batch", [1, 2, None])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_row_that_comes_at_the_instant_of_an_emission_belongs_to_it(
    mode: str, events_per_batch: int | None, shards: int
) -> None:
    # Rows of different windows have no order.
    found = played(AFTER_DELAY, mode, shards, events_per_batch)
    assert sorted(found) == sorted(AFTER_DELAY.rows)


def test_a_row_of_a_recorded_log_belongs_to_the_emission_of_its_instant() -> None:
    pipeline = beam.Pipeline()
    log = "Read" >> beam.io.ReadFromText("/log/*", validate=False).as_stream(
        lambda line: line[0], BoundedDisorder(60), arrival_time=lambda line: line[1]
    )
    bids = pipeline | log | beam.Map(_bid).with_output_types(Bid)
    delayed = """
        SELECT STREAM MAX(price) AS m, Sys.EmitTime AS t FROM Bid
        GROUP BY TUMBLE(bidtime, INTERVAL '10' MINUTES) EMIT AFTER DELAY INTERVAL '6' MINUTES
    """
    _ = {"Bid": bids} | SqlTransform(delayed) | WriteToMemory([])
    query = ToyQuery(pipeline)
    found: list[Any] = []
    for number, arrival in enumerate([*BIDS["Bid"], BIDS["Bid"][-1]._replace(at="8:30")]):
        line = arrival.row.bidtime.timestamp(), at(arrival.at).timestamp(), *arrival.row
        found += query.batch({"Read": [[Placed((number,), [line])]]}).values()
    found += query.batch(commands=[("drain", "")]).values()
    emitted = sorted((row.t, row.m) for rows in found for row in rows)
    assert emitted == [(at("8:14"), 4), (at("8:18"), 6), (at("8:21"), 5)]


def _bid(line: Any) -> Bid:
    _, _, time, price, item = line
    return Bid(time, price, item)
