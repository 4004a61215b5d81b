"""The machine of a splittable DoFn: when it is called, what leaves it and when, and what it holds back."""

from __future__ import annotations

import pickle
from threading import Lock
from typing import Any

import pytest

import penstock as beam
from penstock.coders import Coder
from penstock.functions.splitting import MOST_RESTRICTIONS, CallLimits, splits_of
from penstock.io.custom.restrictions import WatermarkEstimator
from penstock.io.restriction_trackers import (
    OffsetRange,
    OffsetRestrictionTracker,
    UnsplittableRestrictionTracker,
)
from penstock.io.watermark_estimators import ManualWatermarkEstimator, MonotonicWatermarkEstimator
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Element, MethodOutput, Times
from penstock.machines.splittable import DRAIN, SplittableMachine
from penstock.machines.trigger_machine import CLOCK, WATERMARK
from penstock.transforms.core import ProcessContinuation, RestrictionProvider, WatermarkEstimatorProvider
from penstock.transforms.window import GlobalWindow, IntervalWindow, TimestampedValue
from penstock.utils.timestamp import Duration, Timestamp

SECOND = 1_000_000
END = 10**9


class Ranges(RestrictionProvider):
    """An element is the number of positions; None for a log without end."""

    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, END if element is None else element)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def truncate(self, element: Any, restriction: Any) -> Any:
        return None if element is None else restriction


WORLD: list[Any] = []
"""What the DoFns of these tests read: it changes behind their backs."""


class Tail(beam.DoFn):
    """Gives each record of the world with its position, and looks again after five seconds."""

    def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
        position = tracker.current_restriction().start
        while position < len(WORLD) or position >= tracker.current_restriction().stop:
            if not tracker.try_claim(position):
                return
            yield position, WORLD[position]
            position += 1
        tracker.defer_remainder(Duration(5))


class Timed(beam.DoFn):
    """Gives numbers at their own times."""

    def process(
        self,
        element: Any,
        tracker: Any = beam.DoFn.RestrictionParam(Ranges()),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(MonotonicWatermarkEstimator.default_provider()),
    ) -> Any:
        for number in range(tracker.current_restriction().start, element):
            if not tracker.try_claim(number):
                return
            yield TimestampedValue(number, number)


class Calls:
    """A DoFn as the machine calls it, with a clock that goes on by `step` with each look."""

    def __init__(self, dofn: beam.DoFn, step: float = 0.0) -> None:
        self.dofn = dofn
        self.splits = splits_of(dofn)
        self.calls = 0
        self.step = step
        self.now = 100.0
        self.finalized = 0

    def process(self, element: Element, part: Any) -> Any:
        self.calls += 1
        arguments = [part.view]
        if part.estimator is not None:
            arguments.append(part.estimator)
        if getattr(self.dofn, "finalizes", False):
            arguments.append(part.finalizer)
        return self.dofn.process(element.value, *arguments)

    def finalize(self, callbacks: Any) -> None:
        self.finalized += len(callbacks)

    def seconds(self) -> float:
        self.now += self.step
        return self.now

    dumps = staticmethod(pickle.dumps)
    loads = staticmethod(pickle.loads)


class Run:
    """A machine with one restriction, whose state is committed after each step, as an engine does."""

    def __init__(
        self, dofn: beam.DoFn, element: Any, limits: CallLimits = CallLimits(), **options: Any
    ) -> None:
        self.code = options.pop("code", None) or Calls(dofn)
        self.machine = SplittableMachine(self.code, limits, **options)
        self.state = self.machine.new_key("k")
        stored = next(self.code.splits.restrictions(element))
        windows = (IntervalWindow(0, 20), GlobalWindow())
        assert not self.machine.element(self.state, Element((element, stored), 7 * SECOND, windows), at(0))

    def clock(self, seconds: float) -> list[Any]:
        self.state = self.machine.restore(self.machine.snapshot(self.state))
        return results(self.machine.advance_clock(self.state, at(seconds)))

    def hold(self) -> float | None:
        micros = self.machine.hold_micros(self.state)
        return None if micros is None else micros / SECOND

    def due(self) -> float:
        micros = self.machine.alarm_micros(self.state, CLOCK)
        assert micros is not None
        return micros / SECOND

    def to_the_end(self) -> list[list[Any]]:
        parts = []
        while self.state.windows:
            parts.append(self.clock(self.due()))
        return parts


def at(clock: float) -> Times:
    return Times(MIN_MICROS, round(clock * SECOND))


def results(reactions: list[Any]) -> list[Any]:
    return [result for one in reactions if isinstance(one, MethodOutput) for result in one.results]


@pytest.fixture(autouse=True)
def world() -> list[Any]:
    WORLD[:] = ["a", "b"]
    return WORLD


def test_outputs_leave_at_the_next_time_and_the_next_call_waits_as_long_as_it_was_asked_to():
    run = Run(Tail(), None)
    assert (run.code.calls, run.due()) == (1, 1e-6)
    assert run.clock(1) == [(0, "a"), (1, "b")]
    assert (run.code.calls, run.due()) == (1, 5)
    WORLD.append("c")
    assert run.clock(5) == []
    assert run.code.calls == 2
    assert run.clock(6) == [(2, "c")]
    assert run.due() == 10


def test_outputs_that_were_stored_are_the_same_whatever_the_world_says_when_the_step_is_repeated():
    run = Run(Tail(), None)
    committed = run.machine.snapshot(run.state)
    WORLD[:] = ["x"]
    for _ in range(2):
        state = run.machine.restore(committed)
        assert results(run.machine.advance_clock(state, at(6))) == [(0, "a"), (1, "b")]


def test_a_call_that_was_not_committed_has_never_been_seen():
    run = Run(Tail(), None)
    run.clock(1)
    committed = run.machine.snapshot(run.state)
    WORLD.append("c")
    run.clock(5)
    WORLD[2:] = ["d"]
    run.state = run.machine.restore(committed)
    assert (run.clock(5), run.clock(6)) == ([], [(2, "d")])


def test_nothing_leaves_at_the_times_that_are_committed_together():
    run = Run(Tail(), None, through_micros=4 * SECOND)
    assert run.due() == pytest.approx(4, abs=1e-5)
    assert run.clock(4) == []
    assert run.clock(5) == [(0, "a"), (1, "b")]


def test_outputs_belong_to_the_element_s_windows_and_time():
    run = Run(Tail(), None)
    [given] = run.machine.advance_clock(run.state, at(1))
    assert given.timestamp_micros == 7 * SECOND
    assert (given.window, *given.more_windows) == (IntervalWindow(0, 20), GlobalWindow())


@pytest.mark.parametrize(("limits", "step"), [(CallLimits(outputs=2), 0.0), (CallLimits(seconds=3), 1.0)])
def test_a_call_ends_at_its_limits_and_the_rest_follows_at_once(limits, step):
    run = Run(Timed(), 5, limits, code=Calls(Timed(), step))
    parts = [[one.value for one in part] for part in run.to_the_end()]
    assert [number for part in parts for number in part] == [0, 1, 2, 3, 4]
    assert len(parts) > 2
    assert max(map(len, parts)) <= 3


def test_time_is_looked_at_with_each_claim_even_without_outputs():
    class Quiet(Timed):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
            position = tracker.current_restriction().start
            while tracker.try_claim(position):
                position += 1

    code = Calls(Quiet(), 1.0)
    assert Run(Quiet(), 50, CallLimits(seconds=10), code=code).to_the_end() == [[]] * code.calls
    assert code.calls > 4


def test_without_an_estimator_the_element_s_time_is_held_until_the_restriction_is_done():
    run = Run(Tail(), None)
    assert [run.hold(), run.clock(1) and run.hold(), run.clock(2) or run.hold()] == [7, 7, 7]
    run = Run(Tail(), 2)
    run.to_the_end()
    assert run.hold() is None
    assert run.machine.next_timers(run.state) == ({}, None)


def test_a_watermark_is_reported_with_the_outputs_that_were_made_before_it():
    run = Run(Timed(), 5, CallLimits(outputs=2))
    assert run.hold() == MIN_MICROS / SECOND
    holds = []
    while run.state.windows:
        run.clock(run.due())
        holds.append(run.hold())
    assert holds == [1, 3, None]


def test_the_end_of_time_is_not_reached_before_the_restriction_is_done():
    class Boasting(Tail):
        def process(
            self,
            element: Any,
            tracker: Any = beam.DoFn.RestrictionParam(Ranges()),
            estimator: Any = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider()),
        ) -> Any:
            estimator.set_watermark(Timestamp.from_micros(MAX_MICROS))
            tracker.try_claim(tracker.current_restriction().start)
            return [ProcessContinuation.resume(3)]

    run = Run(Boasting(), None)
    assert run.clock(1) == []
    assert run.machine.hold_micros(run.state) == MAX_MICROS - 1
    assert run.due() == 3


class Backwards(WatermarkEstimator):
    def __init__(self, state: int) -> None:
        self.state = state

    def current_watermark(self) -> Any:
        return Timestamp(self.state)

    def get_estimator_state(self) -> Any:
        return self.state - 1

    def observe_timestamp(self, timestamp: Any) -> None:
        pass


class GoesBack(WatermarkEstimatorProvider):
    def initial_estimator_state(self, element: Any, restriction: Any) -> Any:
        return 10

    def create_watermark_estimator(self, estimator_state: Any) -> Any:
        return Backwards(estimator_state)


def test_a_watermark_that_goes_back_is_an_error():
    class Back(Timed):
        def process(
            self,
            element: Any,
            tracker: Any = beam.DoFn.RestrictionParam(Ranges()),
            estimator: Any = beam.DoFn.WatermarkEstimatorParam(GoesBack()),
        ) -> Any:
            yield from super().process(element, tracker, estimator)

    run = Run(Back(), 5, CallLimits(outputs=2))
    with pytest.raises(ValueError, match=r"watermark of Backwards goes back from Timestamp\(10\)"):
        run.clock(1)


def test_the_end_of_the_input_does_not_end_a_restriction():
    run = Run(Tail(), None)
    assert run.machine.advance_watermark(run.state, Times(MAX_MICROS, 0)) == []
    assert run.machine.alarm_micros(run.state, WATERMARK) is None
    assert run.machine.end_micro_batch(run.state, at(0)) == []
    assert run.clock(1) == [(0, "a"), (1, "b")]
    assert run.state.windows


def test_a_drain_gives_what_is_stored_and_leaves_what_truncate_says():
    run = Run(Tail(), None)
    run.machine.signal(run.state, "another signal", at(1))
    run.machine.signal(run.state, DRAIN, at(1))
    assert run.to_the_end() == [[(0, "a"), (1, "b")]]
    bounded = Run(Timed(), 5, CallLimits(outputs=2))
    bounded.machine.signal(bounded.state, DRAIN, at(1))
    assert [one.value for part in bounded.to_the_end() for one in part] == [0, 1, 2, 3, 4]


def test_a_drain_does_not_wait_until_a_restriction_would_be_taken_up_again():
    class Half(Ranges):
        def truncate(self, element: Any, restriction: Any) -> Any:
            return OffsetRange(restriction.start, restriction.start + 1)

    class Last(Tail):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Half())) -> Any:
            yield from super().process(element, tracker)

    run = Run(Last(), None)
    run.clock(1)
    assert run.due() == 5
    WORLD.append("c")
    for _ in range(2):
        run.machine.signal(run.state, DRAIN, at(2))
    assert run.due() < 2.1
    assert run.to_the_end() == [[], [(2, "c")]]


def test_an_element_that_comes_to_a_drained_stream_is_truncated_at_once():
    assert Run(Tail(), None, is_draining=True).to_the_end() == [[]]
    assert [one.value for one in Run(Timed(), 2, is_draining=True).to_the_end()[0]] == [0, 1]


class Locked:
    def __init__(self) -> None:
        self.lock = Lock()
        self.start, self.stop = 0, 2


def test_what_cannot_be_pickled_is_an_error_that_names_its_type():
    class Unstorable(Ranges):
        def initial_restriction(self, element: Any) -> Any:
            return Locked()

    class Reading(Tail):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Unstorable())) -> Any:
            yield 1

    with pytest.raises(
        TypeError, match=r"(?s)a restriction of type Locked cannot be pickled.*restriction_coder"
    ):
        Run(Reading(), None)

    class Giving(Tail):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
            while tracker.try_claim(0):
                yield 1
                yield Lock()
                return

    with pytest.raises(TypeError, match="an output of type lock cannot be pickled"):
        Run(Giving(), 1)


def test_a_restriction_with_a_coder_of_its_own_need_not_be_pickled():
    class LockedCoder(Coder):
        def encode(self, value: Any) -> bytes:
            return b"%d" % value.start

        def decode(self, encoded: bytes) -> Any:
            made = Locked()
            made.start = int(encoded)
            return made

    class Storable(Ranges):
        def initial_restriction(self, element: Any) -> Any:
            return Locked()

        def restriction_coder(self) -> Any:
            return LockedCoder()

        def create_tracker(self, restriction: Any) -> Any:
            return OffsetRestrictionTracker(OffsetRange(restriction.start, restriction.stop))

    class Reading(Tail):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Storable())) -> Any:
            yield from super().process(element, tracker)

    assert Run(Reading(), None).to_the_end() == [[(0, "a"), (1, "b")]]


def test_mistakes_of_trackers_and_of_their_users_are_errors():
    class Scripted(beam.DoFn):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
            for position in element:
                tracker.try_claim(position)
                yield position

    class Few(Ranges):
        def initial_restriction(self, element: Any) -> Any:
            return OffsetRange(0, 5)

    class Claims(Scripted):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Few())) -> Any:
            yield from super().process(element, tracker)

    with pytest.raises(ValueError, match="strictly increase"):
        Run(Claims(), [1, 0])
    with pytest.raises(ValueError, match=r"work in range \[1, 5\) has not been claimed"):
        Run(Claims(), [0, 1])
    with pytest.raises(ValueError, match="process continues after the rest of its restriction was split off"):
        Run(Claims(), range(1000), CallLimits(outputs=3))


def test_one_position_may_have_many_outputs():
    class Listing(beam.DoFn):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
            position = tracker.current_restriction().start
            while tracker.try_claim(position):
                yield from range(position, 1000, 2)
                position += 1

    # The rest of the range is split off while the outputs of its first position are made.
    run = Run(Listing(), 2, CallLimits(outputs=3))
    assert run.to_the_end() == [[*range(0, 1000, 2)], [*range(1, 1000, 2)]]


class Endless(OffsetRestrictionTracker):
    """Says yes to every claim."""

    def try_claim(self, position: Any) -> bool:
        super().try_claim(position)
        return True


def test_a_tracker_that_allows_claims_beyond_its_split_is_an_error():
    class Wrong(Ranges):
        def create_tracker(self, restriction: Any) -> Any:
            return Endless(restriction)

    class Reading(Tail):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Wrong())) -> Any:
            yield from super().process(element, tracker)

    with pytest.raises(ValueError, match=r"Endless\.try_claim is true after the rest was split off"):
        Run(Reading(), None, CallLimits(outputs=1))


def test_a_tracker_that_refuses_to_split_goes_on():
    class Whole(Ranges):
        def create_tracker(self, restriction: Any) -> Any:
            return UnsplittableRestrictionTracker(OffsetRestrictionTracker(restriction))

    class Reading(Timed):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Whole())) -> Any:
            yield from super().process(element, tracker)

    assert [
        [one.value for one in part] for part in Run(Reading(), 5, CallLimits(outputs=2)).to_the_end()
    ] == [[0, 1, 2, 3, 4]]


def test_a_split_without_end_is_an_error():
    class Cutting(Ranges):
        def split(self, element: Any, restriction: Any) -> Any:
            while True:
                yield restriction

    class Reading(Timed):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Cutting())) -> Any:
            return []

    parts = splits_of(Reading()).restrictions(3)
    assert [next(parts) for _ in range(MOST_RESTRICTIONS)]
    with pytest.raises(ValueError, match=r"Cutting\.split returns more than 100,000 restrictions"):
        next(parts)


def test_a_continuation_and_a_time_to_resume_say_when_the_rest_is_taken_up():
    class Later(beam.DoFn):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Ranges())) -> Any:
            tracker.try_claim(tracker.current_restriction().start)
            yield 1
            if element is None:
                yield ProcessContinuation.resume(3)
                raise AssertionError("a continuation comes last")
            tracker.defer_remainder(Timestamp(60))

    run = Run(Later(), None)
    assert (run.clock(1), run.due()) == ([1], 3)
    run = Run(Later(), 9)
    assert (run.clock(1), run.due()) == ([1], 60)


def test_callbacks_run_when_their_outputs_leave():
    class Acknowledging(Tail):
        finalizes = True

        def process(
            self,
            element: Any,
            tracker: Any = beam.DoFn.RestrictionParam(Ranges()),
            finalizer: Any = beam.DoFn.BundleFinalizerParam,
        ) -> Any:
            finalizer.register(print)
            yield from super().process(element, tracker)

    run = Run(Acknowledging(), None)
    assert run.code.finalized == 0
    run.clock(1)
    assert run.code.finalized == 1


def test_a_dofn_that_is_its_own_provider_needs_no_other_and_one_without_any_is_refused():
    class Both(beam.DoFn, Ranges):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam()) -> Any:
            yield element

    both = Both()
    assert splits_of(both).provider is both

    class Neither(beam.DoFn):
        def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam()) -> Any:
            yield element

    with pytest.raises(ValueError, match="does not define the restrictions"):
        splits_of(Neither())


def test_a_state_of_another_version_is_refused():
    machine = SplittableMachine(Calls(Tail()))
    with pytest.raises(ValueError, match="the state of a restriction has the format"):
        machine.restore(b"\x00")
