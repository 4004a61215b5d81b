"""Reads streams of Redis and sets its keys for the runner; the entry points of the package name the two formats."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa

from penstock.error import refusal
from penstock.io import RangesOfSource
from penstock_spark.connecting.formats import Format, Package
from penstock_spark.connecting.reading import open_range_stream, open_ranges
from penstock_spark.connecting.running import fail_step
from penstock_spark.connecting.writing import Encoder, SinkPlan, write_in_tasks

REDIS = Package("streams and keys of Redis", "redis", "redis")


def open_streams(source, spark, where):
    return open_ranges(_ranges(source), spark, where)


def open_streams_continuously(source, stream, spark, where):
    return open_range_stream(_ranges(source), stream, spark, where)


def _ranges(source):
    # The client of Redis is imported here, where it is known to be installed.
    from penstock_redis.entries import RedisEntries

    return RangesOfSource(RedisEntries(source.url, source.pattern, source.patience_seconds))


def plan_keys(sink, is_stream, where):
    def commit(frame, batch):
        write_in_tasks(frame, partial(set_keys, sink.url), where)
        return []

    return SinkPlan("pair string", partial(Pairs, where), None, commit, commits_in_tasks=True)


class Pairs(Encoder):
    """Encodes each pair as a row of JSON."""

    def __init__(self, where):
        self.where = where

    def encode(self, values):
        for value in values:
            if not (isinstance(value, tuple) and list(map(type, value)) == [str, str]):
                what = f"an element is {type(value).__name__}, and not a pair of two strings"
                fail_step(refusal(TypeError, what, hint="make pairs of strings with a Map"), self.where)
        return pa.RecordBatch.from_arrays([pa.array(map(json.dumps, values), pa.string())], names=["pair"])


def set_keys(url, rows):
    """Sets the keys of the rows of a task, each row group in one round trip."""
    from penstock_redis.entries import connected

    written = 0
    for batch in rows:
        if batch.num_rows:
            pairs = dict(map(json.loads, batch.column("pair").to_pylist()))
            connected(url).mset(pairs)
            written += len(pairs)
    return written


STREAMS = Format(open_streams, open_streams_continuously, packages=lambda source: (REDIS,))
KEYS = Format(plan=plan_keys, packages=lambda sink: (REDIS,))
