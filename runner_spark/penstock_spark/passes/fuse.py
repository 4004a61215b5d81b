"""Which steps run together: every stateless step joins each unit that feeds it.

A unit starts at a root (a read, a grouping, a reshuffle, the results of a write, or a relay) and holds the stateless
steps below it. A step with several inputs, such as a Flatten and what follows it, is in several units. A step whose
side input depends on the very unit that feeds it cannot join that unit: the elements are kept, and a relay, a unit of
its own, starts there once the side input is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import AssignWindows, Flatten, Graph, ParDo, Step

_STATELESS = (ParDo, AssignWindows, Flatten)


@dataclass(frozen=True)
class Relay:
    """The elements of an edge as they were kept by other units.

    Attributes:
        edge: The edge.
        sources: The numbers of the units that keep its elements.
    """

    edge: int
    sources: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Unit:
    """A root and the stateless steps below it.

    Attributes:
        number: Its place in the result of `fuse`.
        root: The step it starts with, or a relay.
        steps: In topological order.
        after: Numbers of the units that feed it, or whose elements it needs as side inputs.
        level: The length of the longest chain of units before it.
    """

    number: int
    root: Step | Relay
    steps: tuple[Step, ...]
    after: frozenset[int]
    level: int

    @property
    def edges(self) -> frozenset[int]:
        """The edges whose elements the unit has, at least in part."""
        first = (
            (self.root.edge,) if isinstance(self.root, Relay) else tuple(o.edge for o in self.root.outputs)
        )
        return frozenset(first).union(out.edge for step in self.steps for out in step.outputs)


class _Fuser:
    """The units found so far."""

    def __init__(self) -> None:
        self.roots: list[Step | Relay] = []
        self.steps: list[list[Step]] = []
        self.after: list[set[int]] = []
        self.feeds: dict[int, set[int]] = {}
        self.relays: dict[tuple[int, frozenset[int]], int] = {}

    def start(self, root: Step | Relay, after: set[int]) -> int:
        self.roots.append(root)
        self.steps.append([])
        self.after.append(set(after))
        return len(self.roots) - 1

    def units_of(self, edges: tuple[int, ...]) -> set[int]:
        return {unit for edge in edges for unit in self.feeds.get(edge, ())}

    def before(self, units: set[int]) -> set[int]:
        """The units themselves and all that come before them."""
        found: set[int] = set()
        open_units = list(units)
        while open_units:
            unit = open_units.pop()
            if unit not in found:
                found.add(unit)
                open_units.extend(self.after[unit])
        return found

    def add_root(self, step: Step) -> None:
        unit = self.start(step, self.units_of(step.inputs))
        for output in step.outputs:
            self.feeds[output.edge] = {unit}

    def add_stateless(self, step: Step) -> None:
        units = self.units_of(step.inputs)
        if step.side_inputs:
            sides = self.units_of(tuple(side.edge for side in step.side_inputs))
            units = self.relayed(step, units, self.before(sides))
            for unit in units:
                self.after[unit] |= sides
        for unit in units:
            self.steps[unit].append(step)
        for output in step.outputs:
            self.feeds[output.edge] = set(units)

    def relayed(self, step: Step, units: set[int], needed: set[int]) -> set[int]:
        """The units that a step with side inputs can be in, with a relay for those it would have to wait for."""
        too_early = frozenset(units & needed)
        if not too_early:
            return units
        (edge,) = step.inputs
        relay = self.relays.get((edge, too_early))
        if relay is None or relay in needed:
            relay = self.start(Relay(edge, tuple(sorted(too_early))), set(too_early))
            self.relays[edge, too_early] = relay
        return (units - too_early) | {relay}

    def levels(self) -> list[int]:
        levels: dict[int, int] = {}
        for first in range(len(self.roots)):
            # An explicit stack: a pipeline of a thousand groupings in a row is deeper than Python's own.
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


def fuse(graph: Graph) -> tuple[Unit, ...]:
    """The units of a graph.

    Args:
        graph: An optimised graph.

    Returns:
        Units; `Unit.level` orders them.
    """
    fuser = _Fuser()
    for step in graph.steps:
        if isinstance(step.primitive, _STATELESS):
            fuser.add_stateless(step)
        else:
            fuser.add_root(step)
    levels = fuser.levels()
    return tuple(
        Unit(number, root, tuple(fuser.steps[number]), frozenset(fuser.after[number]), levels[number])
        for number, root in enumerate(fuser.roots)
    )
