"""Aggregates: each has its values in the cases, in whatever parts rows come and whatever was taken out again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from penstock.scalars.row_functions import Projection
from penstock.sql.aggregates import functions as aggregates
from penstock.sql.aggregates.functions import AGGREGATES, RECORDS, REFUSED
from penstock.sql.execution.aggregating import SqlAggregates, argument_of, cell_of, expressions_of
from tests.sdk.sql import texts
from tests.sdk.sql.aggregate_cases import CASES, GROUPS, ROWS, Case, read, values_of

FIRST = texts.table()[0]
POPULAR = (
    *(
        "SUM",
        "COUNT",
        "MIN",
        "MAX",
        "AVG",
        "MEAN",
        "COUNT_IF",
        "ANY_VALUE",
        "MIN_BY",
        "MAX_BY",
        "TRY_SUM",
        "TRY_AVG",
    ),
    *("BOOL_AND", "EVERY", "BOOL_OR", "ANY", "SOME", "BIT_AND", "BIT_OR", "BIT_XOR", "APPROX_COUNT_DISTINCT"),
    *(
        "STDDEV",
        "STD",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "VARIANCE",
        "VAR_POP",
        "VAR_SAMP",
        "SKEWNESS",
        "KURTOSIS",
    ),
    *("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY", "REGR_SXX", "REGR_SYY"),
    *("REGR_SXY", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "MEDIAN", "PERCENTILE", "PERCENTILE_CONT"),
    *("PERCENTILE_DISC", "APPROX_PERCENTILE", "PERCENTILE_APPROX", "MODE"),
    *("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET", "LISTAGG", "STRING_AGG"),
)
"""The names that people use most."""
BOUNDED = (
    *("SUM(x)", "AVG(n)", "COUNT(n)", "BIT_AND(n)", "BIT_XOR(n)", "VAR_POP(x)", "KURTOSIS(x)", "CORR(n, x)"),
    *("REGR_R2(n, x)", "AVG(d)", "SUM(i)"),
)
"""Aggregates that hold a few numbers, however many rows there are."""


def wanted(case: Case) -> dict[str, Any]:
    return {key: value(text) for key, text in zip(GROUPS, case.values, strict=True)}


def value(text: str) -> Any:
    [found] = Projection((texts.read(text),))(FIRST)
    return found


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """True if values are the same to the last digit."""
    return {key: (type(each), repr(each)) for key, each in found.items()} == {
        key: (type(each), repr(each)) for key, each in expected.items()
    }


def there_and_back(seed: int = 1) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows, and between them all rows in all groups, which are taken out again."""
    random = Random(seed)
    others = [(key, *row[1:]) for key in GROUPS for row in ROWS]
    waiting = [(1, row) for row in (*ROWS, *others)]
    random.shuffle(waiting)
    yield from waiting
    random.shuffle(others)
    yield from ((-1, row) for row in others)


@pytest.mark.parametrize("case", CASES, ids=[case.call for case in CASES])
def test_an_aggregate_has_its_values(case: Case) -> None:
    assert same(values_of(case.call, [(1, row) for row in ROWS]), wanted(case))
    assert same(values_of(case.call, [(1, row) for row in ROWS[::-1]], parts=3), wanted(case))
    assert same(values_of(case.call, there_and_back(), retracts=True), wanted(case))
    assert same(values_of(case.call, there_and_back(2), retracts=True, parts=3), wanted(case))


def called(case: Case) -> set[str]:
    return {call.name.upper() for call in read(case.call).aggregate.calls}


@pytest.mark.parametrize("name", sorted({name for case in CASES for name in called(case)}))
def test_a_value_that_is_not_taken_out_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqlAggregates, "subtract_input", lambda self, accumulator, element: accumulator)
    assert any(
        not same(values_of(case.call, there_and_back(), retracts=True), wanted(case))
        for case in CASES
        if name in called(case)
    )


@pytest.mark.parametrize("name", sorted({name for case in CASES for name in called(case)}))
def test_a_part_that_is_not_merged_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    was = SqlAggregates.merge_accumulators
    monkeypatch.setattr(SqlAggregates, "merge_accumulators", lambda self, parts: was(self, list(parts)[:1]))
    assert any(
        not same(values_of(case.call, [(1, row) for row in ROWS], parts=2), wanted(case))
        for case in CASES
        if name in called(case)
    )


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("PERCENTILE(n, 0.5, u - 5)", "a frequency of PERCENTILE is negative\n  hint: filter such rows out"),
        ("SUM(n * 4000000000000000000)", "an integer of an SQL expression has more than 64 bits"),
        ("SUM(99999999999999999999999999999999999999)", "has more digits than DECIMAL"),
    ],
)
def test_a_value_that_has_no_result_is_an_error(call: str, what: str) -> None:
    with pytest.raises(ArithmeticError, match=what):
        values_of(call, [(1, row) for row in ROWS])


def test_each_name_of_an_aggregate_has_a_case() -> None:
    texts_of_calls = " ".join(case.call for case in CASES)
    assert [name for name in AGGREGATES if f"{name}(" not in texts_of_calls] == []


def test_each_popular_aggregate_has_a_record() -> None:
    assert set(POPULAR) <= set(AGGREGATES)
    assert not set(AGGREGATES) & set(REFUSED)


def test_an_aggregate_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = aggregates.AggregateFunction(
        name="TWICE_COUNTED",
        bind=lambda function, asked: function.of(asked, asked.arguments, texts.BIGINT),
        hold=lambda call, holding: _Twice(RECORDS["COUNT"].hold(call, holding)),
        result_of_nothing=0,
    )
    for table in (RECORDS, AGGREGATES):
        assert isinstance(table, dict)
        monkeypatch.setitem(table, "TWICE_COUNTED", twice)
    rows = [(1, row) for row in ROWS]
    assert values_of("TWICE_COUNTED(n)", rows) == {"a": 8, "b": 2, "c": 0, "d": 6}


class _Twice:
    def __init__(self, cell: Any) -> None:
        self._cell = cell
        self.empty, self.change, self.merge = cell.empty, cell.change, cell.merge

    def result(self, held: Any) -> Any:
        return 2 * self._cell.result(held)


FOLDED = {"COUNT", "SUM", "AVG", "MIN", "MAX", "BIT_AND", "BIT_OR", "BIT_XOR", "FORM"}


def test_sums_counts_and_extremes_are_expressions_of_a_loop() -> None:
    """A loop over many values contains them, and Spark's workers run it."""
    found = {
        call.name.upper()
        for case in CASES
        for call in read(case.call).aggregate.calls
        if expressions_of((call,))
    }
    assert found == FOLDED - {"FORM"}


@pytest.mark.parametrize("text", BOUNDED)
def test_what_is_held_of_sums_and_moments_does_not_grow(text: str) -> None:
    aggregate, _ = read(text)
    arguments = Projection(tuple(map(argument_of, aggregate.calls)))
    [call] = aggregate.calls
    cell = cell_of(call, retracts=True)
    held, sizes = cell.empty(), set()
    for number in range(200):
        row = list(ROWS[0])
        row[2:5] = number, -number, number / 4
        [value] = arguments(tuple(row))
        cell.change(held, value, 1)
        sizes.add(len(held))
    assert len(sizes) == 1
