"""What is refused of asynchronous DoFns when a transform is made."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.functions.asynchronous import Concurrency
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer

STATE = ReadModifyWriteStateSpec("count", VarIntCoder())
TIMER = TimerSpec("timer", TimeDomain.WATERMARK)
OTHER_TIMER = TimerSpec("other", TimeDomain.WATERMARK)


async def ask(element: int) -> str:
    return str(element)


async def many(element: int) -> Any:
    yield element


class AskWithState(beam.DoFn):
    async def process(self, element, count=beam.DoFn.StateParam(STATE)):
        return [element]


class AskWithTimers(beam.DoFn):
    async def process(self, element, timer=beam.DoFn.TimerParam(TIMER)):
        return [element]

    @on_timer(TIMER)
    def fired(self):
        return []


class AsynchronousTimer(beam.DoFn):
    def process(self, element, timer=beam.DoFn.TimerParam(OTHER_TIMER)):
        return [element]

    @on_timer(OTHER_TIMER)
    async def fired(self):
        return []


class AsynchronousSetup(beam.DoFn):
    async def setup(self):
        pass

    def process(self, element):
        return [element]


class AsynchronousBatches(beam.DoFn):
    async def process_batch(self, batch: list[int]):
        yield batch


class AlsoBatches(beam.DoFn):
    async def process(self, element: int):
        yield element

    def process_batch(self, batch: list[int]):
        yield batch


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (AskWithState, "AskWithState.process is asynchronous and uses state"),
        (AskWithTimers, "AskWithTimers.process is asynchronous and uses timers"),
        (AsynchronousTimer, "AsynchronousTimer.fired is asynchronous"),
        (AsynchronousSetup, "AsynchronousSetup.setup is asynchronous, and its process is not"),
        (AsynchronousBatches, "AsynchronousBatches.process_batch is asynchronous"),
        (AlsoBatches, "AlsoBatches.process is asynchronous, and the DoFn takes or yields batches"),
    ],
)
def test_what_nobody_would_await_is_refused(kind: type[beam.DoFn], what: str) -> None:
    with pytest.raises(ValueError, match="asynchronous") as raised:
        beam.ParDo(kind())
    assert str(raised.value).splitlines()[0] == what
    assert "test_asynchronous.py" in str(raised.value)
    assert "hint: " in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "what"),
    [
        ({"max_concurrency": 0}, ValueError, "max_concurrency is 0"),
        ({"max_concurrency": 2.5}, TypeError, "max_concurrency is a float, and not an integer"),
        ({"max_concurrency": True}, TypeError, "max_concurrency is a bool, and not an integer"),
        ({"timeout_seconds": 0}, ValueError, "timeout_seconds is 0"),
        ({"timeout_seconds": "5"}, TypeError, "timeout_seconds is a str, and not a number"),
        ({"timeout_seconds": float("nan")}, ValueError, "timeout_seconds is nan"),
        ({"retries": -1}, ValueError, "retries is -1"),
        ({"retry_on": "OSError"}, TypeError, "retry_on has something that is not a class of exceptions"),
        ({"retry_on": (OSError, KeyboardInterrupt)}, TypeError, "retry_on has something that is not"),
        ({"retry_delay_seconds": 0}, ValueError, "retry_delay_seconds is 0"),
        ({"max_retry_delay_seconds": -1}, ValueError, "max_retry_delay_seconds is -1"),
        ({"calls_per_second": 0}, ValueError, "calls_per_second is 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: Any, kind: Any, what: str) -> None:
    with pytest.raises(kind) as raised:
        beam.Map(ask).with_concurrency(**arguments)
    assert str(raised.value).startswith(what)
    assert "test_asynchronous.py" in str(raised.value)


def test_plain_functions_have_no_concurrency() -> None:
    with pytest.raises(TypeError, match="is not asynchronous") as raised:
        beam.Map(len).with_concurrency(5)
    assert "asyncio.to_thread" in str(raised.value)
    with pytest.raises(ValueError, match="called twice"):
        beam.Map(ask).with_concurrency(5).with_concurrency(5)
    with pytest.raises(ValueError, match="use_subprocess"):
        beam.Map(ask).with_exception_handling(use_subprocess=True)


@pytest.mark.parametrize("short_form", [beam.Map, beam.Filter, beam.MapTuple])
def test_an_asynchronous_generator_gives_no_single_value(short_form: Any) -> None:
    with pytest.raises(TypeError, match="an asynchronous generator"):
        short_form(many)


def test_the_transform_itself_stays_as_it_is() -> None:
    plain = "Ask" >> beam.Map(ask)
    limited = beam.Map(ask).with_output_types(str).with_concurrency(7)
    assert limited.fn.concurrency_max == 7
    assert limited.label == "Map(ask)"
    assert limited.get_type_hints().simple_output_type("") is str
    assert plain is not limited


def test_types_are_those_of_what_is_awaited() -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])

    class Words(beam.DoFn):
        async def process(self, element: int) -> list[str]:
            return [str(element)]

    assert (numbers | beam.Map(ask)).element_type is str
    assert (numbers | beam.ParDo(Words()).with_concurrency(3)).element_type is str
    assert (numbers | "many" >> beam.FlatMap(many)).element_type == beam.typehints.Any
    assert (numbers | beam.Filter(ask)).element_type is int


def test_delays_grow_and_are_shortened_by_chance() -> None:
    delays = list(
        Concurrency(1, retries=6, retry_delay_seconds=1, max_retry_delay_seconds=8).delays_seconds()
    )
    longest = [1, 2, 4, 8, 8, 8]
    assert len(delays) == 6
    assert all(most / 2 <= delay <= most for delay, most in zip(delays, longest, strict=True))
