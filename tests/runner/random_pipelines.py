"""Pipelines made at random, and what their graphs mean, step by step and without any of the compiler."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import penstock as beam
from penstock import graph
from penstock.pvalue import AsIter, TaggedOutput
from penstock.transforms.core import CombineValuesDoFn
from penstock.transforms.window import TimestampedValue
from penstock.utils.windowed_value import WindowedValue

_COUNT = 7
# Side inputs are what makes plans hard.
_KINDS = (
    "read",
    "map",
    "map",
    "outputs",
    *["side"] * 3,
    "flatten",
    "group",
    "lift",
    "native",
    "combine",
    "shuffle",
)
_WRAPPERS = (TaggedOutput, TimestampedValue, WindowedValue)


def spread_over(x: int, factor: int, *sides: Any) -> Iterator[Any]:
    """A step with several outputs, and with side inputs that change what it gives."""
    y = (x * factor + sum(sum(side) for side in sides)) % 101
    yield y
    if y % 2:
        yield TaggedOutput("odd", y + 1)
    if y % 3 == 0:
        yield TaggedOutput("third", y + 2)


def keyed(x: int) -> tuple[int, int]:
    return x % 5, x


def summed(pair: tuple[int, Any]) -> int:
    return (pair[0] + sum(pair[1])) % 101


def added(pair: tuple[int, int]) -> int:
    return sum(pair) % 101


def random_pipeline(seed: int, size: int = 14) -> tuple[beam.Pipeline, list[beam.PCollection[Any]]]:
    """A pipeline of whole numbers, and its PCollections; the same for the same seed."""
    at = random.Random(seed)
    pipeline = beam.Pipeline()
    made = [pipeline | "Read" >> beam.Create(range(_COUNT))]
    for number in range(size):
        source = at.choice(made[-4:] if at.random() < 0.6 else made)
        label = f"S{number}"
        match at.choice(_KINDS):
            case "read":
                made.append(pipeline | label >> beam.Create([number, number + 1]))
            case "map":
                made.append(source | label >> beam.Map(lambda x, n: (x + n) % 101, number))
            case "outputs":
                made.extend(
                    source | label >> beam.FlatMap(spread_over, 3).with_outputs("odd", "third", main="all")
                )
            case "side":
                sides = [AsIter(at.choice(made)) for _ in range(at.choice([1, 1, 2]))]
                made.extend(
                    source | label >> beam.FlatMap(spread_over, 1, *sides).with_outputs("odd", main="all")
                )
            case "flatten":
                made.append([at.choice(made) for _ in range(at.choice([2, 3]))] | label >> beam.Flatten())
            case "group":
                pairs = source | f"{label}/Key" >> beam.Map(keyed)
                made.append(
                    pairs | f"{label}/Group" >> beam.GroupByKey() | f"{label}/Sum" >> beam.Map(summed)
                )
            case "lift":
                groups = source | f"{label}/Key" >> beam.Map(keyed) | f"{label}/Group" >> beam.GroupByKey()
                made.append(
                    groups | f"{label}/Sum" >> beam.CombineValues(sum) | f"{label}/Add" >> beam.Map(added)
                )
            case "native":
                pairs = source | f"{label}/Spread" >> beam.Reshuffle() | f"{label}/Key" >> beam.Map(keyed)
                made.append(
                    pairs | f"{label}/Sum" >> beam.CombinePerKey(sum) | f"{label}/Add" >> beam.Map(added)
                )
            case "combine":
                made.append(
                    source
                    | label >> beam.CombineGlobally(sum)
                    | f"{label}/Mod" >> beam.Map(lambda x: x % 101)
                )
            case "shuffle":
                made.append(source | label >> beam.Reshuffle())
    return pipeline, made


def meaning(found: graph.Graph) -> dict[int, list[Any]]:
    """The elements of each edge of a graph in the global window."""
    edges: dict[int, list[Any]] = {}
    for step in found.steps:
        elements = [element for edge in step.inputs for element in edges[edge]]
        outputs: dict[str | None, list[Any]] = {output.tag: [] for output in step.outputs}
        for value in _results(step, elements, [edges[side.edge] for side in step.side_inputs]):
            tag = value.tag if isinstance(value, TaggedOutput) else None
            outputs.setdefault(tag, []).append(value.value if isinstance(value, _WRAPPERS) else value)
        edges |= {output.edge: outputs[output.tag] for output in step.outputs}
    return edges


def _results(step: graph.Step, elements: list[Any], sides: list[list[Any]]) -> list[Any]:
    match step.primitive:
        case graph.Read(source):
            return list(source.values)
        case graph.ParDo(CombineValuesDoFn() as dofn):
            return [(key, dofn.combinefn.apply(values)) for key, values in elements]
        case graph.ParDo(dofn, args):
            views = [sides[arg.index] if isinstance(arg, graph.SideInputSlot) else arg for arg in args]
            return [each for element in elements for each in dofn.process(element, *views) or ()]
        case graph.GroupByKey() | graph.CombinePerKey() as grouping:
            groups: dict[Any, list[Any]] = {}
            for key, value in elements:
                groups.setdefault(key, []).append(value)
            combine = grouping.fn.apply if isinstance(grouping, graph.CombinePerKey) else list
            return [(key, combine(values)) for key, values in groups.items()]
        case graph.Write():
            return []
        case _:
            return elements
