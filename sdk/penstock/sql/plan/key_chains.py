"""Finds relations that are all computed key by key, by the same key, so that one step with state computes them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.scalars.tree import Column, Scalar, columns_of, replace_scalars, shift_columns
from penstock.sql.plan.relations import (
    Aggregate,
    Emitted,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Top,
    columns_as_scalars,
    skip_projections,
)

Keys = tuple[Scalar, ...]


class ChainInput(NamedTuple):
    """An input of a chain: rows, and the expressions that distinguish them."""

    relation: Relation
    keys: Keys


class Link(NamedTuple):
    """A relation of a chain, and the places in the chain of what it is made of."""

    relation: Relation
    inputs: tuple[int, ...]


@dataclass
class KeyChain:
    """Relations that one step computes, key by key.

    Attributes:
        links: The inputs and the relations, each after what it is made of. The last one is the result.
        emitted: What holds the result back until the watermark passes a time; None if nothing does.
        is_one_time: Whether all rows of a key have the same time that the watermark must pass.
    """

    links: list[ChainInput | Link] = field(default_factory=list)
    emitted: Emitted | None = None
    is_one_time: bool = False

    @property
    def size(self) -> int:
        """The number of relations with state."""
        own = [each.relation for each in self.links if isinstance(each, Link)]
        return sum(isinstance(each, (Top, Aggregate, Join)) for each in own) + (self.emitted is not None)


def chain_of(relation: Relation, is_alone: Callable[[Relation], bool]) -> KeyChain | None:
    """Returns the longest chain that ends with a relation; None if there is none of two relations with state.

    Args:
        relation: The last relation of the chain.
        is_alone: Says which relations something else computes.
    """
    emitted, top = None, relation
    above: list[Project | Filter] = []
    if isinstance(relation, Emitted):
        emit = relation.emit
        if not emit.watermark or emit.before is not None or emit.after is not None or relation.past is None:
            return None
        emitted = relation
        above, top = skip_projections(relation.input)
    best: KeyChain | None = None
    for keys, is_one_time in _candidates(top, above, emitted):
        chain = KeyChain(emitted=emitted, is_one_time=is_one_time)
        builder = _Builder(chain, is_one_time, is_alone)
        place = builder.add(top, keys)
        for each in reversed(above):
            place = builder.link(each, (place,))
        if chain.size >= 2 and (best is None or chain.size > best.size):
            best = chain
    return best


def _candidates(
    relation: Relation, above: list[Project | Filter], emitted: Emitted | None
) -> Iterator[tuple[Keys, bool]]:
    """Keys by which a chain may be divided, and whether the one key is the time that the watermark must pass."""
    own = _keys_of(relation)
    if not own:
        return
    yield own, False
    if emitted is not None and emitted.past is not None and len(own) > 1:
        past = emitted.past
        for each in above:
            if isinstance(each, Project):
                past = replace_scalars(past, each.scalars)
        if past in own:
            yield (past,), True


def _keys_of(relation: Relation) -> Keys:
    """Returns the keys of the parts that a relation computes on their own, as expressions over its rows."""
    match relation:
        case Top():
            return relation.keys
        case Aggregate():
            return columns_as_scalars(relation.columns[: len(relation.keys)])
        case Join(kind="inner" | "left" | "semi" | "left_anti", null_safe=()):
            return relation.left_keys
    return ()


class _Builder:
    """Adds relations to a chain.

    Args:
        chain: The chain.
        is_one_time: Whether a relation may be divided by fewer keys than its own.
        is_alone: Says which relations something else computes.
    """

    def __init__(self, chain: KeyChain, is_one_time: bool, is_alone: Callable[[Relation], bool]) -> None:
        self._links = chain.links
        self._is_one_time = is_one_time
        self._is_alone = is_alone
        self._known: dict[tuple[int, Keys], int] = {}

    def add(self, relation: Relation, keys: Keys) -> int:
        """Adds a relation, whose rows are distinguished by keys; returns its place."""
        name = id(relation), keys
        if name not in self._known:
            self._known[name] = self._add(relation, keys)
        return self._known[name]

    def link(self, relation: Relation, inputs: tuple[int, ...]) -> int:
        """Adds a relation whose inputs are there."""
        self._links.append(Link(relation, inputs))
        return len(self._links) - 1

    def _add(self, relation: Relation, keys: Keys) -> int:
        if isinstance(relation, Project) and self._has_state(relation.input):
            inner = tuple(replace_scalars(each, relation.scalars) for each in keys)
            return self.link(relation, (self.add(relation.input, inner),))
        if isinstance(relation, Filter) and self._has_state(relation.input):
            return self.link(relation, (self.add(relation.input, keys),))
        if isinstance(relation, Generate) and self._has_state(relation.input):
            width = len(relation.input.columns)
            if all(at < width for each in keys for at in columns_of(each)):
                return self.link(relation, (self.add(relation.input, keys),))
        below = None if self._is_alone(relation) else self._below(relation, keys)
        if below is None:
            self._links.append(ChainInput(relation, keys))
            return len(self._links) - 1
        return self.link(relation, tuple(self.add(each, own) for each, own in below))

    def _has_state(self, relation: Relation) -> bool:
        while isinstance(relation, (Project, Filter, Generate)):
            relation = relation.input
        return bool(_keys_of(relation))

    def _below(self, relation: Relation, keys: Keys) -> list[tuple[Relation, Keys]] | None:
        """The inputs of a relation with their keys; None if the relation is not computed by these keys."""
        own = _keys_of(relation)
        if not own:
            return None
        match relation:
            case Join():
                lefts, rights = relation.left_keys, relation.right_keys
                width = len(relation.left.columns)
                shift = {at: width + at for at in range(len(relation.right.columns))}
                # The right keys may be missing in the rows of other joins.
                moved = [shift_columns(each, shift) for each in rights] if relation.kind == "inner" else lefts
                places = [
                    at for key in keys for at in range(len(lefts)) if key == lefts[at] or key == moved[at]
                ]
                if not self._fits(places, keys, len(lefts)):
                    return None
                of_sides = (relation.left, lefts), (relation.right, rights)
                return [(side, tuple(parts[at] for at in places)) for side, parts in of_sides]
            case Top():
                fits = self._fits(keys, keys, len(own)) and {*own}.issuperset(keys)
                return [(relation.input, keys)] if fits else None
            case Aggregate():
                if not all(isinstance(each, Column) and each.index < len(own) for each in keys):
                    return None
                if not self._fits(keys, keys, len(own)):
                    return None
                if any(call.name == "single" for call in relation.calls):
                    return None
                below = tuple(relation.keys[each.index] for each in keys if isinstance(each, Column))
                return [(relation.input, below)]
        return None

    def _fits(self, found: Sequence[object], keys: Keys, count: int) -> bool:
        """True if keys divide a relation, which has a number of keys of its own, as they divide the chain."""
        if not keys or len(found) != len(keys):
            return False
        return self._is_one_time or len({*keys}) == count
