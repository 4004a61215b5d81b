"""Reads Spark's plan, as text, of a streaming DataFrame: its sources, and its operators with state."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NODE = re.compile(r"^[\s:|+-]*(~?)((\w+).*)", re.MULTILINE)
"""The name of a node of a plan; Spark marks those that are parts of a stream with a tilde, except some sources."""

_WITH_STATE = frozenset(
    {
        *("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit"),
        *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"),
        *("TransformWithState", "TransformWithStateInPySpark", "TransformWithStateInPandas"),
    }
)
"""The operators that keep state; so does a join of two streams, which has two sources."""


@dataclass(frozen=True)
class StreamingParts:
    """The parts of a streaming DataFrame that Spark's checkpoint has a place for.

    Attributes:
        sources: The text of each of its sources; two readings of one DataFrame have the same.
        stateful: The names of its operators with state.
    """

    sources: tuple[str, ...]
    stateful: tuple[str, ...]


def parts_of(plan: str) -> StreamingParts:
    """Returns the parts of a streaming DataFrame, from the text of its analysed plan.

    >>> plan = '''~Project [value#1L]
    ... +- ~Deduplicate [value#1L]
    ...    :- StreamingRelation FileSource[/in], [value#1L]
    ...    +- Aggregate [id#9L], [id#9L]'''
    >>> parts_of(plan)
    StreamingParts(sources=('StreamingRelation FileSource[/in], [value#1L]',), stateful=('Deduplicate',))
    """
    nodes = [found.groups() for found in _NODE.finditer(plan)]
    return StreamingParts(
        tuple(text for _, text, name in nodes if name.startswith("Streaming")),
        tuple(dict.fromkeys(name for is_streaming, _, name in nodes if is_streaming and name in _WITH_STATE)),
    )
