"""Groupings of timed pairs, and everything about the panes they emit, with their retractions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.changelog import Changelog
from penstock.transforms.window import TimestampedValue
from penstock.utils.timestamp import Timestamp
from tests.runner.plain_runner import collect


def exact(key: Any) -> Any:
    """A key that is equal to another exactly if a grouping takes the two for one."""
    return tuple(map(exact, key)) if isinstance(key, tuple) else (type(key).__name__, key)


Out = tuple[Any, int, Any, Any]
"""A value, microseconds, a window, and a pane's info."""


def by_key(panes: Iterable[tuple[Any, Out]]) -> dict[Any, list[Out]]:
    found: dict[Any, list[Out]] = {}
    for key, pane in panes:
        found.setdefault(exact(key), []).append(pane)
    return found


class See(beam.DoFn):
    """Shows everything about a pane but its kind, which a `Changelog` has put into the element."""

    def process(self, element, seen=beam.DoFn.WindowedValueParam):
        kind, (key, value) = element
        pane = seen.pane_info
        numbers = (pane.is_first, pane.is_last, pane.timing, pane.index, pane.nonspeculative_index, kind)
        yield key, (value, seen.timestamp.micros, seen.windows[0], type(pane)(*numbers))


def new_pipeline() -> beam.Pipeline:
    return beam.Pipeline(options=PipelineOptions(allow_unsafe_triggers=True))


def timed(pipeline: beam.Pipeline, elements: list[Any]) -> beam.PCollection[Any]:
    values = [
        TimestampedValue((key, value), Timestamp.from_micros(micros)) for key, value, micros in elements
    ]
    # A step of user code between makes batches of the sizes that the limits give.
    return pipeline | beam.Create(values) | "Same" >> beam.FlatMap(lambda pair: [pair])


def grouping(combine: Any) -> beam.PTransform[Any, Any]:
    return beam.GroupByKey() if combine is None else beam.CombinePerKey(combine)


def changes(pcoll: beam.PCollection[Any], label: str = "Collect") -> list[Any]:
    return collect(pcoll | f"{label} changes" >> Changelog() | f"{label} see" >> beam.ParDo(See()), label)
