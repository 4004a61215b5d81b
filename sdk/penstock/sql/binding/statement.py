"""A query while it is bound: its text, the tables that it may read, and how a part of it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from sqlglot import exp

from penstock.scalars import functions
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.tree import Scalar
from penstock.sql.aggregates.functions import AGGREGATES, REFUSED
from penstock.sql.errors import make_sql_error, place
from penstock.sql.language.dialect import micros_of, parse_span_micros, position_of
from penstock.sql.plan.relations import Columns
from penstock.sql.user_functions import UserFunction

GROUPING_FUNCTIONS = frozenset(["GROUPING", "GROUPING_ID"])
"""The functions that distinguish grouping sets."""
_Typed = TypeVar("_Typed")


@dataclass(frozen=True)
class Tables:
    """The inputs, views and functions that queries may name.

    Attributes:
        inputs: The columns of each input, by its name.
        views: The query of each view, by its name.
        functions: The user's functions, by their names in capitals.
    """

    inputs: Mapping[str, Columns]
    views: Mapping[str, str]
    functions: Mapping[str, UserFunction]


@dataclass(frozen=True)
class Statement:
    """One query, or the query of a view.

    Attributes:
        text: Its text.
        tables: What it may read, and the user's functions.
        views: The names of the views in whose definitions it stands.
        has_arrival: Whether rows of inputs have their arrival times.
        until_micros: The processing time after which rows are not seen; None sees all.
        rendered: The SELECT that may name a rendering.
        bound_views: The results of views that are bound, by their names. A view that several queries name is one
            relation for all of them.
    """

    text: str
    tables: Tables
    views: tuple[str, ...] = ()
    has_arrival: bool = False
    until_micros: int | None = None
    rendered: Any = None
    bound_views: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def refuse(
        self, node: object, what: str, hint: str = "", *, missing_table: str | None = None
    ) -> NoReturn:
        """Raises the error of a part of the query."""
        position = position_of(node) if node is not None else None
        raise make_sql_error(what, self.text, position, hint, missing_table=missing_table)

    def place(self, node: object) -> str:
        """Returns the line of a part of the query with a caret below it."""
        return place(self.text, position_of(node) or 0)

    def at(self, node: exp.Expression) -> Callable[..., NoReturn]:
        """Returns what refuses a part of the tree."""

        def refuse(what: str, hint: str = "") -> NoReturn:
            self.refuse(node, what, hint)

        return refuse

    def call(self, node: object, name: str, arguments: Sequence[Scalar]) -> Scalar:
        """Returns a call of a function, with checked types."""
        return self.typed(node, lambda: functions.call(name, arguments))

    def typed(self, node: object, make: Callable[[], _Typed]) -> _Typed:
        """Returns an expression; where its types do not fit, a part of the query is refused."""
        try:
            return make()
        except SqlTypeError as error:
            raise make_sql_error(error.what, self.text, position_of(node), error.hint) from None

    def is_aggregate(self, node: object) -> bool:
        """True if a part of the tree is a call of an aggregate."""
        if not isinstance(node, exp.Anonymous):
            return False
        own = self.tables.functions.get(node.name.upper())
        known = (AGGREGATES, REFUSED, GROUPING_FUNCTIONS)
        return own.aggregates if own else any(node.name.upper() in names for names in known)

    def aggregate_in(self, node: object) -> Any:
        """Returns the first call of an aggregate in a part of the tree; None if there is none."""
        for each in walk_own_parts(node):
            if self.is_aggregate(each) and not has_over(each):
                return each
        return None

    def interval(self, node: exp.Expression) -> int:
        """Returns the microseconds of an interval."""
        if isinstance(node, exp.Interval):
            unit = node.args.get("unit")
            if isinstance(unit, exp.IntervalSpan):
                micros = parse_span_micros(
                    text_of(node.this), unit.this.name.upper(), unit.expression.name.upper()
                )
            else:
                micros = micros_of([*text_of(node.this).split(), *([unit.name] if unit else [])])
            if micros is not None:
                return micros
        return self.refuse(
            node, "expected an interval here", "write INTERVAL '10' MINUTES; months have no fixed length"
        )


def has_over(node: exp.Expression) -> bool:
    """True if a call in the tree has an OVER behind it."""
    parent = node.parent
    while isinstance(parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)) and parent.this is node:
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def walk_own_parts(node: Any) -> Iterator[Any]:
    """Yields the parts of a tree without what is in queries inside it."""
    if node is not None:
        yield from node.walk(prune=lambda each: isinstance(each, (exp.Select, exp.SetOperation)))


def text_of(node: exp.Expression | None) -> str:
    """Returns the name that a part of a tree is, or has."""
    return node.name if isinstance(node, exp.Expression) else str(node or "")
