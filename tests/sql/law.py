"""The law of the relation: at every instant, what a query has given is what it means of the rows so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

from penstock_spark.reports.failure import StepFailure
from tests.sql.random_queries import Query, Text, random_query, random_windowed_query
from tests.sql.relations import (
    Advance,
    Input,
    Rows,
    as_rows,
    changes,
    expected,
    expected_with_lateness,
    final_rows,
    random_input,
)

RENDERINGS = ["CHANGES", "CHANGES", "CHANGES", "STREAM", "TVR", "TABLE"]


class Broken(AssertionError):
    """A query broke the law."""


def check(
    seed: int,
    weights: Mapping[str, float] | None = None,
    has_forms: bool = False,
    query: Query | None = None,
) -> None:
    """Checks the query of a seed over the input of the seed.

    Args:
        seed: The seed.
        weights: The weights of the query.
        has_forms: Whether values that are equal look different.
        query: Another query.

    Raises:
        Broken: Its result is not what it must be at some instant.
    """
    given, random = random_input(seed), Random(seed)
    query = query or random_query(seed, weights)
    if has_forms:
        given = given.in_forms(Random(seed))
    rendering = random.choice(RENDERINGS)
    mode = random.choice(["streaming", "streaming", "micro_batch"])
    shards = random.choice([1, 2, 3])
    per_batch = random.choice([None, 1, 1, 2])
    own = rendered(query, rendering)
    found = list(changes(own, given, mode, shards, per_batch))
    numbers = (
        [len(given.happenings)] * len(found) if rendering == "TABLE" else [each.events for each in found]
    )
    if rendering == "TVR":
        _check_snapshots(seed, query, own, given, found)
    else:
        wanted = list(expected(query.text, given, numbers))
        for place, (net, rows) in enumerate(zip(_nets(found, rendering, has_forms), wanted, strict=True)):
            if net != rows and (rendering != "TABLE" or place == len(found) - 1):
                where = f"after {found[place].events} of {len(given.happenings)} events, {rendering}, {mode}"
                raise Broken(_differences(seed, own, where, net, rows))
    if random.random() < 0.3:
        final = final_rows(query.text.own, given)
        [rows] = expected(query.text, given, [len(given.happenings)])
        if final != rows:
            raise Broken(_differences(seed, query.text.own, "in batch", final, rows))


def check_text(own: str, seed: int, other: str | None = None) -> None:
    """Checks the changes of one query over the input of a seed; DuckDB has the same text, or another one.

    Raises:
        Broken: Its result is not what it must be at some instant.
    """
    check_net(seed, Text(own, other or own), random_input(seed))


def check_net(seed: int, text: Text, given: Input, *settings: Any) -> None:
    """Checks the changes of a query in both languages; `settings` are those of `changes`.

    Raises:
        Broken: Its result is not what it must be at some instant.
    """
    found = list(changes(text.own, given, *settings))
    wanted = expected(text, given, [each.events for each in found])
    for net, rows, each in zip(_nets(found, "CHANGES"), wanted, found, strict=True):
        if net != rows:
            raise Broken(_differences(seed, text.own, f"after {each.events} events", net, rows))


def check_appended(own: str, seed: int, other: str) -> None:
    """Checks that a query appends rows only, and which; DuckDB reads the rows of ``a`` that came on time as ``a``.

    Raises:
        Broken: Others are appended, or some are retracted.
    """
    given = random_input(seed, retracts=False)
    given = Input((*given.events, Advance(None, 1_000)), retracts=False)
    random = Random(seed)
    found = list(changes(own, given, shards=random.choice([1, 2]), events_per_batch=random.choice([None, 1])))
    if any(sign < 0 for each in found for sign, _ in each.changes):
        raise Broken(f"seed {seed}: a row is retracted\n{own}")
    *_, net = _nets(found, "CHANGES")
    on_time = "(SELECT * EXCLUDE (seen) FROM a_seen WHERE epoch_us(ts) >= seen)"
    rows = expected_with_lateness(f"WITH a AS {on_time} {other}", given)
    if net != rows:
        raise Broken(_differences(seed, own, "at the end", net, rows))


def _check_snapshots(seed: int, query: Query, own: str, given: Input, found: Iterable[Any]) -> None:
    """Checks that the last snapshot until each instant of processing time has the rows of its end."""
    snapshots = {
        row.start.micros: as_rows(row.rows, given.has_forms) for each in found for _, row in each.changes
    }
    last_of: dict[int, int] = {}
    clock_micros = 0
    for number, event in enumerate([None, *given.happenings]):
        if isinstance(event, Advance) and event.table is None:
            clock_micros += int((event.seconds or 0) * 1_000_000)
        last_of[clock_micros] = number
    for instant, rows in zip(last_of, expected(query.text, given, last_of.values()), strict=True):
        until = [start for start in snapshots if start <= instant]
        snapshot = snapshots[max(until)] if until else Rows()
        if snapshot != rows:
            raise Broken(_differences(seed, own, f"at {instant} microseconds, TVR", snapshot, rows))


def rendered(query: Query, rendering: str) -> str:
    """The query with one of the renderings around it."""
    names = ", ".join(name for name, _ in query.columns)
    match rendering:
        case "CHANGES":
            return query.text.own
        case "STREAM":
            return f"SELECT STREAM {names}, Sys.Undo FROM ({query.text.own})"
    return f"SELECT {rendering} {names} FROM ({query.text.own})"


def _nets(found: Iterable[Any], rendering: str, has_forms: bool = False) -> Iterator[Rows]:
    """What is left of all that was given by the end of each micro-batch."""
    net: Rows = Counter()
    for _, batch, _ in found:
        for sign, row in batch:
            if rendering == "STREAM":
                values = tuple(row)
                sign, row = -1 if values[-1] else 1, values[:-1]
            [(text, _)] = as_rows([row], has_forms).items()
            net[text] += sign
            if not net[text]:
                del net[text]
        yield Counter(net)


def _differences(seed: int, query: str, where: str, net: Rows, rows: Rows) -> str:
    only = {"surplus": dict(net - rows), "missing": dict(rows - net)}
    below = {row: count for row, count in net.items() if count < 0}
    return f"seed {seed}, {where}: {only}, below zero: {below}\n{query}"


def first_broken(seeds: Iterable[int], check_seed: Callable[[int], None]) -> int | None:
    """The first seed whose query breaks a law, or stops."""
    for seed in seeds:
        try:
            check_seed(seed)
        except (Broken, StepFailure):
            return seed
    return None


_DELAYED = (
    "AFTER DELAY INTERVAL '2' SECONDS",
    "AFTER ALIGNED DELAY 3 SECONDS",
    "CHANGES",
    "PERIODIC 4 SECONDS",
)
_AT_WATERMARK = (
    "AFTER WATERMARK",
    "ON WINDOW CLOSE",
    "AFTER DELAY 2 SECONDS AND AFTER WATERMARK",
    "AFTER WATERMARK AND THEN AFTER 1 SECOND",
    "AFTER DELAY 1 SECOND AND AFTER WATERMARK AND THEN AFTER 0 SECONDS",
)


def check_emitted(seed: int) -> None:
    """Checks what a query of the seed has given when nothing can come any more, with an EMIT clause.

    Raises:
        Broken: It is not what the query means of all rows.
    """
    random = Random(seed)
    if random.random() < 0.4:
        query, given = random_query(seed), random_input(seed)
        clause = random.choice(_DELAYED)
        _check_end(random, seed, query, f"SELECT * FROM ({query.text.own}) EMIT {clause}", given)
        return
    clause = random.choice(_AT_WATERMARK)
    if random.random() < 0.3:
        # A row may be late for one session and not for another, so this needs an input without late rows.
        query, given = (
            random_windowed_query(seed, sessions=True),
            random_input(seed, late=False, retracts=False),
        )
        _check_end(random, seed, query, f"{query.text.own} EMIT {clause}", given)
    else:
        check_late(seed, clause)


def _check_end(random: Random, seed: int, query: Query, own: str, given: Input) -> None:
    given = Input((*given.events, Advance(None, 1_000)), given.retracts)
    found = list(changes(own, given, random.choice(["streaming", "micro_batch"]), random.choice([1, 2])))
    *_, net = _nets(found, "CHANGES")
    [rows] = expected(query.text, given, [len(given.happenings)])
    if net != rows:
        raise Broken(_differences(seed, own, "at the end", net, rows))


def check_late(seed: int, clause: str) -> None:
    """Checks which rows count that come after their windows are closed, and how many are dropped.

    Raises:
        Broken: Others do, or are.
    """
    random, given = Random(seed), random_input(seed, retracts=False)
    given = Input((*given.events, Advance(None, 1_000)), retracts=False)
    is_closed = "AND THEN" not in clause
    query = random_windowed_query(seed, "on time" if is_closed else "any")
    own = f"{query.text.own} EMIT {clause}"
    found = list(changes(own, given, random.choice(["streaming", "micro_batch"]), random.choice([1, 2])))
    *_, net = _nets(found, "CHANGES")
    rows = (
        expected_with_lateness(query.text.other, given)
        if is_closed
        else next(expected(query.text, given, [len(given.happenings)]))
    )
    if net != rows:
        raise Broken(_differences(seed, own, "at the end", net, rows))
    if found[-1].dropped is None:
        return
    dropped, late = as_rows([(found[-1].dropped,)]), as_rows([(0,)])
    if is_closed:
        late_rows = random_windowed_query(seed, "late").rows.other
        late = expected_with_lateness(f"SELECT COUNT(*) FROM {late_rows}", given)
    if dropped != late:
        raise Broken(_differences(seed, own, "dropped", dropped, late))
