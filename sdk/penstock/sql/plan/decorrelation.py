"""Turns a query that reads columns of the query around it into joins with that query.

The method is by Neumann and Kemper, *Unnesting Arbitrary Queries* (2015). A query inside another one means: for
each row of the outer query, the rows of the inner one. Here the rows of the inner query are computed for all outer rows
together, with columns that say for which outer rows each one is. Where an equality says that (``inner.k = outer.k``),
these columns are the query's own, and what groups its rows also groups by them. Where something else reads the outer
columns, the inner query is joined to the *domain*, the distinct values of the outer columns, as late as possible. All
that is left are joins, groupings and projections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from penstock.functions.combinefn import CombineFn
from penstock.scalars import functions
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import (
    Call,
    Column,
    Literal,
    OuterColumn,
    Scalar,
    UserCall,
    columns_of,
    map_leaves,
    replace_scalars,
    shift_columns,
    walk,
)
from penstock.scalars.types import BIGINT, BOOLEAN, SqlType
from penstock.sql.plan.conditions import conjoin, filter_rows, split_and_factor
from penstock.sql.plan.local_rows import join_local_rows
from penstock.sql.plan.relations import (
    Aggregate,
    AggregateCall,
    ColumnDef,
    Columns,
    Filter,
    Generate,
    Join,
    Over,
    Project,
    Relation,
    SetOperation,
    Top,
    Union_,
    Valid,
    Windowed,
    columns_as_scalars,
    distinct,
    inputs_of,
    map_scalars,
    own_scalars,
)

_TRUE = Literal(True, BOOLEAN.or_null(False))


class NotDecorrelatedError(ValueError):
    """A part of a query reads columns of the query around it, where no join can answer it.

    Attributes:
        part: The name of the part.
    """

    def __init__(self, part: str) -> None:
        super().__init__(f"{part} reads rows that depend on the outer query")
        self.part = part


@dataclass(frozen=True)
class _Key:
    """An equality that says for which outer rows a row is.

    Attributes:
        outer: What must be equal, of an outer row.
        inner: The same of an inner row.
        is_null_safe: Whether NULL equals NULL.
        is_exact: Whether the inner value is the outer one itself, and so may stand for it.
    """

    outer: Scalar
    inner: Scalar
    is_null_safe: bool
    is_exact: bool = False


@dataclass(frozen=True)
class _Rows:
    """The rows of a query for all outer rows together.

    Attributes:
        relation: The rows: first the columns of the query, then others. There may be rows that are for no outer row.
        keys: What must be equal, so that a row is for an outer row.
        conditions: What else must hold, of the columns of both.
        defaults: The one row for an outer row that has no other; None if there is none then.
    """

    relation: Relation
    keys: tuple[_Key, ...] = ()
    conditions: tuple[Scalar, ...] = ()
    defaults: tuple[Scalar, ...] | None = None


def replace_outer(level: int, scalar: Scalar, values: Mapping[int, Scalar] | Sequence[Scalar]) -> Scalar:
    """Returns an expression with values in place of the columns of the outer rows of a level."""

    def value_of(leaf: Scalar) -> Scalar:
        is_outer = isinstance(leaf, OuterColumn) and leaf.level == level
        return values[leaf.index] if is_outer else leaf  # type: ignore[union-attr]

    return map_leaves(scalar, value_of)


def has_one_row(relation: Relation) -> bool:
    """True if a query has exactly one row, whatever its tables have."""
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def has_one_row_at_most(relation: Relation) -> bool:
    """True if a query has one row or none, whatever its tables have."""
    while isinstance(relation, (Project, Filter)):
        relation = relation.input
    if isinstance(relation, Top) and not relation.keys and relation.limit in (0, 1):
        return True
    return isinstance(relation, Aggregate) and not relation.keys


class Correlation:
    """Joins rows with the rows that queries have for each of them.

    Several queries may share parts, which are computed once. The outer rows of the later ones may have more columns.

    Args:
        level: The level of the outer rows, by which the queries name their columns.
    """

    def __init__(self, level: int) -> None:
        self._level = level
        self._unnesting: _Unnesting | None = None

    def join(
        self,
        left: Relation,
        right: Relation,
        kind: str,
        left_keys: tuple[Scalar, ...] = (),
        right_keys: tuple[Scalar, ...] = (),
        condition: Scalar | None = None,
    ) -> Relation:
        """Returns the join of rows with the rows that a query has for each of them.

        Args:
            left: The outer rows.
            right: The query, which may read columns of the outer rows.
            kind: ``inner``, ``left``, ``semi`` or ``left_anti``.
            left_keys: What must be equal besides, of an outer row.
            right_keys: The same of a row of the query.
            condition: What else must hold, of an outer row and a row of the query in one tuple.

        Returns:
            A relation with the columns of the outer rows, then, unless the kind is ``semi`` or ``left_anti``, those of
            the query, then perhaps others.

        Raises:
            NotDecorrelatedError: The query has a part for which no join can be written.
        """
        outer = partial(replace_outer, self._level)
        local = join_local_rows(left, right, kind, (left_keys, right_keys), condition, outer)
        if local is not None:
            return local
        if self._unnesting is None:
            self._unnesting = _Unnesting(left, self._level)
        unnesting = self._unnesting
        rows = unnesting.rows(right)
        width, inner_width = len(left.columns), len(right.columns)
        is_plain = kind in ("inner", "left") and not left_keys and condition is None
        if rows.defaults is not None and not is_plain:
            rows = unnesting.ground(rows, (), inner_width)
        own = columns_as_scalars(left.columns)
        lefts = (*left_keys, *(unnesting.replaced(key.outer, own) for key in rows.keys))
        rights = (*right_keys, *(key.inner for key in rows.keys))
        null_safe = tuple(at for at, key in enumerate(rows.keys, len(left_keys)) if key.is_null_safe)
        if rows.defaults is not None:
            return _with_defaults(left, rows, lefts, rights, null_safe, inner_width)
        conditions = [] if condition is None else [condition]
        conditions += [unnesting.replaced(_moved(each, width), own) for each in rows.conditions]
        joined = Join(left, rows.relation, kind, lefts, rights, null_safe=null_safe)
        if kind == "inner":
            return filter_rows(joined, conditions)
        return replace(joined, condition=conjoin(conditions))


def _with_defaults(
    left: Relation,
    rows: _Rows,
    lefts: tuple[Scalar, ...],
    rights: tuple[Scalar, ...],
    null_safe: tuple[int, ...],
    inner_width: int,
) -> Relation:
    """Each outer row with the one row that the query has for it, which may be the default."""
    assert rows.defaults is not None
    if all(isinstance(each, Literal) and each.value is None for each in rows.defaults):
        return Join(left, rows.relation, "left", lefts, rights, null_safe=null_safe)
    width = len(left.columns)
    joined = Join(left, _marked(rows.relation), "left", lefts, rights, null_safe=null_safe)
    columns = columns_as_scalars(joined.columns)
    values = _or_default(columns[width : width + inner_width], columns[-1], rows.defaults)
    shown = (*left.columns, *_named(rows.relation.columns[:inner_width], values))
    return Project(joined, (*columns[:width], *values), shown)


def _marked(relation: Relation) -> Relation:
    """The rows of a relation with TRUE at their end, which an outer join makes NULL where there is none."""
    scalars = columns_as_scalars(relation.columns)
    return Project(relation, (*scalars, _TRUE), (*relation.columns, ColumnDef("found", _TRUE.type)))


def _or_default(columns: Sequence[Scalar], found: Scalar, defaults: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The columns of rows that were found, or the defaults."""
    is_found = functions.call("IS NOT NULL", [found])
    return tuple(
        column
        if isinstance(default, Literal) and default.value is None
        else functions.call("CASE", [is_found, column, default])
        for column, default in zip(columns, defaults, strict=True)
    )


def _named(columns: Columns, scalars: Sequence[Scalar]) -> Columns:
    return tuple(ColumnDef(each.name, scalar.type) for each, scalar in zip(columns, scalars, strict=True))


def _moved(scalar: Scalar, distance: int) -> Scalar:
    return shift_columns(scalar, {at: at + distance for at in columns_of(scalar)})


class _Unnesting:
    """Computes the rows of one query for all outer rows together.

    Args:
        left: The outer rows.
        level: Their level.
    """

    def __init__(self, left: Relation, level: int) -> None:
        self._left = left
        self._level = level
        self._done: dict[int, tuple[Relation, _Rows]] = {}
        self._correlated: dict[int, tuple[Relation, bool]] = {}
        self._domains: dict[tuple[int, ...], Relation] = {}

    def rows(self, relation: Relation) -> _Rows:
        """Returns the rows of a relation; of one that is used twice, the same ones."""
        known = self._done.get(id(relation))
        if known is None:
            rows = self._rows(relation) if self._is_correlated(relation) else _Rows(relation)
            known = self._done[id(relation)] = relation, rows
        return known[1]

    def _rows(self, relation: Relation) -> _Rows:
        match relation:
            case Filter():
                return self._filter(relation)
            case Project():
                return self._project(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Top() | Over():
                return self._by_outer_rows(relation)
            case Join():
                return self._join(relation)
            case Union_():
                return self._sides(relation.inputs, lambda sides, columns: Union_(sides, columns), relation)
            case SetOperation():
                sides = (relation.left, relation.right)
                return self._sides(
                    sides, lambda made, _: replace(relation, left=made[0], right=made[1]), relation
                )
            case Windowed():
                return self._windows(relation)
            case Generate():
                return self._generate(relation)
            case Valid():
                return self._valid(relation)
        raise NotDecorrelatedError(type(relation).__name__.rstrip("_"))

    # Columns of the outer rows

    def _is_correlated(self, relation: Relation) -> bool:
        """True if a relation reads columns of the outer rows."""
        known = self._correlated.get(id(relation))
        if known is None:
            found = bool(self._outers(own_scalars(relation))) or any(
                map(self._is_correlated, inputs_of(relation))
            )
            known = self._correlated[id(relation)] = relation, found
        return known[1]

    def _outers(self, scalars: Iterable[Scalar]) -> frozenset[int]:
        """The columns of the outer rows that expressions read."""
        return frozenset(
            part.index
            for scalar in scalars
            for part in walk(scalar)
            if isinstance(part, OuterColumn) and part.level == self._level
        )

    def replaced(self, scalar: Scalar, values: Mapping[int, Scalar] | Sequence[Scalar]) -> Scalar:
        """Returns an expression with values in place of the columns of the outer rows."""
        return replace_outer(self._level, scalar, values)

    def _values(self, rows: _Rows) -> dict[int, Scalar]:
        """The columns of the outer rows that rows have themselves."""
        return {
            key.outer.index: key.inner
            for key in rows.keys
            if key.is_exact and isinstance(key.outer, OuterColumn)
        }

    def _domain(self, wanted: tuple[int, ...]) -> Relation:
        """The distinct values of columns of the outer rows."""
        if wanted not in self._domains:
            columns = columns_as_scalars(self._left.columns)
            named = tuple(self._left.columns[at] for at in wanted)
            projected = Project(self._left, tuple(columns[at] for at in wanted), named)
            self._domains[wanted] = distinct(projected)
        return self._domains[wanted]

    def ground(self, rows: _Rows, wanted: Iterable[int], width: int) -> _Rows:
        """Returns rows that have columns of the outer rows themselves, and so no other conditions and no defaults.

        Args:
            rows: The rows.
            wanted: The columns; also those that conditions read.
            width: The number of columns that the query has.
        """
        known = self._values(rows)
        needed = frozenset(wanted) | self._outers(rows.conditions)
        if needed <= known.keys() and rows.defaults is None:
            own = [self.replaced(each, known) for each in rows.conditions]
            return _Rows(filter_rows(rows.relation, own), rows.keys)
        places = tuple(sorted(needed | self._outers(key.outer for key in rows.keys)))
        domain = self._domain(places)
        values = dict(zip(places, columns_as_scalars(domain.columns), strict=True))
        outers = tuple(self.replaced(key.outer, values) for key in rows.keys)
        inners = tuple(key.inner for key in rows.keys)
        null_safe = tuple(at for at, key in enumerate(rows.keys) if key.is_null_safe)
        first = len(rows.relation.columns)
        if rows.defaults is None:
            joined: Relation = Join(rows.relation, domain, "inner", inners, outers, null_safe=null_safe)
            moved = {at: _moved(value, first) for at, value in values.items()}
            joined = filter_rows(joined, [self.replaced(each, moved) for each in rows.conditions])
            return _Rows(joined, self._exact_keys(places, joined.columns, first))
        marked = _marked(rows.relation)
        both = Join(domain, marked, "left", outers, inners, null_safe=null_safe)
        columns = columns_as_scalars(both.columns)
        start = len(places)
        found = _or_default(columns[start : start + width], columns[-1], rows.defaults)
        shown = (*_named(rows.relation.columns[:width], found), *domain.columns)
        relation = Project(both, (*found, *columns[:start]), shown)
        return _Rows(relation, self._exact_keys(places, relation.columns, width))

    def _exact_keys(self, places: Sequence[int], columns: Columns, first: int) -> tuple[_Key, ...]:
        """The keys of rows that have columns of the outer rows, after an offset."""
        found = columns_as_scalars(columns)[first:]
        return tuple(
            _Key(OuterColumn(self._level, at, each.name, each.type), each, each.type.nullable, is_exact=True)
            for at, each in zip(places, found, strict=True)
        )

    def _settled(self, rows: _Rows, width: int, scalars: Iterable[Scalar] = ()) -> _Rows:
        """Rows that have the outer columns of expressions themselves, and neither conditions nor defaults."""
        wanted = self._outers(scalars)
        if not wanted and not rows.conditions and rows.defaults is None:
            return rows
        return self.ground(rows, wanted, width)

    # Relations

    def _filter(self, relation: Filter) -> _Rows:
        rows, parts = self.rows(relation.input), split_and_factor(relation.condition)
        if rows.defaults is not None:
            rows = self.ground(rows, self._outers(parts), len(relation.columns))
        return self._filtered(rows, parts)

    def _filtered(self, rows: _Rows, parts: Iterable[Scalar]) -> _Rows:
        """The rows for which conditions hold, those of outer columns as keys or conditions of the rows."""
        known = self._values(rows)
        own, keys, conditions = [], list(rows.keys), list(rows.conditions)
        for part in parts:
            if self._outers([part]) <= known.keys():
                own.append(self.replaced(part, known))
            elif (key := self._key(part)) is not None:
                keys.append(key)
            else:
                conditions.append(part)
        return _Rows(filter_rows(rows.relation, own), tuple(keys), tuple(conditions))

    def _key(self, part: Scalar) -> _Key | None:
        """The equality of an outer value with an inner one that a condition is; None if it is another."""
        if not isinstance(part, Call) or part.name not in ("=", "<=>"):
            return None
        for outer, inner in (part.arguments, part.arguments[::-1]):
            is_apart = self._outers([outer]) and not columns_of(outer)
            if is_apart and columns_of(inner) and not self._outers([inner]):
                is_null_safe = part.name == "<=>" and outer.type.nullable and inner.type.nullable
                return _Key(outer, inner, is_null_safe)
        return None

    def _project(self, relation: Project) -> _Rows:
        rows = self.rows(relation.input)
        if wanted := self._outers(relation.scalars):
            rows = self.ground(rows, wanted, len(relation.input.columns))
        known = self._values(rows)
        scalars = tuple(self.replaced(each, known) for each in relation.scalars)
        made = self._carried(rows, scalars, relation.columns)
        if rows.defaults is None:
            return made
        defaults = tuple(_folded(replace_scalars(each, rows.defaults)) for each in scalars)
        return replace(made, defaults=defaults)

    def _carried(self, rows: _Rows, scalars: tuple[Scalar, ...], columns: Columns) -> _Rows:
        """Columns of rows, and behind them what the keys and conditions read."""
        inner = columns_as_scalars(rows.relation.columns)
        used = [inner[at] for each in rows.conditions for at in sorted(columns_of(each))]
        every = list(scalars)
        named = list(columns)
        for each in [*(key.inner for key in rows.keys), *used]:
            if each not in every:
                every.append(each)
                named.append(ColumnDef(str(each), each.type))
        places = columns_as_scalars(tuple(named))

        def place_of(scalar: Scalar) -> Scalar:
            return places[every.index(scalar)]

        keys = tuple(replace(key, inner=place_of(key.inner)) for key in rows.keys)
        moved = {at: place_of(inner[at]) for each in rows.conditions for at in columns_of(each)}
        conditions = tuple(
            map_leaves(each, lambda leaf: moved[leaf.index] if isinstance(leaf, Column) else leaf)
            for each in rows.conditions
        )
        if tuple(every) == inner and all(
            mine.name == other.name for mine, other in zip(named, rows.relation.columns, strict=True)
        ):
            return _Rows(rows.relation, keys, conditions)
        relation = rows.relation
        while isinstance(relation, Project):
            every = [replace_scalars(each, relation.scalars) for each in every]
            relation = relation.input
        return _Rows(Project(relation, tuple(every), tuple(named)), keys, conditions)

    def _aggregate(self, relation: Aggregate) -> _Rows:
        own = list(own_scalars(relation))
        rows = self._settled(self.rows(relation.input), len(relation.input.columns), own)
        known = self._values(rows)
        made: Aggregate = map_scalars(relation, lambda each: self.replaced(each, known))
        if any(call.name == "single" for call in made.calls):
            rows = self._restricted(rows)
        extra = [each for each in dict.fromkeys(key.inner for key in rows.keys) if each not in made.keys]
        keys = (*made.keys, *extra)
        width = len(made.keys)
        added = tuple(ColumnDef(str(each), each.type) for each in extra)
        columns = (*made.columns[:width], *added, *made.columns[width:])
        grouped = replace(made, input=rows.relation, keys=keys, columns=columns)
        places = columns_as_scalars(columns)
        found = _Rows(grouped, tuple(replace(key, inner=places[keys.index(key.inner)]) for key in rows.keys))
        shown = (*places[:width], *places[len(keys) :])
        result = self._carried(found, shown, made.columns)
        if made.keys:
            return result
        return replace(result, defaults=tuple(_of_nothing(call) for call in made.calls))

    def _restricted(self, rows: _Rows) -> _Rows:
        """Rows of which each one is for an outer row: others must not raise errors."""
        if all(key.is_exact for key in rows.keys):
            return rows
        own = columns_as_scalars(self._left.columns)
        outers = tuple(self.replaced(key.outer, own) for key in rows.keys)
        named = tuple(ColumnDef(str(each), each.type) for each in outers)
        lefts = Project(self._left, outers, named)
        inners = tuple(key.inner for key in rows.keys)
        null_safe = tuple(at for at, key in enumerate(rows.keys) if key.is_null_safe)
        joined = Join(rows.relation, lefts, "semi", inners, columns_as_scalars(named), null_safe=null_safe)
        return replace(rows, relation=joined)

    def _by_outer_rows(self, relation: Top | Over) -> _Rows:
        """A relation whose partitions are also of one outer row each."""
        width = len(relation.input.columns)
        own = list(own_scalars(relation))
        rows = self._settled(self.rows(relation.input), width, own)
        known = self._values(rows)
        made: Top | Over = map_scalars(relation, lambda each: self.replaced(each, known))
        added = made.columns[width:]
        columns = (*rows.relation.columns, *added)
        keys = (*made.keys, *(key.inner for key in rows.keys))
        found = replace(made, input=rows.relation, keys=keys, columns=columns)
        return self._with_added(rows, found, width, made.columns)

    def _with_added(self, rows: _Rows, made: Relation, width: int, columns: Columns) -> _Rows:
        """Rows to which a relation has added columns, which come right behind the query's own."""
        places = columns_as_scalars(made.columns)
        shown = (*places[:width], *places[len(rows.relation.columns) :])
        return self._carried(replace(rows, relation=made), shown, columns)

    def _windows(self, relation: Windowed) -> _Rows:
        width = len(relation.input.columns)
        rows = self.rows(relation.input)
        if rows.defaults is not None or self._outers(own_scalars(relation)):
            rows = self.ground(rows, self._outers(own_scalars(relation)), width)
        known = self._values(rows)
        made: Windowed = map_scalars(relation, lambda each: self.replaced(each, known))
        if made.partition is not None:
            rows = self._settled(rows, width)
            made = replace(made, partition=(*made.partition, *(key.inner for key in rows.keys)))
        columns = (*rows.relation.columns, *made.columns[width:])
        found = replace(made, input=rows.relation, columns=columns)
        return self._with_added(rows, found, width, made.columns)

    def _generate(self, relation: Generate) -> _Rows:
        width, own = len(relation.input.columns), list(own_scalars(relation))
        rows = self._settled(self.rows(relation.input), width, own)
        known, gap = self._values(rows), len(rows.relation.columns) - width
        made: Generate = map_scalars(relation, lambda each: self.replaced(each, known))
        condition = made.condition
        if condition is not None:
            moved = {at: at + gap if at >= width else at for at in columns_of(condition)}
            condition = shift_columns(condition, moved)
        found = replace(made, input=rows.relation, condition=condition)
        return self._with_added(rows, found, width, relation.columns)

    def _valid(self, relation: Valid) -> _Rows:
        width = len(relation.input.columns)
        rows = self._settled(self.rows(relation.input), width, own_scalars(relation))
        known = self._values(rows)
        made: Valid = map_scalars(relation, lambda each: self.replaced(each, known))
        columns = (*rows.relation.columns, *made.columns[width:])
        keys = (*made.keys, *(key.inner for key in rows.keys))
        found = replace(made, input=rows.relation, keys=keys, columns=columns)
        return self._with_added(rows, found, width, made.columns)

    def _sides(
        self,
        sides: Sequence[Relation],
        make: Callable[[tuple[Relation, ...], Columns], Relation],
        relation: Union_ | SetOperation,
    ) -> _Rows:
        """A combination of queries whose rows also have the keys of all of them."""
        width = len(relation.columns)
        every = [self.rows(each) for each in sides]
        first = every[0]
        if any(rows.conditions or rows.defaults is not None for rows in every) or any(
            _kinds(rows) != _kinds(first) for rows in every
        ):
            wanted = self._outers(
                part for rows in every for part in (*(key.outer for key in rows.keys), *rows.conditions)
            )
            every = [self.ground(rows, wanted, width) for rows in every]
            first = every[0]
        outers = [key.outer for key in first.keys]
        made = []
        for rows in every:
            inners = {key.outer: key.inner for key in rows.keys}
            columns = columns_as_scalars(rows.relation.columns)[:width]
            scalars = (*columns, *(inners[each] for each in outers))
            named = (
                *rows.relation.columns[:width],
                *(ColumnDef(str(each), each.type) for each in scalars[width:]),
            )
            made.append(Project(rows.relation, scalars, named))
        added = tuple(
            ColumnDef(str(each), each.type.or_null(_any_null(made, width + at)))
            for at, each in enumerate(outers)
        )
        result = make(tuple(made), (*relation.columns, *added))
        places = columns_as_scalars(result.columns)[width:]
        keys = tuple(
            replace(key, inner=place, is_exact=all(rows.keys[at].is_exact for rows in every))
            for at, (key, place) in enumerate(zip(first.keys, places, strict=True))
        )
        return _Rows(result, keys)

    # Joins

    def _join(self, relation: Join) -> _Rows:
        if relation.kind == "inner":
            return self._inner_join(relation)
        if relation.kind in ("left", "semi", "left_anti"):
            return self._left_join(relation)
        if relation.kind == "right":
            return self._right_join(relation)
        return self._full_join(relation)

    def _inner_join(self, relation: Join) -> _Rows:
        width, right_width = len(relation.left.columns), len(relation.right.columns)
        left, right = (
            self.ground(rows, (), count) if rows.defaults is not None else rows
            for rows, count in (
                (self.rows(relation.left), width),
                (self.rows(relation.right), right_width),
            )
        )
        equal, parts = [], split_and_factor(relation.condition)
        for at, (mine, other) in enumerate(zip(relation.left_keys, relation.right_keys, strict=True)):
            is_null_safe = at in relation.null_safe
            if self._outers([mine, other]):
                name = "<=>" if is_null_safe else "="
                parts.append(functions.call(name, [mine, _moved(other, width)]))
            else:
                equal.append((mine, other, is_null_safe))
        return self._meet(relation, left, right, equal, parts)

    def _meet(
        self,
        relation: Join,
        left: _Rows,
        right: _Rows,
        equal: Sequence[tuple[Scalar, Scalar, bool]],
        parts: Sequence[Scalar],
    ) -> _Rows:
        """The pairs of rows of both sides that are for the same outer row.

        Args:
            relation: The join, whose columns the result has: of both sides, or, for a semi join, of the left one.
            left: The left rows.
            right: The right rows.
            equal: What must be equal of both, and whether NULL equals NULL.
            parts: What else must hold, of the columns of the two sides of the join.
        """
        width, equal = len(relation.left.columns), list(equal)
        shared = {key.outer: key for key in left.keys}
        if not equal and left.keys and right.keys and not any(key.outer in shared for key in right.keys):
            # Two sides that depend on the outer row alone meet by its columns, and not each with each.
            every = (*(key.outer for key in right.keys), *right.conditions, *parts)
            left = self.ground(left, self._outers(every), width)
            shared = {key.outer: key for key in left.keys}
        known = self._values(left)
        keys, conditions = list(left.keys), list(left.conditions)
        first = len(left.relation.columns)
        for key in right.keys:
            mine = shared.get(key.outer)
            if mine is not None:
                equal.append((mine.inner, key.inner, mine.is_null_safe and key.is_null_safe))
            elif self._outers([key.outer]) <= known.keys():
                equal.append((self.replaced(key.outer, known), key.inner, key.is_null_safe))
            else:
                keys.append(replace(key, inner=_moved(key.inner, first)))
        moved = [_moved(each, first) for each in right.conditions]
        gap = first - width
        moved += [
            shift_columns(each, {at: at + gap if at >= width else at for at in columns_of(each)})
            for each in parts
        ]
        joined = Join(
            left.relation,
            right.relation,
            "inner",
            tuple(mine for mine, _, _ in equal),
            tuple(other for _, other, _ in equal),
            null_safe=tuple(at for at, (_, _, is_null_safe) in enumerate(equal) if is_null_safe),
        )
        found = self._filtered(_Rows(joined, tuple(keys), tuple(conditions)), moved)
        places = columns_as_scalars(joined.columns)
        shown = (*places[:width], *places[first : first + len(relation.columns) - width])
        return self._carried(found, shown, relation.columns)

    def _left_join(self, relation: Join) -> _Rows:
        """A join that keeps left rows: what depends on the outer row on its right side becomes its condition."""
        width, right_width = len(relation.left.columns), len(relation.right.columns)
        left, right = self.rows(relation.left), self.rows(relation.right)
        own = list(own_scalars(relation))
        wanted = self._outers([*own, *(key.outer for key in right.keys), *right.conditions])
        is_by_keys = relation.condition is None and not self._outers(own) and not right.conditions
        if (
            relation.kind == "semi"
            and is_by_keys
            and wanted
            and right.defaults is None
            and left.defaults is None
        ):
            return self._semi_join_by_keys(relation, left, right)
        if left.defaults is not None or wanted:
            left = self.ground(left, wanted, width)
        if right.defaults is not None:
            right = self.ground(right, (), right_width)
            left = self.ground(left, self._outers(key.outer for key in right.keys), width)
        known = self._values(left)
        first = len(left.relation.columns)
        gap = first - width
        # Right columns move first: the columns that stand for outer ones are where these were.
        parts = [
            shift_columns(each, {at: at + gap if at >= width else at for at in columns_of(each)})
            for each in split_and_factor(relation.condition)
        ]
        parts += [_moved(each, first) for each in right.conditions]
        equal: list[tuple[Scalar, Scalar, bool]] = []
        for at, (mine, other) in enumerate(zip(relation.left_keys, relation.right_keys, strict=True)):
            is_null_safe = at in relation.null_safe
            if self._outers([other]):
                # The right rows do not have the columns of the outer rows, which the left ones have.
                parts.append(functions.call("<=>" if is_null_safe else "=", [mine, _moved(other, first)]))
            else:
                equal.append((mine, other, is_null_safe))
        equal += [(key.outer, key.inner, key.is_null_safe) for key in right.keys]
        joined = Join(
            left.relation,
            right.relation,
            relation.kind,
            tuple(self.replaced(mine, known) for mine, _, _ in equal),
            tuple(other for _, other, _ in equal),
            conjoin([self.replaced(each, known) for each in parts]),
            tuple(at for at, (_, _, is_null_safe) in enumerate(equal) if is_null_safe),
        )
        places = columns_as_scalars(joined.columns)
        found = replace(left, relation=joined)
        if relation.kind != "left":
            return self._carried(found, places[:width], relation.columns)
        shown = (*places[:width], *places[first : first + right_width])
        return self._carried(found, shown, relation.columns)

    def _semi_join_by_keys(self, relation: Join, left: _Rows, right: _Rows) -> _Rows:
        """A semi join as a join with the distinct keys of the right rows, which say for which outer rows they are."""
        scalars = (*relation.right_keys, *(key.inner for key in right.keys))
        named = tuple(ColumnDef(str(each), each.type) for each in scalars)
        columns, count = columns_as_scalars(named), len(relation.right_keys)
        keys = tuple(
            replace(key, inner=column) for key, column in zip(right.keys, columns[count:], strict=True)
        )
        distinct_keys = _Rows(distinct(Project(right.relation, scalars, named)), keys)
        equal = [
            (mine, column, at in relation.null_safe)
            for at, (mine, column) in enumerate(zip(relation.left_keys, columns, strict=False))
        ]
        return self._meet(relation, left, distinct_keys, equal, [])

    def _right_join(self, relation: Join) -> _Rows:
        """A join that keeps right rows, as one that keeps left rows."""
        width, right_width = len(relation.left.columns), len(relation.right.columns)
        condition = None
        if relation.condition is not None:
            places = {at: at + right_width if at < width else at - width for at in range(width + right_width)}
            condition = shift_columns(relation.condition, places)
        turned = Join(
            relation.right,
            relation.left,
            "left",
            relation.right_keys,
            relation.left_keys,
            condition,
            relation.null_safe,
        )
        rows = self._left_join(turned)
        places_of = columns_as_scalars(rows.relation.columns)
        shown = (*places_of[right_width : right_width + width], *places_of[:right_width])
        return self._carried(rows, shown, relation.columns)

    def _full_join(self, relation: Join) -> _Rows:
        """A join that keeps the rows of both sides, which meet only if they are for the same outer row."""
        width, right_width = len(relation.left.columns), len(relation.right.columns)
        left, right = self.rows(relation.left), self.rows(relation.right)
        keys = (key.outer for rows in (left, right) for key in rows.keys)
        wanted = self._outers([*own_scalars(relation), *keys, *left.conditions, *right.conditions])
        left, right = self.ground(left, wanted, width), self.ground(right, wanted, right_width)
        known, others = self._values(left), self._values(right)
        places = sorted(known)
        first = len(left.relation.columns)
        gap = first - width
        left_keys = tuple(self.replaced(each, known) for each in relation.left_keys)
        right_keys = tuple(self.replaced(each, others) for each in relation.right_keys)
        parts = [
            self.replaced(
                shift_columns(each, {at: at + gap if at >= width else at for at in columns_of(each)}), known
            )
            for each in split_and_factor(relation.condition)
        ]
        joined = Join(
            left.relation,
            right.relation,
            relation.kind,
            (*left_keys, *(known[at] for at in places)),
            (*right_keys, *(others[at] for at in places)),
            conjoin(parts),
            (*relation.null_safe, *range(len(left_keys), len(left_keys) + len(places))),
        )
        columns = columns_as_scalars(joined.columns)
        values = [
            functions.call(
                "COALESCE",
                [replace_scalars(known[at], columns), replace_scalars(_moved(others[at], first), columns)],
            )
            for at in places
        ]
        shown = (*columns[:width], *columns[first : first + right_width], *values)
        named = tuple(self._left.columns[at] for at in places)
        made = Project(joined, shown, (*relation.columns, *_named(named, values)))
        return _Rows(made, self._exact_keys(places, made.columns, width + right_width))


def _kinds(rows: _Rows) -> dict[Scalar, tuple[bool, SqlType]]:
    """The kinds of keys; rows of two relations can share columns for keys if these are the same."""
    return {key.outer: (key.is_null_safe, key.inner.type.or_null()) for key in rows.keys}


def _any_null(sides: Iterable[Relation], at: int) -> bool:
    return any(side.columns[at].type.nullable for side in sides)


# Values of no rows


def _folded(scalar: Scalar) -> Scalar:
    """A value of no column as a literal; unchanged where it fails, since it may never be read."""
    if any(isinstance(each, (Column, OuterColumn, UserCall)) for each in walk(scalar)):
        return scalar
    try:
        [value] = Projection((scalar,))(())
    except ArithmeticError:
        return scalar
    return Literal(value, scalar.type)


def _of_nothing(call: AggregateCall) -> Scalar:
    """The result of an aggregate over no rows."""
    if call.fn is not None:
        return UserCall(call.name, partial(_apply_to_nothing, call.fn), (), call.type)
    if call.type.nullable:
        return Literal(None, call.type)
    if call.type.name == "ARRAY":
        return UserCall(call.name, list, (), call.type)
    return Literal(0, BIGINT.or_null(False))


def _apply_to_nothing(fn: object) -> object:
    return CombineFn.maybe_from_callable(fn).apply([])
