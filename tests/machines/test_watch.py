"""`Watch` poll by poll: what is new, what the watermark promises, when the polls end, and what is remembered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.coders import Coder, StrUtf8Coder
from penstock.coders.typecoders import registry
from penstock.functions.splitting import CallLimits, RestrictionCall, splits_of
from penstock.io import watch
from penstock.io.watch import PollFn, PollResult, TerminationCondition, Watch, after_total_of, never
from penstock.transforms.window import TimestampedValue
from penstock.typehints import Tuple
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp


@dataclass(frozen=True)
class Found:
    """What a poll finds at a time of the clock: values with their times in seconds, or at the end of time."""

    clock: float
    outputs: tuple[tuple[str, float | None], ...]
    watermark: float | None = None
    is_complete: bool = False

    def result(self, kind: Any = PollResult, timed: Any = TimestampedValue, end: Any = MAX_TIMESTAMP) -> Any:
        outputs = [timed(value, end if seconds is None else seconds) for value, seconds in self.outputs]
        if self.is_complete:
            return kind.complete(outputs)
        result = kind.incomplete(outputs)
        return result if self.watermark is None else result.with_watermark(self.watermark)


@dataclass(frozen=True)
class Settings:
    """How an input is watched; times are in seconds, and an input without one is at the beginning of time."""

    total: float | None = None
    by_first_letter: bool = False
    timestamp_cursor: bool = False
    allowed_lateness: float = 0
    began: float | None = 0


@dataclass(frozen=True)
class Polled:
    """What comes of a poll: pairs with their times, the watermark, and whether another poll follows."""

    outputs: list[tuple[Any, float]]
    watermark: float
    goes_on: bool


def first_letter(text: str) -> str:
    return text[:1]


@dataclass
class World:
    """What a poll finds, and the clock: both change between the polls."""

    found: Found = field(default_factory=lambda: Found(0, ()))

    def poll(self, element: str) -> PollResult[str]:
        return self.found.result()  # type: ignore[no-any-return]

    def now(self) -> float:
        return self.found.clock


def dofn_of(transform: Any) -> Any:
    """The splittable DoFn of a `Watch`."""
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(["in"]) | transform
    return next(
        step.primitive.dofn  # type: ignore[union-attr]
        for step in pipeline.to_graph().steps
        if step.label.endswith("/Poll")
    )


def watched(settings: Settings, polls: list[Found]) -> Iterator[Polled]:
    """The polls of one input, with its state written and read again after each, as an engine makes them."""
    world = World()
    dofn = dofn_of(
        Watch(
            world.poll,
            5,
            never() if settings.total is None else after_total_of(settings.total),
            StrUtf8Coder(),
            first_letter if settings.by_first_letter else None,
            timestamp_cursor=settings.timestamp_cursor,
            allowed_lateness=settings.allowed_lateness,
            now_fn=world.now,
        )
    )
    splits = splits_of(dofn)
    [stored] = splits.restrictions("in")
    estimator = splits.estimator_state("in", splits.restored(stored))
    for world.found in polls:
        # A limit of one output must not cut a poll into pieces.
        part = RestrictionCall(splits, splits.restored(stored), estimator, world.now, CallLimits(outputs=1))
        outputs = list(
            part.outputs(
                dofn.process(
                    "in",
                    MIN_TIMESTAMP if settings.began is None else Timestamp(settings.began),
                    part.view,
                    part.estimator,
                )
            )
        )
        watermark = part.watermark_micros()
        assert watermark is not None
        found = [(output.value, float(output.timestamp)) for output in outputs]
        yield Polled(found, watermark / 1e6, part.rest is not None)
        if part.rest is None:
            return
        assert part.wait_seconds() == 5
        stored, estimator = splits.stored(part.rest.restriction), part.estimator_state()


def watched_by_beam(settings: Settings, polls: list[Found]) -> Iterator[Polled]:
    """The same polls by Beam's own loop."""
    from apache_beam.coders import StrUtf8Coder as BeamCoder
    from apache_beam.io import watch as beams
    from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
    from apache_beam.runners.sdf_utils import (
        RestrictionTrackerView,
        ThreadsafeRestrictionTracker,
        ThreadsafeWatermarkEstimator,
    )
    from apache_beam.transforms.window import TimestampedValue as BeamValue
    from apache_beam.utils.timestamp import MAX_TIMESTAMP as BEAM_END
    from apache_beam.utils.timestamp import MIN_TIMESTAMP as BEAM_BEGINNING
    from apache_beam.utils.timestamp import Duration as BeamDuration
    from apache_beam.utils.timestamp import Timestamp as BeamTimestamp

    world = World(polls[0])
    dofn = beams._WatchGrowthDoFn(
        lambda _: world.found.result(beams.PollResult, BeamValue, BEAM_END),
        beams.never() if settings.total is None else beams.after_total_of(settings.total),
        BeamDuration(5),
        BeamCoder(),
        first_letter if settings.by_first_letter else lambda output: output,
        BeamCoder(),
        settings.timestamp_cursor,
        BeamDuration(settings.allowed_lateness),
        world.now,
    )
    coder, stored, state = dofn.restriction_coder(), None, None
    for world.found in polls:
        restriction = dofn.initial_restriction("in") if stored is None else coder.decode(stored)
        tracker = ThreadsafeRestrictionTracker(dofn.create_tracker(restriction))
        estimator = ThreadsafeWatermarkEstimator(ManualWatermarkEstimator(state))
        began = BEAM_BEGINNING if settings.began is None else BeamTimestamp(settings.began)
        outputs = list(dofn.process("in", began, RestrictionTrackerView(tracker), estimator))
        tracker.check_done()
        state = estimator.current_watermark()
        rest = tracker.deferred_status()
        found = [(output.value, output.timestamp.micros / 1e6) for output in outputs]
        yield Polled(found, state.micros / 1e6, rest is not None)
        if rest is None:
            return
        stored = coder.encode(rest[0])


def random_case(seed: int) -> tuple[Settings, list[Found]]:
    """Settings, and what a few polls find: a world that grows, forgets, and finds old things."""
    rng = Random(seed)
    settings = Settings(
        total=rng.choice([None, None, 8, 20]),
        by_first_letter=rng.random() < 0.3,
        timestamp_cursor=rng.random() < 0.5,
        allowed_lateness=rng.choice([0, 0, 3, 100]),
        began=rng.choice([0, 4, None]),
    )
    names = [letter + digit for letter in "abc" for digit in "123"]
    polls, clock = [], 100.0
    for _ in range(rng.randrange(1, 7)):
        clock += rng.choice([1, 4, 9])
        outputs: Any = tuple(
            (name, float(rng.randrange(12))) for name in rng.choices(names, k=rng.randrange(6))
        )
        if rng.random() < 0.05:
            outputs += (("d", None),)
        watermark = rng.choice([None, None, float(rng.randrange(15))])
        polls.append(Found(clock, outputs, watermark, rng.random() < 0.1))
    return settings, polls


SEEDS = range(200)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("apache_beam", "penstock"):
        caplog.set_level(logging.ERROR, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("quiet")
def test_each_poll_comes_out_as_it_does_in_beam() -> None:
    pytest.importorskip("apache_beam")
    for seed in SEEDS:
        settings, polls = random_case(seed)
        assert list(watched(settings, polls)) == list(watched_by_beam(settings, polls)), seed


MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "forgets what was seen": ("_grown", lambda self, growth, new, condition: watch._Growth({}, condition)),
    "knows no allowed lateness": ("_earliest_micros", lambda self, cursor_micros: cursor_micros),
    "forgets nothing": ("_earliest_micros", lambda self, cursor_micros: None),
    "does not sort": (
        "_never_seen",
        lambda self, growth, outputs: {
            output.value.encode(): output for output in outputs if output.value.encode() not in growth.seen
        },
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_comparison_with_beam_finds_a_loop_that_is_wrong(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("apache_beam")
    name, wrong = MUTANTS[mutant]
    monkeypatch.setattr(watch._Poll, name, wrong)
    assert any(list(watched(*case)) != list(watched_by_beam(*case)) for case in map(random_case, SEEDS))


def test_an_output_is_yielded_once_and_at_its_own_time() -> None:
    polls = [Found(0, (("b", 2), ("a", 1))), Found(9, (("a", 1), ("b", 2), ("c", 7)))]
    assert list(watched(Settings(), polls)) == [
        Polled([(("in", "a"), 1), (("in", "b"), 2)], 1, True),
        Polled([(("in", "c"), 7)], 7, True),
    ]


def test_the_last_poll_leaves_nothing_even_if_it_is_slow_and_finds_much() -> None:
    polls = [Found(0, tuple((str(number), number) for number in range(50)), is_complete=True)]
    [polled] = watched(Settings(), polls)
    assert (len(polled.outputs), polled.goes_on) == (50, False)


def test_an_input_that_was_not_polled_waits_at_its_own_time() -> None:
    assert [polled.watermark for polled in watched(Settings(began=7), [Found(0, ())])] == [7]


def test_the_state_is_24_bytes_for_each_output_and_the_same_when_it_is_written_again() -> None:
    coder = watch._GrowthCoder(after_total_of(5))
    sizes = []
    for count in (0, 1, 1000):
        growth = watch._Growth({bytes([number % 256]) * 16: number for number in range(count)}, 7, None)
        written = coder.encode(growth)
        assert coder.decode(written) == growth
        assert coder.encode(coder.decode(written)) == written
        assert list(coder.decode(written).seen) == list(growth.seen)  # type: ignore[union-attr]
        sizes.append(len(written) - 24 * len(growth.seen))
    assert max(sizes) < 16
    assert coder.decode(coder.encode(None)) is None


def test_a_cursor_keeps_the_keys_of_the_latest_time_only() -> None:
    dofn = dofn_of(Watch(untyped_poll, 1, timestamp_cursor=True, allowed_lateness=2))
    new = {bytes([number]): TimestampedValue(number, number) for number in range(100)}
    grown = dofn._grown(watch._Growth({}, 0), new, 0)
    assert sorted(grown.seen.values()) == [97_000_000, 98_000_000, 99_000_000]


def test_values_without_a_time_get_the_same_one() -> None:
    before = Timestamp.now()
    [one, other] = PollResult.incomplete(["a", "b"]).outputs
    assert before <= one.timestamp == other.timestamp <= Timestamp.now()
    [given] = PollResult.complete(["a"], timestamp=7).outputs
    assert given == TimestampedValue("a", 7)


class Letters(PollFn):
    def __call__(self, element: str) -> PollResult[Any]:
        return PollResult.complete(element)

    def default_output_coder(self) -> Coder:
        return StrUtf8Coder()


def typed_poll(element: str) -> PollResult[tuple[str, float]]:
    return PollResult.complete([])


def untyped_poll(element: Any, extra: Any = None) -> Any:
    return PollResult.complete([])


@pytest.mark.parametrize(
    ("poll", "hint"),
    [
        (Letters(), str),
        (typed_poll, Tuple[str, float]),
        (untyped_poll, beam.typehints.Any),
        (partial(untyped_poll, extra=1), beam.typehints.Any),
        (lambda element: PollResult.complete([]), beam.typehints.Any),
    ],
)
def test_the_type_of_the_outputs_comes_from_the_poll_function(poll: Any, hint: Any) -> None:
    found = beam.Pipeline() | beam.Create(["in"]) | Watch(poll, 1)
    assert found.element_type == Tuple[str, hint]
    assert not found.is_bounded


class Slippery(Coder):
    def encode(self, value: Any) -> bytes:
        return b""

    def is_deterministic(self) -> bool:
        return False


class AfterTwo(TerminationCondition):
    """Stops after two polls, with a state of its own kind."""

    def for_new_input(self, now: Timestamp, element: Any) -> Any:
        return {"polls": 0}

    def on_poll_complete(self, state: Any) -> Any:
        return {"polls": state["polls"] + 1}

    def can_stop_polling(self, now: Timestamp, state: Any) -> bool:
        return bool(state["polls"] == 2)


def test_a_condition_of_the_user_has_a_state_that_is_kept() -> None:
    coder = watch._GrowthCoder(AfterTwo())
    growth = watch._Growth({}, {"polls": 1})
    assert coder.decode(coder.encode(growth)) == growth
    assert type(AfterTwo().state_coder()) is type(registry.get_coder(object))


def test_outputs_behind_the_watermark_are_told_once_a_poll(caplog: pytest.LogCaptureFixture) -> None:
    polls = [Found(0, (("secret", 10),)), Found(1, (("secret2", 5), ("secret3", 4)))]
    with caplog.at_level(logging.WARNING):
        list(watched(Settings(), polls))
    [record] = caplog.records
    assert (
        "2 new outputs behind the watermark Timestamp(10), the earliest at Timestamp(4)"
        in record.getMessage()
    )
    assert "secret" not in record.getMessage()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        list(watched(Settings(began=20), [replace(polls[1])]))
    assert not caplog.records, "the watermark is still the one of the input"


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ({"poll_interval": None}, ValueError, "Watch requires a poll_interval"),
        ({"poll_interval": -1}, ValueError, "Watch poll_interval must not be negative: -1"),
        ({"allowed_lateness": Duration(-1)}, ValueError, "Watch allowed_lateness must not be negative"),
        ({"termination": 60}, TypeError, "(?s)termination=60 is not a TerminationCondition.*after_total_of"),
        ({"poll_fn": "poll"}, TypeError, "Watch needs a poll function, but got a str"),
        ({"output_key_coder": Slippery()}, ValueError, "(?s)Slippery is not deterministic.*output_key_coder"),
    ],
)
def test_a_watch_that_cannot_work_is_refused_where_it_is_written(
    arguments: dict[str, Any], kind: type[Exception], told: str
) -> None:
    given: dict[str, Any] = {"poll_fn": untyped_poll, "poll_interval": 1} | arguments
    with pytest.raises(kind, match=told):
        _ = beam.Pipeline() | beam.Create(["in"]) | Watch(**given)


def test_a_poll_that_returns_something_else_is_refused() -> None:
    wrong: Any = list
    dofn = dofn_of(Watch(wrong, 1))
    with pytest.raises(
        TypeError, match=r"(?s)returns a PollResult, not a list.*PollResult.incomplete\(outputs\)"
    ):
        dofn._polled("in")
    with pytest.raises(TypeError, match="an output of a PollResult has no time: it is a str"):
        PollResult(("a",))  # type: ignore[arg-type]
