"""Kafka, windows, PostgreSQL and Kafka again in one pipeline, whose program is killed at any time."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.connectors import postgres_server
from tests.connectors.brokers import Mock, Tansu
from tests.connectors.killed import micro_batches, started, wait_until
from tests.connectors.visits import DISORDER_SECONDS, GAP_SECONDS, RECORDS_PER_BATCH, WINDOW_SECONDS, main

PROGRAM = Path(__file__).parent / "visits.py"
BEGIN_SECONDS = 1_700_000_040
PARTITIONS = 4
USERS = 5
IN_A_COMMIT = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"

Visit = tuple[str, int, int]
"""A user, a time in seconds since 1970, and how many seconds the visit took."""

Row = tuple[str, datetime, datetime, int]


def visits_of(random: Random, count: int) -> list[Visit]:
    """Visits out of order, but none later than the stream waits."""
    return [
        (
            f"user{random.randrange(USERS)}",
            BEGIN_SECONDS + number + random.randrange(DISORDER_SECONDS // 2),
            number,
        )
        for number in range(count)
    ]


def minutes_of(visits: list[Visit]) -> list[Row]:
    sums: Counter[tuple[str, int]] = Counter()
    for user, moment, seconds in visits:
        sums[user, moment - moment % WINDOW_SECONDS] += seconds
    return sorted(
        (user, at(start), at(start + WINDOW_SECONDS), total) for (user, start), total in sums.items()
    )


def sessions_of(visits: list[Visit]) -> list[Row]:
    """Each user's visits in order; a pause that is long enough begins a new session."""
    rows: list[list[Any]] = []
    for user, moment, seconds in sorted(visits):
        if not rows or rows[-1][0] != user or moment >= rows[-1][2]:
            rows.append([user, moment, moment + GAP_SECONDS, 0])
        rows[-1][2:] = moment + GAP_SECONDS, rows[-1][3] + seconds
    return sorted((user, at(start), at(end), total) for user, start, end, total in rows)


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.soak)])
def test_each_window_and_each_copy_is_written_once(
    server: postgres_server.Server, mock: Mock, tansu: Tansu, tmp_path: Path, kills: int
) -> None:
    """Triggers of the tables make commits slow, so that half of the kills meet one; the others come at any time.

    A kill that meets one comes behind the commit of the copies, and the stream does not know of either.
    """
    server.ask("drop schema public cascade; create schema public")
    for table, key in ("minutes", ""), ("sessions", ', primary key ("user", started, ended)'):
        server.ask(
            f'create table {table} ("user" text, started timestamptz, ended timestamptz, seconds bigint {key})'
        )
        server.ask(
            f"create function slow_{table}() returns trigger language plpgsql as"
            " $$ begin perform pg_sleep(0.3); return null; end $$"
        )
        event = f"after insert or update or delete on {table} for each statement"
        server.ask(f"create trigger slow {event} execute function slow_{table}()")
    random, log, checkpoint = Random(kills), tmp_path / "log", tmp_path / "checkpoint"
    # The first kill costs one micro-batch, each other one two at most, and the last run also needs one.
    visits = visits_of(random, RECORDS_PER_BATCH * 2 * kills)
    topic, copied = mock.make(f"visits-{kills}"), tansu.make(f"copied-visits-{kills}", PARTITIONS)
    for user, moment, seconds in visits:
        record = moment % PARTITIONS, user.encode(), b"%d" % seconds
        mock.produce(topic, [record], timestamp=1000 * moment)
    arguments = [mock.servers, topic, tansu.servers, copied, server.url, str(checkpoint)]
    arguments += ["--fast_start", "--take_over"]
    met = 0
    with server.connect() as connection:

        def is_in_a_commit() -> bool:
            return connection.execute(IN_A_COMMIT).fetchone() is not None

        for number in range(kills):
            # The server ends the statement of a killed program, and only then the transaction.
            wait_until(lambda: not is_in_a_commit())
            begun = micro_batches(checkpoint)
            with started(PROGRAM, *arguments, log=log) as process:
                if number % 2 == 0:
                    wait_until(is_in_a_commit, process, log)
                else:
                    wait_until(lambda: micro_batches(checkpoint) > begun, process, log)
                time.sleep(random.uniform(0, 0.25))
                met += is_in_a_commit()
                assert process.poll() is None, log.read_text()
    for table in ("minutes", "sessions"):
        server.ask(f"drop trigger slow on {table}")
    # The last run saves a start of Spark.
    main(*arguments)
    assert met > 0, "no kill met a commit"
    assert sorted(server.ask("select * from minutes")) == minutes_of(visits)
    assert sorted(server.ask("select * from sessions")) == sessions_of(visits)
    copies = Counter((record.key(), record.value()) for record in tansu.consume(copied, PARTITIONS))
    assert copies == Counter((user.encode(), b"%d" % seconds) for user, _, seconds in visits)
