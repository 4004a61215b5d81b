"""A pipeline with two groupings in a row, of which each test changes one thing, and its signature."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import penstock as beam
from penstock.graph import DriverList
from penstock.io.sink_transforms import SinkTransform
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import CountCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import FixedWindows
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.compiler import optimise
from penstock_spark.passes.levels import levels

ACCUMULATING = AccumulationMode.ACCUMULATING
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
RECORDED = TestStream().add_elements([("ann", 1)]).advance_watermark_to_infinity()


def lines(**arguments: Any) -> Any:
    return beam.io.ReadFromText("/logs/*.txt", validate=False).as_stream(**arguments)


def into(*arguments: Any, **keywords: Any) -> Any:
    return beam.WindowInto(*arguments, **keywords)


MINUTES = into(FixedWindows(60), AfterWatermark(early=AfterCount(1)), ACCUMULATING)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with two groupings in a row; each test changes one thing of it."""

    source: Any = RECORDED
    source_label: str = "Clicks"
    windows: Any = MINUTES
    combine: Any = field(default_factory=CountCombineFn)
    sum_label: str = "Sum"
    top: bool = True
    step: Callable[[Any], Any] = str
    step_label: str = "Step"
    more_sources: tuple[str, ...] = ("Names",)
    more: Callable[[Any, Any], Any] = lambda clicks, sums: None
    mode: str = "streaming"
    shards: int = 4

    def signature(self) -> dict[str, Any]:
        pipeline = beam.Pipeline()
        for label in self.more_sources:
            _ = pipeline | label >> beam.Create([1]) | f"Show{label}" >> beam.Map(print)
        read = pipeline | self.source_label >> self.source
        clicks = read | "Key" >> beam.Map(lambda click: ("ann", click)) | "Windows" >> self.windows
        sums = clicks | self.sum_label >> beam.CombinePerKey(self.combine)
        again = sums | self.step_label >> beam.Map(self.step) | "Pair" >> beam.Map(lambda one: (one, one))
        last = again | "Top" >> beam.GroupByKey() if self.top else again
        _ = last | "Show" >> beam.Map(print)
        self.more(clicks, sums)
        plan = levels(optimise(pipeline.to_graph()), self.mode)
        return json.loads(json.dumps(signature_of(plan, self.shards)))  # type: ignore[no-any-return]


BASE = Pipeline()


def written(label: str) -> Callable[[Any, Any], Any]:
    return lambda clicks, sums: sums | label >> SinkTransform(DriverList([]))


def grouped(label: str, deep: bool = False) -> Callable[[Any, Any], Any]:
    def build(clicks: Any, sums: Any) -> None:
        _ = (sums if deep else clicks) | label >> beam.GroupByKey() | f"Show{label}" >> beam.Map(print)

    return build


BASE_WINDOWS = {"windowfn": FixedWindows(60), "trigger": AfterCount(3), "accumulation_mode": ACCUMULATING}


def windowed(**changes: Any) -> Pipeline:
    arguments = {**BASE_WINDOWS, **changes}
    arguments["trigger"] = Repeatedly(arguments["trigger"])
    return replace(BASE, windows=into(arguments.pop("windowfn"), **arguments))
