"""The transcripts in whole pipelines, without Spark: the real plan, levels and shards, cut into micro-batches."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from toy_query import ToyQuery
from toy_runner import ToyRunner, batches_of, cut_anywhere, taken

from penstock.testing import test_stream
from penstock_conformance.comparing import verdict
from penstock_conformance.judging import steps_to_the_end, wrong_reasons, wrong_steps
from penstock_conformance.parsing import load, parse
from penstock_conformance.pipelines import Case, case_of, dropped_in, groups_of, pipeline_of, reports
from penstock_conformance.scenario import Scenario
from penstock_conformance.tapes import why_untold

SCENARIOS = load()

NO_SIGNALS = "a TestStream has no signals"
NO_PERCENTILES = "a TestStream has no watermarks of percentiles"
UNTOLD = {
    "Figure 3-11: the watermark of 33 percent": NO_PERCENTILES,
    "Figure 3-11: the watermark of 66 percent": NO_PERCENTILES,
    "Figure 3-11: the watermark of 100 percent": NO_PERCENTILES,
    "A percentile's watermark and a session that grows": NO_PERCENTILES,
    "A percentile's watermark fires before the stragglers are in": NO_PERCENTILES,
    "Panes at half, at nine tenths and at all of the input": NO_PERCENTILES,
    "A percentile trigger that is repeated fires for each element behind it": NO_PERCENTILES,
    "The watermark of a percentile does not go back": NO_PERCENTILES,
    "A signal fires merged sessions": NO_SIGNALS,
    "Any of a sequence and a signal": NO_SIGNALS,
    "A signal fires all windows of all keys that have something new": NO_SIGNALS,
    "A signal is over when it has come: it does not wait for the next element": NO_SIGNALS,
    "A signal trigger alone fires once": NO_SIGNALS,
    "A signal and the end of the window": NO_SIGNALS,
}
"""The scenarios that cannot go through a pipeline in the modes of streams, and why."""

NOT_SHOWN = {"A wrong hold", "A hold that should be over"}
"""What must not be met, and is not seen to be: where something would be held, before the watermark is there."""

REFUSED = "A grouping that is refused, and should not be"


def cases(*modes: str) -> list[Any]:
    """Every scenario that goes through a pipeline in some modes."""
    return [
        pytest.param(scenario, mode, id=f"{scenario.place.rpartition(':')[0]}: {scenario.title} ({mode})")
        for scenario in SCENARIOS
        for mode in scenario.modes
        if mode in modes and not why_untold(scenario, mode)
        if scenario.title not in {*NOT_SHOWN, REFUSED}
    ]


def test_what_cannot_go_through_a_pipeline_is_known_by_name_and_reason() -> None:
    for mode in ("streaming", "micro_batch"):
        here = [scenario for scenario in SCENARIOS if mode in scenario.modes and scenario.fails is None]
        untold = {scenario.title: why_untold(scenario, mode) for scenario in here}
        expected = UNTOLD if mode == "streaming" else {}
        assert {title: reason for title, reason in untold.items() if reason} == expected
    refused = [scenario for scenario in SCENARIOS if scenario.fails is not None]
    assert {why_untold(scenario, "streaming") for scenario in refused} == {
        "it is refused before anything happens"
    }


def test_a_test_stream_can_still_not_say_more() -> None:
    kinds = {kind.__name__ for kind in test_stream.Event.__subclasses__()}
    assert kinds == {"ElementEvent", "WatermarkEvent", "ProcessingTimeEvent", "MicroBatchEvent"}


@pytest.mark.parametrize(("scenario", "mode"), cases("streaming", "micro_batch"))
def test_what_comes_out_of_a_pipeline_comes_at_the_step_that_the_transcript_says(
    scenario: Scenario, mode: str
) -> None:
    case = case_of(scenario, mode, stops_at_panes=mode == "streaming")
    steps = steps_to_the_end(scenario, mode, case.tape.end_clock_micros)
    micro_batches, metrics = taken(case, len(steps))
    wrong = [
        *wrong_steps(scenario, steps, micro_batches, case.tape.slack_micros),
        *wrong_reasons(steps, dropped_in(metrics, case.label)),
    ]
    report = verdict(scenario, mode, wrong)
    assert report is None, f"\n{report}"


def test_a_wrong_hold_is_seen_where_the_watermark_would_be_beyond_it() -> None:
    text = "= A\nsource: a test\nwindows: FixedWindows(10)\ntimestamp: earliest\n\nelement 5 at 3\nwatermark 5\n  "
    for hold, is_right in (("hold 3", True), ("hold 4", False), ("no hold", False)):
        [scenario] = parse({"a": text + hold})
        steps = steps_to_the_end(scenario, "streaming")
        micro_batches, _ = taken(case_of(scenario, "streaming"), len(steps))
        assert ([*wrong_steps(scenario, steps, micro_batches)] == []) == is_right


def by_key(case: Case, shards: int, events_per_batch: int | None, random: Random | None = None) -> Any:
    """All that comes out of a case, in order for each key."""
    if random is not None:
        case = replace(case, tape=replace(case.tape, events=cut_anywhere(case.tape.events, random)))
    query = ToyQuery(pipeline_of([case]), case.mode, shards=shards, events_per_batch=events_per_batch)
    found = defaultdict(list)
    for _, given in batches_of(query):
        for seen in (seen for elements in given.values() for seen in elements):
            _, (is_late, key, *_) = seen
            found[key, is_late].append(seen)
    return found


@pytest.mark.parametrize(("scenario", "mode"), cases("streaming"))
def test_the_same_input_cut_in_other_ways_gives_the_same_panes(scenario: Scenario, mode: str) -> None:
    case, random = case_of(scenario, mode), Random(scenario.title)
    whole = by_key(case, 3, None)
    assert by_key(case, 1, 1) == whole
    assert by_key(case, 2, random.choice((2, 3))) == whole
    assert by_key(case, 2, None, random) == whole


def test_where_micro_batches_are_rounds_the_cuts_do_change_something() -> None:
    [scenario] = (one for one in SCENARIOS if one.title == "Paper, figure 11: fixed windows in micro-batches")
    case = case_of(scenario, "micro_batch")
    assert by_key(case, 2, None, Random(1)) != by_key(case, 2, None)


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_scenarios_that_share_a_pipeline_do_not_disturb_each_other(mode: str) -> None:
    together = reports(SCENARIOS, mode, branches_max=50, runner=ToyRunner())
    found = {scenario.title: report for scenario, report in together}
    wrong = [report for report in found.values() if report]
    assert not wrong, "\n".join(wrong)
    here = {scenario.title for scenario in SCENARIOS if mode in scenario.modes and scenario.fails is None}
    # When panes come is not known at the end.
    assert here - found.keys() == here & {*UNTOLD, *NOT_SHOWN, "A wrong processing time"}


def test_a_few_pipelines_are_enough_for_all() -> None:
    streaming = [
        case_of(scenario, "streaming")
        for scenario in SCENARIOS
        if "streaming" in scenario.modes and not why_untold(scenario, "streaming")
        if scenario.title != REFUSED
    ]
    groups = groups_of(streaming)
    assert len(groups) == 2
    assert sum(map(len, groups)) == len(streaming)
    assert all(len({case.tape.tells_time for case in group}) == 1 for group in groups)
