"""SQL on Spark: the listings of the book and of the paper, many in each pipeline."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from tests.sql import book_chapter_8, book_chapter_9, one_sql
from tests.sql.listings import at, inputs_of, shown, stream_of

SOURCES = {
    "Streaming Systems, chapter 8": book_chapter_8.LISTINGS,
    "Streaming Systems, chapter 9": book_chapter_9.LISTINGS,
    "One SQL to Rule Them All": one_sql.LISTINGS,
}


def tables_of(listings):
    """Those that show a table."""
    return [listing for listing in listings if listing.rendering == "TABLE"]


def seen(spark, mode, listings):
    """What is seen of each listing; listings that read the same share a stream."""
    found = {listing.name: [] for listing in listings}
    streams = {}
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        for listing in listings:
            read = id(listing.tables), listing.until, listing.watermark
            if read not in streams:
                streams[read] = pipeline | f"Stream {len(streams)}" >> Inputs(listing)
            rows = streams[read] | listing.name >> listing.transform()
            _ = rows | f"See {listing.name}" >> WriteToMemory(found[listing.name])
    return found


class Inputs(beam.PTransform):
    """The inputs of the queries that read one stream."""

    def __init__(self, listing):
        super().__init__()
        self._listing = listing

    def expand(self, pbegin):
        return inputs_of(self._listing, pbegin | stream_of(self._listing, ends=True))


SHARES = [
    pytest.param(slice(0, None, 2), id="every second"),
    pytest.param(slice(1, None, 2), id="the others", marks=pytest.mark.soak),
]
"""All listings are always computed without Spark (tests/sql)."""


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_emitted_as_the_clock_goes(spark, source, share):
    # What a stream shows while it is open is in the tests without Spark.
    listings = [each for each in SOURCES[source] if not each.name.startswith("EMIT AFTER WATERMARK")][share]
    found = seen(spark, "streaming", listings)
    for listing in listings:
        got = shown(listing, found[listing.name])
        assert sorted(got) == sorted(listing.rows), listing.name


@pytest.mark.parametrize("share", SHARES)
def test_tables_in_micro_batches(spark, share):
    listings = [listing for each in SOURCES.values() for listing in tables_of(each)][share]
    found = seen(spark, "micro_batch", listings)
    for listing in listings:
        assert shown(listing, found[listing.name]) == listing.rows, listing.name


@pytest.mark.parametrize("share", SHARES)
def test_tables_in_a_batch(spark, share):
    # A batch knows no time of arrival, and nothing that is taken back.
    listings = [
        listing
        for each in SOURCES.values()
        for listing in tables_of(each)
        if "MTime" not in listing.query
        and "SYSTEM TIME" not in listing.query
        and not any(arrival.undone for arrivals in listing.tables.values() for arrival in arrivals)
    ][share]
    found = {listing.name: [] for listing in listings}
    with beam.Pipeline(spark=spark, mode="batch") as pipeline:
        for listing in listings:
            inputs = {
                name: pipeline
                | f"{name} of {listing.name}"
                >> beam.Create([each.row for each in arrivals if at(each.at) <= at(listing.until)])
                | f"Rows of {name} of {listing.name}"
                >> beam.Map(_same).with_output_types(type(arrivals[0].row))
                for name, arrivals in listing.tables.items()
            }
            _ = (
                inputs
                | listing.name >> listing.transform()
                | f"See {listing.name}" >> WriteToMemory(found[listing.name])
            )
    for listing in listings:
        assert shown(listing, found[listing.name]) == listing.rows, listing.name


def _same(row):
    return row
