"""Aggregates that are never taken back: as expressions they give what functions give."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.functions.expression_combinefn import ExpressionCombineFn
from penstock.scalars.tree import Column
from penstock.scalars.types import BIGINT, SqlType
from penstock.sql.execution.aggregating import SqlAggregates, expressions_of
from penstock.sql.plan.relations import AggregateCall

DOUBLE, VARCHAR = SqlType("DOUBLE"), SqlType("STRING")
COLUMNS = (Column(0, "whole", BIGINT), Column(1, "some", BIGINT.or_null(False)), Column(2, "text", VARCHAR))
VALUES = (
    lambda random: random.choice([None, 0, 3, -7]),
    lambda random: random.randrange(9),
    lambda random: random.choice([None, "a", "b"]),
)
NAMES = (
    ("count", "sum", "avg", "min", "max"),
    ("count", "sum", "avg", "min", "max"),
    ("count", "min", "max"),
)


def random_calls(random: Random) -> tuple[AggregateCall, ...]:
    calls = [AggregateCall("count", None, BIGINT)] if random.random() < 0.3 else []
    for _ in range(random.randrange(not calls, 4)):
        at = random.randrange(len(COLUMNS))
        calls.append(AggregateCall(random.choice(NAMES[at]), COLUMNS[at], COLUMNS[at].type))
    return tuple(calls)


def random_row(random: Random, calls: tuple[AggregateCall, ...]) -> tuple[Any, ...]:
    values = [make(random) for make in VALUES]
    return tuple(1 if call.argument is None else values[call.argument.index] for call in calls)


@pytest.mark.parametrize("seed", range(200))
def test_expressions_give_what_the_functions_give_however_the_rows_are_cut(seed: int) -> None:
    random = Random(seed)
    calls = random_calls(random)
    expressions = expressions_of(calls)
    assert expressions is not None
    fast, general = ExpressionCombineFn(expressions), SqlAggregates(calls, retracts=False)
    parts = [[random_row(random, calls) for _ in range(random.randrange(5))] for _ in range(3)]
    parts.append([random_row(random, calls)])
    bare = [[row[0] if len(calls) == 1 else row for row in part] for part in parts]
    found = fast.merge_accumulators(fast.add_inputs(fast.create_accumulator(), part) for part in bare)
    expected = general.merge_accumulators(
        general.add_inputs(general.create_accumulator(), part) for part in parts
    )
    assert fast.extract_output(found) == general.extract_output(expected)[1:]


def test_a_sum_of_more_than_64_bits_is_refused() -> None:
    expressions = expressions_of((AggregateCall("sum", COLUMNS[0], BIGINT),))
    assert expressions is not None
    with pytest.raises(ArithmeticError, match="more than 64 bits"):
        ExpressionCombineFn(expressions).apply([1 << 62, 1 << 62])


@pytest.mark.parametrize(
    ("column", "name"), [(Column(0, "x", DOUBLE), "min"), (Column(0, "x", SqlType("DECIMAL")), "sum")]
)
def test_what_an_expression_cannot_say_is_left_to_functions(column: Column, name: str) -> None:
    assert expressions_of((AggregateCall(name, column, column.type),)) is None
