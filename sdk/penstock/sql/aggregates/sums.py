"""Counts, sums and means, and sums bit by bit."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from penstock.scalars import decimals, functions
from penstock.scalars.casting import DECIMALS, whole, with_digits
from penstock.scalars.tree import Literal
from penstock.scalars.types import BIGINT, BOOLEAN, DOUBLE, NULL, SqlType
from penstock.sql.aggregates.cells import Count, DistinctValues, Total
from penstock.sql.aggregates.exact import ExactPowers
from penstock.sql.aggregates.function import AggregateFunction, Asked, Cell, CellText, FoldText, Held, Holding
from penstock.sql.plan.relations import AggregateCall

SUM_TEXT = CellText("0 + {value}", "{held} + {value}", "{held} + {other}")
COUNT_TEXT = CellText("1", "{held} + 1", "{held} + {other}", counts=True)
_ZERO_LENGTH = datetime.timedelta(0)
_MICROSECOND = datetime.timedelta(microseconds=1)


def kind_of(call: AggregateCall) -> str:
    """Returns the name of the type of what is aggregated."""
    return "" if call.argument is None else call.argument.type.name


# COUNT


def _bind_count(function: AggregateFunction, asked: Asked) -> AggregateCall:
    return function.of(asked, asked.arguments, BIGINT)


def _hold_count(call: AggregateCall, holding: Holding) -> Cell:
    return DistinctValues(Count(), holding.copies(shown=False)) if call.distinct else Count()


def _fold_count(call: AggregateCall) -> FoldText | None:
    return FoldText((COUNT_TEXT,))


def _bind_count_if(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    true = functions.call("IS TRUE", [function.truth(asked.arguments[0])])
    if asked.distinct:
        only = functions.call("CASE", [true, Literal(True, BOOLEAN.or_null(False)), Literal(None, NULL)])
        return COUNT.of(asked, (only,), BIGINT)
    condition = true if asked.condition is None else functions.call("AND", [asked.condition, true])
    return COUNT.of(Asked((), condition=condition), (), BIGINT)


def _write_count(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    return f"COUNT({distinct}{', '.join(arguments)}){over}"


COUNT = AggregateFunction(
    name="COUNT",
    bind=_bind_count,
    hold=_hold_count,
    fold=_fold_count,
    result_of_nothing=0,
    spark=_write_count,
)


# SUM and AVG


def _bind_sum(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    value = function.addable(asked.arguments[0])
    # A sum has the widest type of its kind.
    kind = replace(value.type, bits=64)
    return function.of(asked, (value,), decimals.sum_type(kind) if kind.name == "DECIMAL" else kind)


def _bind_mean(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    value = function.addable(asked.arguments[0])
    match value.type.name:
        case "DECIMAL":
            return function.of(asked, (value,), decimals.mean_type(value.type))
        case "INTERVAL":
            return function.of(asked, (value,), value.type)
    return function.of(asked, (value,), DOUBLE)


def _whole_sum(count: int, total: int) -> int | None:
    return whole(total) if count else None


def _any_sum(count: int, total: object) -> object:
    return total if count else None


def _mean(count: int, total: float) -> object:
    return total / count if count else None


def _decimal_sum(kind: SqlType, count: int, total: Decimal) -> object:
    if not count:
        return None
    return DECIMALS.plus(total) if kind.precision is None else with_digits(total, kind)


def _decimal_mean(kind: SqlType, count: int, total: Decimal) -> object:
    if not count:
        return None
    if kind.precision is None or kind.scale is None:
        return DECIMALS.divide(total, count)
    return with_digits(decimals.quotient(total, count, kind.scale), kind)


def _length_sum(count: int, total: int) -> object:
    return whole(total) * _MICROSECOND if count else None


def _length_mean(count: int, total: int) -> object:
    """The mean of intervals, rounded half up."""
    if not count:
        return None
    micros = (2 * abs(total) + count) // (2 * count)
    return (-micros if total < 0 else micros) * _MICROSECOND


def _add_length(micros: int, length: datetime.timedelta) -> int:
    return micros + length // _MICROSECOND


def _subtract_length(micros: int, length: datetime.timedelta) -> int:
    return micros - length // _MICROSECOND


class _Lengths(Total):
    """The sum of intervals in microseconds, whose sum may be too long while some are still to go."""

    def __init__(self, result: Callable[[int, Any], Any]) -> None:
        super().__init__(result, _add_length, _subtract_length)

    def merge(self, held: list[Any], other: list[Any]) -> None:
        held[0] += other[0]
        held[1] += other[1]


class _Floats:
    """The sum or the mean of floats that come and go.

    Args:
        mean: Whether the mean is wanted.
    """

    def __init__(self, mean: bool) -> None:
        self._sums = ExactPowers(1)
        self._mean = mean
        self.empty, self.change, self.merge = self._sums.empty, self._sums.change, self._sums.merge

    def result(self, held: list[int]) -> float | None:
        if not held[0]:
            return None
        total = self._sums.total(held)
        return total / held[0] if self._mean else total


class _Attempt:
    """Another cell, whose result is NULL where it is too large."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.empty, self.change, self.merge = cell.empty, cell.change, cell.merge

    def result(self, held: Held) -> object:
        try:
            return self._cell.result(held)
        except ArithmeticError:
            return None


def _total(call: AggregateCall, holding: Holding, *, mean: bool) -> Cell:
    """Returns what holds the sum or the mean of values."""
    match kind_of(call):
        case "DECIMAL":
            result = partial(_decimal_mean if mean else _decimal_sum, call.type)
            cell: Cell = Total(result, decimals.added, decimals.subtracted)
        case "DOUBLE" if holding.retracts or call.distinct:
            cell = _Floats(mean)
        case "INTERVAL":
            cell = _Lengths(_length_mean if mean else _length_sum)
        case "BIGINT":
            cell = Total(_mean if mean else _whole_sum)
        case _:
            cell = Total(_mean if mean else _any_sum)
    if call.distinct:
        return DistinctValues(cell, holding.copies(shown=False))
    return cell


def _hold_sum(call: AggregateCall, holding: Holding) -> Cell:
    return _total(call, holding, mean=False)


def _hold_mean(call: AggregateCall, holding: Holding) -> Cell:
    return _total(call, holding, mean=True)


def _try(hold: Callable[[AggregateCall, Holding], Cell]) -> Callable[[AggregateCall, Holding], Cell]:
    return lambda call, holding: _Attempt(hold(call, holding))


def _fold_sum(call: AggregateCall) -> FoldText | None:
    # Decimals have a context of their own, which an operator in an expression does not take.
    if kind_of(call) in ("DECIMAL", "INTERVAL"):
        return None
    is_whole = call.type.name == "BIGINT"
    return FoldText((SUM_TEXT,), "None if {0} is None else whole({0})" if is_whole else "{0}")


def _fold_mean(call: AggregateCall) -> FoldText | None:
    if kind_of(call) in ("DECIMAL", "INTERVAL"):
        return None
    return FoldText((SUM_TEXT, COUNT_TEXT), "{0} / {1} if {1} else None")


def _write_mean(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    [value] = arguments
    if kind_of(call) == "BIGINT":
        return f"(SUM({distinct}{value}){over} / COUNT({distinct}{value}){over})"
    return f"AVG({distinct}{value}){over}"


# Bits


class _Bits(Cell):
    """Counts how many of the values have each bit, as numbers of 64 bits, and how many values there are.

    Args:
        result: From the number of values, and how many of them have each bit, to whether the result has it.
    """

    def __init__(self, result: Callable[[int, int], bool]) -> None:
        self._result = result

    def empty(self) -> list[int]:
        return [0] * 65

    def change(self, held: list[int], value: int | None, sign: int) -> None:
        if value is None:
            return
        held[64] += sign
        bits = value & _ALL_BITS
        while bits:
            lowest = bits & -bits
            held[lowest.bit_length() - 1] += sign
            bits ^= lowest

    def merge(self, held: list[int], other: list[int]) -> None:
        held[:] = map(operator.add, held, other)

    def result(self, held: list[int]) -> int | None:
        count = held[64]
        if not count:
            return None
        found = sum(1 << bit for bit in range(64) if self._result(held[bit], count))
        return found - (1 << 64) if found >> 63 else found


_ALL_BITS = (1 << 64) - 1


def _in_all(having: int, count: int) -> bool:
    return having == count


def _in_any(having: int, count: int) -> bool:
    return having > 0


def _in_odd(having: int, count: int) -> bool:
    return having % 2 == 1


def _bits(name: str, symbol: str, result: Callable[[int, int], bool]) -> AggregateFunction:
    """Returns the record of an operator of bits over all values."""

    def bind(function: AggregateFunction, asked: Asked) -> AggregateCall:
        function.check_count(asked, 1)
        value = function.whole(asked.arguments[0])
        return function.of(asked, (value,), value.type if value.type.name == "BIGINT" else BIGINT)

    def hold(call: AggregateCall, holding: Holding) -> Cell:
        cell = _Bits(result)
        return DistinctValues(cell, holding.copies(shown=False)) if call.distinct else cell

    def fold(call: AggregateCall) -> FoldText | None:
        text = CellText("{value}", f"{{held}} {symbol} {{value}}", f"{{held}} {symbol} {{other}}")
        return FoldText((text,))

    return AggregateFunction(name=name, bind=bind, hold=hold, fold=fold, repeats=name == "BIT_XOR")


_EXACT_SUM = (
    "over rows that may be retracted, a sum of DOUBLE is exact; Spark's depends on the order of the rows"
)

AVG = AggregateFunction(
    name="AVG",
    spellings=("MEAN",),
    bind=_bind_mean,
    hold=_hold_mean,
    fold=_fold_mean,
    spark=_write_mean,
    from_spark="the mean of integers is their exact sum divided by their number; Spark adds them as DOUBLE",
)

FUNCTIONS = (
    COUNT,
    AggregateFunction(name="COUNT_IF", bind=_bind_count_if, hold=_hold_count),
    AggregateFunction(name="SUM", bind=_bind_sum, hold=_hold_sum, fold=_fold_sum, from_spark=_EXACT_SUM),
    AVG,
    AggregateFunction(name="TRY_SUM", bind=_bind_sum, hold=_try(_hold_sum)),
    AggregateFunction(
        name="TRY_AVG",
        bind=_bind_mean,
        hold=_try(_hold_mean),
        not_in_spark="the mean of integers is their exact sum divided by their number; Spark adds them as DOUBLE",
    ),
    _bits("BIT_AND", "&", _in_all),
    _bits("BIT_OR", "|", _in_any),
    _bits("BIT_XOR", "^", _in_odd),
)
"""The records."""
