"""Which columns of a join must be equal, and which joins are by validity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

from penstock.scalars.tree import (
    Call,
    Column,
    Scalar,
    columns_of,
    replace_scalars,
    shift_columns,
    split_conjuncts,
)
from penstock.sql.binding.scopes import move_to_right
from penstock.sql.plan.conditions import conjoin, filter_rows, rejects_null, split_and_factor
from penstock.sql.plan.lineage import is_window, simplify_bound
from penstock.sql.plan.numbering_limits import limit_numbering
from penstock.sql.plan.relations import (
    ColumnDef,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Valid,
    ValidityJoin,
    Windowed,
    columns_as_scalars,
)

Refuse = Callable[..., NoReturn]


def make_join(
    left: Relation,
    right: Relation,
    kind: str,
    condition: Scalar | None,
    as_of: tuple[Scalar, Scalar] | None,
    is_asof: bool,
    refuse: Refuse,
) -> Relation:
    """Returns the join of two relations.

    Args:
        left: The left rows.
        right: The right rows.
        kind: The kind, or ``cross``.
        condition: What must hold of a left row and a right row in one tuple.
        as_of: The time of a left row and of a right row, if the right row must be the one that is valid then.
        is_asof: Whether the condition itself says that, by comparing two times.
        refuse: Raises the error of this place in the query.
    """
    width = len(left.columns)
    equal, rest = _split(condition, width, takes_null_safe=as_of is None and not is_asof)
    if is_asof:
        times = [found for part in rest if (found := _as_of_times(part, width))]
        if len(times) != 1 or len(rest) != 1:
            refuse(
                "ASOF JOIN takes equal columns and one comparison of times",
                "write left.time >= right.time, with a TIMESTAMP in both",
            )
        [as_of] = times
        rest = []
    if as_of is not None:
        if rest or not equal:
            refuse("a join with the valid row takes only equal columns", "write the rest in WHERE")
        return _by_validity(left, right, kind, equal, as_of, refuse)
    if (validity := _of_valid(left, right, kind, equal, rest)) is not None:
        return validity
    if kind == "cross" or (kind == "inner" and condition is None):
        cross = Join(left, right, "inner", (), ())
        return cross if condition is None else push_filter_down(Filter(cross, condition))
    join = Join(left, right, kind, *_keys(equal), null_safe=_null_safe(equal))
    if kind == "inner":
        return filter_rows(join, rest)
    return replace(join, condition=conjoin(rest))


def push_filter_down(relation: Filter) -> Relation:
    """Returns a filter whose parts also act below it.

    Over an inner join, they become its keys or go below it. Over numbered rows, they limit how many are numbered. What
    does not read generated columns acts before rows are generated.
    """
    join = relation.input
    if isinstance(join, Generate):
        below, rest = split_below_generator(join, split_and_factor(relation.condition))
        return filter_rows(replace(join, input=push_parts_down(join.input, below)), rest)
    if not isinstance(join, Join):
        return limit_numbering(relation)
    width = len(join.left.columns)
    if join.kind in ("left", "semi", "left_anti"):
        return _push_below_left_join(join, relation.condition)
    if join.kind != "inner" or join.condition is not None:
        return relation
    equal, others = _split(relation.condition, width)
    lefts = [part for part in others if _is_left(part, width)]
    rights = [
        shift_columns(part, {at: at - width for at in columns_of(part)})
        for part in others
        if _is_right(part, width)
    ]
    rest = [part for part in others if not _is_left(part, width) and not _is_right(part, width)]
    left_keys, right_keys = _keys(equal)
    made = Join(
        push_parts_down(join.left, lefts),
        push_parts_down(join.right, rights),
        "inner",
        join.left_keys + left_keys,
        join.right_keys + right_keys,
        null_safe=join.null_safe + _null_safe(equal, len(join.left_keys)),
    )
    return filter_rows(made, rest)


def split_below_generator(relation: Generate, parts: Iterable[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    """Returns the parts of a condition that read columns of a generator's input only, and the other ones."""
    width = len(relation.input.columns)
    below: list[Scalar] = []
    rest: list[Scalar] = []
    for part in parts:
        (below if _is_left(part, width) else rest).append(part)
    return below, rest


def push_parts_down(relation: Relation, parts: Iterable[Scalar]) -> Relation:
    """Returns the rows for which all parts of a condition are true, which also act below."""
    condition = conjoin(parts)
    return relation if condition is None else push_filter_down(Filter(relation, condition))


def _push_below_left_join(join: Join, condition: Scalar) -> Relation:
    """A filter over a join that keeps left rows: its parts of left rows act before the join.

    If it is never true of a row without a match, the join is an inner join.
    """
    width, parts = len(join.left.columns), split_and_factor(condition)
    rights = frozenset(range(width, len(join.columns)))
    if join.kind == "left" and any(rejects_null(part, rights) for part in parts):
        inner = replace(join, kind="inner", condition=None)
        return push_parts_down(inner, [*split_conjuncts(join.condition), *parts])
    lefts = [part for part in parts if _is_left(part, width)]
    rest = [part for part in parts if not _is_left(part, width)]
    return filter_rows(replace(join, left=push_parts_down(join.left, lefts)), rest)


def push_semijoin_down(join: Join) -> Relation:
    """Returns a semi join or an anti join of the result of inner joins, as one of the table whose rows it reads."""
    return _pushed_semijoin(join) or join


def _pushed_semijoin(join: Join) -> Relation | None:
    """The rows of a semi join that acts below an inner join or windows; None if it acts where it is."""
    left, width = join.left, len(join.left.columns)
    used = frozenset().union(*map(columns_of, join.left_keys))
    if join.condition is not None:
        used |= {at for at in columns_of(join.condition) if at < width}
    own = columns_as_scalars(left.columns)
    match left:
        case Filter():
            found = _pushed_semijoin(replace(join, left=left.input))
            return None if found is None else Filter(found, left.condition)
        case Project() if all(isinstance(left.scalars[at], Column) for at in used):
            found = _pushed_semijoin(_moved_semijoin(join, left.input, left.scalars))
            return None if found is None else replace(left, input=found)
        case Windowed() if max(used, default=0) < len(left.input.columns):
            return replace(left, input=push_semijoin_down(_moved_semijoin(join, left.input, own)))
        case Join(kind="semi" | "left_anti"):
            found = _pushed_semijoin(_moved_semijoin(join, left.left, own))
            return None if found is None else replace(left, left=found)
        case Join(kind="inner"):
            middle = len(left.left.columns)
            if used and max(used) < middle:
                return replace(left, left=push_semijoin_down(_moved_semijoin(join, left.left, own)))
            if used and min(used) >= middle:
                rights = tuple(replace(each, index=each.index - middle) for each in own)
                return replace(left, right=push_semijoin_down(_moved_semijoin(join, left.right, rights)))
    return None


def _moved_semijoin(join: Join, left: Relation, scalars: Sequence[Scalar]) -> Join:
    """Returns a semi join of other left rows, in which expressions stand for the columns of its own."""
    width, rights = len(left.columns), columns_as_scalars(join.right.columns)
    both = (*scalars, *(move_to_right(each, width) for each in rights))
    condition = None if join.condition is None else replace_scalars(join.condition, both)
    keys = tuple(replace_scalars(each, scalars) for each in join.left_keys)
    return replace(join, left=left, left_keys=keys, condition=condition)


class _Equality(NamedTuple):
    """An equality between the two sides of a join.

    Attributes:
        left: What must be equal, of a left row.
        right: The same of a right row.
        is_null_safe: Whether NULL equals NULL, and both may be.
    """

    left: Scalar
    right: Scalar
    is_null_safe: bool


def _split(
    condition: Scalar | None, width: int, takes_null_safe: bool = True
) -> tuple[list[_Equality], list[Scalar]]:
    """The equalities between the two sides, and all other parts."""
    names = ("=", "<=>") if takes_null_safe else ("=",)
    equal: list[_Equality] = []
    rest = []
    for part in split_and_factor(condition):
        if not isinstance(part, Call) or part.name not in names or (sides := _sides(part, width)) is None:
            rest.append(part)
            continue
        may_be_null = all(each.type.nullable for each in sides)
        equal.append(_Equality(*sides, part.name == "<=>" and may_be_null))
    return equal, rest


def _sides(part: Call, width: int) -> tuple[Scalar, Scalar] | None:
    """Returns the operands of a comparison of a left row with a right row; None if it compares something else."""
    one, other = part.arguments
    if _is_left(other, width) and _is_right(one, width):
        one, other = other, one
    if _is_left(one, width) and _is_right(other, width):
        return one, shift_columns(other, {at: at - width for at in columns_of(other)})
    return None


def _is_left(scalar: Scalar, width: int) -> bool:
    columns = columns_of(scalar)
    return bool(columns) and max(columns) < width


def _is_right(scalar: Scalar, width: int) -> bool:
    columns = columns_of(scalar)
    return bool(columns) and min(columns) >= width


def _as_of_times(part: Scalar, width: int) -> tuple[Scalar, Scalar] | None:
    """The left time and the right time of ``left >= right``; the right one as a value of joined rows."""
    if not isinstance(part, Call) or part.name not in (">=", "<="):
        return None
    later, earlier = part.arguments if part.name == ">=" else reversed(part.arguments)
    if any(each.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ", "ANY") for each in (later, earlier)):
        return None
    return (later, earlier) if _is_left(later, width) and _is_right(earlier, width) else None


def _by_validity(
    left: Relation,
    right: Relation,
    kind: str,
    equal: list[_Equality],
    as_of: tuple[Scalar, Scalar],
    refuse: Refuse,
) -> Relation:
    if kind not in ("inner", "left"):
        refuse(f"a {kind.upper()} JOIN with the valid row is not supported", "write JOIN or LEFT JOIN")
    width = len(left.columns)
    left_time, right_time = as_of
    if not _is_left(left_time, width):
        refuse("the time of the join is not a column of the left table", "write left.time")
    own_time = shift_columns(right_time, {at: at - width for at in columns_of(right_time)})
    columns = Join(left, right, kind, (), ()).columns
    return ValidityJoin(left, right, kind, *_keys(equal), left_time, own_time, columns)


def _of_valid(
    left: Relation, right: Relation, kind: str, equal: list[_Equality], rest: list[Scalar]
) -> Relation | None:
    """A join with rows that say when they are valid, if its condition is that a left time is in that time."""
    if kind not in ("inner", "left", "full") or len(rest) != 2 or not equal or _null_safe(equal):
        return None
    found = _valid_below(right)
    if found is None:
        return None
    valid, scalars = found
    width, inner_width = len(left.columns), len(valid.input.columns)
    # The values of a left row and of a row with its validity, instead of the right row's.
    both = (
        *columns_as_scalars(left.columns),
        *(move_to_right(each, width) for each in scalars),
    )
    times = {}
    for part in rest:
        if not isinstance(part, Call) or part.name not in ("<=", "<", ">", ">="):
            return None
        sides = [simplify_bound(replace_scalars(each, both)) for each in part.arguments]
        small, large = sides if part.name in ("<", "<=") else reversed(sides)
        strict = part.name in ("<", ">")
        if not strict and isinstance(small, Column) and small.index == width + inner_width:
            times["start"] = large
        elif strict and isinstance(large, Column) and large.index == width + inner_width + 1:
            times["end"] = small
    if len(times) != 2 or times["start"] != times["end"] or not _is_left(times["start"], width):
        return None
    own = [each._replace(right=replace_scalars(each.right, scalars)) for each in equal]
    if {each.right for each in own} != set(valid.keys) or len(own) != len(valid.keys):
        return None
    window = tuple(ColumnDef(name, valid.time.type.or_null()) for name in ("window_start", "window_end"))
    inner = Join(left, valid.input, kind, (), ()).columns
    join = ValidityJoin(
        left,
        valid.input,
        kind,
        *_keys(own),
        times["start"],
        valid.time,
        (*inner, *window),
        with_validity=True,
    )
    shown = tuple(replace_scalars(each, columns_as_scalars(join.columns)) for each in both)
    plain = Join(left, right, kind, (), ()).columns
    return Project(join, shown, plain)


def _valid_below(relation: Relation) -> tuple[Valid, tuple[Scalar, ...]] | None:
    """Rows with validity below projections; and the columns of the relation as values of these rows.

    The projections may return columns and windows only: these are NULL where a join has no row.
    """
    if isinstance(relation, Valid):
        return relation, columns_as_scalars(relation.columns)
    if isinstance(relation, Project) and all(
        isinstance(each, Column) or is_window(each) for each in relation.scalars
    ):
        inner = _valid_below(relation.input)
        if inner is not None:
            valid, scalars = inner
            return valid, tuple(replace_scalars(each, scalars) for each in relation.scalars)
    return None


def _keys(equal: list[_Equality]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    return tuple(each.left for each in equal), tuple(each.right for each in equal)


def _null_safe(equal: list[_Equality], first: int = 0) -> tuple[int, ...]:
    """The places of the keys of which NULL equals NULL, where the keys begin at a place."""
    return tuple(place for place, each in enumerate(equal, first) if each.is_null_safe)
