r"""Counts the visits of pages by the minute, from streams of a Redis server, in a table of a database.

Every web server adds its visits to a stream of its own, with ``XADD visits:web1 * page /index.html``. The program reads
all streams whose names match a pattern, also those that begin later. It needs ``pip install redis sqlalchemy``.

    python examples/redis_streams.py --redis redis://localhost --streams 'visits:*' --database sqlite:///visits.db \
        --follow --checkpoint_location=/data/visits

Without ``--follow``, it counts what is there, and ends. Each visit counts once, also if the program is killed and
started again, or if the server is away for a while. If the server removes entries before they are read (``MAXLEN``,
``XTRIM``), the program fails, and says so.
"""

from __future__ import annotations

import argparse
import functools
from datetime import datetime
from typing import NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import penstock as beam
from penstock.io import PartitionedSource, ReadFromSource, TimedElements, UnreadableElement
from penstock.io.database import WriteToDatabase
from penstock.io.watermarks import IdleTimeout, OrderedPartitions
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upserts
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows

PAGE_ENTRIES = 5_000
TIMEOUT_SECONDS = 10

# Only the identifier of the last entry travels.
LAST_OF_NEXT = """
local next = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
return #next > 0 and next[#next][1]
"""


class RedisStreams(PartitionedSource):
    """The entries of Redis streams as dicts of texts; their event times are those of their identifiers.

    The position in a stream is what ``XRANGE`` takes as a start: ``1700000000000-0`` for all from this entry on, or
    ``(1700000000000-0`` for all after it. Redis removes the oldest entries first: while the entry of a position is
    there, all that came after it is there, too. If it is gone, others may be, so the source goes no further.

    Args:
        url: Where the server is, such as ``redis://localhost:6379/0``; a password in it is never shown.
        pattern: Which streams to read, such as ``visits:*``.
    """

    has_times = True
    connection_errors = (redis.ConnectionError, redis.TimeoutError)

    def __init__(self, url, pattern):
        self.url = url
        self.pattern = pattern

    def describe(self):
        return f"redis streams {self.pattern}"

    def beginnings(self):
        server = connected(self.url)
        names = sorted(server.scan_iter(self.pattern, count=1000, _type="stream"))
        first_entries = {name.decode(): server.xrange(name, count=1) for name in names}
        return {stream: first[0][0].decode() for stream, first in first_entries.items() if first}

    def next_position(self, partition, start, max_records):
        server = connected(self.url)
        if max_records is None:
            last = server.xinfo_stream(partition)["last-generated-id"]
        else:
            last = server.eval(LAST_OF_NEXT, 1, partition, start, max_records)
        return start if last is None else f"({last.decode()}"

    def read(self, piece):
        server, start = connected(self.url), piece.start
        first, last = piece.start.removeprefix("("), piece.end.removeprefix("(")
        while start != piece.end:
            with server.pipeline(transaction=True) as both:
                both.xrange(piece.partition, first, first)
                both.xrange(piece.partition, start, last, count=PAGE_ENTRIES)
                found, page = both.execute()
            if not found:
                raise LookupError(
                    f"the entry {first} of the stream {piece.partition} has been removed, and perhaps others that "
                    "are not read yet: keep entries longer, and begin with a new checkpoint"
                )
            if not page:
                return
            identifiers = [identifier.decode() for identifier, _ in page]
            yield TimedElements([decoded(fields) for _, fields in page], list(map(micros_of, identifiers)))
            start = f"({identifiers[-1]}"


@functools.cache
def connected(url):
    """A client that keeps its connection from range to range. It never tries again: the pipeline does."""
    timeouts = {"socket_timeout": TIMEOUT_SECONDS, "socket_connect_timeout": TIMEOUT_SECONDS}
    return redis.Redis.from_url(url, **timeouts, retry=Retry(NoBackoff(), 0))


def micros_of(identifier):
    """The time of an entry, in microseconds since 1970.

    >>> micros_of("1700000000000-7")
    1700000000000000
    """
    return int(identifier.partition("-")[0]) * 1000


def decoded(fields):
    """The fields of an entry as texts.

    >>> decoded({b"page": b"/"})
    {'page': '/'}
    >>> type(decoded({b"page": bytes([255])})).__name__
    'UnreadableElement'
    """
    try:
        return {name.decode(): value.decode() for name, value in fields.items()}
    except UnicodeDecodeError as error:
        return UnreadableElement(fields, error)


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
        visits = ReadFromSource(RedisStreams(known.redis, known.streams))
        if known.follow:
            # A stream without visits for ten seconds no longer delays the others.
            watermark = IdleTimeout(OrderedPartitions(), 10)
            visits = visits.as_stream(watermark=watermark, max_records_per_batch=100_000)
        count(pipeline | visits, known.database)


if __name__ == "__main__":
    run()
