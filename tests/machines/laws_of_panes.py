"""The laws of panes: how they are numbered and labelled, and which watermark the output may have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceWatermark,
    Event,
    EventOutput,
    Pane,
)
from penstock.machines.reference_engine import ReferenceEngine
from penstock.transforms.trigger import OnTimeBehavior
from penstock.utils.windowed_value import PaneInfoTiming
from penstock.windows.output_times import output_times_of
from tests.machines.generated import FIXED, OTHER_MERGING, SESSIONS, Case, may_open_again
from tests.machines.generated_events import clock_apart, random_case
from tests.machines.law_book import law
from tests.machines.outcomes import ENGINES, RETRACTING, contains, dropped, panes, windows_of

EARLY, ON_TIME, LATE = PaneInfoTiming.EARLY, PaneInfoTiming.ON_TIME, PaneInfoTiming.LATE


def steps_of(
    case: Case, engine: str = "streaming"
) -> Iterator[tuple[ReferenceEngine, Event | None, int, list[EventOutput]]]:
    """After each step: the player, the event, the watermark, and what came out; the event of the last one is None."""
    player = ReferenceEngine(case.machine(), engine)
    watermark_micros = MIN_MICROS
    for event in clock_apart(case.events):
        outcome = player.play(event)
        if isinstance(event, AdvanceWatermark):
            watermark_micros = max(watermark_micros, event.watermark_micros)
        yield player, event, watermark_micros, outcome
    yield player, None, MAX_MICROS, player.finish()


@law(random_case, cases=300)
def no_pane_is_behind_the_output_watermark(case: Case) -> None:
    """The watermark of the output, the input's or the hold if that is less, never goes back, and no pane is behind it.

    Except for late panes, whose elements may all have been late; and for retractions, which have the timestamp of what
    they take back. In the end nothing is held. (Streaming Systems, chapter 3: output timestamps; design, section 3.)
    """
    output_micros = MIN_MICROS
    for player, _, watermark_micros, outcome in steps_of(case):
        for _, pane in panes(outcome):
            if not pane.kind.is_retraction and pane.info.timing != LATE:
                assert pane.timestamp_micros >= output_micros, pane
        hold_micros = player.hold_micros
        now_micros = watermark_micros if hold_micros is None else min(watermark_micros, hold_micros)
        assert now_micros >= output_micros, f"from {output_micros} back to {now_micros}"
        output_micros = now_micros
    assert player.hold_micros is None


def retracting_case(random: Random) -> Case:
    """One that takes panes back, mostly of sessions."""
    case = random_case(random, windows=(FIXED, SESSIONS, SESSIONS, OTHER_MERGING), lateness=(0, 1, 4))
    return replace(case, windowing=replace(case.windowing, accumulation_mode=RETRACTING))


@law(retracting_case, cases=600)
def what_is_taken_back_is_not_too_late(case: Case) -> None:
    """The output's watermark does not come to the end of a window, and its lateness, before its panes are taken back.

    So whatever follows in the same windows still takes them: also those of a window that has merged into a longer one,
    which only takes them back when it fires. (Design, section 3: the net of retracting panes is the result of a batch.)
    """
    output_micros = MIN_MICROS
    lateness_micros = case.windowing.allowed_lateness.micros
    for player, _, watermark_micros, outcome in steps_of(case):
        for _, pane in panes(outcome):
            if pane.kind.is_retraction:
                assert output_micros < pane.window.end_micros + lateness_micros, pane
        hold_micros = player.hold_micros
        output_micros = watermark_micros if hold_micros is None else min(watermark_micros, hold_micros)


def held_case(random: Random) -> Case:
    """One where the output timestamp of an element alone is known: it does not grow with others, nor with a session."""
    while True:
        case = random_case(random, windows=(FIXED, SESSIONS))
        together = output_times_of(case.windowing.timestamp_combiner, case.windowing.windowfn).together
        if together is min or (together is None and not case.windowing.windowfn.is_merging()):
            return case


@law(held_case, cases=300)
def what_waits_is_held_for(case: Case) -> None:
    """The hold is not after the output timestamp of any element that came on time and is in no pane yet.

    And where no element waits at all, and no window for its end, nothing is held. Reckoned apart from the machine: an
    element waits from its arrival to the next pane of a window with it. (Streaming Systems, chapter 3: the output
    watermark is at most the event time of all active messages that are not late.)
    """
    waiting: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
    rule = output_times_of(case.windowing.timestamp_combiner, case.windowing.windowfn)
    before_micros = MIN_MICROS
    for player, event, watermark_micros, outcome in steps_of(case):
        if isinstance(event, AddElement):
            losses = {loss.element.windows[0] for _, loss in dropped(outcome)}
            for window in set(windows_of(case, event)) - losses:
                micros = rule.of_element(event.timestamp_micros, window)
                is_late = micros < before_micros
                waiting[event.key].append((window, MAX_MICROS if is_late else micros))
        for key, pane in panes(outcome):
            if not pane.kind.is_retraction:
                waiting[key] = [one for one in waiting[key] if not _is_in(case, one[0], pane)]
        holding = [micros for several in waiting.values() for _, micros in several]
        hold_micros = player.hold_micros
        if holding:
            least_micros = min(holding)
            assert least_micros == MAX_MICROS or (hold_micros is not None and hold_micros <= least_micros)
        elif case.windowing.on_time_behavior is OnTimeBehavior.FIRE_IF_NON_EMPTY:
            assert hold_micros is None, "nothing waits"
        before_micros = watermark_micros


def _is_in(case: Case, window: Any, pane: Pane) -> bool:
    merges = case.windowing.windowfn.is_merging()
    return contains(pane.window, window) if merges else pane.window == window


@law(random_case, cases=300)
def panes_are_numbered_and_none_follows_the_last(case: Case) -> None:
    """The panes of a window are numbered from 0 without a gap, the first says so, and none comes after the last.

    A window that merged with others is another window; and where a trigger has finished, sessions may form anew with
    the same bounds, which begin again from 0. Retractions have the numbers of what they take back.
    (Beam's ``PaneInfo``, and its rule that a window that has had its last pane merges no more.)
    """
    forms_anew = may_open_again(case.windowing)
    for engine in ENGINES:
        counts: dict[Any, tuple[int, int]] = {}
        ended: set[Any] = set()
        for *_, outcome in steps_of(case, engine):
            for key, pane in panes(outcome):
                place, info = (key, pane.window), pane.info
                panes_before, regular_before = counts.get(place, (0, 0))
                if pane.kind.is_retraction:
                    assert not info.is_last
                    assert info.index < panes_before
                    continue
                if forms_anew and info.is_first:
                    panes_before = regular_before = 0
                    ended.discard(place)
                assert place not in ended, f"{pane} comes after the last one"
                assert (info.index, info.is_first) == (panes_before, panes_before == 0), pane
                is_early = info.timing == EARLY
                assert info.nonspeculative_index == (-1 if is_early else regular_before), pane
                counts[place] = panes_before + 1, regular_before + (not is_early)
                if info.is_last:
                    ended.add(place)


@law(random_case, cases=300)
def timings_tell_where_the_watermark_was(case: Case) -> None:
    """Panes are early before the watermark passes the window's end, at most one is on time, just then; then late.

    In streaming and in batch; each round of a micro-batch has a watermark of its own. (Streaming Systems, chapter 2.)
    """
    for engine in ("streaming", "batch"):
        on_time: set[Any] = set()
        before_micros = MIN_MICROS
        for _, event, watermark_micros, outcome in steps_of(case, engine):
            now_micros = watermark_micros if engine == "streaming" or event is None else MIN_MICROS
            for key, pane in panes(outcome):
                end_micros, timing = pane.window.end_micros, pane.info.timing
                if pane.kind.is_retraction:
                    continue
                if end_micros > now_micros:
                    assert timing == EARLY, pane
                elif end_micros <= before_micros:
                    assert timing == LATE, pane
                elif (key, pane.window) in on_time:
                    # A trigger in turns may fire for the end, and again for a percentile that is past it as well.
                    assert timing == LATE, pane
                else:
                    assert (timing, pane.info.nonspeculative_index) == (ON_TIME, 0), pane
                    on_time.add((key, pane.window))
            before_micros = now_micros
