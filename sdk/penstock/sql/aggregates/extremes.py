"""The minimum and the maximum, the value beside them, and any of the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.error import three_parts
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.tree import Scalar
from penstock.scalars.types import BOOLEAN, SqlType
from penstock.sql.aggregates.cells import Bag, Extreme, ordered
from penstock.sql.aggregates.function import (
    AggregateFunction,
    Asked,
    Bind,
    Cell,
    CellText,
    FoldText,
    Hold,
    Holding,
)
from penstock.sql.aggregates.sums import kind_of
from penstock.sql.plan.relations import AggregateCall

FORM = "form"
"""The aggregate that is one of the equal values of a key: what is shown of it."""
SINGLE = "single"
"""The aggregate that is the one value that there may be, of a subquery in an expression."""


def least(values: Iterable[Any]) -> object:
    """Returns the smallest of some values."""
    return min(values, key=ordered)


def greatest(values: Iterable[Any]) -> object:
    """Returns the largest of some values."""
    return max(values, key=ordered)


def _least_of(values: list[Any]) -> object:
    return least(values) if values else None


def _greatest_of(values: list[Any]) -> object:
    return greatest(values) if values else None


# MIN, MAX and what is one of them


def _bind_extreme(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1)
    [value] = asked.arguments
    _check_order(function, value)
    return function.of(asked, (value,), value.type)


def _check_order(function: AggregateFunction, value: Scalar) -> None:
    """Refuses to compare maps, which have no order."""
    if value.type.has("MAP"):
        raise SqlTypeError(f"{function.name} does not compare maps", "compare SORT_ARRAY(MAP_ENTRIES(map))")


def _bind_any_value(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 1, 2)
    function.flag(asked, 1)
    # It may be any of the values, and so the smallest: it is the same in every run.
    value = asked.arguments[0]
    return MIN.of(asked, (value,), value.type)


def _bind_truth(bound: Callable[[], AggregateFunction]) -> Bind:
    """Returns what makes of an aggregate of conditions the smallest or the largest: TRUE is above FALSE."""

    def bind(function: AggregateFunction, asked: Asked) -> AggregateCall:
        function.check_count(asked, 1)
        return bound().of(asked, (function.truth(asked.arguments[0]),), BOOLEAN)

    return bind


def _hold_least(call: AggregateCall, holding: Holding) -> Cell:
    return Bag(_least_of, holding.copies(shown=False), once=True) if holding.retracts else Extreme(least)


def _hold_greatest(call: AggregateCall, holding: Holding) -> Cell:
    return (
        Bag(_greatest_of, holding.copies(shown=False), once=True) if holding.retracts else Extreme(greatest)
    )


def _fold_extreme(symbol: str) -> Callable[[AggregateCall], FoldText | None]:
    text = CellText(
        "{value}",
        f"{{value}} if {{value}} {symbol} {{held}} else {{held}}",
        f"{{other}} if {{other}} {symbol} {{held}} else {{held}}",
    )

    def fold(call: AggregateCall) -> FoldText | None:
        # NaN, and NULL in arrays and structs, have places in the order of SQL that Python's comparisons do not know.
        return None if kind_of(call) in ("DOUBLE", "ARRAY", "STRUCT") else FoldText((text,))

    return fold


# MIN_BY and MAX_BY


_ROWS_MAX = 100_000
"""The maximum number of values that MIN_BY and MAX_BY take, as in Spark."""


def _bind_by(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 2, 3)
    value, by = asked.arguments[:2]
    _check_order(function, by)
    if len(asked.arguments) == 2:
        return function.of(asked, (value, by), value.type)
    count = function.constant(function.whole(asked.arguments[2]), "the number of values")
    if count is None or not 1 <= count <= _ROWS_MAX:
        raise SqlTypeError(f"{function.name} takes from 1 to {_ROWS_MAX:,} values", "write 3")
    return function.of(asked, (value, by), SqlType("ARRAY", True, value.type), parameters=(count,))


def _by_second(row: Sequence[Any]) -> tuple[Any, Any]:
    """Returns what rows are compared by: the second value, and then the first, so that no other row is equal."""
    value, by = row
    return ordered(by), (0, 0) if value is None else (1, ordered(value))


def _first_of(row: Sequence[Any]) -> object:
    return row[0]


def _least_by(rows: Iterable[Any]) -> object:
    return min(rows, key=_by_second)


def _greatest_by(rows: Iterable[Any]) -> object:
    return max(rows, key=_by_second)


def _of_rows(count: int | None, is_greatest: bool, rows: list[Any]) -> object:
    """Returns the value of the first of some rows, or the values of a number of them."""
    if not rows:
        return None
    found = sorted(rows, key=_by_second, reverse=is_greatest)
    return found[0][0] if count is None else [row[0] for row in found[:count]]


def _hold_by(chosen: Callable[[Iterable[Any]], Any]) -> Hold:
    def hold(call: AggregateCall, holding: Holding) -> Cell:
        [count] = call.parameters or (None,)
        if holding.retracts or count is not None:
            return Bag(partial(_of_rows, count, chosen is _greatest_by), holding.copies(shown=True))
        return Extreme(chosen, _first_of)

    return hold


def _second_needed(call: AggregateCall) -> tuple[Scalar, ...]:
    return call.others


# For the plan itself


def _first(values: Iterable[Any]) -> object:
    return next(iter(values))


def _hold_form(call: AggregateCall, holding: Holding) -> Cell:
    return Extreme(_first)


def _fold_form(call: AggregateCall) -> FoldText | None:
    return FoldText((CellText("{value}", "{held}", "{held}"),))


@dataclass(frozen=True)
class SubqueryPlace:
    """The place of a subquery in its query; the same subquery at another place has the same rows.

    Attributes:
        shown: The line with a caret below the subquery.
    """

    shown: str = field(compare=False)


def refuse_more_rows(count: int, place: SubqueryPlace | None) -> object:
    """Refuses a subquery in an expression that has more than one row."""
    what = f"a subquery in an expression has {count} rows, not one"
    where = None if place is None else place.shown
    hint = "aggregate it, for example with MAX, or write LIMIT 1"
    raise ValueError(three_parts(what, where=where, hint=hint))


def place_of(call: AggregateCall) -> SubqueryPlace | None:
    """Returns where the subquery stands whose one value a call is."""
    return next((each for each in call.parameters if isinstance(each, SubqueryPlace)), None)


class _Single(Bag):
    """Holds the one value of a subquery, which may be NULL.

    A new row may come before the old one goes, so that two rows are allowed within an instant, where rows
    are retracted: `OneRow` finds those that stay.
    """

    def __init__(self, holding: Holding, place: SubqueryPlace | None) -> None:
        super().__init__(self._only, holding.copies(shown=True))
        self._retracts = holding.retracts
        self._place = place

    def change(self, held: Counter[Any], value: object, sign: int) -> None:
        self._copies.change(held, value, sign)

    def _only(self, values: list[Any]) -> object:
        if len(values) > 1:
            return None if self._retracts else refuse_more_rows(len(values), self._place)
        return values[0] if values else None


def _hold_single(call: AggregateCall, holding: Holding) -> Cell:
    return _Single(holding, place_of(call))


def _write_single(call: AggregateCall, arguments: Sequence[str], distinct: str, over: str) -> str:
    return f"MAX({arguments[0]}){over}"


MIN = AggregateFunction(
    name="MIN", bind=_bind_extreme, hold=_hold_least, fold=_fold_extreme("<"), repeats=False
)
MAX = AggregateFunction(
    name="MAX", bind=_bind_extreme, hold=_hold_greatest, fold=_fold_extreme(">"), repeats=False
)


def _min() -> AggregateFunction:
    return MIN


def _max() -> AggregateFunction:
    return MAX


_ANY_OF_EQUALS = (
    "of several rows with the same second value, it takes the smallest or the largest; Spark takes any"
)

FUNCTIONS = (
    MIN,
    MAX,
    AggregateFunction(
        name="ANY_VALUE",
        bind=_bind_any_value,
        hold=_hold_least,
        takes_nulls=True,
        from_spark="it is the smallest value, and NULL only if all are; Spark takes the first, which may be NULL",
    ),
    AggregateFunction(name="BOOL_AND", spellings=("EVERY",), bind=_bind_truth(_min), hold=_hold_least),
    AggregateFunction(name="BOOL_OR", spellings=("ANY", "SOME"), bind=_bind_truth(_max), hold=_hold_greatest),
    AggregateFunction(
        name="MIN_BY",
        bind=_bind_by,
        hold=_hold_by(_least_by),
        needs=_second_needed,
        not_in_spark=_ANY_OF_EQUALS,
        from_spark=_ANY_OF_EQUALS,
    ),
    AggregateFunction(
        name="MAX_BY",
        bind=_bind_by,
        hold=_hold_by(_greatest_by),
        needs=_second_needed,
        not_in_spark=_ANY_OF_EQUALS,
        from_spark=_ANY_OF_EQUALS,
    ),
    AggregateFunction(name=FORM.upper(), bind=None, hold=_hold_form, fold=_fold_form),
    AggregateFunction(name=SINGLE.upper(), bind=None, hold=_hold_single, spark=_write_single),
)
"""The records."""
