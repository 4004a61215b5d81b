"""A stream holds only a few large values at a time, however many elements a micro-batch has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.userstate import BagStateSpec
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.stream.shards import operators
from penstock_spark.stream.transport import outbox
from penstock_spark.worker import batch_sizer
from tests.runner.large_values import SIZE_BYTES, Content
from tests.shards.toy_query import Placed, ToyQuery

COUNT = 300
MOST_BYTES = outbox.BYTES_AT_ONCE + max(batch_sizer._FITTING_BYTES, 4 * operators._ENOUGH_BYTES)
ELEMENTS = [(name, 0) for name in range(COUNT)]
EACH = GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.DISCARDING


class Kept(beam.DoFn):
    """Gives all names at once, from the state of their key."""

    NAMES = BagStateSpec("names", VarIntCoder())

    def process(self, pair: Any, names: Any = beam.DoFn.StateParam(NAMES)) -> Iterator[int]:
        names.add(pair[1])
        if pair[1] == COUNT - 1:
            yield from names.read()


class AtTheEnd(beam.DoFn):
    """Gives contents at the end of a bundle."""

    def start_bundle(self) -> None:
        self.names: list[int] = []

    def process(self, name: int) -> None:
        self.names.append(name)

    def finish_bundle(self) -> Iterator[Any]:
        for name in self.names:
            yield GlobalWindows.windowed_value(Content(name))


def names(pipeline: Any, label: str = "Read") -> Any:
    source = beam.io.ReadFromText("/log/*", validate=False).as_stream(
        lambda line: line[1], BoundedDisorder(2)
    )
    name = beam.Map(lambda line: line[0]).with_output_types(int)
    return pipeline | label >> source | f"Names of {label}" >> name


def waiting(pipeline: Any) -> Any:
    side = names(pipeline, "Side") | beam.WindowInto(*EACH)
    return names(pipeline) | beam.Map(lambda name, side: Content(name), beam.pvalue.AsSingleton(side))


PROGRAMS = {
    "a Map": lambda p: names(p) | beam.Map(Content),
    "a Map behind a FlatMap": lambda p: names(p) | beam.FlatMap(lambda name: [name]) | beam.Map(Content),
    "a FlatMap": lambda p: names(p) | beam.FlatMap(lambda name: map(Content, [name])),
    "a Map behind a grouping": lambda p: (
        names(p) | beam.WindowInto(*EACH) | beam.GroupBy(lambda name: name) | beam.Keys() | beam.Map(Content)
    ),
    "a Map behind a step with state": lambda p: (
        names(p) | beam.Map(lambda name: ("all", name)) | beam.ParDo(Kept()) | beam.Map(Content)
    ),
    "the end of a bundle": lambda p: names(p) | beam.ParDo(AtTheEnd()),
    "a step that waits for a side input": waiting,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_only_a_few_large_values_exist_at_a_time(program: str) -> None:
    pipeline = beam.Pipeline()
    _ = (
        PROGRAMS[program](pipeline)
        | "Same" >> beam.Map(lambda own: own)
        | "Names" >> beam.Map(lambda own: own.name)
        | WriteToMemory([])
    )
    query = ToyQuery(pipeline, shards=1)
    [sink] = [step.label for step in query.plan.sinks]
    Content.most = 0
    found = query.batch({"Read": [ELEMENTS]})[sink]
    if program == "a step that waits for a side input":
        found += query.batch({"Side": [[(1, 0)]]})[sink]
    assert sorted(found) == list(range(COUNT))
    assert Content.most * SIZE_BYTES <= 3 * batch_sizer._FITTING_BYTES


def noted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of an outbox each time when its content was taken."""
    taken: list[int] = []
    take = outbox.Outbox.take

    def noting(outbox: outbox.Outbox) -> Any:
        taken.append(outbox.held_bytes)
        return take(outbox)

    monkeypatch.setattr(outbox.Outbox, "take", noting)
    return taken


def test_a_task_of_a_source_hands_large_values_on_before_it_has_read_everything(monkeypatch) -> None:
    pipeline = beam.Pipeline()
    contents = names(pipeline) | beam.Map(lambda name: (name, bytes(SIZE_BYTES)))
    _ = contents | "Length" >> beam.MapTuple(lambda name, content: name) | WriteToMemory([])
    _ = contents | beam.WindowInto(*EACH) | beam.GroupByKey() | beam.Keys() | "Out" >> WriteToMemory([])
    query = ToyQuery(pipeline)
    taken = noted(monkeypatch)
    found = query.batch({"Read": [[Placed(("a", 0), ELEMENTS)]]})
    assert [sorted(values) for values in found.values()] == [list(range(COUNT))] * 2
    assert max(taken) <= MOST_BYTES
    assert len(taken) >= COUNT * SIZE_BYTES // MOST_BYTES


@pytest.mark.parametrize("again", [False, True], ids=["into a sink", "into another grouping"])
def test_a_window_that_ends_for_many_keys_hands_on_some_at_a_time(again, monkeypatch) -> None:
    pipeline = beam.Pipeline()
    pairs = names(pipeline) | beam.Map(lambda name: (name, bytes(SIZE_BYTES)))
    groups = pairs | beam.WindowInto(FixedWindows(10)) | beam.GroupByKey()
    if again:
        groups = groups | "Again" >> beam.GroupByKey() | beam.FlatMap(lambda group: [(group[0], *group[1])])
    _ = groups | "Out" >> beam.MapTuple(lambda name, contents: (name, *contents)) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=1)
    [sink] = [step.label for step in query.plan.sinks]
    for first in range(0, COUNT, 50):
        query.batch({"Read": [ELEMENTS[first : first + 50]]})
    taken = noted(monkeypatch)
    found = query.batch({"Read": [[(COUNT, 100)]]})[sink]
    assert sorted(name for name, *_ in found) == list(range(COUNT))
    assert max(taken) <= MOST_BYTES
    assert len(taken) >= COUNT * SIZE_BYTES // MOST_BYTES
