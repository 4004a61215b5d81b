"""Fuses steps into units: every stateless step joins each unit that feeds it.

A unit is a root and the stateless steps after it. A root is a read, a grouping, a reshuffle, the results
of a write, or a deferred input. A step with several inputs, such as a Flatten, and the steps after it join several
units. A step whose side input depends on the unit that feeds the step cannot join that unit: the unit keeps the
elements, and a deferred input starts another unit with them once the side input is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.graph import AssignWindows, Flatten, Graph, InlineValues, ParDo, Read, StatefulParDo, Step

_STATELESS = (ParDo, AssignWindows, Flatten)


@dataclass(frozen=True)
class DeferredInput:
    """The elements of an edge, which the `sources`, by number, have kept."""

    edge: int
    sources: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Unit:
    number: int  # Its index in the result of `fuse`.
    root: Step | DeferredInput
    steps: tuple[Step, ...]
    after: frozenset[int]  # Numbers of the units that feed it, or whose elements it needs as side inputs.
    # The length of the longest chain of units before it; in-memory values have the level just before their
    # first reader.
    level: int

    @property
    def edges(self) -> frozenset[int]:
        """The edges whose elements the unit makes, at least in part. A deferred input makes none: its sources do."""
        first = () if isinstance(self.root, DeferredInput) else self.root.outputs
        return frozenset(out.edge for out in (*first, *(out for step in self.steps for out in step.outputs)))


class _Fuser:
    def __init__(self) -> None:
        self.roots: list[Step | DeferredInput] = []
        self.steps: list[list[Step]] = []
        self.after: list[set[int]] = []
        self.feeds: dict[int, set[int]] = {}
        self.deferred_inputs: dict[tuple[int, frozenset[int]], int] = {}

    def start(self, root: Step | DeferredInput, after: set[int]) -> int:
        self.roots.append(root)
        self.steps.append([])
        self.after.append(set(after))
        return len(self.roots) - 1

    def units_of(self, edges: tuple[int, ...]) -> set[int]:
        return {unit for edge in edges for unit in self.feeds.get(edge, ())}

    def before(self, units: set[int]) -> set[int]:
        """Returns the units themselves and all units before them."""
        found: set[int] = set()
        open_units = list(units)
        while open_units:
            unit = open_units.pop()
            if unit not in found:
                found.add(unit)
                open_units.extend(self.after[unit])
        return found

    def add_root(self, step: Step) -> None:
        sides = tuple(side.edge for side in step.side_inputs)
        unit = self.start(step, self.units_of((*step.inputs, *sides)))
        if isinstance(step.primitive, StatefulParDo):
            # The stage also runs it as a step.
            self.steps[unit].append(step)
        for output in step.outputs:
            self.feeds[output.edge] = {unit}

    def add_stateless(self, step: Step) -> None:
        units = self.units_of(step.inputs)
        if step.side_inputs:
            sides = self.units_of(tuple(side.edge for side in step.side_inputs))
            units = self.deferred(step, units, self.before(sides))
            for unit in units:
                self.after[unit] |= sides
        for unit in units:
            self.steps[unit].append(_below(self.roots[unit], step))
        for output in step.outputs:
            self.feeds[output.edge] = set(units)

    def deferred(self, step: Step, units: set[int], needed: set[int]) -> set[int]:
        """Returns the units that a step with side inputs can join; a deferred input replaces the ones needed first."""
        too_early = frozenset(units & needed)
        if not too_early:
            return units
        (edge,) = step.inputs
        deferred = self.deferred_inputs.get((edge, too_early))
        if deferred is None or deferred in needed:
            deferred = self.start(DeferredInput(edge, tuple(sorted(too_early))), set(too_early))
            self.deferred_inputs[edge, too_early] = deferred
        return (units - too_early) | {deferred}

    def levels(self) -> list[int]:
        levels: dict[int, int] = {}
        for first in range(len(self.roots)):
            # An explicit stack, because a chain of a thousand groupings is too deep for Python's own.
            stack = [first]
            while stack:
                unit = stack[-1]
                missing = [before for before in self.after[unit] if before not in levels]
                if missing:
                    stack.extend(missing)
                else:
                    levels[unit] = max((levels[before] + 1 for before in self.after[unit]), default=0)
                    stack.pop()
        return [levels[unit] for unit in range(len(self.roots))]

    def late(self, levels: list[int]) -> list[int]:
        """Returns the levels, with in-memory reads moved to just before their first readers.

        Reading values costs nothing. If the read shared a stage with values that others read, or that are read later,
        Spark would have to persist that stage for several readers.
        """
        first_reader: dict[int, int] = {}
        for unit, after in enumerate(self.after):
            for before in after:
                first_reader[before] = min(levels[unit], first_reader.get(before, levels[unit]))
        return [
            first_reader.get(unit, level + 1) - 1 if is_inline(root) else level
            for unit, (root, level) in enumerate(zip(self.roots, levels, strict=True))
        ]


def is_inline(root: Step | DeferredInput) -> bool:
    return (
        isinstance(root, Step)
        and isinstance(root.primitive, Read)
        and isinstance(root.primitive.source, InlineValues)
    )


def _below(root: Step | DeferredInput, step: Step) -> Step:
    """Returns the form of a step in a unit: after a deferred input, a Flatten does not take the kept elements.

    The kept elements reach the Flatten in the units that made them.
    """
    if isinstance(root, DeferredInput) and isinstance(step.primitive, Flatten):
        return replace(step, inputs=tuple(edge for edge in step.inputs if edge != root.edge))
    return step


def fuse(graph: Graph) -> tuple[Unit, ...]:
    """Returns the units of an optimised graph; `Unit.level` orders them."""
    fuser = _Fuser()
    for step in graph.steps:
        if isinstance(step.primitive, _STATELESS) and not isinstance(step.primitive, StatefulParDo):
            fuser.add_stateless(step)
        else:
            fuser.add_root(step)
    levels = fuser.late(fuser.levels())
    return tuple(
        Unit(number, root, tuple(fuser.steps[number]), frozenset(fuser.after[number]), levels[number])
        for number, root in enumerate(fuser.roots)
    )
