"""Window functions over event time: each row comes once, when the watermark has passed its time, and never changes."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.scalars.tree import Literal
from penstock.scalars.types import INTERVAL
from penstock.sql.execution import final_over as appending
from penstock.sql.execution.final_over import Kept, add_rows
from penstock.sql.execution.lowering import argument_of
from penstock.sql.execution.over_results import OverResults
from penstock.sql.plan import final_over
from tests.sql.law import check_appended, first_broken
from tests.sql.test_over import overs

CALLS = {
    "ROW_NUMBER() OVER ({}ORDER BY ts, k, s, v)": 1,
    "RANK() OVER ({}ORDER BY ts)": 1,
    "DENSE_RANK() OVER ({}ORDER BY ts)": 1,
    "LAG(v, 2, -1) OVER ({}ORDER BY ts, k, s, v)": 2,
    "LAG(v, 0) OVER ({}ORDER BY ts, k, s, v)": 1,
    "SUM(v) OVER ({}ORDER BY ts)": 1,
    "AVG(v) OVER ({}ORDER BY ts)": 1,
    "MIN(s) OVER ({}ORDER BY ts, k, s, v ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)": 3,
    "AVG(v) OVER ({}ORDER BY ts, k, s, v ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)": 2,
    "SUM(v) OVER ({}ORDER BY ts, k, s, v ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)": 3,
    "FIRST_VALUE(v) OVER ({}ORDER BY ts, k, s, v)": 1,
    "LAST_VALUE(v) OVER ({}ORDER BY ts, k, s, v ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)": 2,
    "NTH_VALUE(v, 2) OVER ({}ORDER BY ts, k, s, v)": 1,
    "COUNT(*) OVER ({}ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW)": 4,
    "MAX(v) OVER ({}ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW)": 4,
}
"""Calls, and how many rows of a second each they keep at most."""
QUERY = "SELECT k, s, v, ts, {} AS c FROM a"


def check_call(call: str, seed: int) -> None:
    """Checks the rows that a call gives over the input of a seed."""
    text = QUERY.format(call.format(Random(seed).choice(["", "PARTITION BY k ", "PARTITION BY s, k "])))
    check_appended(f"{text} EMIT AFTER WATERMARK", seed, text)


@pytest.mark.parametrize("call", CALLS)
def test_rows_come_once_with_the_result_over_the_rows_that_were_on_time(call: str) -> None:
    for seed in range(3):
        check_call(call, seed)


@pytest.mark.soak
@pytest.mark.parametrize("call", CALLS)
def test_they_do_over_many_inputs(call: str) -> None:
    for seed in range(3, 200):
        check_call(call, seed)


def test_several_orders_by_one_time_wait_together() -> None:
    text = QUERY.format("RANK() OVER (ORDER BY ts) AS r, LAG(v) OVER (PARTITION BY k ORDER BY ts, s, v)")
    for seed in range(4):
        check_appended(f"SELECT * FROM ({text}) AS x EMIT AFTER WATERMARK", seed, text)


def test_all_functions_take_the_rows_of_a_window_at_once() -> None:
    grouped = "SELECT {} AS e, k, COUNT(*) AS n FROM {} GROUP BY {}, k"
    own = grouped.format(
        "window_end", "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)", "window_start, window_end"
    )
    end = "time_bucket(INTERVAL '10' SECOND, ts) + INTERVAL '10' SECOND"
    late = "(SELECT * EXCLUDE (seen) FROM a_seen WHERE epoch_us({}) > seen AND ts IS NOT NULL)"
    other = grouped.format(end, late.format(end), "e")
    over = (
        "SELECT *, NTILE(2) OVER (PARTITION BY e ORDER BY n, k) AS t, SUM(n) OVER (PARTITION BY e) AS s, "
        "LEAD(n) OVER (PARTITION BY e ORDER BY k) AS l FROM ({}) AS g"
    )
    for seed in range(6):
        check_appended(f"{over.format(own)} EMIT AFTER WATERMARK", seed, over.format(other))


def _kept_of(call: str) -> tuple[OverResults, Kept]:
    """What a call keeps after a thousand rows, ten at a time; their values are not NULL."""
    [relation] = overs(QUERY.format(call.format("")))
    results, kept = OverResults(relation, argument_of), None
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for number in range(0, 1_000, 10):
        rows = [(1, "x", at, start + datetime.timedelta(seconds=at)) for at in range(number, number + 10)]
        _, kept = add_rows(results, kept, rows)
    assert kept is not None
    return results, kept


@pytest.mark.parametrize("call", CALLS)
def test_a_partition_keeps_what_later_rows_may_see(call: str) -> None:
    _, (forgotten, rows, _, _) = _kept_of(call)
    assert forgotten + len(rows) == 1_000
    assert len(rows) <= CALLS[call]


def test_lag_that_ignores_nulls_keeps_rows_back_to_the_known_one() -> None:
    [relation] = overs(QUERY.format("LAG(s) IGNORE NULLS OVER (ORDER BY ts)"))
    results = OverResults(relation, argument_of)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [(1, "x" if at == 5 else None, 1, start + datetime.timedelta(seconds=at)) for at in range(9)]
    _, (forgotten, kept, _, _) = add_rows(results, None, rows)
    assert (forgotten, len(kept)) == (5, 4)


# Mutants

Patch = Callable[[pytest.MonkeyPatch], None]


def _forgets_more(patch: pytest.MonkeyPatch) -> None:
    was = OverResults.first_kept
    patch.setattr(OverResults, "first_kept", lambda self, rows: min(len(rows), was(self, rows) + 1))


def _places_begin_anew(patch: pytest.MonkeyPatch) -> None:
    was = appending.add_rows

    def added(results: Any, kept: Any, come: Any) -> Any:
        return was(results, None if kept is None else (0, *kept[1:]), come)

    patch.setattr(appending, "add_rows", added)


def _late_at_its_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(final_over, "_INSTANT", Literal(datetime.timedelta(), INTERVAL.or_null(False)))


MUTANTS: dict[str, tuple[Patch, str]] = {
    "a row is forgotten too early": (_forgets_more, "LAG(v, 2, -1) OVER ({}ORDER BY ts, k, s, v)"),
    "numbers begin anew": (_places_begin_anew, "ROW_NUMBER() OVER ({}ORDER BY ts, k, s, v)"),
    "rows at the watermark are late": (_late_at_its_time, "RANK() OVER ({}ORDER BY ts)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_of_appended_rows_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, call = MUTANTS[name]
    patch(monkeypatch)

    def check_seed(seed: int) -> None:
        check_call(call, seed)

    assert first_broken(range(40), check_seed) is not None
