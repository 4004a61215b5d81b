"""The entries of Redis streams, as ranges that tasks read."""

from __future__ import annotations

import functools

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.io import PartitionedSource, TimedElements, UnreadableElement

PAGE_ENTRIES = 5_000
TIMEOUT_SECONDS = 10

# Only the identifier of the last entry travels.
LAST_OF_NEXT = """
local next = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
return #next > 0 and next[#next][1]
"""


class RedisEntries(PartitionedSource):
    """The entries of Redis streams as dicts of strings; their event times are those of their identifiers.

    The position in a stream is what ``XRANGE`` takes as a start: ``1700000000000-0`` for all from this entry on, or
    ``(1700000000000-0`` for all after it. Redis removes the oldest entries first: while the entry of a position is
    there, all that came after it is there, too. If it is gone, others may be, so the source goes no further.
    """

    has_times = True
    connection_errors = (redis.ConnectionError, redis.TimeoutError)

    def __init__(self, url, pattern, patience_seconds):
        self.url = url
        self.pattern = pattern
        self.patience_seconds = patience_seconds

    def describe(self):
        return f"redis streams {self.pattern}"

    def first_positions(self):
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
                    "are not read yet: keep entries longer, and start with a new checkpoint"
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
    """The fields of an entry as strings.

    >>> decoded({b"page": b"/"})
    {'page': '/'}
    >>> type(decoded({b"page": bytes([255])})).__name__
    'UnreadableElement'
    """
    try:
        return {name.decode(): value.decode() for name, value in fields.items()}
    except UnicodeDecodeError as error:
        return UnreadableElement(fields, error)
