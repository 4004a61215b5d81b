"""Spark's own aggregate is penstock's machine under a watermark of the micro-batch before: a law, and its mutants."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceWatermark,
    Dropped,
    EndMicroBatch,
    EventOutput,
    Pane,
)
from penstock.machines.reference_engine import ReferenceEngine
from penstock.machines.triggers import machine_of
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAll,
    AfterAny,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import FixedWindows, SlidingWindows
from penstock.utils.timestamp import Duration
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing
from tests.runner.native_host import NativeHost, Result, Row

SIZE, DELAY, AHEAD = 10_000_000, 5_000_000, 20_000_000
SEEDS = range(60)
Batches = list[tuple[int, list[Row]]]
"""Micro-batches, each with the time of the clock."""


def batches_of(seed: int) -> Batches:
    """Rows in micro-batches, some of them empty; some rows are late, filtered out, or far ahead of the clock."""
    chance = Random(seed)
    made: Batches = []
    clock = 0
    for _ in range(chance.randrange(1, 9)):
        clock += chance.choice([0, 4_000_000, 30_000_000])
        rows = [
            Row(
                chance.choice(["a", "b", None]),
                chance.randrange(100),
                clock + chance.choice([0, -1, -3_000_000, -12_000_000, -40_000_000, 7_000_000, 90_000_000]),
                chance.random() < 0.6,
            )
            for _ in range(chance.choice([0, 1, 2, 6]))
        ]
        made.append((clock, rows))
    return made


def by_machine(
    batches: Batches,
    lateness_micros: int,
    updates: bool,
    trigger: TriggerFn | None = None,
    windowfn: WindowFn = FixedWindows(SIZE // 1_000_000),
) -> tuple[list[Result], int]:
    """The panes of penstock's machine in each micro-batch, if a source's summary arrives one later; and how many it
    drops.
    """
    windowing = Windowing(
        windowfn,
        trigger,
        accumulation_mode=AccumulationMode.ACCUMULATING,
        allowed_lateness=Duration(micros=lateness_micros),
    )
    machine = GroupingMachine(windowing, CombineFn.from_callable(sum))
    player = ReferenceEngine(machine, "micro_batch" if updates else "streaming")
    found: list[Result] = []
    dropped = 0
    summary_micros = MIN_MICROS
    ending: Batches = [(MIN_MICROS, [])]
    for number, (clock_micros, rows) in enumerate([*batches, *ending]):
        if number == len(batches):
            summary_micros = MAX_MICROS
        played: list[EventOutput] = []
        for row in rows:
            if row.is_wanted:
                played += player.play(AddElement(row.number, row.time_micros, key=row.key))
        played += player.play(EndMicroBatch())
        played += player.play(AdvanceWatermark(summary_micros))
        for one in played:
            match one.emitted:
                case Pane(value=value, window=window):
                    found.append(Result(number, one.key, window.start.micros, value))
                case Dropped(count=count):
                    dropped += count
        times = [row.time_micros for row in rows if row.time_micros <= clock_micros + AHEAD]
        summary_micros = max([summary_micros, *(time - DELAY for time in times)])
    return sorted(found, key=repr), dropped


def by_host(
    batches: Batches,
    lateness_micros: int,
    updates: bool,
    host: type[NativeHost] = NativeHost,
    period_micros: int | None = None,
) -> tuple[list[Result], int]:
    """The panes of the toy of Spark."""
    native = host(SIZE, DELAY, lateness_micros, updates, AHEAD, period_micros=period_micros)
    found = [result for clock_micros, rows in batches for result in native.step(rows, clock_micros)]
    found += native.end()
    return sorted(found, key=repr), len(native.dropped)


KINDS = {"append": (0, False), "update": (0, True), "update with lateness": (15_000_000, True)}


@pytest.mark.parametrize("kind", KINDS)
def test_sparks_aggregate_is_the_machine_with_summaries_that_arrive_one_micro_batch_later(kind):
    lateness_micros, updates = KINDS[kind]
    some_dropped = False
    for seed in SEEDS:
        expected = by_machine(batches_of(seed), lateness_micros, updates)
        assert by_host(batches_of(seed), lateness_micros, updates) == expected, seed
        some_dropped = some_dropped or expected[1] > 0
    assert some_dropped


TRIGGERS = (
    AfterWatermark(),
    AfterWatermark(early=AfterProcessingTime(10), late=AfterProcessingTime(3)),
    AfterEach(AfterWatermark(), AfterProcessingTime(3)),
    AfterAny(AfterWatermark(), AfterProcessingTime(5)),
    AfterAll(AfterWatermark(), AfterProcessingTime(5)),
    Repeatedly(AfterWatermark()),
)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=str)
def test_in_rounds_the_law_holds_for_each_trigger_that_no_element_fires(trigger):
    assert not machine_of(trigger).fires_on_elements
    assert trigger.has_ontime_pane()
    for seed in SEEDS:
        for lateness_micros in (0, 15_000_000):
            expected = by_machine(batches_of(seed), lateness_micros, True, trigger)
            assert by_host(batches_of(seed), lateness_micros, True) == expected


@pytest.mark.parametrize("period", [2, 3, 10, 14])
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_holds_for_sliding_windows_and_for_gaps_between_windows(kind, period):
    lateness_micros, updates = KINDS[kind]
    sliding = SlidingWindows(SIZE // 1_000_000, period)
    for seed in SEEDS:
        expected = by_machine(batches_of(seed), lateness_micros, updates, windowfn=sliding)
        found = by_host(batches_of(seed), lateness_micros, updates, period_micros=period * 1_000_000)
        assert found == expected, seed


class _OneWindow(NativeHost):
    """An element is only in the latest of its windows."""

    def _starts(self, time_micros: int) -> range:
        return super()._starts(time_micros)[:1]


class _GapsFirst(NativeHost):
    """Spark leaves elements between two windows out in front of the watermark."""

    def moves_watermark(self, row: Row, clock_micros: int) -> bool:
        return bool(self._starts(row.time_micros)) and super().moves_watermark(row, clock_micros)


@pytest.mark.parametrize(("host", "period"), [(_OneWindow, 3), (_GapsFirst, 14)])
def test_the_law_finds_a_mutant_of_sliding_windows(host, period):
    sliding, period_micros = SlidingWindows(SIZE // 1_000_000, period), period * 1_000_000
    assert any(
        by_host(batches_of(seed), 0, False, host, period_micros)
        != by_machine(batches_of(seed), 0, False, windowfn=sliding)
        for seed in SEEDS
    )


class _FilterFirst(NativeHost):
    """Spark moves a filter in front of the watermark."""

    def moves_watermark(self, row: Row, clock_micros: int) -> bool:
        return row.is_wanted and super().moves_watermark(row, clock_micros)


class _NoEnd(NativeHost):
    """No row at the end of time."""

    def end(self) -> list[Result]:
        return self.without_data()


class _NoMicroBatchWithoutData(NativeHost):
    """Spark waits for data, although the watermark has moved."""

    def without_data(self) -> list[Result]:
        return []


class _AheadMoves(NativeHost):
    """Elements far ahead of the clock move the watermark."""

    def moves_watermark(self, row: Row, clock_micros: int) -> bool:
        return True


class _NoLateness(NativeHost):
    """The key of the grouping is the end of the window, without the lateness."""

    def _over(self, start_micros: int) -> int:
        return start_micros + self.size_micros


class _OwnWatermark(NativeHost):
    """Elements are late by the watermark of the micro-batch before, and not by the one before that."""

    def step(self, rows: Sequence[Row], clock_micros: int) -> list[Result]:
        self._late_micros = self._next_micros
        return super().step(rows, clock_micros)


class _NothingIsLate(NativeHost):
    """Late elements open their windows again."""

    def step(self, rows: Sequence[Row], clock_micros: int) -> list[Result]:
        self._late_micros = MIN_MICROS
        return super().step(rows, clock_micros)


MUTANTS: dict[str, tuple[type[NativeHost], str]] = {
    "a filter in front of the watermark": (_FilterFirst, "append"),
    "no row at the end of time": (_NoEnd, "append"),
    "no micro-batch without data": (_NoMicroBatchWithoutData, "append"),
    "elements far ahead move the watermark": (_AheadMoves, "append"),
    "lateness is ignored": (_NoLateness, "update with lateness"),
    "late by the watermark of the micro-batch itself": (_OwnWatermark, "append"),
    "nothing is late": (_NothingIsLate, "append"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_law_finds_a_mutant(mutant):
    host, kind = MUTANTS[mutant]
    lateness_micros, updates = KINDS[kind]
    wrong = [
        seed
        for seed in SEEDS
        if by_host(batches_of(seed), lateness_micros, updates, host)
        != by_machine(batches_of(seed), lateness_micros, updates)
    ]
    assert wrong
