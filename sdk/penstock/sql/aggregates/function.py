"""The record of an aggregate: all that is known about it, for the binder, for what computes it and for Spark's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from penstock.relations.bags import Copies
from penstock.scalars import resolving
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Scalar, columns_of
from penstock.scalars.types import BOOLEAN, DOUBLE, SqlType
from penstock.sql.plan.relations import AggregateCall, Order

Arguments = tuple[Scalar, ...]


@dataclass(frozen=True)
class Asked:
    """An aggregate as a query asks for it.

    Attributes:
        arguments: The arguments in parentheses; none for ``COUNT(*)``.
        distinct: Whether equal values count once.
        condition: The condition of FILTER; None without one.
        orders: The order of ORDER BY or WITHIN GROUP.
        nulls: ``IGNORE NULLS``, ``RESPECT NULLS``, or empty.
    """

    arguments: Arguments
    distinct: bool = False
    condition: Scalar | None = None
    orders: tuple[Order, ...] = ()
    nulls: str = ""

    @property
    def keeps_nulls(self) -> bool:
        """True if NULLs are also values."""
        return self.nulls == "RESPECT NULLS"


Held: TypeAlias = Any
"""The values that a cell holds, in a form that only the cell reads."""


class Cell(Protocol):
    """Holds what a group needs of one aggregate; values come and go, and only the cell reads what is held."""

    def empty(self) -> Held:
        """Returns what is held of no values."""

    def change(self, held: Held, value: Any, sign: int) -> None:
        """Adds a value if the sign is 1, and subtracts it if it is -1; None does not count."""

    def merge(self, held: Held, other: Held) -> None:
        """Adds all that another part holds."""

    def result(self, held: Held) -> object:
        """Returns the result."""


class Holding(Protocol):
    """Says how the values of a group come."""

    @property
    def retracts(self) -> bool:
        """True if values may be taken out."""

    def copies(self, *, shown: bool) -> Copies:
        """Returns what counts equal values.

        Args:
            shown: Whether the result shows values as they came, so that a value that looks different is another one.
        """


@dataclass(frozen=True)
class CellText:
    """A part of what is held, as Python expressions with {value}, {held} and {other} in them.

    Attributes:
        first: What is held of a first value.
        more: What is held of one more value.
        merge: What is held of two parts.
        counts: Whether values are counted, so that 0 is held of none; else None is held of none.
    """

    first: str
    more: str
    merge: str
    counts: bool = False


@dataclass(frozen=True)
class FoldText:
    """An aggregate of values that are never taken out, as expressions.

    Attributes:
        cells: The parts that are held.
        result: The result of the parts {0}, {1} and up; it may call `whole`.
    """

    cells: tuple[CellText, ...]
    result: str = "{0}"


Bind = Callable[["AggregateFunction", Asked], AggregateCall]
"""Makes the call of what a query asks for, with the casts that it leaves out; raises SqlTypeError."""
Hold = Callable[[AggregateCall, Holding], Cell]
"""Returns what a group holds."""
SparkForm = Callable[[AggregateCall, Sequence[str], str, str], str]
"""Writes a call for Spark, from its arguments, the word ``DISTINCT `` or none, and `` OVER (…)`` or none."""


def _no_fold(call: AggregateCall) -> FoldText | None:
    return None


def _all_needed(call: AggregateCall) -> Arguments:
    return () if call.argument is None else (call.argument, *call.others)


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregateFunction:
    """An aggregate.

    Attributes:
        name: The name that queries use; its calls have it in small letters.
        bind: Checks the types of arguments, casts these, and returns the call; None if no query names it.
        hold: What a group holds of it.
        spellings: Other names that queries may use.
        fold: The same as expressions, which a loop over many values contains; None where there are none.
        needs: The values that must not be NULL for a row to count; all arguments, unless it says otherwise.
        takes_order: Whether it takes ORDER BY, or WITHIN GROUP.
        takes_nulls: Whether it takes IGNORE NULLS and RESPECT NULLS.
        repeats: Whether a value that comes twice changes the result, so that DISTINCT has a meaning.
        result_of_nothing: The result of a group without values, if it is not NULL.
        spark: Writes a call in Spark's SQL; None if it is the name with the arguments.
        not_in_spark: Why Spark does not compute exactly the same; empty if it does.
        from_spark: How Spark's result of the same call differs; empty if it does not.
    """

    name: str
    bind: Bind | None
    hold: Hold
    spellings: tuple[str, ...] = ()
    fold: Callable[[AggregateCall], FoldText | None] = _no_fold
    needs: Callable[[AggregateCall], Arguments] = _all_needed
    takes_order: bool = False
    takes_nulls: bool = False
    repeats: bool = True
    result_of_nothing: object = None
    spark: SparkForm | None = None
    not_in_spark: str = ""
    from_spark: str = ""

    def __call__(self, asked: Asked) -> AggregateCall:
        """Returns the call of what a query asks for.

        Raises:
            SqlTypeError: The arguments do not fit.
        """
        assert self.bind is not None, f"no query calls {self.name}"
        if asked.orders and not self.takes_order:
            hint = "leave out the order"
            raise SqlTypeError(f"the result of {self.name} does not depend on an order", hint)
        if asked.nulls and not self.takes_nulls:
            raise SqlTypeError(f"{self.name} does not take {asked.nulls}", "leave it out: NULLs are ignored")
        return self.bind(self, asked)

    def of(
        self,
        asked: Asked,
        values: Arguments,
        result: SqlType,
        orders: tuple[Order, ...] = (),
        parameters: tuple[Any, ...] = (),
    ) -> AggregateCall:
        """Returns a call of values that fit.

        Args:
            asked: What the query asks for.
            values: The values of a row that are aggregated.
            result: The type of the result, if there are values.
            orders: How values are ordered.
            parameters: Values that are the same for all rows.
        """
        return AggregateCall(
            self.name.lower(),
            values[0] if values else None,
            result.or_null(self.result_of_nothing is None),
            asked.distinct and self.repeats,
            asked.condition,
            others=values[1:],
            orders=orders,
            parameters=parameters,
        )

    def check_count(self, asked: Asked, least: int, most: int | None = None) -> None:
        """Refuses another number of arguments."""
        found, most = len(asked.arguments), least if most is None else most
        if not least <= found <= most:
            wanted = "one argument" if least == most == 1 else _arguments_of(least, most)
            shown = ("points", "weight", "100")[:least]
            raise SqlTypeError(
                f"{self.name} takes {wanted}, not {found}", f"write {self.name}({', '.join(shown)})"
            )

    def number(self, value: Scalar) -> Scalar:
        """Returns a value that must be a number; a string is cast to a DOUBLE."""
        if value.type.name == "STRING":
            return resolving.cast(value, DOUBLE)
        return self._checked(value, ("BIGINT", "DECIMAL", "DOUBLE"), "numbers", "CAST it to a number")

    def double(self, value: Scalar) -> Scalar:
        """Returns a number as a DOUBLE, as Spark computes with it."""
        return resolving.cast(self.number(value), DOUBLE.or_null(value.type.nullable))

    def addable(self, value: Scalar) -> Scalar:
        """Returns a value that must be a number or an interval."""
        return value if value.type.name == "INTERVAL" else self.number(value)

    def whole(self, value: Scalar) -> Scalar:
        """Returns a value that must be an integer."""
        return self._checked(value, ("BIGINT",), "integers", "CAST it AS BIGINT")

    def truth(self, value: Scalar) -> Scalar:
        """Returns a value that must be a condition."""
        return self._checked(value, ("BOOLEAN",), "conditions", "compare it with something")

    def _checked(self, value: Scalar, kinds: Sequence[str], takes: str, hint: str) -> Scalar:
        if value.type.name not in (*kinds, "NULL", "ANY"):
            raise SqlTypeError(f"{self.name} takes {takes}, and {value} is {value.type}", hint)
        return value

    def constant(self, value: Scalar, what: str) -> Any:
        """Returns the value of an argument that must be the same for all rows."""
        if columns_of(value):
            raise SqlTypeError(f"{what} of {self.name} is a constant, and {value} is not", "write a literal")
        [found] = Projection((value,))(())
        return found

    def flag(self, asked: Asked, at: int) -> bool:
        """Returns whether an argument that may be left out is TRUE."""
        if len(asked.arguments) <= at:
            return False
        value = asked.arguments[at]
        if value.type.name != BOOLEAN.name:
            raise SqlTypeError(f"{value} is not a BOOLEAN", "write TRUE or FALSE")
        return bool(self.constant(value, "a flag"))


def _arguments_of(least: int, most: int) -> str:
    return f"{least} arguments" if least == most else f"{least} to {most} arguments"
