"""Asynchronous DoFns with the real compiler and the real workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

import penstock as beam
from penstock.elements.tagged_output import TaggedOutput
from penstock.metrics import Metrics
from penstock.options.pipeline_options import PipelineOptions
from penstock.pvalue import AsSingleton
from penstock.transforms.window import FixedWindows, SlidingWindows, TimestampedValue
from penstock.utils.windowed_value import WindowedValue
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain

under_way = 0
most_under_way = 0
calls: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    global under_way, most_under_way
    under_way = most_under_way = 0
    calls.clear()


def note(call: Any) -> None:
    """Local functions travel with copies of the globals that they use; this one does not."""
    calls.append(call)


def times(call: Any) -> int:
    return calls.count(call)


async def slowly(element: Any, seconds: float = 0.005) -> Any:
    """Doubles a number, and counts how many calls are under way."""
    global under_way, most_under_way
    under_way += 1
    most_under_way = max(most_under_way, under_way)
    calls.append(element)
    try:
        await asyncio.sleep(seconds)
    finally:
        under_way -= 1
    return element * 2


async def is_even(element: int) -> bool:
    await asyncio.sleep(0)
    return element % 2 == 0


async def both(first: Any, second: Any) -> list[Any]:
    await asyncio.sleep(0)
    return [first, second]


async def up_to(element: int) -> AsyncIterator[int]:
    for number in range(element):
        await asyncio.sleep(0)
        yield number


class Slow(beam.DoFn):
    """All of a DoFn's methods are asynchronous."""

    async def setup(self) -> None:
        await asyncio.sleep(0)
        self.loop = asyncio.get_running_loop()

    async def start_bundle(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.seen = 0

    async def process(self, element: int) -> list[int]:
        assert asyncio.get_running_loop() is self.loop
        self.seen += 1
        return [await slowly(element)]

    async def finish_bundle(self) -> AsyncIterator[Any]:
        yield WindowedValue(("seen", self.seen), 0, (beam.transforms.window.GlobalWindow(),))

    async def teardown(self) -> None:
        await asyncio.sleep(0)
        note("torn down")


SETTINGS = pytest.mark.parametrize("settings", [Settings(1, 1000), Settings(3, 7)])


def run_on(values: list[Any], transform: Any, settings: Settings = Settings(1, 1000)) -> list[Any]:
    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(values) | transform)
    run_plain(pipeline, settings)
    return found


def failure_of(pipeline: beam.Pipeline) -> Any:
    with pytest.raises(StepFailure) as raised:
        run_plain(pipeline, Settings(1, 1000))
    return find_failure(str(raised.value))


@SETTINGS
def test_many_calls_are_made_at_a_time_and_none_too_many(settings: Settings) -> None:
    found = run_on(list(range(200)), beam.Map(slowly).with_concurrency(20), settings)
    assert sorted(found) == [2 * each for each in range(200)]
    assert 2 < most_under_way <= 20
    assert under_way == 0


def test_outputs_leave_in_the_order_of_the_elements() -> None:
    async def the_first_is_slowest(element: int) -> int:
        await asyncio.sleep((40 - element) / 2000)
        return element

    assert run_on(list(range(40)), beam.Map(the_first_is_slowest)) == list(range(40))


@SETTINGS
def test_every_method_of_a_dofn_may_be_asynchronous(settings: Settings) -> None:
    found = run_on(list(range(30)), beam.ParDo(Slow()), settings)
    assert sorted(each for each in found if isinstance(each, int)) == [2 * each for each in range(30)]
    assert sum(each[1] for each in found if isinstance(each, tuple)) == 30
    assert calls.count("torn down") >= 1


@pytest.mark.parametrize(
    ("transform", "values", "expected"),
    [
        (beam.Filter(is_even), [1, 2, 4], [2, 4]),
        (beam.FlatMap(up_to), [2, 0, 3], [0, 1, 0, 1, 2]),
        (beam.ParDo(up_to), [2], [0, 1]),
        (beam.FlatMapTuple(both), [(1, 2)], [1, 2]),
        (beam.MapTuple(both), [(1, 2)], [[1, 2]]),
        (beam.Map(partial(slowly, seconds=0)), [1], [2]),
        (beam.Map(slowly, 0).with_concurrency(1), [1, 2, 3], [2, 4, 6]),
        (beam.Map(slowly, seconds=0), [], []),
    ],
)
def test_every_short_form_takes_asynchronous_functions(transform: Any, values: Any, expected: Any) -> None:
    assert run_on(values, transform) == expected


def test_a_call_may_give_nothing() -> None:
    async def nothing(element: int) -> None:
        return None

    assert run_on([1, 2], beam.FlatMap(nothing)) == []


def test_outputs_keep_time_window_and_tag_unless_they_have_their_own() -> None:
    class Tags(beam.DoFn):
        async def process(self, element, at=beam.DoFn.TimestampParam, window=beam.DoFn.WindowParam, add=0):
            await asyncio.sleep(0)
            assert window.start <= at < window.end
            return [element + add, TaggedOutput("late", TimestampedValue(element, at + 10))]

    pipeline = beam.Pipeline()
    add = pipeline | "add" >> beam.Create([100])
    windowed = (
        pipeline
        | beam.Create([TimestampedValue(1, 1), TimestampedValue(2, 12)])
        | beam.WindowInto(FixedWindows(10))
    )
    outputs = windowed | beam.ParDo(Tags(), add=AsSingleton(add)).with_concurrency(3).with_outputs("late")
    main, late = collect_timed(outputs[None], "main"), collect_timed(outputs["late"], "late")
    run_plain(pipeline)
    assert sorted((each, at // 10**6, window.start) for each, at, window in main) == [
        (101, 1, 0),
        (102, 12, 10),
    ]
    assert sorted((each, at // 10**6, window.start) for each, at, window in late) == [
        (1, 11, 10),
        (2, 22, 20),
    ]


def test_an_element_in_several_windows_is_processed_in_each_that_is_asked_for() -> None:
    class Ask(beam.DoFn):
        async def process(self, element, window=beam.DoFn.WindowParam):
            yield element, window.start.micros // 10**6

    pipeline = beam.Pipeline()
    values = pipeline | beam.Create([TimestampedValue(1, 12)]) | beam.WindowInto(SlidingWindows(10, 5))
    found = collect(values | beam.ParDo(Ask()))
    run_plain(pipeline)
    assert sorted(found) == [(1, 5), (1, 10)]


def test_calls_count_for_their_step() -> None:
    async def counted(element: int) -> int:
        await asyncio.sleep(0)
        Metrics.counter("calls", "made").inc()
        return element

    pipeline = beam.Pipeline()
    pipeline | beam.Create(list(range(9))) | "Ask" >> beam.Map(counted) | beam.Map(lambda each: each)
    metrics = run_plain(pipeline)
    assert [(key[1], value) for key, value in metrics.items() if key[3] == "made"] == [("Ask", 9)]


def test_a_call_that_fails_names_its_step_and_cancels_the_others() -> None:
    async def fails(element: int) -> int:
        if element == 3:
            await asyncio.sleep(0.001)
            raise KeyError(element)
        return await slowly(element, seconds=60)

    pipeline = beam.Pipeline()
    pipeline | beam.Create(list(range(500))) | "Ask" >> beam.Map(fails).with_concurrency(10)
    began = time.perf_counter()
    failure = failure_of(pipeline)
    assert time.perf_counter() - began < 5
    assert (failure.kind, failure.where.startswith("at step 'Ask' (test_asynchronous.py:")) == (
        "KeyError",
        True,
    )
    assert len(calls) < 20
    assert under_way == 0, "the others were cancelled, and cleaned up"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_the_calls_at_once(error: type[BaseException]) -> None:
    async def interrupted(element: int) -> int:
        if element == 3:
            raise error
        return await slowly(element, seconds=60)

    pipeline = beam.Pipeline()
    pipeline | beam.Create(list(range(50))) | "Ask" >> beam.Map(interrupted)
    began = time.perf_counter()
    failure = failure_of(pipeline)
    assert failure.kind == error.__name__
    assert time.perf_counter() - began < 5
    assert under_way == 0


def test_a_call_that_cancels_itself_is_an_error_and_loses_nothing_in_silence() -> None:
    async def cancelled(element: int) -> int:
        if element == 3:
            raise asyncio.CancelledError
        return element

    pipeline = beam.Pipeline()
    pipeline | beam.Create(list(range(9))) | beam.Map(cancelled)
    failure = failure_of(pipeline)
    assert failure.kind == "RuntimeError"
    assert failure.message.startswith("the call was cancelled, and not by the pipeline")


def test_a_call_that_refuses_to_be_cancelled_does_not_stop_the_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock_spark.worker.asynchronous._SECONDS_TO_CANCEL", 0.05)

    async def stubborn(element: int) -> int:
        if element == 1:
            await asyncio.sleep(0.001)
            raise KeyError(element)
        for _ in range(5):
            try:
                await asyncio.sleep(0.06)
            except asyncio.CancelledError:
                note("asked")
        return element

    pipeline = beam.Pipeline()
    pipeline | beam.Create([0, 1]) | beam.Map(stubborn)
    assert failure_of(pipeline).kind == "KeyError"
    assert "asked" in calls


class Flaky(beam.DoFn):
    """Fails `failures` times for each element, and then succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        super().__init__()
        self.failures = failures
        self.error = error

    def setup(self) -> None:
        self.tries: dict[int, int] = {}

    async def process(self, element: int) -> AsyncIterator[int]:
        self.tries[element] = self.tries.get(element, 0) + 1
        note(element)
        yield element
        await asyncio.sleep(0)
        if self.tries[element] <= self.failures:
            raise self.error
        yield -element


def test_a_call_is_tried_again_and_leaves_nothing_of_earlier_tries() -> None:
    flaky = beam.ParDo(Flaky(2, ConnectionResetError())).with_concurrency(
        2, retries=2, retry_delay_seconds=0.001
    )
    assert run_on([1, 2], flaky) == [1, -1, 2, -2]
    assert sorted(calls) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("error", "retries", "tries"), [(ConnectionResetError(), 1, 2), (ValueError(), 5, 1), (OSError(), 0, 1)]
)
def test_the_last_error_fails_the_step(error: Exception, retries: int, tries: int) -> None:
    pipeline = beam.Pipeline()
    flaky = beam.ParDo(Flaky(2, error)).with_concurrency(2, retries=retries, retry_delay_seconds=0.001)
    pipeline | beam.Create([1]) | flaky
    assert failure_of(pipeline).kind == type(error).__name__
    assert calls == [1] * tries


def test_a_call_that_takes_too_long_has_failed_and_is_tried_again() -> None:
    async def slow_at_first(element: int) -> int:
        note(element)
        await asyncio.sleep(60 if times(element) == 1 else 0)
        return element

    ask = beam.Map(slow_at_first)
    again = ask.with_concurrency(timeout_seconds=0.02, retries=1, retry_delay_seconds=0.001)
    assert run_on([1, 2], again) == [1, 2]
    calls.clear()
    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | ask.with_concurrency(timeout_seconds=0.02)
    failure = failure_of(pipeline)
    assert failure.kind == "TimeoutError"
    assert failure.message.startswith("a call took longer than 0.02 seconds")


def test_calls_begin_at_the_rate_that_is_allowed() -> None:
    async def noted(element: int) -> int:
        note(time.perf_counter())
        return element

    run_on(list(range(11)), beam.Map(noted).with_concurrency(calls_per_second=100))
    assert len(calls) == 11
    assert calls[-1] - calls[0] >= 0.095


@pytest.mark.parametrize("wrapped", ["concurrency first", "handling first", "tags"])
@SETTINGS
def test_dead_letters_are_what_fails_after_all_tries(wrapped: str, settings: Settings) -> None:
    class Ask(beam.DoFn):
        async def process(self, element: int) -> Any:
            note(element)
            await asyncio.sleep(0)
            if element % 3 == 0:
                raise ConnectionError("gone")
            return [element, TaggedOutput("twice", 2 * element)]

    pardo = beam.ParDo(Ask())
    how = {"retries": 1, "retry_delay_seconds": 0.001}
    step: Any = {
        "concurrency first": lambda: pardo.with_concurrency(5, **how).with_exception_handling(),
        "handling first": lambda: pardo.with_exception_handling().with_concurrency(5, **how),
        "tags": lambda: pardo.with_outputs("twice").with_concurrency(5, **how).with_exception_handling(),
    }[wrapped]()
    pipeline = beam.Pipeline()
    outputs = pipeline | beam.Create(list(range(10))) | step
    good, bad = collect(outputs["good"], "good"), collect(outputs["bad"], "bad")
    twice = collect(outputs["twice"], "twice") if wrapped == "tags" else None
    run_plain(pipeline, settings)
    assert sorted(good) == [1, 2, 4, 5, 7, 8]
    assert sorted((element, kind) for element, (kind, *_) in bad) == [
        (n, ConnectionError) for n in (0, 3, 6, 9)
    ]
    assert sorted(calls) == sorted([*range(10), 0, 3, 6, 9])
    assert twice is None or sorted(twice) == [2, 4, 8, 10, 14, 16]


@pytest.mark.parametrize(("is_partial", "expected"), [(True, [1, 2, -2]), (False, [2, -2])])
def test_dead_letters_of_calls_that_gave_something_before(is_partial: bool, expected: list[int]) -> None:
    async def some(element: int) -> AsyncIterator[int]:
        yield element
        if element == 1:
            raise ValueError
        yield -element

    pipeline = beam.Pipeline()
    outputs = pipeline | beam.Create([1, 2]) | beam.ParDo(some).with_exception_handling(partial=is_partial)
    good, bad = collect(outputs.good, "good"), collect(outputs.bad, "bad")
    run_plain(pipeline)
    assert (good, len(bad)) == (expected, 1)


def test_dead_letters_after_the_time_limit_of_exception_handling() -> None:
    pipeline = beam.Pipeline()
    step = beam.Map(slowly, seconds=60).with_exception_handling(timeout=0.02)
    outputs = pipeline | beam.Create([1, 2]) | step
    bad = collect(outputs.bad)
    run_plain(pipeline)
    assert [(element, kind) for element, (kind, *_) in bad] == [(1, TimeoutError), (2, TimeoutError)]


def test_plain_functions_wait_in_as_many_threads_as_calls() -> None:
    async def in_thread(element: int) -> int:
        await asyncio.to_thread(time.sleep, 0.1)
        return element

    began = time.perf_counter()
    assert run_on(list(range(40)), beam.Map(in_thread).with_concurrency(40)) == list(range(40))
    assert time.perf_counter() - began < 1.5, "40 calls of 0.1 seconds, one after another, take 4 seconds"


@pytest.mark.parametrize(
    "step",
    [
        beam.Map(lambda each: slowly(each)),
        beam.Filter(lambda each: is_even(each)),
        beam.FlatMap(lambda each: slowly(each)),
        beam.FlatMap(lambda each: [slowly(each)]),
        beam.FlatMap(lambda each: up_to(each)),
        beam.Map(lambda each: up_to(each)),
        beam.Map(lambda each, at=beam.DoFn.TimestampParam: slowly(each)),
        beam.FlatMap(lambda each, pane=beam.DoFn.PaneInfoParam: [slowly(each)]),
        beam.MapTuple(lambda *each: slowly(each)),
    ],
)
def test_a_coroutine_is_never_an_element(step: Any) -> None:
    pipeline = beam.Pipeline()
    pipeline | beam.Create([(1, 2), (3, 4)]) | "Ask" >> step
    failure = failure_of(pipeline)
    assert failure.kind == "TypeError"
    assert ", which is never awaited" in failure.message
    assert "define the function itself with async def" in failure.message
    assert failure.where.startswith("at step 'Ask'")
    assert calls == []


@pytest.mark.parametrize("value", ["text", {"a": 1}, 5])
def test_what_a_call_returns_is_a_sequence_of_outputs(value: Any) -> None:
    async def wrong(element: int) -> Any:
        return value

    for step in (beam.ParDo(wrong), beam.ParDo(wrong).with_concurrency(), beam.FlatMap(wrong)):
        pipeline = beam.Pipeline()
        pipeline | beam.Create([1]) | step
        assert failure_of(pipeline).kind == "TypeError"


def test_asynchronous_steps_follow_each_other_and_plain_ones() -> None:
    pipeline = beam.Pipeline()
    values = pipeline | beam.Create([("a", n) for n in range(50)]) | beam.GroupByKey()
    found = collect(
        values
        | beam.FlatMapTuple(lambda _, numbers: numbers)
        | "first" >> beam.Map(slowly, 0.001)
        | beam.Map(lambda each: each + 1)
        | "second" >> beam.Map(slowly, 0.001).with_concurrency(3)
    )
    run_plain(pipeline)
    assert sorted(found) == [2 * (2 * n + 1) for n in range(50)]


def test_a_failing_setup_names_its_step() -> None:
    class Broken(beam.DoFn):
        async def setup(self) -> None:
            await asyncio.sleep(0)
            raise ConnectionError("no service")

        async def process(self, element: int) -> None:
            note(element)

    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | "Ask" >> beam.ParDo(Broken())
    failure = failure_of(pipeline)
    assert (failure.kind, failure.message, calls) == ("ConnectionError", "no service", [])
    assert failure.where.startswith("at step 'Ask'")


CHECKED = pytest.mark.parametrize("option", ["--runtime_type_check", "--performance_runtime_type_check"])


def checked_pipeline(option: str) -> beam.Pipeline:
    return beam.Pipeline(options=PipelineOptions([option, "--no_pipeline_type_check"]))


@CHECKED
def test_a_type_check_leaves_calls_and_their_limit_as_they_are(option: str) -> None:
    pipeline = checked_pipeline(option)
    numbers = pipeline | beam.Create(list(range(200)))
    limited = beam.Map(slowly).with_input_types(int).with_output_types(int).with_concurrency(20)
    asked = collect(numbers | limited)
    seen = collect(numbers | beam.ParDo(Slow()), "Slow")
    run_plain(pipeline)
    assert asked == [2 * each for each in range(200)]
    assert [each for each in seen if isinstance(each, int)] == asked
    assert most_under_way > 2
    assert calls.count("torn down") >= 1
    (dofn,) = [step.primitive.dofn for step in pipeline.to_graph().steps if step.label == "Map(slowly)"]
    assert dofn.concurrency_max == 20


@CHECKED
@pytest.mark.parametrize("hints", [{"element": str}, {"output": str}])
def test_what_a_call_takes_and_gives_is_checked(hints: dict[str, type], option: str) -> None:
    step = beam.Map(slowly, seconds=0)
    step = step.with_input_types(hints["element"]) if "element" in hints else step.with_output_types(str)
    pipeline = checked_pipeline(option)
    pipeline | beam.Create([1]) | "Ask" >> step
    failure = failure_of(pipeline)
    assert failure.kind == "TypeCheckError"
    assert "Runtime type violation detected within ParDo(Ask)" in failure.message
