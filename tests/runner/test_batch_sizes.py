"""A step that makes large values makes only a few at a time, whatever stands before and behind it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as beam
from penstock.transforms.window import TimestampedValue
from penstock_spark.worker import batch_sizer
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.batch_sizer import BatchSizer, Scale, WeighedConsumer
from penstock_spark.worker.sizes import bytes_of, estimated_bytes
from tests.runner.large_values import SIZE_BYTES, Content
from tests.runner.plain_runner import Settings, collect, run_plain

COUNT = 300


class Contents(beam.DoFn):
    def process(self, count: int) -> Iterator[Any]:
        yield from map(Content, range(count))


class TimedContents(beam.DoFn):
    def process(self, count: int) -> Iterator[Any]:
        for name in range(count):
            yield TimestampedValue(Content(name), name)


class TaggedContents(beam.DoFn):
    def process(self, name: int) -> Iterator[Any]:
        yield beam.TaggedOutput("odd" if name % 2 else "even", Content(name))


def names(pipeline: beam.Pipeline) -> Any:
    return pipeline | beam.Create(range(COUNT))


def timed(pipeline: beam.Pipeline) -> Any:
    return pipeline | beam.Create([TimestampedValue(name, name) for name in range(COUNT)]).with_output_types(
        int
    )


def both(tagged: Any) -> Any:
    return (tagged.odd, tagged.even) | beam.Flatten()


PROGRAMS = {
    "a Map": lambda p: names(p) | beam.Map(Content),
    "a Map of elements with their own times": lambda p: timed(p) | beam.Map(Content),
    "a Map behind a FlatMap": lambda p: p | beam.Create([COUNT]) | beam.FlatMap(range) | beam.Map(Content),
    "a Map behind a grouping": lambda p: (
        names(p) | beam.GroupBy(lambda name: name) | beam.Keys() | beam.Map(Content)
    ),
    "a Map behind a Reshuffle": lambda p: names(p) | beam.Reshuffle() | beam.Map(Content),
    "a DoFn with many outputs": lambda p: p | beam.Create([COUNT]) | beam.ParDo(Contents()),
    "a DoFn with many outputs that have times": lambda p: (
        p | beam.Create([COUNT]) | beam.ParDo(TimedContents())
    ),
    "a DoFn with one output each": lambda p: names(p) | beam.FlatMap(lambda name: [Content(name)]),
    "a DoFn with tagged outputs": lambda p: both(
        names(p) | beam.ParDo(TaggedContents()).with_outputs("odd", "even")
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_only_a_few_large_values_exist_at_a_time(program: str) -> None:
    pipeline = beam.Pipeline()
    contents = PROGRAMS[program](pipeline)
    found = collect(
        contents | "Same" >> beam.Map(lambda own: own) | "Names" >> beam.Map(lambda own: own.name)
    )
    Content.most = 0
    run_plain(pipeline, Settings(partitions=1, inline_values=COUNT))
    assert sorted(found) == list(range(COUNT))
    # The values of a batch, and the values of the next one while the last steps still hold some.
    assert Content.most * SIZE_BYTES <= 3 * batch_sizer._FITTING_BYTES


class ManyTimed(beam.DoFn):
    def process(self, number: int) -> Iterator[Any]:
        for place in range(100):
            yield TimestampedValue(place, number)


class Measured(beam.DoFn):
    sizes: ClassVar[list[int]] = []

    @beam.DoFn.yields_elements
    def process_batch(self, batch: list[int]) -> Iterator[int]:
        self.sizes.append(len(batch))
        yield from batch


def test_a_dofn_with_many_outputs_soon_sends_many_at_a_time() -> None:
    pipeline = beam.Pipeline()
    outputs = pipeline | beam.Create(range(100)) | beam.ParDo(ManyTimed()).with_output_types(int)
    found = collect(outputs | beam.WithTimestamps(lambda value: 0) | beam.ParDo(Measured()))
    run_plain(pipeline, Settings(partitions=1, inline_values=100))
    assert len(found) == 10_000
    assert max(Measured.sizes) > 2_000


def test_small_values_soon_go_in_large_batches() -> None:
    sizes: list[int] = []
    scale = Scale()

    class Reader:
        def push(self, batch: Batch) -> Iterator[Any]:
            sizes.append(len(batch.values))
            yield from ()

    sizer, reader = BatchSizer(scale, 1_000), WeighedConsumer(Reader(), scale)

    def push(values: list[Any]) -> None:
        for part in sizer.parts(Batch(values)):
            list(reader.push(part))

    push(list(range(3_000)))
    assert sizes == [8, 32, 128, 512, 1_000, 1_000, 320]
    # Large values make the next batch smaller at once, and small ones make it grow again.
    push([bytes(1 << 20)] * 1_000)
    assert sizer.elements == 16
    push(list(range(16)))
    assert sizer.elements == 64


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    content: bytes


class Pair(NamedTuple):
    name: str
    content: bytes


class Refuses:
    """An object that computes what is asked of it, and fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __sizeof__(self) -> int:
        raise RuntimeError("no size")

    def __len__(self) -> int:
        raise RuntimeError("no length")


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000,
        b"x" * 10_000,
        bytearray(10_000),
        memoryview(bytes(10_000)),
        ("name", b"x" * 10_000),
        {"name": {"content": b"x" * 10_000}},
        [b"x" * 100] * 100,
        Slotted("name", b"x" * 10_000),
        Pair("name", b"x" * 10_000),
        beam.Row(name="name", content=b"x" * 10_000),
        np.zeros(10_000, np.int8),
        pd.DataFrame({"number": np.zeros(10_000, np.int8)}),
        pd.Series(np.zeros(10_000, np.int8)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_content_of_a_value_counts(value: Any) -> None:
    assert 10_000 <= bytes_of(value) <= 12_000
    assert 10 * 10_000 <= estimated_bytes([value] * 10) <= 10 * 12_000


def test_an_object_that_gives_no_answer_weighs_little() -> None:
    assert bytes_of(Refuses()) < 100


def test_a_value_that_contains_itself_is_weighed() -> None:
    endless: list[Any] = [b"x" * 1_000]
    endless.append(endless)
    assert 1_000 <= bytes_of(endless) < 10_000


@given(st.integers(), st.integers(0, 500))
def test_equal_values_weigh_the_same(seed: int, count: int) -> None:
    def made() -> list[str]:
        return ["ä" * random.Random(seed + number).randrange(50) for number in range(count)]

    values = made()
    # Python keeps the bytes of a string with it once a caller has asked for them.
    [value.encode() for value in values]
    assert sum(map(sys.getsizeof, values)) >= sum(map(sys.getsizeof, made()))
    assert estimated_bytes(values) == estimated_bytes(made())
