"""Makes a plan that computes less: equal parts once, only the columns that something reads, and no needless numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from penstock.scalars import functions
from penstock.scalars.row_functions import Predicate
from penstock.scalars.tree import Scalar, columns_of, shift_columns, split_conjuncts
from penstock.sql.plan.numbering_limits import limit_ranks
from penstock.sql.plan.relations import (
    Aggregate,
    Columns,
    Emitted,
    Filter,
    Generate,
    Join,
    Over,
    OverCall,
    Project,
    Relation,
    Scan,
    Top,
    Union_,
    Windowed,
    columns_as_scalars,
    inputs_of,
    map_scalars,
    origin_of,
    own_scalars,
)

_MOST_NUMBERS = 1_000
"""The largest limit of which each number is tried in a condition."""


_R = TypeVar("_R", Windowed, Aggregate, Top, Over)
Places = Mapping[int, int]
"""The new place of each column that is left, by the place that it had."""


Needs = dict[int, set[int]]
"""The columns of each relation that something reads, by the relation's id."""


def prune(relation: Relation, retracting: Set[str] = frozenset()) -> Relation:
    """Returns a plan with the same rows and columns that computes less.

    - Parts that are equal, such as a view that is read twice, are one object, which is lowered once.
    - Joins, rankings and emissions hold only columns that something above them reads, or that they need.
    - A condition that all numbers of a limited ranking satisfy goes, and so does a number that nothing reads. One row
      more at the top would otherwise change the numbers of all rows after it.

    Args:
        relation: The plan.
        retracting: The names of the inputs whose rows may be retracted.
    """
    shared = _share(rebuild(with_limited_ranks(relation), _drop_condition))
    needs = columns_needed(shared)
    scans: dict[str, set[int]] = {}
    for each in inputs_first(shared):
        if isinstance(each, Scan):
            base = range(len(each.columns) - each.arrival)
            # A row that is retracted has the arrival time of the very row that came.
            is_whole = each.arrival and each.name in retracting
            read = base if is_whole else needs[id(each)].intersection(base) or {0}
            scans.setdefault(each.name, set()).update(read)
    return _Pruning(needs, scans).made(shared)[0]


def with_limited_ranks(relation: Relation) -> Relation:
    """Returns a plan with the same rows that computes no ranks which a condition does not let through."""
    return rebuild(relation, limit_ranks)


def columns_read(relation: Relation) -> dict[str, Columns]:
    """Returns the columns of each input that a plan reads, by the input's name; without the time of arrival."""
    return {
        each.name: each.columns[:-1] if each.arrival else each.columns
        for each in inputs_first(relation)
        if isinstance(each, Scan)
    }


def inputs_first(relation: Relation) -> list[Relation]:
    """Returns all relations of a plan, each once, inputs before what reads them."""
    found: dict[int, Relation] = {}

    def visit(each: Relation) -> None:
        if id(each) not in found:
            for below in inputs_of(each):
                visit(below)
            found[id(each)] = each

    visit(relation)
    return list(found.values())


def with_inputs(relation: Relation, inputs: Iterable[Relation]) -> Relation:
    """Returns a relation with other inputs, in the order of `inputs_of`."""
    following: Iterator[Relation] = iter(inputs)
    changed: dict[str, Any] = {}
    for one in fields(relation):
        value = getattr(relation, one.name)
        if isinstance(value, get_args(Relation)):
            changed[one.name] = next(following)
        elif isinstance(value, tuple) and value and isinstance(value[0], get_args(Relation)):
            changed[one.name] = tuple(next(following) for _ in value)
    return replace(relation, **changed) if changed else relation


def rebuild(
    relation: Relation, change: Callable[[Relation], Relation], shared: set[int] | None = None
) -> Relation:
    """Returns a plan in which a function has changed each relation once its inputs were changed.

    Args:
        relation: The plan.
        change: The function.
        shared: Takes the ids of the changed relations that several others read, at the time when they are made.
    """
    order = inputs_first(relation)
    readers = Counter(id(below) for each in order for below in inputs_of(each))
    done: dict[int, Relation] = {}
    for each in order:
        made = change(with_inputs(each, [done[id(below)] for below in inputs_of(each)]))
        if shared is not None and readers[id(each)] > 1:
            shared.add(id(made))
        done[id(each)] = made
    return done[id(relation)]


def _share(relation: Relation) -> Relation:
    """The plan, in which equal parts are one object."""
    known: dict[tuple[object, ...], Relation] = {}

    def shared(each: Relation) -> Relation:
        below = [id(one) for one in inputs_of(each)]
        # Python finds values equal that differ, such as 0.0 and -0.0; their text does not.
        own = [repr(getattr(each, one.name)) for one in fields(each) if not _has_inputs(each, one.name)]
        found = known.setdefault((type(each), *below, *own), each)
        return found if found == each else each

    return rebuild(relation, shared)


def _has_inputs(relation: Relation, name: str) -> bool:
    """True if a field of a relation has inputs."""
    value = getattr(relation, name)
    first = value[0] if isinstance(value, tuple) and value else value
    return isinstance(first, get_args(Relation))


# Numbers of rows


def _drop_condition(relation: Relation) -> Relation:
    """The relation without conditions that all rows of a ranking satisfy."""
    if not isinstance(relation, Filter):
        return relation
    parts = split_conjuncts(relation.condition)
    left = [part for part in parts if not _is_always_true(relation.input, part)]
    if len(left) == len(parts):
        return relation
    if not left:
        return relation.input
    condition = left[0]
    for part in left[1:]:
        condition = functions.call("AND", [condition, part])
    return Filter(relation.input, condition)


def _is_always_true(relation: Relation, condition: Scalar) -> bool:
    """True if a condition reads only the number of a row, and holds for each number that there is."""
    top, below = origin_of(relation, condition)
    numbers = _numbers_of(top)
    number = len(top.columns) - 1
    if len(numbers) > _MOST_NUMBERS or columns_of(below) != {number}:
        return False
    holds, others = Predicate(below), (None,) * number
    return all(holds((*others, each)) for each in numbers)


def _numbers_of(relation: Relation) -> range:
    """Returns the numbers that rows may have in their last column; too many if all may."""
    if isinstance(relation, Top) and relation.numbered and relation.limit is not None:
        return range(relation.offset + 1, relation.offset + relation.limit + 1)
    if isinstance(relation, Over) and relation.limit is not None and relation.calls:
        return range(1, relation.limit.count + 1)
    return range(_MOST_NUMBERS + 1)


# Columns


def columns_needed(relation: Relation) -> Needs:
    """Returns the columns that something reads; all of the plan's own."""
    needs: Needs = {id(relation): set(range(len(relation.columns)))}
    for each in reversed(inputs_first(relation)):
        own = needs[id(each)]
        if not own and each.columns:
            # A row keeps one of its columns.
            own.add(0)
        for below, wanted in zip(inputs_of(each), _wanted(each, own), strict=True):
            needs.setdefault(id(below), set()).update(wanted)
    return needs


def _read_by(scalars: Iterable[Scalar | None]) -> set[int]:
    return {at for each in scalars if each is not None for at in columns_of(each)}


def _wanted(relation: Relation, own: set[int]) -> Iterator[set[int]]:
    """The columns of each input that a relation reads so that it has some of its own."""
    match relation:
        case Project(_, scalars):
            yield _read_by(scalars[at] for at in own)
        case Filter(_, condition):
            yield own | _read_by([condition])
        case Windowed():
            yield _within(own, relation.input) | _read_by(own_scalars(relation))
        case Aggregate():
            yield _read_by(own_scalars(relation))
        case Generate():
            width = len(relation.input.columns)
            read = own | _read_by([*relation.arguments, relation.condition])
            yield {at for at in read if at < width}
        case Join():
            width = len(relation.left.columns)
            both = own | _read_by([relation.condition])
            yield {at for at in both if at < width} | _read_by(relation.left_keys)
            yield {at - width for at in both if at >= width} | _read_by(relation.right_keys)
        case Union_():
            for _ in relation.inputs:
                yield own
        case Top():
            yield _within(own, relation.input) | _read_by(own_scalars(relation))
        case Over():
            needed = replace(relation, calls=tuple(_calls_of(relation, own)))
            yield _within(own, relation.input) | _read_by(own_scalars(needed))
        case Emitted() if relation.keys:
            yield own | {*relation.keys} | _read_by([relation.past])
        case _:
            for below in inputs_of(relation):
                yield set(range(len(below.columns)))


def _calls_of(relation: Over, own: set[int]) -> list[OverCall]:
    """Returns the calls whose results something reads; the first, if there are none and nothing limits the rows."""
    width = len(relation.input.columns)
    found = [call for at, call in enumerate(relation.calls, width) if at in own]
    return found or ([] if relation.limit is not None else [relation.calls[0]])


def _within(own: set[int], relation: Relation) -> set[int]:
    return {at for at in own if at < len(relation.columns)}


def _moved(relation: _R, places: Places) -> _R:
    """A relation whose expressions read the columns of its input at their new places."""
    return map_scalars(relation, lambda scalar: shift_columns(scalar, places))


class _Pruning:
    """Makes relations without the columns that nothing reads.

    Args:
        needs: The columns that something reads.
        scans: The columns of inputs that something reads, by name.
    """

    def __init__(self, needs: Needs, scans: Mapping[str, set[int]]) -> None:
        self._needs = needs
        self._scans = scans
        self._made: dict[int, tuple[Relation, Places]] = {}

    def made(self, relation: Relation) -> tuple[Relation, Places]:
        """Returns the relation, and where its columns are now."""
        known = self._made.get(id(relation))
        if known is None:
            known = self._made[id(relation)] = self._make(relation)
        return known

    def _exactly(self, relation: Relation, wanted: set[int]) -> tuple[Relation, Places]:
        """A relation with these columns alone."""
        made, places = self.made(relation)
        kept = sorted(wanted or self._needs[id(relation)])
        if len(made.columns) == len(kept):
            return made, places
        scalars = columns_as_scalars(made.columns)
        project = Project(
            made,
            tuple(scalars[places[at]] for at in kept),
            tuple(made.columns[places[at]] for at in kept),
        )
        return project, {at: new for new, at in enumerate(kept)}

    def _make(self, relation: Relation) -> tuple[Relation, Places]:
        own = self._needs[id(relation)]
        match relation:
            case Scan():
                return self._scan(relation)
            case Project(_, scalars):
                return self._project(relation, sorted(own), scalars)
            case Filter(below, condition):
                made, places = self.made(below)
                return Filter(made, shift_columns(condition, places)), places
            case Windowed():
                return self._windowed(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Generate():
                return self._generate(relation)
            case Join():
                return self._join(relation)
            case Union_():
                kept = sorted(own)
                inputs = tuple(self._exactly(each, {*kept})[0] for each in relation.inputs)
                columns = tuple(relation.columns[at] for at in kept)
                return Union_(inputs, columns), {at: new for new, at in enumerate(kept)}
            case Top():
                return self._top(relation, own)
            case Over():
                return self._over(relation, own)
            case Emitted() if relation.keys:
                [wanted] = _wanted(relation, own)
                made, places = self._exactly(relation.input, wanted)
                keys = tuple(places[at] for at in relation.keys)
                past = None if relation.past is None else shift_columns(relation.past, places)
                return replace(relation, input=made, keys=keys, past=past), places
        made_inputs = [self._exactly(each, {*range(len(each.columns))})[0] for each in inputs_of(relation)]
        return with_inputs(relation, made_inputs), {at: at for at in range(len(relation.columns))}

    def _scan(self, relation: Scan) -> tuple[Relation, Places]:
        kept = sorted(self._scans[relation.name])
        if relation.arrival:
            kept.append(len(relation.columns) - 1)
        columns = tuple(relation.columns[at] for at in kept)
        return replace(relation, columns=columns), {at: new for new, at in enumerate(kept)}

    def _project(
        self, relation: Project, kept: list[int], scalars: tuple[Scalar, ...]
    ) -> tuple[Relation, Places]:
        made, places = self.made(relation.input)
        own = tuple(shift_columns(scalars[at], places) for at in kept)
        columns = tuple(relation.columns[at] for at in kept)
        return Project(made, own, columns), {at: new for new, at in enumerate(kept)}

    def _windowed(self, relation: Windowed) -> tuple[Relation, Places]:
        made, places = self.made(relation.input)
        before, width = len(relation.input.columns), len(made.columns)
        bounds = {before: width, before + 1: width + 1}
        columns = (*made.columns, *relation.columns[before:])
        changed = replace(_moved(relation, places), input=made, columns=columns)
        return changed, {**places, **bounds}

    def _aggregate(self, relation: Aggregate) -> tuple[Relation, Places]:
        made, places = self.made(relation.input)
        changed = replace(_moved(relation, places), input=made)
        return changed, {at: at for at in range(len(relation.columns))}

    def _generate(self, relation: Generate) -> tuple[Relation, Places]:
        made, places = self.made(relation.input)
        before, width = len(relation.input.columns), len(made.columns)
        every = {**places, **{before + at: width + at for at in range(len(relation.generated))}}
        condition = relation.condition
        changed = replace(
            relation,
            input=made,
            arguments=tuple(shift_columns(each, places) for each in relation.arguments),
            condition=None if condition is None else shift_columns(condition, every),
        )
        return changed, every if len(changed.columns) > width else places

    def _join(self, relation: Join) -> tuple[Relation, Places]:
        own = self._needs[id(relation)]
        of_left, of_right = _wanted(relation, own)
        left, lefts = self._exactly(relation.left, of_left)
        right, rights = self._exactly(relation.right, of_right)
        before, width = len(relation.left.columns), len(left.columns)
        places = {**lefts, **{before + at: width + new for at, new in rights.items()}}
        condition = relation.condition
        changed = replace(
            relation,
            left=left,
            right=right,
            left_keys=tuple(shift_columns(each, lefts) for each in relation.left_keys),
            right_keys=tuple(shift_columns(each, rights) for each in relation.right_keys),
            condition=None if condition is None else shift_columns(condition, places),
        )
        return changed, places

    def _top(self, relation: Top, own: set[int]) -> tuple[Relation, Places]:
        [wanted] = _wanted(relation, own)
        made, places = self._exactly(relation.input, wanted)
        number = len(relation.input.columns)
        numbered = relation.numbered and number in own
        moved, columns = _moved(relation, places), made.columns
        if numbered:
            columns, places = (*columns, relation.columns[number]), {**places, number: len(made.columns)}
        return replace(moved, input=made, columns=columns, numbered=numbered), places

    def _over(self, relation: Over, own: set[int]) -> tuple[Relation, Places]:
        [wanted] = _wanted(relation, own)
        made, places = self._exactly(relation.input, wanted)
        before, width, calls = len(relation.input.columns), len(made.columns), _calls_of(relation, own)
        results = [before + relation.calls.index(call) for call in calls]
        columns = (*made.columns, *(relation.columns[at] for at in results))
        changed = replace(_moved(replace(relation, calls=tuple(calls)), places), input=made, columns=columns)
        return changed, {**places, **{at: width + new for new, at in enumerate(results)}}
