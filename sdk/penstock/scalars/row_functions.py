"""Functions of rows that are compiled from expressions: projections, keys with values, times and conditions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.elements.bounded_window import TimestampedValue
from penstock.scalars.python_writer import PythonWriter
from penstock.scalars.tree import Scalar
from penstock.utils.timestamp import Timestamp


class Forwarding:
    """A function of an element that only calls another one; a loop over many elements calls that one alone."""

    @property
    def function(self) -> Callable[[Any], Any]:
        """Returns the other function."""
        raise NotImplementedError


class Stamping:
    """The function of a Map that changes the timestamp of each element, and nothing else."""

    def __call__(self, element: object) -> TimestampedValue[Any]:
        """The element at its time."""
        return TimestampedValue(element, Timestamp.from_micros(self.function(element)))

    @property
    def function(self) -> Callable[[Any], int]:
        """Returns the function from an element to its time in microseconds since 1970; a loop calls it alone."""
        raise NotImplementedError


class Compiled:
    """A function that is compiled when it is first called, and again after it was pickled."""

    @functools.cached_property
    def function(self) -> Callable[[tuple[Any, ...]], Any]:
        """The compiled function itself, which saves callers of many rows one call a row."""
        return PythonWriter("row", {}).compiled(self._all(), self._lines)

    def _all(self) -> tuple[Scalar, ...]:
        raise NotImplementedError

    def _lines(self, writer: PythonWriter) -> str:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "function"}


@dataclass(frozen=True)
class Projection(Compiled, Forwarding):
    """A function from a row to a row, which computes one expression for each of its columns (penstock's own).

    >>> from penstock.scalars.tree import Call, Column, Literal
    >>> from penstock.scalars.types import BIGINT
    >>> column = Column(1, "score", BIGINT)
    >>> Projection((column, Call("+", (column, Literal(1, BIGINT)), BIGINT)))(("amy", 7))
    (7, 8)
    """

    scalars: tuple[Scalar, ...]

    def __call__(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The row of results."""
        result: tuple[Any, ...] = self.function(row)
        return result

    def _all(self) -> tuple[Scalar, ...]:
        return self.scalars

    def _lines(self, writer: PythonWriter) -> str:
        return writer.row(self.scalars)


@dataclass(frozen=True)
class Pairing(Compiled, Forwarding):
    """A function from a row to a pair of a key and a value (penstock's own).

    A single expression returns its value, and several return a tuple.

    Attributes:
        keys: The expressions of the key; without any, all rows have the key 0.
        values: The expressions of the value; without any, it is None. None stands for the row itself.
        in_row: Whether the value is a tuple even of a single expression.
        number: A number that comes in a pair with the value; None for the value alone.

    >>> from penstock.scalars.tree import Call, Column, Literal
    >>> from penstock.scalars.types import BIGINT
    >>> score, bonus = Column(1, "score", BIGINT), Column(2, "bonus", BIGINT)
    >>> Pairing((Column(0, "name", BIGINT),), (score, bonus))(("amy", 7, 2)), Pairing((), None)((1, 2))
    (('amy', (7, 2)), (0, (1, 2)))
    """

    keys: tuple[Scalar, ...]
    values: tuple[Scalar, ...] | None
    in_row: bool = False
    number: int | None = None

    def __call__(self, row: tuple[Any, ...]) -> tuple[Any, Any]:
        """The pair."""
        pair: tuple[Any, Any] = self.function(row)
        return pair

    def _all(self) -> tuple[Scalar, ...]:
        return (*self.keys, *(self.values or ()))

    def _lines(self, writer: PythonWriter) -> str:
        if self.values is None:
            value = "row"
        else:
            value = writer.row(self.values) if self.in_row else writer.one_or_tuple(self.values, "None")
        if self.number is not None:
            value = f"({self.number}, {value})"
        return f"({writer.one_or_tuple(self.keys, '0')}, {value})"


@dataclass(frozen=True)
class AtTime(Compiled, Stamping):
    """Gives a row the time of an expression, which is not NULL, as its timestamp (penstock's own).

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import TIMESTAMP
    >>> import datetime
    >>> time = datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC)
    >>> AtTime(Column(1, "at", TIMESTAMP))(("amy", time))
    TimestampedValue(('amy', datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.timezone.utc)), Timestamp(2))
    """

    time: Scalar

    def _all(self) -> tuple[Scalar, ...]:
        return (self.time,)

    def _lines(self, writer: PythonWriter) -> str:
        return f"whole_micros({writer.value(self.time).text})"


@dataclass(frozen=True)
class Predicate(Compiled, Forwarding):
    """A condition of a row: true if an expression is true for it, and not false or NULL (penstock's own).

    >>> from penstock.scalars.tree import Call, Column, Literal
    >>> from penstock.scalars.types import BIGINT, BOOLEAN
    >>> positive = Predicate(Call(">", (Column(0, "score", BIGINT), Literal(0, BIGINT)), BOOLEAN))
    >>> positive((1,)), positive((-1,)), positive((None,))
    (True, False, False)
    """

    scalar: Scalar

    def __call__(self, row: tuple[Any, ...]) -> bool:
        """True if the expression is true."""
        result: bool = self.function(row)
        return result

    def _all(self) -> tuple[Scalar, ...]:
        return (self.scalar,)

    def _lines(self, writer: PythonWriter) -> str:
        return writer.all_true(self.scalar)
