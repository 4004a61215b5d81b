"""Puts numbers into the source of a program under fire, again and again, until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.5
NUMBERS_PER_PART = 20
PARTITIONS = 2


class Feeder(threading.Thread):
    """Puts parts of numbers, each in one piece, and counts them; a part that cannot be put is put again later."""

    def __init__(self, put: Callable[[int, list[int]], None]) -> None:
        super().__init__(daemon=True)
        self._put = put
        self._is_over = threading.Event()
        self.parts = 0

    @property
    def count(self) -> int:
        """How many numbers were put in."""
        return self.parts * NUMBERS_PER_PART

    def run(self) -> None:
        """Puts a part every half a second."""
        while not self._is_over.wait(PAUSE_SECONDS):
            numbers = [*range(self.count, self.count + NUMBERS_PER_PART)]
            try:
                self._put(self.parts, numbers)
            except ConnectionError:
                continue
            self.parts += 1

    def stop(self) -> int:
        """How many numbers were put in until now; no more will be."""
        self._is_over.set()
        self.join()
        return self.count


def into_files(folder: Path) -> Callable[[int, list[int]], None]:
    """Files that are complete when they appear."""
    folder.mkdir()

    def put(part: int, numbers: list[int]) -> None:
        hidden = folder / f"_{part}"
        hidden.write_text("".join(f"{number}\n" for number in numbers))
        hidden.rename(folder / f"{part:08d}.txt")

    return put


def into_table(server: Any) -> Callable[[int, list[int]], None]:
    """Rows of a table, whose changes are published; a part is a transaction."""
    server.ask("create table numbers (number bigint primary key)")
    server.ask("alter table numbers replica identity full")
    server.ask("create publication numbers for table numbers")

    def put(part: int, numbers: list[int]) -> None:
        import psycopg

        rows = ", ".join(f"({number})" for number in numbers)
        try:
            # If the server dies while it commits, the part may be there: then it must not be put again.
            server.ask(f"insert into numbers values {rows} on conflict do nothing")
        except psycopg.Error as error:
            raise ConnectionError from error

    return put


def into_topic(servers: str) -> Callable[[int, list[int]], None]:
    """Records of a topic with several partitions."""
    import confluent_kafka

    # An idempotent producer sends again what was not answered, and the broker leaves out what it has.
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "log_level": 0, "enable.idempotence": True}
    )

    def put(part: int, numbers: list[int]) -> None:
        for number in numbers:
            producer.produce("numbers", b"%d" % number, b"%d" % number, number % PARTITIONS)
        while producer.flush(1.0):
            time.sleep(0.1)

    return put
