"""Resolves the names of a query at one place in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.tree import (
    Column,
    OuterColumn,
    Parameter,
    Scalar,
    columns_of,
    map_leaves,
    replace_scalars,
    shift_columns,
)
from penstock.scalars.types import BIGINT
from penstock.sql.plan.decorrelation import Correlation, has_one_row
from penstock.sql.plan.lineage import window_bounds
from penstock.sql.plan.relations import (
    AggregateCall,
    ColumnDef,
    Columns,
    Project,
    Relation,
    columns_as_scalars,
)

_BESIDE = 1 << 20
"""The place of the first column that is beside the keys and the aggregates, as long as their number is not known."""
GROUPING_ID = ColumnDef("grouping_id", BIGINT.or_null(False))
SET_PLACE = ColumnDef("grouping_set", BIGINT.or_null(False))
Refuse = Callable[..., NoReturn]
"""Raises the error of a query, with the place of a part of its tree."""


@dataclass(frozen=True)
class Visible:
    """A name that stands for a value of each row.

    Attributes:
        qualifier: The name of the table, or its alias; None if there is none.
        name: The name of the column.
        scalar: The value.
        in_star: Whether ``*`` includes it.
    """

    qualifier: str | None
    name: str
    scalar: Scalar
    in_star: bool = True


@dataclass
class Scope:
    """A relation under construction, and the names of its columns.

    Attributes:
        relation: The relation; a subquery in an expression adds columns to it, at the end.
        visible: The names.
        arrival: The processing time at which a row arrived, if it is known.
    """

    relation: Relation
    visible: list[Visible]
    arrival: Scalar | None = None

    def find(self, qualifier: str | None, name: str, refuse: Refuse) -> Scalar:
        """Returns the value of a column by its name; upper and lower case are the same, as in Spark."""
        named = [each for each in self.visible if _same(each.name, name)]
        found = [each for each in named if qualifier is None or _same(each.qualifier, qualifier)]
        if qualifier is None:
            # Of a column that USING names, the two of the tables themselves need their tables.
            found = [each for each in found if each.in_star] or found
        distinct = {each.scalar for each in found}
        if len(distinct) == 1:
            return found[0].scalar
        if distinct:
            owners = sorted({str(each.qualifier) for each in found})
            hint = (
                "write TABLE.COLUMN" if len(owners) > 1 else "rename one of them with AS, in the inner query"
            )
            return refuse(f"the column {name!r} is ambiguous: it is in {' and in '.join(owners)}", hint)
        full = name if qualifier is None else f"{qualifier}.{name}"
        qualifiers = {str(each.qualifier) for each in self.visible if each.qualifier}
        if qualifier is not None and not any(_same(each, qualifier) for each in qualifiers):
            refuse(f"there is no table {qualifier!r} here", hint_at_name(qualifier, qualifiers))
        return refuse(
            f"there is no column {full!r}", hint_at_name(name, (each.name for each in self.visible))
        )

    def has(self, qualifier: str | None, name: str) -> bool:
        """True if a name stands for a column here."""
        return any(
            _same(each.name, name) and (qualifier is None or _same(each.qualifier, qualifier))
            for each in self.visible
        )

    def has_table(self, qualifier: str) -> bool:
        """True if a name stands for a table here."""
        return any(_same(each.qualifier, qualifier) for each in self.visible)

    def star(self, qualifier: str | None) -> Iterator[Visible]:
        """Yields the columns that ``*`` stands for."""
        for each in self.visible:
            if each.in_star and (qualifier is None or _same(each.qualifier, qualifier)):
                yield each


class NamedScope(Scope):
    """A scope with other names, whose relation is the relation of the scope itself."""

    def __init__(self, scope: Scope, visible: list[Visible]) -> None:
        self._scope = scope
        self.visible = visible
        self.arrival = scope.arrival

    @property
    def relation(self) -> Relation:
        """The relation of the scope."""
        return self._scope.relation

    @relation.setter
    def relation(self, relation: Relation) -> None:
        self._scope.relation = relation


@dataclass
class Grouping:
    """The names in a grouped query: its keys and its aggregates.

    Attributes:
        inner: The scope of the rows that are grouped.
        keys: The keys, as values of these rows.
        calls: The aggregates that were found so far.
        beside: What joins the queries that expressions read besides to the grouped result.
        sets: The places of the keys that each grouping set has; none if all rows are grouped by all keys.
        shown: The number of keys that the query names; the others, behind them, distinguish grouping sets.
    """

    inner: Scope
    keys: list[Scalar]
    calls: list[AggregateCall] = field(default_factory=list)
    beside: list[Callable[[Relation], Relation]] = field(default_factory=list)
    beside_width: int = 0
    sets: list[frozenset[int]] = field(default_factory=list)
    shown: int | None = None

    @property
    def in_all_sets(self) -> frozenset[int]:
        """The places of the keys that all grouping sets have."""
        every = frozenset(range(len(self.keys)))
        return every.intersection(*self.sets) if self.sets else every

    def grouping_id(self) -> Column:
        """The column that says as a number which keys a grouping set leaves out; the first key is the highest bit."""
        assert self.shown is not None
        return Column(self.shown, GROUPING_ID.name, GROUPING_ID.type)

    def key(self, scalar: Scalar) -> Column | None:
        """Returns the column of a key, if a value is one."""
        if scalar in self.keys:
            at = self.keys.index(scalar)
            return Column(
                at, str(scalar), scalar.type.or_null(scalar.type.nullable or at not in self.in_all_sets)
            )
        return None

    def call(self, call: AggregateCall) -> Column:
        """Returns the column of an aggregate."""
        if call not in self.calls:
            self.calls.append(call)
        return Column(len(self.keys) + self.calls.index(call), call.name, call.type)

    def add_beside(self, columns: Columns, join: Callable[[Relation], Relation]) -> tuple[Column, ...]:
        """Returns the columns that a join will add; `placed` moves them to their places behind all aggregates."""
        first = _BESIDE + self.beside_width
        self.beside.append(join)
        self.beside_width += len(columns)
        return columns_as_scalars(columns, first)

    def placed(self, scalar: Scalar) -> Scalar:
        """Returns a value of the grouped result, once all aggregates are known."""
        behind = len(self.keys) + len(self.calls) - _BESIDE
        return shift_columns(scalar, {at: at + behind if at >= _BESIDE else at for at in columns_of(scalar)})


@dataclass(frozen=True)
class Env:
    """The meaning of names in an expression.

    Attributes:
        scope: The rows that it is of, or the result of a grouping.
        ctes: The queries that WITH has named.
        aliases: The selected expressions by their names, where a clause may name them.
        around: What names mean in the queries around this one, whose columns it may read, the outermost first.
        over: Returns the column of a window function with OVER; None where there is none.
        parameters: The parameters of the lambdas around, by their names in small letters.
    """

    scope: Scope | Grouping
    ctes: Mapping[str, Scope]
    aliases: Mapping[str, Any] = field(default_factory=dict)
    around: tuple[Env, ...] = ()
    over: Callable[[Any], Column] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def rows(self) -> Scope:
        """The rows that it is of; of the result of a grouping, those that are grouped."""
        return self.scope.inner if isinstance(self.scope, Grouping) else self.scope

    def attach(
        self,
        right: Relation,
        kind: str,
        left_keys: tuple[Scalar, ...] = (),
        right_keys: tuple[Scalar, ...] = (),
        correlation: Correlation | None = None,
    ) -> tuple[Column, ...]:
        """Adds the columns of a query, which may read columns of these rows, to each row, and returns them.

        Args:
            right: The query.
            kind: ``inner`` or ``left``.
            left_keys: What must be equal, of these rows.
            right_keys: The same of a row of the query.
            correlation: What has joined other queries of the same parts; None if there is none.
        """
        correlation = correlation or Correlation(len(self.around))
        if isinstance(self.scope, Scope):
            first = len(self.scope.relation.columns)
            self.scope.relation = correlation.join(self.scope.relation, right, kind, left_keys, right_keys)
            return columns_as_scalars(self.scope.relation.columns, 0)[first : first + len(right.columns)]
        grouping = self.scope

        def join(left: Relation) -> Relation:
            keys = tuple(map(grouping.placed, left_keys))
            joined = correlation.join(left, right, kind, keys, right_keys)
            width = len(left.columns) + len(right.columns)
            return Project(joined, columns_as_scalars(joined.columns)[:width], joined.columns[:width])

        columns = right.columns
        if kind == "left" and not has_one_row(right):
            columns = tuple(ColumnDef(each.name, each.type.or_null()) for each in columns)
        return grouping.add_beside(columns, join)


def make_outer(scalar: Scalar, level: int) -> Scalar:
    """Returns a value of the rows of a query, as a query inside it names it; `level` is how many are around it."""

    def outer_of(leaf: Scalar) -> Scalar:
        if not isinstance(leaf, Column):
            return leaf
        return OuterColumn(level, leaf.index, leaf.name, leaf.type)

    return map_leaves(scalar, outer_of)


def scope_of(relation: Relation, qualifier: str | None) -> Scope:
    """Returns a relation with the names of its columns."""
    scalars = columns_as_scalars(relation.columns)
    return Scope(relation, [Visible(qualifier, each.name, each) for each in scalars])


def move_to_right(scalar: Scalar, width: int) -> Scalar:
    """Returns a value of the right rows of a join, as a value of joined rows."""
    return shift_columns(scalar, {at: at + width for at in columns_of(scalar)})


def retype(scalar: Scalar, columns: Columns) -> Scalar:
    """Returns a value with the types that columns have after a join, where they may be NULL."""
    return replace_scalars(scalar, columns_as_scalars(columns))


def window_columns(scope: Scope) -> tuple[Column | None, Column | None]:
    """Returns the start and the end of the window of a scope's rows, if there is one."""
    scalars = columns_as_scalars(scope.relation.columns)
    start, end = (None if at is None else scalars[at] for at in window_bounds(scope.relation))
    return start, end


def _same(one: str | None, other: object) -> bool:
    return one is not None and one.lower() == str(other).lower()
