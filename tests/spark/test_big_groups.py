"""Groups that are far larger than a worker may become, and partitions of very many keys.

A worker notes its memory when a step is set up, before it reads anything, and the system keeps its peak from then
on; how much that grew comes back as a metric. The number of values can be raised with the environment variable
``PENSTOCK_BIG_GROUP_VALUES``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.metrics.metric import MetricResults, Metrics, MetricsFilter
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to

_STATUS, _PEAK_RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"

pytestmark = pytest.mark.skipif(not _PEAK_RESET.exists(), reason="the peak of a process is read from Linux")

VALUES = int(os.environ.get("PENSTOCK_BIG_GROUP_VALUES", 1_000_000))
KEYS = 1_000_000
GROWTH_BYTES_MAX = 90_000_000
_VALUE_CHARACTERS = 100
_SLICES = 100


def _kilobytes(name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1])


class Memory:
    """How far the peak of this process rose above what it held when this was made."""

    def __init__(self) -> None:
        # The worker may have run other tests: what they have freed must not be there to be used again.
        gc.collect()
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        _PEAK_RESET.write_text(_RESET_PEAK)
        self._start = _kilobytes("VmRSS")

    def growth_bytes(self) -> int:
        return 1_024 * (_kilobytes("VmHWM") - self._start)


class Emit(beam.DoFn):
    """Makes the values of a slice; notes how much memory the worker needed to write them to the shuffle."""

    growth = Metrics.distribution("memory", "writing")

    def __init__(self, count: int) -> None:
        self.count = count

    def setup(self) -> None:
        self.memory = Memory()

    def process(self, number: int) -> Iterator[tuple[str, str]]:
        for value in range(number, self.count, _SLICES):
            yield "one", f"{value:0{_VALUE_CHARACTERS}d}"

    def finish_bundle(self) -> None:
        self.growth.update(self.memory.growth_bytes())


class Consume(beam.DoFn):
    """Sums the values of a group, then counts them, then holds them all, and notes the memory of each."""

    reading = Metrics.distribution("memory", "reading")
    holding = Metrics.distribution("memory", "holding")

    def setup(self) -> None:
        self.memory = Memory()

    def process(self, group: tuple[str, Iterable[str]]) -> Iterator[tuple[str, int, int]]:
        key, values = group
        total = sum(map(int, values))
        count = sum(1 for _ in values)
        self.reading.update(self.memory.growth_bytes())
        held = list(values)
        self.holding.update(self.memory.growth_bytes())
        yield key, total, count + len(held)


def most(result: Any, name: str) -> int:
    """The most that any worker's memory grew by, in bytes."""
    found = result.metrics().query(MetricsFilter().with_name(name))[MetricResults.DISTRIBUTIONS]
    grown = max(metric.committed.max for metric in found)
    print(f"{name}: {grown:,} bytes")
    return int(grown)


def group_and_consume(count: int) -> Any:
    """The result of a pipeline that groups so many values under one key."""
    with TestPipeline(shuffle_partitions=2) as pipeline:
        values = pipeline | beam.Create(range(_SLICES)) | beam.ParDo(Emit(count))
        consumed = values | beam.GroupByKey() | beam.ParDo(Consume())
        assert_that(consumed, equal_to([("one", count * (count - 1) // 2, 2 * count)]))
    return pipeline.result


def test_a_worker_reads_a_group_twice_that_is_far_larger_than_its_memory_grows() -> None:
    # Libraries that workers load at the first batch are not the group's.
    group_and_consume(2 * _SLICES)
    result = group_and_consume(VALUES)
    assert most(result, "writing") < GROWTH_BYTES_MAX
    assert most(result, "reading") < GROWTH_BYTES_MAX
    # The measure does see values that are held.
    assert most(result, "holding") > VALUES * _VALUE_CHARACTERS


class EmitKeys(beam.DoFn):
    """Makes the keys of a slice."""

    def process(self, number: int) -> Iterator[tuple[int, int]]:
        for key in range(number, KEYS, _SLICES):
            yield key, 1


class Tally(beam.DoFn):
    """Counts keys and sums what they are and what they have."""

    reading = Metrics.distribution("memory", "reading")
    counters = tuple(Metrics.counter("tally", name) for name in ("count", "keys", "values"))

    def setup(self) -> None:
        self.memory = Memory()

    def start_bundle(self) -> None:
        self.sums = [0, 0, 0]

    def process(self, total: tuple[int, int]) -> None:
        self.sums = [held + more for held, more in zip(self.sums, (1, *total), strict=True)]

    def finish_bundle(self) -> None:
        for counter, held in zip(self.counters, self.sums, strict=True):
            counter.inc(held)
        self.reading.update(self.memory.growth_bytes())


@pytest.mark.parametrize(
    "summed", [beam.CombinePerKey(sum), beam.GroupByKey() | beam.MapTuple(lambda key, ones: (key, sum(ones)))]
)
def test_a_partition_may_have_a_million_keys(summed: Any) -> None:
    with TestPipeline(shuffle_partitions=1) as pipeline:
        pairs = pipeline | beam.Create(range(_SLICES)) | beam.ParDo(EmitKeys())
        _ = pairs | "Sum" >> summed | beam.ParDo(Tally())
    counted = pipeline.result.metrics().query(MetricsFilter().with_namespace("tally"))[MetricResults.COUNTERS]
    assert {metric.key.metric.name: metric.committed for metric in counted} == {
        "count": KEYS,
        "keys": KEYS * (KEYS - 1) // 2,
        "values": KEYS,
    }
    assert most(pipeline.result, "reading") < GROWTH_BYTES_MAX
