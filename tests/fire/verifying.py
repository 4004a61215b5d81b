"""Compares what the sinks hold with the numbers that were put in; it imports nothing of penstock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EXAMPLES = 20


@dataclass(frozen=True)
class Verdict:
    """What was found wrong in a sink."""

    sink: str
    found: int
    lost: int
    doubled: int
    wrong: int  # Numbers that nobody put in, and lines that contradict each other.
    examples: tuple[int, ...] = ()  # The first numbers that are lost or doubled.

    @property
    def is_good(self) -> bool:
        """True if each number is there once."""
        return not (self.lost or self.doubled or self.wrong)


def verify(settings: dict[str, Any], count: int) -> list[Verdict]:
    """The verdict about each sink, if the numbers from 0 up to `count` were put in."""
    verdicts = [_of_numbers(f"rows in {sink}", READERS[sink](settings), count) for sink in settings["sinks"]]
    verdicts.append(_of_panes(_lines("panes", settings), settings, count))
    verdicts.append(_of_steps(_lines("steps", settings), settings["keys"], count))
    return verdicts


def _of_numbers(sink: str, numbers: Iterable[int], count: int, wrong: int = 0) -> Verdict:
    found = Counter(numbers)
    return Verdict(
        sink,
        found.total(),
        sum(number not in found for number in range(count)),
        sum(times - 1 for number, times in found.items() if times > 1 and 0 <= number < count),
        wrong + sum(times for number, times in found.items() if not 0 <= number < count),
        tuple(number for number in range(count) if found[number] != 1)[:_EXAMPLES],
    )


def _of_panes(lines: Iterable[str], settings: dict[str, Any], count: int) -> Verdict:
    """Each number is in one pane, which is one of its key and its window; the pane on time may be empty."""
    keys, in_window = settings["keys"], settings["numbers_in_window"]
    numbers, wrong = [], 0
    for line in lines:
        key, start, *members = map(int, line.split())
        numbers += members
        if not members:
            wrong += key >= keys or (start - settings["first_window"]) % settings["window_seconds"] != 0
            continue
        windows = {number // in_window for number in members}
        wrong += {number % keys for number in members} != {key}
        wrong += (
            len(windows) != 1 or start != settings["first_window"] + min(windows) * settings["window_seconds"]
        )
    return _of_numbers("panes of windows", numbers, count, wrong)


def _of_steps(lines: Iterable[str], keys: int, count: int) -> Verdict:
    """Each number is in one step of its key, and the steps of a key have the numbers 0, 1, 2 and so on."""
    numbers = []
    steps = defaultdict(list)
    for line in lines:
        key, before, number = map(int, line.split())
        numbers.append(number)
        steps[key].append(before)
    wrong = sum(sorted(found) != [*range(len(found))] for found in steps.values())
    return _of_numbers("steps of a state", numbers, count, wrong + sum(key >= keys for key in steps))


def _lines(name: str, settings: dict[str, Any]) -> list[str]:
    if settings.get("url"):
        return [line for (line,) in _query(settings, f"select line from {name}")]
    return _text(Path(settings["folder"], "disk", name))


def _text(folder: Path) -> list[str]:
    """The lines of all files that are finished: what begins with an underscore is not."""
    return [line for file in folder.glob("[!_]*") for line in file.read_text().splitlines()]


def _parquet(settings: dict[str, Any]) -> list[int]:
    import pyarrow.parquet as pq

    files = Path(settings["folder"], "disk", "parquet").glob("[!_]*")
    return [number for file in files for number in pq.ParquetFile(file).read()["number"].to_pylist()]


def _delta(settings: dict[str, Any]) -> list[int]:
    from deltalake import DeltaTable

    found: list[int] = DeltaTable(f"{settings['folder']}/disk/delta").to_pyarrow_table()["number"].to_pylist()
    return found


def _iceberg(settings: dict[str, Any]) -> list[int]:
    from pyiceberg.catalog import load_catalog

    table = load_catalog("default", **settings["catalog"]).load_table("lake.rows")
    found: list[int] = table.scan().to_arrow()["number"].to_pylist()
    return found


def _query(settings: dict[str, Any], query: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(settings["url"], autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def _kafka(settings: dict[str, Any]) -> list[int]:
    import confluent_kafka

    options = {"group.id": "verifier", "enable.partition.eof": True, "isolation.level": "read_committed"}
    servers = {"bootstrap.servers": settings["target_brokers"], "log_level": 0}
    consumer = confluent_kafka.Consumer({**servers, **options, "auto.offset.reset": "earliest"})
    consumer.assign([confluent_kafka.TopicPartition("rows", number, 0) for number in range(2)])
    numbers, open_ones = [], {0, 1}
    while open_ones:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None:
                numbers.append(int(message.value()))
            else:
                open_ones.discard(message.partition())
    consumer.close()
    return numbers


READERS: dict[str, Callable[[dict[str, Any]], list[int]]] = {
    "text": lambda settings: [*map(int, _text(Path(settings["folder"], "disk", "text")))],
    "parquet": _parquet,
    "delta": _delta,
    "iceberg": _iceberg,
    "postgres": lambda settings: [number for (number,) in _query(settings, "select number from rows")],
    "kafka": _kafka,
}
