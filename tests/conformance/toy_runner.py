"""A runner without Spark: the real plan and levels, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from penstock.metrics.metric import MetricResults
from penstock.runners.runner import PipelineResult, PipelineState
from penstock.testing.test_stream import Event, MicroBatchEvent
from penstock_conformance.branches import GROUPING
from penstock_conformance.judging import RoundOutput
from penstock_conformance.pipelines import Case, pipeline_of
from tests.shards.toy_query import ToyQuery


class ToyResult(PipelineResult):
    """A run that has ended.

    Args:
        query: The query that was run.
    """

    def __init__(self, query: ToyQuery) -> None:
        super().__init__(PipelineState.DONE)
        self._query = query

    def metrics(self) -> MetricResults:
        return MetricResults(self._query.snapshot)


class ToyRunner:
    """Runs a pipeline of TestStreams whose sinks are lists."""

    def run_pipeline(self, pipeline: Any, options: Any) -> ToyResult:
        query = ToyQuery(pipeline, options.get_all_options()["mode"])
        lists = {sink.label: sink.primitive.sink.into for sink in query.plan.sinks}
        for _, given in batches_of(query):
            for label, elements in given.items():
                lists[label] += elements
        return ToyResult(query)


def batches_of(query: ToyQuery) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """Each micro-batch: its last step, and what goes to each sink."""
    beginnings = (*query.timeline.firsts[1:], len(query.timeline.clocks_micros))
    for beginning_of_next in beginnings:
        yield beginning_of_next - 1, query.batch()


def taken(case: Case, steps: int) -> tuple[list[RoundOutput], MetricResults]:
    """A case alone, in micro-batches as small as they may be; and the metrics.

    Args:
        case: The case.
        steps: The number of its steps, with the end.
    """
    smallest = 1 if case.mode == "streaming" else None
    query = ToyQuery(pipeline_of([case]), case.mode, shards=1, events_per_batch=smallest)
    found = []
    for last, given in batches_of(query):
        [seen] = given.values()
        watermarks = query.watermarks.get(f"{case.label}/{GROUPING}")
        clock_micros = query.timeline.clocks_micros[last]
        found.append(RoundOutput(case.tape.complete(last, steps), seen, clock_micros, watermarks))
    return found, MetricResults(query.snapshot)


def cut_anywhere(events: tuple[Event, ...], random: Random) -> tuple[Event, ...]:
    """Events with ends of micro-batches in between, which in the mode ``streaming`` change nothing."""
    cut: list[Event] = []
    for event in events:
        cut += [MicroBatchEvent()] * random.choice((0, 0, 1, 2)) + [event]
    return tuple(cut)
