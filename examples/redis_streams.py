r"""Counts the visits of pages by the minute, from streams of a Redis server, in a table of a database.

Every web server adds its visits to a stream of its own, with ``XADD visits:web1 * page /index.html``. The program reads
all streams whose names match a pattern, also those that begin later. It needs the connector beside it,
``pip install examples/redis_connector``, and ``pip install sqlalchemy``.

    python examples/redis_streams.py --redis redis://localhost --streams 'visits:*' --database sqlite:///visits.db \
        --follow --checkpoint_location=/data/visits

Without ``--follow``, it counts what is there, and ends. Each visit counts once, also if the program is killed and
started again, or if the server is away for a while. If the server removes entries before they are read (``MAXLEN``,
``XTRIM``), the program fails, and says so.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import NamedTuple

from penstock_redis import ReadFromRedis

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.watermarks import IdleTimeout, OrderedPartitions
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upserts
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows


class Visits(NamedTuple):
    """A row of the table."""

    page: str
    start: datetime
    end: datetime
    visits: int


def count(entries, database):
    """Keeps the visits of each page and minute in a table; those that come late are added."""
    minutes = beam.WindowInto(
        FixedWindows(60),
        AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        AccumulationMode.ACCUMULATING,
        allowed_lateness=24 * 60 * 60,
    )
    counts = entries | beam.Map(lambda fields: (fields["page"], 1)) | minutes | beam.CombinePerKey(sum)
    table = WriteToDatabase(
        database, "visits", mode="upsert", key=("page", "start", "end"), create=True, schema=Visits
    )
    return counts | Upserts(by_window=True) | table


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--redis", required=True, help="where the server is, such as redis://localhost:6379")
    parser.add_argument("--streams", required=True, help="the streams, such as visits:*")
    parser.add_argument("--database", required=True, help="where the table is, such as sqlite:///visits.db")
    parser.add_argument("--follow", action="store_true", help="go on with what comes")
    known, rest = parser.parse_known_args(argv)
    mode = ["--mode=streaming"] if known.follow else []
    with beam.Pipeline(options=PipelineOptions([*mode, *rest])) as pipeline:
        visits = ReadFromRedis(known.redis, known.streams)
        if known.follow:
            # A stream without visits for ten seconds no longer delays the others.
            watermark = IdleTimeout(OrderedPartitions(), 10)
            visits = visits.as_stream(watermark=watermark, max_records_per_batch=100_000)
        count(pipeline | visits, known.database)


if __name__ == "__main__":
    run()
