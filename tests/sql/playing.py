"""Plays listings on the workers of streams, without Spark."""

from __future__ import annotations

from typing import Any

import penstock as beam
from penstock.io import WriteToMemory
from tests.shards.toy_query import ToyQuery
from tests.sql.listings import Listing, inputs_of, shown, stream_of


def played(
    listing: Listing, mode: str = "streaming", shards: int = 2, events_per_batch: int | None = 1
) -> list[Any]:
    """What is seen of a listing, as text, by default with each event in a micro-batch of its own.

    A stream is seen while it is open: the last micro-batch, in which it ends, is left out if no other event is in it.
    """
    pipeline = beam.Pipeline()
    rows = inputs_of(listing, pipeline | stream_of(listing)) | "Query" >> listing.transform()
    _ = rows | WriteToMemory([])
    query = ToyQuery(pipeline, mode, shards, events_per_batch)
    batches = [query.batch() for _ in range(query.timeline.batches)]
    if listing.rendering != "TABLE" and events_per_batch == 1:
        batches.pop()
    return shown(listing, [row for batch in batches for given in batch.values() for row in given])
