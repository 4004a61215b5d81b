"""The plan of a streaming query as values: levels of groupings, and the stateless steps between them.

A grouping's level is the number of groupings in a row up to it. All groupings of one level are one stateful operator,
and so a query is a chain: sources, level 1, level 2 and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import Graph, Step, describe


@dataclass(frozen=True)
class Feed:
    """What a grouping's watermark depends on: a source, or a grouping of an earlier level, by its label."""

    label: str
    level: int


@dataclass(frozen=True, eq=False)
class Level:
    """What runs together.

    Attributes:
        number: 0 for the sources; otherwise that of its groupings.
        roots: The sources, or the groupings.
        steps: The stateless steps below them, in topological order.
        writes: The groupings of later levels that elements go to, each with the edge that they are read from.
        readers: For each output of a root, the levels whose groupings depend on its watermark.
    """

    number: int
    roots: tuple[Step, ...]
    steps: tuple[Step, ...]
    writes: tuple[tuple[int, Step], ...]
    readers: dict[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """A streaming query.

    Attributes:
        graph: The graph that it was made of.
        mode: ``streaming`` or ``micro_batch``.
        levels: Level 0 first.
        feeds: What each grouping's watermark depends on, by the grouping's label.
        level_of: The level of each grouping, by label.
    """

    graph: Graph
    mode: str
    levels: tuple[Level, ...]
    feeds: dict[str, tuple[Feed, ...]]
    level_of: dict[str, int]


def show_stream_plan(plan: StreamPlan) -> str:
    """The plan as text, a level a paragraph."""
    lines = [f"one query, mode {plan.mode}"]
    for level in plan.levels:
        lines.append(
            f"level {level.number}" + (": sources" if level.number == 0 else ": one stateful operator")
        )
        for root in level.roots:
            waits = ", ".join(feed.label for feed in plan.feeds.get(root.label, ()))
            lines.append(
                f"  {root.label} = {describe(root.primitive)}"
                + (f"  # watermark of {waits}" if waits else "")
            )
        lines += [f"    {step.label} = {describe(step.primitive)}" for step in level.steps]
        lines += [f"  -> level {plan.level_of[step.label]}: {step.label}" for _, step in level.writes]
    return "\n".join(lines)
