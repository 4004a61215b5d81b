"""With one shard, all levels of a stream are in one stateful operator, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock_spark.checkpoints.contract.compare import compare
from penstock_spark.checkpoints.contract.operators import levels_of_operators
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.resharding import must_rewrite
from penstock_spark.passes.one_operator import one_operator
from penstock_spark.reports.metrics import GroupingReport, Report
from penstock_spark.runner import SparkRunner
from penstock_spark.stream import tasks
from penstock_spark.worker.batch import decode_page
from tests.shards.toy_query import ToyQuery
from tests.simulation.simulated_spark import Pages


class _Seen(beam.DoFn):
    COUNT = beam.transforms.userstate.CombiningValueStateSpec("count", sum)

    def process(self, pair, count=beam.DoFn.StateParam(COUNT)):
        count.add(1)
        yield f"{pair[0]} {pair[1]} number {count.read()}"


def chain(**options: Any) -> beam.Pipeline:
    """Three levels: sums, a side input of their maxima that waits, and a DoFn with state."""
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=streaming"], **options))
    events = TestStream()
    for second in range(0, 40, 3):
        events = events.add_elements([TimestampedValue((f"k{second % 4}", second), second)])
        events = events.advance_watermark_to(second)
    panes = AfterWatermark(early=AfterCount(1))
    windows = beam.WindowInto(FixedWindows(10), panes, accumulation_mode=AccumulationMode.DISCARDING)
    sums = pipeline | events.advance_watermark_to_infinity() | windows | "Sums" >> beam.CombinePerKey(sum)
    most = sums | beam.Values() | "Most" >> beam.CombineGlobally(max).without_defaults()
    shares = sums | "Shares" >> beam.Map(
        lambda pair, most: (pair[0], (pair[1], most)), beam.pvalue.AsIter(most)
    )
    _ = shares | beam.Map(lambda pair: (pair[0], str(pair[1][0]))) | "Seen" >> beam.ParDo(_Seen()) | _write()
    return pipeline


def _write() -> Any:
    return "Write" >> WriteToMemory([])


class _Told:
    """What tasks report."""

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}

    def add(self, told: dict[Any, Any]) -> None:
        self.found |= told


def plan_of(pipeline: beam.Pipeline, *flags: str) -> Any:
    settings = PipelineOptions(["--mode=streaming", *flags]).view_as(SparkOptions)
    return SparkRunner().compiled(pipeline.to_graph(), settings).plan


def test_only_one_shard_puts_all_levels_into_one_operator() -> None:
    def operators(*flags: str) -> list[int]:
        return [len(levels) for levels in plan_of(chain(), *flags).operators]

    alone = operators()
    assert len(alone) > 2
    assert set(alone) == {1}
    assert operators("--shuffle_partitions=2") == alone
    assert operators("--shuffle_partitions=1") == [len(alone)]
    assert operators("--shuffle_partitions=1", "--without=one_operator") == alone


def test_explain_says_which_levels_are_together() -> None:
    assert chain(shuffle_partitions=1).explain().count("in the one stateful operator of all levels") > 2
    assert "in the one stateful operator" not in chain(shuffle_partitions=2).explain()


def test_another_division_into_operators_rewrites_the_state_and_says_so() -> None:
    plan = plan_of(chain())
    apart, together = (
        signature_of(one_operator(plan, 1, without), 1) for without in ({"one_operator"}, frozenset())
    )
    older = {name: value for name, value in apart.items() if name != "is_one_operator"}
    levels = len(plan.levels)
    assert levels_of_operators(together) == [tuple(range(1, levels + 1))]
    assert levels_of_operators(older) == [(level,) for level in range(levels, 0, -1)]
    for old, new in ((apart, together), (together, apart), (older, together)):
        assert must_rewrite(old, new)
        notes = compare(old, new, ()).notes
        assert notes == ["its state is rewritten, because the stateful operators are at different levels"]
    assert not must_rewrite(together, together)
    assert not must_rewrite(older, apart)
    # One level is in one operator either way.
    alone = [{**own, "levels": own["levels"][:1]} for own in (apart, together)]
    assert not must_rewrite(*alone)
    assert compare(*alone, ()).notes == []


def run_levels(query: ToyQuery, together: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], _Told]:
    """The rows for sinks of each micro-batch, and the reports; no row may leave for a later level of the operator."""
    told: Any = _Told()
    programs = dict(enumerate(query._levels, 1))
    operators = [programs] if together else [{number: one} for number, one in programs.items()]
    states = [Pages({}) for _ in operators]
    found = []
    for number in range(query.timeline.batches):
        monkeypatch.setattr(tasks, "batch_number", lambda number=number: number)
        rows: list[Any] = tasks.play_sources(tasks.loads(query._played), number, {})[0]
        for own, pages in zip(operators, states, strict=True):
            made: Iterator[Any] = tasks.run_shard(own, (), (0,), 0, rows, pages, {}, told)
            rows = [tuple(row) for row in made]
            assert not [level for level, _, _ in rows if level in own]
        found.append([value for _, _, page in rows for value in decode_page(page).values])
    return found, told


@pytest.mark.parametrize("events", [None, 1, 5])
def test_levels_in_one_operator_emit_and_report_what_separate_ones_do(
    events: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def query(shards: int = 1) -> ToyQuery:
        return ToyQuery(chain(), shards=shards, events_per_batch=events, without=["inline_sinks"])

    apart, told_apart = run_levels(query(), False, monkeypatch)
    together, told = run_levels(query(), True, monkeypatch)
    assert together == apart
    two, made = query(2), []
    for _ in together:
        made += [value for values in two.batch().values() for value in values]
    assert sorted(value for values in together for value in values) == sorted(made)
    assert len(made) == 28
    reports = [report for report in told.found.values() if isinstance(report, Report)]
    assert {label for report in reports for label in report.told} == {
        step.label for step, _ in query().plan.groupings
    }
    assert all(isinstance(each, GroupingReport) for report in reports for each in report.told.values())
    # How long a shard took is another time in each run.
    assert all(report.busy_micros is not None and report.busy_micros >= 0 for report in reports)
    assert without_durations(told.found) == without_durations(told_apart.found)


def without_durations(found: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: each._replace(busy_micros=None) if isinstance(each, Report) else each
        for key, each in found.items()
    }
