"""Snapshots of made-up runs: the windows that fire come from the true machine, played without an engine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.diagrams.steps import StepView
from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.pane_counts import PaneCounter, Tally
from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark, Dropped, Event
from penstock.machines.reference_engine import ReferenceEngine
from penstock.metrics.execution import COUNTERS
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.custody.run_records import DIED, RunRecord
from penstock_spark.live.elements import Counts, Flow, StepElements, composites_of, elements_of
from penstock_spark.live.history import Firing, History, Line
from penstock_spark.live.settings import HIDDEN
from penstock_spark.live.snapshot import CheckpointNow, MicroBatch, RunSnapshot, SourceNow, Stages, StepError
from penstock_spark.live.stream_snapshots import (
    RunFacts,
    StreamFacts,
    stream_snapshot,
    with_elements,
    with_tallies,
)
from penstock_spark.live.throughput import Throughput, add_work
from penstock_spark.reports.metrics import GroupingReport, Watermarks

SECOND = 1_000_000
BEGAN = 1_767_261_600 * SECOND  # Noon of a day in 2026.
SUM, TOTAL = "Scores/ByTeam/Sum", "Scores/All/Total"
HOSTILE = "<script>document.title='taken'</script>"

STEPS = (
    StepView("Read/Kafka", "Read"),
    StepView("Parse", "ParDo", ("Read/Kafka",)),
    StepView("Teams", "Read"),
    StepView("Enrich", "ParDo", ("Parse",), ("Teams",)),
    StepView("Window", "AssignWindows", ("Enrich",), (), "FixedWindows"),
    StepView(SUM, "CombinePerKey", ("Window",), (), "FixedWindows"),
    StepView("Rejected", "Write", ("Parse",)),
    StepView("AllTeams", "ParDo", (SUM,)),
    StepView(TOTAL, "CombinePerKey", ("AllTeams",), (), "FixedWindows"),
    StepView("Write scores", "Write", (SUM,)),
    StepView("Write totals", "Write", (TOTAL,)),
)


FLOWS = (
    Flow("Read/Kafka", (), ((None, 0),)),
    Flow("Parse", (0,), ((None, 1), ("rejected", 2))),
    Flow("Teams", (), ((None, 3),)),
    Flow("Enrich", (1,), ((None, 4),), (3,)),
    Flow("Window", (4,), ((None, 5),)),
    Flow(SUM, (5,), ((None, 6),)),
    Flow("Rejected", (2,), ((None, 9),)),
    Flow("AllTeams", (6,), ((None, 7),)),
    Flow(TOTAL, (7,), ((None, 8),)),
    Flow("Write scores", (6,), ((None, 10),)),
    Flow("Write totals", (8,), ((None, 11),)),
)
"""The edges of `STEPS`. Outputs of `Teams`, which the driver has read, and results of writes are not counted."""

EARLIER_RUNS = (
    RunRecord(
        1,
        "0b51c7de11aa",
        BEGAN - 90_000 * SECOND,
        BEGAN - 4_000 * SECOND,
        DIED,
        "0.1.0",
        "4.1.0",
        31_400_000,
        0,
        51_200,
    ),
    RunRecord(
        *(2, "77e0a4c3b9f1", BEGAN - 3_900 * SECOND, BEGAN - 60 * SECOND, "FAILED", "0.1.0", "4.1.0"),
        *(1_402_000, 51_201, 53_890, "ValueError at step 'Parse' (scores.py:41)"),
    ),
)

PER_SECOND = {"0": 412, "1": 406, "2": 6, "4": 406, "5": 406, "6": 9, "7": 9, "8": 1}
"""The number of elements that the other edges carry in a second, by the number of the edge."""


def windowing() -> Windowing:
    return Windowing(
        FixedWindows(20),
        AfterWatermark(early=AfterProcessingTime(6), late=AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING,
        allowed_lateness=15,
    )


def events(seconds: int, began: int, seed: int = 7) -> Iterator[list[Event]]:
    """For each second, what arrives: some elements are late, and a few too late."""
    chance, mark = random.Random(seed), 0
    for second in range(seconds):
        clock = began + second * SECOND
        slow = 11 if 45 < second < 75 else 3
        found: list[Event] = [AdvanceClock(clock)]
        for _ in range(chance.randrange(1, 5)):
            delay = chance.choice((0.2, 1, 2, slow, slow))
            if chance.random() < 0.03:
                delay = chance.choice((22, 44))
            found.append(AddElement(1, round(clock - delay * SECOND), clock, chance.choice("abcdef")))
        mark = max(mark, clock - (slow + 1) * SECOND)
        found.append(AdvanceWatermark(mark, clock))
        yield found


def fired_of(player: ReferenceEngine, batch: list[Event]) -> Tally | None:
    tallier = PaneCounter()
    for event in batch:
        for one in player.play(event):
            count(tallier, one.clock_micros, one.emitted)
    return tallier.tally()


def count(tallier: PaneCounter, clock_micros: int, emitted: Any) -> None:
    if isinstance(emitted, Dropped):
        tallier.dropped(clock_micros, emitted.element.windows[0], emitted.count)
    else:
        tallier.panes(clock_micros, emitted.window, (emitted.info,))


def stream(
    seconds: int = 118, steps: tuple[StepView, ...] = STEPS, failure: Any = None, began: int = BEGAN
) -> RunSnapshot:
    """A stream after a number of seconds."""
    about = RunFacts(
        "live_scores",
        "4f1c09a2b7de",
        "streaming",
        began,
        steps,
        {SUM: 1, TOTAL: 2},
        ("Read/Kafka",),
        is_live=True,
        counts_panes=True,
        flows=FLOWS if steps is STEPS else (),
        composites=composites_of(FLOWS) if steps is STEPS else (),
        counted=frozenset(map(int, PER_SECOND)),
        places={"Parse": "at step 'Parse' (scores.py:41)"},
        settings={"penstock": "0.1.0", "shards": "4", "mode": "streaming", "live_token": HIDDEN},
        record=RunRecord(3, "4f1c09a2b7de", began, began, "RUNNING", "0.1.0", "4.1.0"),
    )
    player, seen = ReferenceEngine(GroupingMachine(windowing(), CombineFn.from_callable(sum))), StreamFacts()
    dropped, told, clock = 0, {}, began
    for batch in events(seconds, began):
        clock = max(clock, *(event.clock_micros or 0 for event in batch))
        tally = fired_of(player, batch)
        seen = replace(seen, throughput=worked(seen.throughput, clock, began))
        dropped += tally.counts.get("dropped", 0) if tally else 0
        mark = max(event.watermark_micros for event in batch if isinstance(event, AdvanceWatermark))
        told = {
            SUM: GroupingReport(mark, mark, {}, 6, 4_310, {"Read/Kafka": mark}, 13),
            TOTAL: GroupingReport(mark, mark - 4 * SECOND, {}, 1, 620, {SUM: mark}, 2),
        }
        tallies = {SUM: tally} if tally else {}
        seen = with_tallies(seen, tallies, Watermarks({(1, 0): told}, clock), about)
        seen = with_elements(seen, PER_SECOND, clock, about)
    seen = replace(
        seen,
        sources=(SourceNow("Read/Kafka", 48_211, 412.5, 1_890, 6, 310),),
        batches=tuple(batches(seconds)),
        rows_per_second=408.0,
        last_rows_micros=clock,
        first_batch=0,
        checkpoint=CheckpointNow("file:///checkpoints/scores", 1_284_000, 911_000, 214, clock - 9 * SECOND),
        runs=EARLIER_RUNS,
    )
    counted = {(COUNTERS, SUM, "penstock", "elements_dropped_as_late"): dropped}
    state = "RUNNING" if failure is None else "FAILED"
    return stream_snapshot(about, seen, state, in_shards(told, clock), counted, clock + SECOND, failure)


def worked(before: Throughput, clock: int, began: int) -> Throughput:
    """The throughput after another second: a backlog comes at once, and is read afterwards."""
    second = (clock - began) // SECOND
    left = 0 if second < 40 else min(340 * (second - 40), 3_400 - round(22.54 * (second - 50)))
    busy = 980_000 if left else 420_000
    return add_work(before, clock, clock + busy, 380 + 37 * (second % 5), left)


def in_shards(told: Mapping[str, GroupingReport], clock: int) -> Watermarks:
    """The reports of four shards; the second one has most of the keys, and the third one none."""

    def part(total: int, shard: int) -> int:
        return {0: total // 6, 1: total - total // 6 * 2, 2: 0, 3: total // 6}[shard]

    by_shard = {
        (level, shard): {
            label: report._replace(
                keys=part(report.keys, shard),
                state_bytes=part(report.state_bytes, shard),
                windows=part(report.windows or 0, shard),
            )
        }
        for level, (label, report) in enumerate(told.items(), 1)
        for shard in range(4)
    }
    busy = {(1, 0): 31_000, (1, 1): 148_000, (1, 2): 9_000, (1, 3): 33_000}
    return Watermarks(by_shard, clock, busy)


def batches(seconds: int) -> Iterator[MicroBatch]:
    chance = random.Random(3)
    for number in range(max(0, seconds - 30), seconds):
        phases: Mapping[str, int] = {
            "latestOffset": chance.randrange(3, 9),
            "queryPlanning": chance.randrange(30, 60),
            "walCommit": chance.randrange(15, 40),
            "addBatch": chance.randrange(180, 420),
            "commitOffsets": chance.randrange(15, 40),
        }
        whole = sum(phases.values()) + chance.randrange(5, 20)
        yield MicroBatch(
            number, BEGAN + number * SECOND, chance.randrange(200, 600), {"triggerExecution": whole, **phases}
        )


def historic() -> RunSnapshot:
    """A stream that reads old data: an hour of event time in each second of the clock."""
    now, hour, first = stream(60), 3_600 * SECOND, 1_357_516_800 * SECOND
    points = tuple((BEGAN + second * SECOND, first + second * hour) for second in range(60))
    firings = tuple(
        Firing(SUM, clock, micros - hour, micros, "on_time", 5)
        for clock, micros in points[1:]
        for _ in range(2)
    )
    wide = Firing(SUM, BEGAN, first - 2_000 * hour, first - 1_999 * hour, "on_time", 5)
    groupings = tuple(
        replace(each, output_micros=points[-1][1], event_lag_micros=now.at_micros - points[-1][1])
        for each in now.groupings
    )
    return replace(
        now, groupings=groupings, history=History((Line(SUM, points),), (wide, *firings)), event_speed=3_600.0
    )


def hostile() -> RunSnapshot:
    """A run whose labels and tags are markup, and control characters."""
    bad = (StepView(f"Bad/{HOSTILE}", "Read"), StepView("\x1b[31mred\n", "ParDo", (f"Bad/{HOSTILE}",)))
    now = stream(20, bad)
    groupings = tuple(
        replace(each, label=f"{HOSTILE}/{number}", held_by=HOSTILE)
        for number, each in enumerate(now.groupings)
    )
    errors = (StepError(HOSTILE, HOSTILE),)
    lines = tuple(replace(line, label=HOSTILE) for line in now.history.lines)
    elements = (
        StepElements(f"Bad/{HOSTILE}", None, 7, {HOSTILE: 3, "end": 2}, None, 1.5),
        StepElements("\x1b[31mred\n", 7),
    )
    return replace(
        now,
        name=HOSTILE,
        elements=elements,
        composites=(StepElements("Bad", None, 7),),
        groupings=groupings,
        errors=errors,
        history=replace(now.history, lines=lines),
    )


def batch() -> RunSnapshot:
    """A batch that is half done."""
    steps = (
        StepView("Read", "Read"),
        StepView("Words", "ParDo", ("Read",)),
        StepView("Count", "CombinePerKey", ("Words",), (), "GlobalWindows"),
        StepView("Top/Best", "CombinePerKey", ("Count",), (), "GlobalWindows"),
        StepView("Write", "Write", ("Top/Best",)),
    )
    stages = Stages("Read > Words > Count > Top/Best > Write", 1, 2, 1, 3, 22, 64, 48.0)
    flows = (
        Flow("Read", (), ((None, 0),)),
        Flow("Words", (0,), ((None, 1),)),
        Flow("Count", (1,), ((None, 2),)),
        Flow("Top/Best", (2,), ((None, 3),)),
        Flow("Write", (3,), ((None, 4),)),
    )
    now = Counts(BEGAN + 75 * SECOND, {0: 12_400_000, 1: 96_100_000, 2: 0, 3: 0})
    before = Counts(BEGAN + 65 * SECOND, {0: 10_750_000, 1: 83_300_000})
    return RunSnapshot(
        *("wordcount", "9c0d1e2f3a4b", "batch", "RUNNING", BEGAN, BEGAN + 75 * SECOND),
        rows_in=12_400_000,
        rows_out=None,
        rows_per_second=165_000.0,
        steps=steps,
        elements=elements_of(flows, now, before),
        composites=elements_of(composites_of(flows), now, before),
        stages=stages,
    )
