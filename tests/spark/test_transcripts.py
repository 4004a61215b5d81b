"""The transcripts on Spark: the scenarios of a mode as the branches of a few queries."""

from __future__ import annotations

import threading
from itertools import chain
from typing import Any

import pytest

import penstock as beam
from penstock.io.each_batch import ForEachBatch
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import TimestampCombiner
from penstock.utils.timestamp import MAX_TIMESTAMP
from penstock_conformance import command
from penstock_conformance.parsing import load
from penstock_conformance.pipelines import case_of, groups_of, run_scenarios
from penstock_conformance.stages import AVERAGES, LONGEST, USERS, AverageLengths
from penstock_conformance.tapes import why_not_expressible

SCENARIOS = load()


def without_lonely_joins():
    """The scenarios without the joins whose micro-batches do not fit those of most joins.

    Each of those would take a query of a dozen micro-batches for itself. All are played as whole pipelines without
    Spark (tests/conformance/test_pipelines.py), and with it by ``penstock conformance``.
    """
    joins = [
        case_of(scenario, "micro_batch")
        for scenario in SCENARIOS
        if scenario.place.startswith("joins/") and "micro_batch" in scenario.modes
    ]
    most = {id(case.scenario) for case in max(groups_of(joins), key=len)}
    lonely = {id(case.scenario) for case in joins} - most
    return [scenario for scenario in SCENARIOS if id(scenario) not in lonely]


def in_few_queries():
    """The scenarios of which many fit into one query of rounds."""
    cases = [
        case_of(scenario, "micro_batch")
        for scenario in without_lonely_joins()
        if "micro_batch" in scenario.modes and not why_not_expressible(scenario, "micro_batch")
    ]
    crowded = {id(case.scenario) for group in groups_of(cases) if len(group) >= 14 for case in group}
    return [scenario for scenario in SCENARIOS if id(scenario) in crowded]


# All are played always as whole pipelines without Spark.
@pytest.mark.parametrize(
    ("mode", "choose", "number"),
    [
        ("streaming", lambda: SCENARIOS[::8], 43),
        ("micro_batch", in_few_queries, 34),
        ("batch", lambda: SCENARIOS, 107),
        pytest.param("streaming", lambda: SCENARIOS, 339, marks=pytest.mark.soak),
        pytest.param("micro_batch", without_lonely_joins, 70, marks=pytest.mark.soak),
    ],
    ids=["an eighth of the streams", "crowded rounds", "batches", "all streams", "rounds"],
)
def test_spark_does_as_the_transcripts_say(spark, mode, choose, number):
    scenarios = choose()
    found = list(run_scenarios(scenarios, mode, spark=spark))
    wrong = [report.wrong for report in found if report.wrong]
    assert not wrong, "\n".join(wrong)
    assert len(found) == number


@pytest.mark.soak
def test_cuts_into_micro_batches_change_nothing_on_spark(spark):
    folders = ("refinement/", "windows/")
    some = [scenario for scenario in SCENARIOS if scenario.place.startswith(folders)][::4]
    found = list(run_scenarios(some, "streaming", spark=spark, events_per_batch=20))
    wrong = [report.wrong for report in found if report.wrong]
    assert not wrong, "\n".join(wrong)
    assert len(found) == len([scenario for scenario in some if "streaming" in scenario.modes])


def test_the_command_runs_on_spark_as_well(capsys):
    assert command.main(["conformance", "--mode", "batch", "--figure", "figure 10"]) == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")


STAGES = {
    "End of window": (
        TimestampCombiner.OUTPUT_AT_EOW,
        [60, (94 + 60) / 2, (173 + 60) / 2, 106, (127 + 60) / 2],
        [(94 + 60) / 2, (173 + 60) / 2, (127 + 60) / 2],
    ),
    "Earliest": (
        TimestampCombiner.OUTPUT_AT_EARLIEST,
        [(60 + 94) / 2, (173 + 60 + 60) / 3, 106, (127 + 60) / 2],
        [(173 + 60 + 60) / 3, 106],
    ),
    "Latest": (
        TimestampCombiner.OUTPUT_AT_LATEST,
        [(60 + 94) / 2, 60, 173, (106 + 127 + 60) / 3],
        [(60 + 94) / 2, 173],
    ),
}
"""Figures 3-5 and 3-6, and one more: the average lengths of sessions, and the largest of them."""


def test_groupings_in_a_row_each_with_the_watermark_that_those_before_let_it_have(spark):
    found: dict[str, list[Any]] = {}
    watermarks: list[dict[str, Any]] = []
    running: list[Any] = []
    has_started = threading.Event()

    def collect(label):
        def function(elements, batch_id):
            assert has_started.wait(60)
            found.setdefault(label, []).extend(seconds for _, seconds in elements)
            watermarks.append(running[0].watermarks())

        return ForEachBatch(function)

    options = PipelineOptions(allow_unsafe_triggers=True)
    pipeline = beam.Pipeline(options=options, spark=spark, mode="streaming", events_per_batch=100)
    for label, (timestamp_combiner, _, _) in STAGES.items():
        averages, longest = pipeline | label >> AverageLengths(timestamp_combiner)
        _ = averages | f"{label} averages" >> collect(f"{label} {AVERAGES}")
        _ = longest | f"{label} longest" >> collect(f"{label} {LONGEST}")
    running.append(pipeline.run())
    has_started.set()
    running[0].wait_until_finish()
    for label, (_, averages, longest) in STAGES.items():
        assert found[f"{label} {AVERAGES}"] == pytest.approx(averages)
        assert found[f"{label} {LONGEST}"] == pytest.approx(longest)
    # The first micro-batch is not finished while it is written.
    for told in filter(None, watermarks):
        assert all(watermark.output <= watermark.input for watermark in told.values())
        for label in STAGES:
            outputs = [told[f"{label}/{user}"].output for user in USERS]
            assert told[f"{label}/{AVERAGES}"].input == min(outputs)
            assert told[f"{label}/{LONGEST}"].input == told[f"{label}/{AVERAGES}"].output
    ends = chain.from_iterable((one.input, one.output) for one in running[0].watermarks().values())
    assert {*ends} == {MAX_TIMESTAMP}
    assert any(one.output < MAX_TIMESTAMP for told in watermarks for one in told.values())
