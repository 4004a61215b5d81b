"""The logical plan of a query: relations, each with the names and the types of its columns.

A row is a tuple. A relation changes over time; each node says how its rows follow from the rows of its inputs, as in
the algebra of relations, and so holds at every instant.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar, Union, get_args

from penstock.scalars.tree import Call, Column, Literal, OuterColumn, Scalar, UserCall, replace_scalars
from penstock.scalars.types import SqlType
from penstock.sql.language.dialect import Emit
from penstock.sql.plan.frames import Frame


@dataclass(frozen=True)
class ColumnDef:
    """A column of a relation."""

    name: str
    type: SqlType


Columns = tuple[ColumnDef, ...]


class Period(NamedTuple):
    """A window as a value: the result of TUMBLE(…) in the list of selected columns.

    Attributes:
        start: The first instant in it.
        end: The first instant after it.
    """

    start: datetime.datetime
    end: datetime.datetime


@dataclass(frozen=True)
class Scan:
    """The rows of an input.

    Attributes:
        name: The name of the input.
        columns: Its columns.
        arrival: Whether each row ends with the processing time of its arrival, ``Sys.MTime``.
        until_micros: The processing time after which rows are not seen; None sees all.
    """

    name: str
    columns: Columns
    arrival: bool = False
    until_micros: int | None = None


@dataclass(frozen=True)
class Values:
    """Rows that the query itself contains."""

    rows: tuple[tuple[Any, ...], ...]
    columns: Columns


@dataclass(frozen=True)
class Project:
    """Rows computed from rows, one by one."""

    input: Relation
    scalars: tuple[Scalar, ...]
    columns: Columns


@dataclass(frozen=True)
class Filter:
    """The rows for which a condition is true."""

    input: Relation
    condition: Scalar

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        return self.input.columns


@dataclass(frozen=True)
class Windowed:
    """Each row once for each window that its time is in, with the columns ``window_start`` and ``window_end``.

    Attributes:
        input: The rows.
        kind: ``tumble``, ``hop``, ``cumulate`` or ``session``; sessions are only known to the grouping above.
        time: The time of a row.
        size_micros: The length of the windows; the largest one of cumulating windows; the gap of sessions.
        step_micros: From the start of one window to the next one's; for cumulating windows, from one end to the next.
        offset_micros: The start of one of the windows.
        partition: The key of the sessions of one table; None if the grouping above does.
    """

    input: Relation
    kind: str
    time: Scalar
    size_micros: int
    step_micros: int
    offset_micros: int
    columns: Columns
    partition: tuple[Scalar, ...] | None = None


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a grouping.

    Attributes:
        name: The name of the aggregate's record (`penstock.sql.aggregates.functions`), in small letters.
        argument: What is aggregated; None for ``COUNT(*)``.
        type: The type of the result.
        distinct: Whether equal values count once.
        condition: Which rows are aggregated; None for all.
        fn: The CombineFn of a user's aggregate.
        others: The other values of a row that are aggregated with the first.
        orders: How the values are ordered.
        parameters: What is the same for all rows, such as a percentage.
    """

    name: str
    argument: Scalar | None
    type: SqlType
    distinct: bool = False
    condition: Scalar | None = None
    fn: Any = None
    others: tuple[Scalar, ...] = ()
    orders: tuple[Order, ...] = ()
    parameters: tuple[Any, ...] = ()

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The values of a row that are aggregated: the arguments, then what they are ordered by."""
        first = () if self.argument is None else (self.argument,)
        return *first, *self.others, *(each.scalar for each in self.orders)


@dataclass(frozen=True)
class Aggregate:
    """One row for each key that has rows: the key, then the aggregates; without keys, one row always.

    Attributes:
        input: The rows.
        keys: What they are grouped by.
        calls: The aggregates.
        columns: The columns of the keys, then of the aggregates.
        start: The place of ``window_start`` among the keys, if they are grouped by windows of the input.
        end: The place of ``window_end``.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    calls: tuple[AggregateCall, ...]
    columns: Columns
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Expand:
    """Each row once for each grouping set: with the keys of the set, and NULL in place of the others.

    Attributes:
        input: The rows.
        keys: The keys that are not in all sets.
        sets: The places of the keys that each set has.
        tails: What distinguishes each set: which keys it leaves out as a number, and its place if two sets are equal.
        columns: The columns of the input, then of the keys, then of the tails.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    sets: tuple[tuple[int, ...], ...]
    tails: tuple[tuple[int, ...], ...]
    columns: Columns


@dataclass(frozen=True)
class Generate:
    """Each row with each of the rows that a generator makes of it, such as the elements of an array.

    Attributes:
        input: The rows.
        name: The name of the generator's record (`penstock.sql.generators.functions`).
        arguments: What the generator reads of a row.
        generated: The columns of the rows that it makes.
        outer: Whether it makes a row of NULLs where it would make none.
        kind: ``inner``; ``left``, where a row for which the condition is never true comes once with NULLs; or ``semi``
            and ``left_anti``, where a row comes alone if the condition is true once, or never.
        condition: What must hold, of a row and a generated row in one tuple; None if nothing must.
    """

    input: Relation
    name: str
    arguments: tuple[Scalar, ...]
    generated: Columns
    outer: bool = False
    kind: str = "inner"
    condition: Scalar | None = None

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        if self.kind in ("semi", "left_anti"):
            return self.input.columns
        return (*self.input.columns, *(_nullable(self.generated) if self.may_add_nulls else self.generated))

    @property
    def may_add_nulls(self) -> bool:
        """True if a row may come with NULLs in place of a generated row."""
        return self.outer or self.kind == "left"


@dataclass(frozen=True)
class Join:
    """Pairs of rows with equal keys for which a condition holds, and the rows without a partner, by kind.

    Attributes:
        left: The left rows.
        right: The right rows.
        kind: ``inner``, ``left``, ``right``, ``full``, ``semi``, ``left_anti``, or ``anti``, which has the rows of
            both sides that have no partner.
        left_keys: What must be equal, of the left rows.
        right_keys: The same of the right rows.
        condition: What must hold besides, of a left row and a right row in one tuple; None if nothing must.
        null_safe: The places of the keys of which NULL equals NULL.
    """

    left: Relation
    right: Relation
    kind: str
    left_keys: tuple[Scalar, ...]
    right_keys: tuple[Scalar, ...]
    condition: Scalar | None = None
    null_safe: tuple[int, ...] = ()

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        left, right = self.left.columns, self.right.columns
        if self.kind in ("semi", "left_anti"):
            return left
        if self.kind in ("right", "full", "anti"):
            left = _nullable(left)
        if self.kind in ("left", "full", "anti"):
            right = _nullable(right)
        return left + right


@dataclass(frozen=True)
class Valid:
    """Each row of a key with the time in which it is valid: from its own time to the time of the key's next row.

    Attributes:
        input: The rows; of one key and time, one.
        keys: What distinguishes timelines.
        time: From when on a row is valid.
        columns: The columns of the input, then ``window_start`` and ``window_end``, which is the last time that there
            is if nothing follows.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    time: Scalar
    columns: Columns


@dataclass(frozen=True)
class ValidityJoin:
    """Each left row with the right row that is valid at the left row's time.

    Attributes:
        left: The left rows.
        right: The right rows.
        kind: ``inner``, ``left`` or ``full``.
        left_keys: What must be equal, of the left rows.
        right_keys: The same of the right rows.
        left_time: The time of a left row.
        right_time: From when on a right row is valid.
        columns: The columns of the left, then of the right, then, if `with_validity`, the time in which it is valid.
        with_validity: Whether a row says when the right row is valid.
    """

    left: Relation
    right: Relation
    kind: str
    left_keys: tuple[Scalar, ...]
    right_keys: tuple[Scalar, ...]
    left_time: Scalar
    right_time: Scalar
    columns: Columns
    with_validity: bool = False


@dataclass(frozen=True)
class Union_:
    """The rows of several relations, with copies."""

    inputs: tuple[Relation, ...]
    columns: Columns


@dataclass(frozen=True)
class SetOperation:
    """Rows by how often each side has them: ``EXCEPT`` and ``INTERSECT``, with and without ``ALL``."""

    left: Relation
    right: Relation
    kind: str
    all: bool

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        return self.left.columns


@dataclass(frozen=True)
class Order:
    """Describes the order of rows by one value."""

    scalar: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Top:
    """The first rows of each partition.

    Attributes:
        input: The rows.
        keys: What distinguishes partitions.
        orders: How rows are ordered; rows that are equal in it are ordered by all columns.
        limit: How many rows there are at most; None for all.
        offset: How many rows are left out before.
        numbered: Whether a row ends with its number, from 1.
        columns: The columns of the input, and perhaps the number.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    orders: tuple[Order, ...]
    limit: int | None
    offset: int
    columns: Columns
    numbered: bool = False


@dataclass(frozen=True)
class OverCall:
    """One call of a window function.

    Attributes:
        name: Its name in small letters; ``aggregate`` for an aggregate, and ``list`` for an array in the order of rows.
        type: The type of the result.
        arguments: The values of a row that it reads: for ``lag`` and ``lead``, perhaps also the value where there is
            no row.
        frame: The rows that it sees; None for functions that see the place of the row only.
        count: The offset of ``lag`` and ``lead``, the number of ``ntile`` and ``nth_value``.
        ignores_nulls: Whether NULLs are left out.
        aggregate: The aggregate.
    """

    name: str
    type: SqlType
    arguments: tuple[Scalar, ...] = ()
    frame: Frame | None = None
    count: int = 0
    ignores_nulls: bool = False
    aggregate: AggregateCall | None = None

    def __str__(self) -> str:
        name = self.name if self.aggregate is None else self.aggregate.name
        shown = [*map(str, self.arguments), *([str(self.count)] if self.count else [])]
        if self.aggregate is not None:
            shown = [str(each) for each in (self.aggregate.argument,) if each is not None]
        nulls = " IGNORE NULLS" if self.ignores_nulls else ""
        frame = "" if self.frame is None else f" {self.frame}"
        return f"{name.upper()}({', '.join(shown)}){nulls}{frame}"


@dataclass(frozen=True)
class RankLimit:
    """Which ranks rows have at most.

    Attributes:
        name: ``rank`` or ``dense_rank``.
        count: The highest rank.
    """

    name: str
    count: int


@dataclass(frozen=True)
class Over:
    """Each row with the results of window functions, at its end.

    Attributes:
        input: The rows.
        keys: What distinguishes partitions.
        orders: How the rows of a partition are ordered; rows that are equal in it are ordered by all columns.
        calls: The functions.
        columns: The columns of the input, then the results.
        final: How rows come, if results never change: ``in order``, each when no row before it can come any more, or
            ``at once``, all rows of a partition together; empty if results may change.
        limit: Which rows there are, by their rank; None for all. Then the only call is that rank, or there is none.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    orders: tuple[Order, ...]
    calls: tuple[OverCall, ...]
    columns: Columns
    final: str = ""
    limit: RankLimit | None = None


@dataclass(frozen=True)
class Border:
    """The rows whose value compares with the value of the one row of another relation.

    Attributes:
        left: The rows.
        right: The relation of one row.
        value: What is compared, of a row; it is never NULL.
        comparison: How: ``<``, ``<=``, ``>=`` or ``>``.
        bound: What it is compared with, of the one row.
    """

    left: Relation
    right: Relation
    value: Scalar
    comparison: str
    bound: Scalar

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        return self.left.columns


@dataclass(frozen=True)
class Emitted:
    """Limits when changes of rows are seen.

    Attributes:
        input: The rows.
        emit: When.
        keys: The columns by which delays are counted.
        past: What the watermark must pass, if it must.
    """

    input: Relation
    emit: Emit
    keys: tuple[int, ...]
    past: Scalar | None = None

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        return self.input.columns


Relation = Union[
    Scan,
    Values,
    Project,
    Filter,
    Windowed,
    Aggregate,
    Expand,
    Generate,
    Join,
    Valid,
    ValidityJoin,
    Union_,
    SetOperation,
    Top,
    Over,
    Border,
    Emitted,
]


@dataclass(frozen=True)
class Query:
    """A relation, and how it is shown.

    Attributes:
        relation: The relation.
        rendering: ``STREAM``, ``TABLE``, ``TVR``, or None for what the inputs are.
        shown: For each column of the result, its name and the number of a column of the relation, or the name of a
            column of the system.
        ordered: How the rows of a table are ordered; None if their columns do not say.
    """

    relation: Relation
    rendering: str | None
    shown: tuple[tuple[str, int | str], ...]
    ordered: tuple[Order, ...] | None = ()


def inputs_of(relation: Relation) -> Iterator[Relation]:
    """Yields the relations that a relation is made of."""
    for one in fields(relation):
        value = getattr(relation, one.name)
        if isinstance(value, get_args(Relation)):
            yield value
        elif isinstance(value, tuple) and value and isinstance(value[0], get_args(Relation)):
            yield from value


_SCALARS = (Column, OuterColumn, Literal, Call, UserCall)
_Part = TypeVar("_Part")


def own_scalars(part: object) -> Iterator[Scalar]:
    """Yields the own expressions of a relation, or of a part of one, such as a call; inputs keep theirs.

    >>> from penstock.scalars.types import BIGINT
    >>> call = AggregateCall("sum", Column(0, "points", BIGINT), BIGINT, condition=Column(1, "counts", BIGINT))
    >>> print(*own_scalars(call))
    points counts
    """
    if isinstance(part, _SCALARS):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from own_scalars(each)
    elif is_dataclass(part) and not isinstance(part, type):
        for one in fields(part):
            value = getattr(part, one.name)
            if not isinstance(value, get_args(Relation)):
                yield from own_scalars(value)


def map_scalars(part: _Part, change: Callable[[Scalar], Scalar]) -> _Part:
    """Returns a relation, or a part of one, with what a function makes of each expression of its own in its place.

    >>> from penstock.scalars.types import BIGINT
    >>> call = AggregateCall("sum", Column(0, "points", BIGINT), BIGINT)
    >>> print(map_scalars(call, lambda each: Literal(1, BIGINT)).argument)
    1
    """
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changed = {one.name: _mapped(getattr(part, one.name), change) for one in fields(part)}
    return replace(part, **changed)


def _mapped(value: object, change: Callable[[Scalar], Scalar]) -> object:
    if isinstance(value, _SCALARS):
        return change(value)
    if type(value) is tuple:
        return tuple(_mapped(each, change) for each in value)
    if isinstance(value, get_args(Relation)) or not any(True for _ in own_scalars(value)):
        return value
    return map_scalars(value, change)


def walk_plan(relation: Relation) -> Iterator[Relation]:
    """Yields a relation and all relations below it, each of them once, although several may read it."""
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        found = waiting.pop()
        if id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting.extend(inputs_of(found))


def is_static(relation: Relation, endless: Set[str]) -> bool:
    """True if a plan reads none of the inputs that do not end, by their names."""
    return not any(isinstance(each, Scan) and each.name in endless for each in walk_plan(relation))


def count_uses(relation: Relation) -> int:
    """Returns how many relations a plan has, where one that several others read counts for each of them."""
    counts: dict[int, int] = {}

    def count(each: Relation) -> int:
        if id(each) not in counts:
            counts[id(each)] = 1 + sum(map(count, inputs_of(each)))
        return counts[id(each)]

    return count(relation)


def skip_projections(relation: Relation) -> tuple[list[Project | Filter], Relation]:
    """Returns the projections and filters on top of a plan, the highest first, and the relation below them."""
    above: list[Project | Filter] = []
    while isinstance(relation, (Project, Filter)):
        above.append(relation)
        relation = relation.input
    return above, relation


def origin_of(relation: Relation, scalar: Scalar) -> tuple[Relation, Scalar]:
    """Returns an expression over the rows of a plan, as one over the relation below its projections and filters."""
    above, inner = skip_projections(relation)
    for each in above:
        if isinstance(each, Project):
            scalar = replace_scalars(scalar, each.scalars)
    return inner, scalar


def describe_plan(relation: Relation) -> str:
    """Returns a plan as text, a line for each relation, inputs below; what several relations read is described once."""
    return "\n".join(_described(relation, "", set()))


def _described(relation: Relation, indent: str, seen: set[int]) -> Iterator[str]:
    details = ", ".join(
        f"{one.name}={_text(value)}"
        for one in fields(relation)
        if one.name not in ("input", "left", "right", "inputs", "columns", "generated")
        and (value := getattr(relation, one.name)) not in (None, (), False, 0, "")
    )
    inputs = list(inputs_of(relation))
    is_known = id(relation) in seen and bool(inputs)
    seen.add(id(relation))
    name = type(relation).__name__.rstrip("_")
    yield f"{indent}{name}({details}) -> {_names(relation)}{', as above' if is_known else ''}"
    for each in () if is_known else inputs:
        yield from _described(each, indent + "  ", seen)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)


def _names(relation: Relation) -> str:
    return ", ".join(column.name for column in relation.columns)


def distinct(relation: Relation) -> Relation:
    """Returns the rows of a relation, each once."""
    return Aggregate(relation, columns_as_scalars(relation.columns), (), relation.columns)


def columns_as_scalars(columns: Columns, start: int = 0) -> tuple[Column, ...]:
    """Returns the columns of a row as scalars."""
    return tuple(Column(start + at, each.name, each.type) for at, each in enumerate(columns))


def _nullable(columns: Columns) -> Columns:
    return tuple(ColumnDef(each.name, each.type.or_null()) for each in columns)
