"""A connector for Redis: its streams as a source, and its keys as a sink.

What is here needs no runner and no client of Redis, so that a program may build its pipeline anywhere. The runner finds
`penstock_redis.connector` through the entry points in ``pyproject.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.graph import Sink
from penstock.io import SinkTransform, SourceTransform, Streamable


@dataclass(frozen=True, eq=False)
class RedisSource(Streamable):
    """The description of streams that are read."""

    url: str = field(repr=False)  # It may have a password.
    pattern: str = ""
    patience_seconds: float = 60.0

    reads_files = False
    limits_records = True
    has_times = True
    has_partitions = True

    def describe(self):
        return f"redis streams {self.pattern}"


@dataclass(frozen=True, eq=False)
class RedisSink(Sink):
    """The description of keys that are set."""

    url: str = field(repr=False)

    def describe(self):
        return "redis keys"


class ReadFromRedis(SourceTransform):
    """Reads Redis streams; elements are dicts of strings, with the times of their identifiers as event times.

    Args:
        url: Where the server is, such as ``redis://localhost:6379/0``; a password in it is never shown.
        pattern: Which streams to read, such as ``visits:*``; a stream that begins later is read, too.
        patience_seconds: How long a pipeline that runs waits for a server that is away.

    >>> ReadFromRedis("redis://:secret@localhost", "visits:*").source.describe()
    'redis streams visits:*'
    """

    def __init__(self, url, pattern, patience_seconds=60.0):
        super().__init__(RedisSource(url, pattern, patience_seconds))


class WriteToRedis(SinkTransform):
    """Sets the keys of pairs of strings to their values, as ``SET`` does.

    A try that comes again sets the same keys to the same values. Each key must come only once in a micro-batch, as it
    does after a grouping.

    >>> WriteToRedis("redis://localhost").sink.describe()
    'redis keys'
    """

    def __init__(self, url):
        super().__init__(RedisSink(url))
