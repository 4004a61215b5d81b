"""The parts of a drawing of steps: boxes with their text, groups for composites, and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from penstock.diagrams.layered import Item
from penstock.diagrams.ranks import Link, find_circles
from penstock.diagrams.steps import StepView

Notes = Mapping[str, Sequence[str]]
"""Lines about steps, by their labels."""

NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True)
class Box:
    """A step as a box.

    Attributes:
        label: The full label.
        name: The label within its group.
        lines: What is written below the name.
        is_end: True if it is not a step from element to element: a source, a grouping, a sink, a composite.
    """

    label: str
    name: str
    lines: tuple[str, ...]
    is_end: bool


@dataclass(frozen=True)
class Group:
    """The steps of a composite, with a frame around them.

    Attributes:
        path: The full label of the composite, and a slash.
        name: The label within the group around it.
        members: The boxes and groups in it.
    """

    path: str
    name: str
    members: tuple[Box | Group, ...]


_ELEMENTWISE = frozenset(("ParDo", "Flatten", "AssignWindows", "Reshuffle"))


def members_of(steps: Sequence[StepView], notes: Notes | None = None) -> tuple[Box | Group, ...]:
    """Returns the boxes of steps, in groups.

    A composite is a group if it has two steps or more, unless elements leave it, and come back through other steps.

    Args:
        steps: The steps.
        notes: The lines below the names; by default the kinds and the windowing.

    >>> pair, total = StepView("Top/Pair", "ParDo"), StepView("Top/Sum", "CombinePerKey", ("Top/Pair",))
    >>> [group] = members_of([pair, total])
    >>> group.name, [(box.name, box.lines) for box in group.members]
    ('Top', [('Pair', ('ParDo',)), ('Sum', ('CombinePerKey',))])
    """
    lines = {step.label: _kind(step) for step in steps} if notes is None else notes
    boxes = {step.label: step for step in steps}
    open_paths = _open_paths(steps)

    def members(labels: Sequence[str], path: str, shown: str) -> Iterator[Box | Group]:
        inside: dict[str, list[str]] = {}
        for label in labels:
            head, slash, _ = label[len(path) :].partition("/")
            inside.setdefault(f"{path}{head}{slash}", []).append(label)
        for key, own in inside.items():
            if not key.endswith("/"):
                step = boxes[key]
                is_end = step.kind not in _ELEMENTWISE
                yield Box(key, key[len(shown) :], tuple(lines.get(key, ())), is_end)
            elif len(own) == 1 or key in open_paths:
                yield from members(own, key, shown)
            else:
                yield Group(key, key[len(shown) : -1], tuple(members(own, key, key)))

    return tuple(members([step.label for step in steps], "", ""))


def _kind(step: StepView) -> tuple[str, ...]:
    return (f"{step.kind}, {step.windowing}" if step.windowing else step.kind,)


def _open_paths(steps: Sequence[StepView]) -> set[str]:
    """The composites that cannot have a frame: elements leave them, and come back."""
    pairs = [(label, step.label) for step in steps for label in (*step.inputs, *step.side_inputs)]
    open_paths: set[str] = set()
    while True:
        circles = set()
        for depth in range(max((step.label.count("/") for step in steps), default=0)):
            ends = [
                (_cut(source, depth, open_paths), _cut(target, depth, open_paths)) for source, target in pairs
            ]
            circles |= {path for path in find_circles(ends) if path.endswith("/")} - open_paths
        if not circles:
            return open_paths
        open_paths |= circles


def _cut(label: str, depth: int, open_paths: set[str]) -> str:
    """The closed composite of a depth that contains a step, with a slash; the label itself if all are open."""
    parts = label.split("/")
    for length in range(1, min(depth + 1, len(parts) - 1) + 1):
        path = "/".join(parts[:length]) + "/"
        if length == depth + 1 and path not in open_paths:
            return path
    return label


def links_of(steps: Sequence[StepView]) -> list[Link]:
    """Returns the links between steps; steps that are not there have none.

    >>> links_of([StepView("a", "Read"), StepView("b", "Flatten", ("a", "a"), ("gone",))])
    [Link(source='a', target='b', is_side=False, number=0), Link(source='a', target='b', is_side=False, number=1)]
    """
    known = {step.label for step in steps}
    links = []
    for step in steps:
        for labels, is_side in ((step.inputs, False), (step.side_inputs, True)):
            seen: Counter[str] = Counter()
            for label in labels:
                if label in known:
                    links.append(Link(label, step.label, is_side, seen[label]))
                    seen[label] += 1
    return links


def items_of(
    members: Sequence[Box | Group], size: Callable[[Box | Group], tuple[int, int]]
) -> tuple[Item, ...]:
    """Returns what is to be placed, with the length of each box across and along that a writer needs."""
    return tuple(
        Item(member.path, *size(member), items_of(member.members, size))
        if isinstance(member, Group)
        else Item(member.label, *size(member))
        for member in members
    )


def walk_boxes(members: Sequence[Box | Group]) -> Iterator[Box]:
    """Yields all boxes."""
    for member in members:
        if isinstance(member, Group):
            yield from walk_boxes(member.members)
        else:
            yield member


def walk_groups(members: Sequence[Box | Group]) -> Iterator[Group]:
    """Yields all groups, outer ones first."""
    for member in members:
        if isinstance(member, Group):
            yield member
            yield from walk_groups(member.members)
