"""What single triggers say, each with the statement of the paper, the patent or the book that it follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from penstock.machines.records import EndMicroBatch, Signal
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import (
    FINISHED,
    AfterAll,
    AfterAny,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterEach,
    AfterPattern,
    AfterProcessingTime,
    AfterPunctuation,
    AfterSignal,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    CustomTrigger,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
)
from penstock.transforms.window import Sessions
from tests.machines.generated import Sum
from tests.machines.generated_triggers import AfterQuiet
from tests.machines.shorthand import (
    ACCUMULATING,
    DISCARDING,
    clock,
    element,
    in_one,
    in_tens,
    shown,
    told,
    watermark,
    windowed,
)


def test_the_default_trigger_fires_at_the_end_and_at_once_for_each_late_element() -> None:
    """Paper, section 2.4: late data fire at once, as the watermark has passed already."""
    assert told(
        in_tens(None), element("a", 3), watermark(10), element("b", 4), watermark(11), element("c", 5)
    ) == [
        "1: ['a'] [0.0, 10.0) on time",
        "2: ['a', 'b'] [0.0, 10.0) late",
        "4: ['a', 'b', 'c'] [0.0, 10.0) late",
    ]


def test_the_watermark_passes_the_end_when_it_comes_to_it() -> None:
    """Streaming Systems, chapter 2: no more elements before the watermark, so none in a window that ends there."""
    assert told(in_tens(None), element("a", 3), watermark(9.999999), watermark(10)) == [
        "2: ['a'] [0.0, 10.0) on time"
    ]


def test_the_watermark_alone_fires_once_and_later_elements_are_dropped() -> None:
    """The patent's ``windowBy`` with one argument."""
    windowing = in_tens(AfterWatermark())
    assert told(windowing, element("a", 3), watermark(10), element("b", 4)) == [
        "1: ['a'] [0.0, 10.0) on time",
        "2: FINISHED 'b'",
    ]


def test_a_percentile_fires_before_the_watermark_and_at_once_when_it_is_past() -> None:
    """Paper, section 2.3; patent: enough of the input is enough; stragglers need not be waited for."""
    windowing = in_tens(Repeatedly(AfterWatermarkPercentile(0.5)), DISCARDING)
    assert told(
        windowing,
        element("a", 3),
        watermark(0, p50=9),
        watermark(2, p50=10),
        element("b", 4),
        watermark(20, p50=20),
    ) == ["2: ['a'] [0.0, 10.0) early", "3: ['b'] [0.0, 10.0) early"]


def test_the_watermark_stands_in_for_a_percentile_that_nobody_tells() -> None:
    """Streaming Systems, chapter 3: a percentile is never behind the watermark."""
    windowing = in_tens(Repeatedly(AfterWatermarkPercentile(0.5)))
    assert told(windowing, element("a", 3), watermark(10)) == ["1: ['a'] [0.0, 10.0) on time"]


def test_the_watermark_of_a_percentile_does_not_go_back() -> None:
    """Streaming Systems, chapter 3: watermarks are monotone."""
    windowing = in_tens(Repeatedly(AfterWatermarkPercentile(0.5)), DISCARDING)
    events = (element("a", 3), watermark(0, p50=10), watermark(1), element("b", 3))
    assert shown(windowing, *events) == [(1, ["a"]), (3, ["b"])]


def test_each_percentile_in_turn_and_then_one_pane_for_each_late_element() -> None:
    """Patent: at 95 percent, at all of it, and one update for each late element."""
    trigger = AfterEach(
        AfterWatermarkPercentile(0.95), AfterWatermarkPercentile(1.0), Repeatedly(AfterWatermark())
    )
    assert told(
        in_tens(trigger),
        element("a", 3),
        watermark(2, p95=10),
        element("b", 4),
        watermark(10, p95=12),
        element("c", 5),
        element("d", 6),
    ) == [
        "1: ['a'] [0.0, 10.0) early",
        "3: ['a', 'b'] [0.0, 10.0) on time",
        "4: ['a', 'b', 'c'] [0.0, 10.0) late",
        "5: ['a', 'b', 'c', 'd'] [0.0, 10.0) late",
    ]


def test_an_aligned_delay_fires_at_full_periods_where_something_is_new() -> None:
    """Paper, figures 7 and 13: not so long after the first element, and not for windows that have not changed."""
    windowing = in_one(Repeatedly(AfterProcessingTime.aligned_to(60)))
    events = (element("a", clock=59), clock(70), clock(130), element("b", clock=150), clock(179), clock(180))
    assert shown(windowing, *events) == [(1, ["a"]), (5, ["a", "b"])]


def test_an_element_on_the_boundary_of_a_period_is_in_its_pane() -> None:
    """The figures of the paper: at one instant elements come first, then the watermark, then timers."""
    windowing = in_one(Repeatedly(AfterProcessingTime.aligned_to(60)), DISCARDING)
    events = (element("a", clock=50), element("b", clock=60), element("c", clock=61))
    assert shown(windowing, *events) == [(2, ["a", "b"])]
    assert shown(windowing, element("a", clock=60), clock(60)) == [(1, ["a"])]


def test_a_pane_is_due_every_day_at_eight() -> None:
    """The patent's example of a period with a reference."""
    day, hour = 86400, 3600
    windowing = in_one(Repeatedly(AfterProcessingTime.aligned_to(day, offset=8 * hour)), DISCARDING)
    events = (
        element("a", clock=7 * hour),
        clock(8 * hour),
        element("b", clock=9 * hour),
        clock(32 * hour - 1),
    )
    assert shown(windowing, *events, clock(32 * hour)) == [(1, ["a"]), (4, ["b"])]


def test_a_delay_counts_from_the_first_element_of_a_pane_and_later_ones_do_not_put_it_off() -> None:
    """Streaming Systems, chapter 2: the unaligned delay, which each firing sets anew with the next element."""
    windowing = in_one(Repeatedly(AfterProcessingTime(10)), DISCARDING)
    events = (
        element("a", clock=0),
        element("b", clock=9),
        clock(10),
        element("c", clock=15),
        clock(24),
        clock(25),
    )
    assert shown(windowing, *events) == [(2, ["a", "b"]), (5, ["c"])]


def test_counts_bytes_and_marks_fire_on_the_element_that_completes_them() -> None:
    """Paper, section 2.3 and figure 9: the triggers of data arrival, element by element."""
    values = [element(value) for value in ("ab", "c", "end", "d")]
    for trigger, expected in (
        (AfterCount(2), [(1, ["ab", "c"]), (3, ["end", "d"])]),
        (AfterBytes(3, len), [(1, ["ab", "c"]), (2, ["end"])]),
        (AfterPunctuation(lambda value: value == "end"), [(2, ["ab", "c", "end"])]),
    ):
        assert shown(in_one(Repeatedly(trigger), DISCARDING), *values) == expected


def test_a_pattern_may_have_gaps_unless_it_must_not() -> None:
    """Paper, section 2.3: pattern matching."""
    values = [element(value) for value in ("open", "x", "close", "open", "close")]
    parts = (lambda value: value == "open", lambda value: value == "close")
    with_gaps = in_one(Repeatedly(AfterPattern(*parts)), DISCARDING)
    assert shown(with_gaps, *values) == [(2, ["open", "x", "close"]), (4, ["open", "close"])]
    without = in_one(Repeatedly(AfterPattern(*parts, contiguous=True)), DISCARDING)
    assert shown(without, *values) == [(4, ["open", "x", "close", "open", "close"])]


def test_a_signal_fires_all_windows_and_another_one_none() -> None:
    """Paper, section 2.3: external signals."""
    windowing = in_tens(Repeatedly(AfterSignal("flush")), DISCARDING)
    events = (element("a", 13), element("b", 3), Signal("something else"), Signal("flush"), Signal("flush"))
    assert told(windowing, *events) == ["3: ['b'] [0.0, 10.0) early", "3: ['a'] [10.0, 20.0) early"]


def test_the_final_trigger_of_a_loop_gives_a_pane_itself_and_ends_it() -> None:
    """Paper, figure 13: ``RepeatUntil``, whose ``until`` gives a pane."""
    windowing = in_one(OrFinally(Repeatedly(AfterCount(2)), AfterPunctuation(lambda value: value == "end")))
    events = [element(value) for value in ("a", "b", "end", "c")]
    assert told(windowing, *events) == [
        "1: ['a', 'b'] GlobalWindow early",
        "2: ['a', 'b', 'end'] GlobalWindow early",
        "3: FINISHED 'c'",
    ]


def test_a_sequence_fires_each_part_in_turn_and_is_then_over() -> None:
    """Paper, section 2.3; also the patent's ``RepeatCount``, as a sequence of the same part."""
    windowing = in_one(AfterEach(AfterCount(1), AfterCount(2), AfterCount(2)), DISCARDING)
    events = [element(number) for number in range(6)]
    assert told(windowing, *events) == [
        "0: [0] GlobalWindow early",
        "2: [1, 2] GlobalWindow early",
        "4: [3, 4] GlobalWindow early",
        "5: FINISHED 5",
    ]


def test_all_waits_for_the_last_part_and_any_for_the_first() -> None:
    """Paper, section 2.3: logical and, or."""
    events = (element("a", clock=0), clock(5), element("b", clock=5.000001), element("c", clock=6))
    both = AfterAll(AfterCount(2), AfterProcessingTime(5))
    assert shown(in_one(Repeatedly(both), DISCARDING), *events) == [(2, ["a", "b"])]
    either = AfterAny(AfterCount(2), AfterProcessingTime(5))
    assert shown(in_one(Repeatedly(either), DISCARDING), *events) == [(1, ["a"]), (3, ["b", "c"])]


def test_on_time_then_every_ten_seconds_for_late_elements() -> None:
    """Two of the patent's examples; and no pane comes where nothing is new."""
    windowing = in_tens(AfterWatermark(late=AfterProcessingTime.aligned_to(10)), DISCARDING)
    events = (
        element("a", 3, 0),
        watermark(10, 1),
        element("b", 4, 2),
        element("c", 5, 3),
        clock(10),
        clock(20),
    )
    assert told(windowing, *events) == [
        "1: ['a'] [0.0, 10.0) on time",
        "4: ['b', 'c'] [0.0, 10.0) late",
    ]


def test_early_firings_end_at_the_end_of_the_window() -> None:
    """Streaming Systems, chapter 2: early panes, at most one on time, late panes."""
    windowing = in_tens(AfterWatermark(early=AfterCount(2), late=AfterCount(1)), DISCARDING)
    events = (element(1, 1), element(2, 2), element(3, 3), watermark(10), element(4, 4), element(5, 5))
    assert told(windowing, *events) == [
        "1: [1, 2] [0.0, 10.0) early",
        "3: [3] [0.0, 10.0) on time",
        "4: [4] [0.0, 10.0) late",
        "5: [5] [0.0, 10.0) late",
    ]


def test_sessions_that_merge_late_fire_one_pane_for_the_merged_one() -> None:
    """The trigger of the paper's figure 14, with two sessions that have had their panes; the patent's ``onMerge``."""
    until = OrFinally(Repeatedly(AfterProcessingTime.aligned_to(60)), AfterWatermark())
    windowing = windowed(Sessions(10), AfterEach(until, Repeatedly(AfterWatermark())))
    events = (element("a", 0), element("b", 15), watermark(40), element("c", 8))
    assert told(windowing, *events) == [
        "2: ['a'] [0.0, 10.0) on time",
        "2: ['b'] [15.0, 25.0) on time",
        "3: ['a', 'b', 'c'] [0.0, 25.0) late",
    ]


def test_a_session_that_grows_past_the_watermark_is_early_again() -> None:
    """Streaming Systems, chapter 4: lateness is judged for the merged window."""
    windowing = windowed(Sessions(10), AfterWatermark(early=AfterCount(1), late=AfterCount(1)), DISCARDING)
    events = (element("a", 0), watermark(12), element("b", 5), watermark(15))
    assert told(windowing, *events) == ["0: ['a'] [0.0, 10.0) early", "2: ['b'] [0.0, 15.0) early"]


def test_never_gives_all_at_the_closing_and_always_at_each_element() -> None:
    events = (element("a", 3), watermark(10), element("b", 4), watermark(15))
    assert told(in_tens(Never(), lateness=5), *events) == ["3: ['a', 'b'] [0.0, 10.0) late"]
    assert shown(in_tens(Always(), DISCARDING), *events) == [(0, ["a"]), (2, ["b"])]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(ACCUMULATING, [(1, 12), (4, 24)]), (DISCARDING, [(1, 12), (4, 12)])],
)
def test_a_difference_is_measured_from_the_last_pane_or_where_nothing_is_kept_from_the_start(
    mode: Any, expected: list[Any]
) -> None:
    events = [element(value) for value in (10, 2, 5, 5, 2)]
    assert shown(in_one(AfterDelta(11), mode), *events, combine=Sum()) == expected


class WhenOdd(CustomTrigger):
    def should_fire(self, state: Any, context: Any) -> bool:
        return bool(context.value % 2)

    def on_merge(self, states: list[Any], context: Any) -> None:
        return None


def test_a_trigger_of_ones_own_may_look_at_the_result_after_elements_and_merges() -> None:
    """The patent's ``ResultIsOdd``."""
    events = [element(value) for value in (2, 2, 1, 2, 1)]
    assert shown(in_one(Repeatedly(WhenOdd())), *events, combine=Sum()) == [(2, 5), (3, 7)]
    merging = windowed(Sessions(10), Repeatedly(WhenOdd()), DISCARDING)
    assert shown(merging, element(2, 0), element(4, 15), element(1, 8), combine=Sum()) == [(2, 7)]


def test_a_new_timer_replaces_the_one_before() -> None:
    """Patent: timers by tag; here, one for each clock."""
    windowing = in_one(Repeatedly(AfterQuiet(3)), DISCARDING)
    events = (element("a", clock=0), element("b", clock=2), clock(4), clock(5))
    assert shown(windowing, *events) == [(3, ["a", "b"])]


@dataclass(frozen=True)
class Waiting(CustomTrigger):
    """Sets a timer of each clock, and notes which has rung."""

    seconds: float
    time_domain: str

    def on_element(self, state: Any, element: Any, context: Any) -> Any:
        context.set_timer(self.seconds, self.time_domain)
        return state

    def on_timer(self, state: Any, timer: Any, context: Any) -> Any:
        return timer.time_domain, timer.timestamp

    def should_fire(self, state: Any, context: Any) -> bool:
        return state is not None


@pytest.mark.parametrize(("time_domain", "step"), [(TimeDomain.WATERMARK, 1), (TimeDomain.REAL_TIME, 2)])
def test_a_timer_rings_by_its_own_clock(time_domain: str, step: int) -> None:
    """Patent: several clocks at once."""
    windowing = in_tens(Waiting(6, time_domain))
    assert shown(windowing, element("a", 3, 0), watermark(6), clock(6)) == [(step, ["a"])]


def test_a_timer_that_is_set_in_the_past_rings_when_its_clock_moves() -> None:
    windowing = in_tens(Waiting(6, TimeDomain.WATERMARK))
    assert shown(windowing, watermark(8), element("a", 9), element("b", 9), watermark(8.5)) == [
        (3, ["a", "b"])
    ]


def test_a_timer_by_the_watermark_rings_at_the_end_of_a_round() -> None:
    """Paper, section 2.4: the watermark of a round stays at the beginning of time until the round ends."""
    windowing = in_tens(Waiting(6, TimeDomain.WATERMARK))
    assert shown(windowing, element("a", 3), watermark(9), EndMicroBatch(), engine="micro_batch") == [
        (2, ["a"])
    ]


class Hasty(CustomTrigger):
    def on_element(self, state: Any, element: Any, context: Any) -> Any:
        return FINISHED

    def should_fire(self, state: Any, context: Any) -> bool:
        return False


def test_only_a_firing_can_finish_a_trigger_of_ones_own() -> None:
    with pytest.raises(ValueError, match="FINISHED"):
        told(in_one(Hasty()), element("a"))


def test_a_trigger_of_ones_own_that_cannot_merge_says_so() -> None:
    class Fixed(CustomTrigger):
        def should_fire(self, state: Any, context: Any) -> bool:
            return False

    with pytest.raises(NotImplementedError, match="when windows merge"):
        told(windowed(Sessions(10), Fixed()), element("a", 0), element("b", 5))


def test_on_merge_sees_the_merged_window() -> None:
    seen = []

    class Curious(CustomTrigger):
        def on_merge(self, states: list[Any], context: Any) -> Any:
            seen.append((str(context.window), context.count, context.value))

        def should_fire(self, state: Any, context: Any) -> bool:
            return False

    told(windowed(Sessions(10), Curious()), element("a", 0), element("b", 15), element("c", 8))
    assert seen == [("[0.0, 25.0)", 2, ["a", "b"])]


def test_the_default_trigger_is_the_repeated_watermark() -> None:
    """Paper, section 2.4."""
    events = (element("a", 3), watermark(10), element("b", 4), element("c", 13), watermark(30))
    repeated = told(in_tens(Repeatedly(AfterWatermark())), *events)
    assert told(in_tens(DefaultTrigger()), *events) == repeated
    assert len(repeated) == 3
