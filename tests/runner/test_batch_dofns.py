"""DoFns with a process_batch, and methods that yield batches, with the real compiler and the real workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import penstock as beam
from penstock.elements.tagged_output import TaggedOutput
from penstock.metrics import Metrics
from penstock.pvalue import AsSingleton
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindow,
    IntervalWindow,
    SlidingWindows,
    TimestampedValue,
)
from penstock.utils.windowed_value import HomogeneousWindowedBatch, PaneInfoTiming, WindowedValue
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.worker.batch_dofns import FEWEST_ELEMENTS
from tests.runner.batch_kinds import (
    Doubled,
    DoubledArray,
    DoubledArrow,
    DoubledSeries,
    Either,
    Lengths,
    Repeated,
    Same,
    Tripled,
)
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain

SETTINGS = pytest.mark.parametrize(
    "settings", [Settings(1, 1000), Settings(3, 2), Settings(2, 1000, without={"whole_batches"})]
)


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    for seen in (Doubled.seen, DoubledArray.seen, Tripled.made, Either.calls):
        seen.clear()


@SETTINGS
@pytest.mark.parametrize("kind", [Doubled, DoubledArray, DoubledSeries, DoubledArrow, Either])
def test_batches_of_every_kind_give_python_s_own_values(kind: type[beam.DoFn], settings: Settings) -> None:
    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(list(range(100))) | beam.ParDo(kind()))
    run_plain(pipeline, settings)
    assert sorted(found) == [2 * each for each in range(100)]
    assert set(map(type, found)) == {int}


@SETTINGS
def test_batches_change_into_elements_and_back_along_a_chain(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    found = collect(
        pipeline
        | beam.Create(list(range(40)))
        | "List" >> beam.ParDo(Doubled())
        | "List again" >> beam.ParDo(Doubled())
        | "Array" >> beam.ParDo(DoubledArray())
        | beam.Map(lambda x: x + 1).with_output_types(int)
        | "Array again" >> beam.ParDo(DoubledArray())
        | "Repeated" >> beam.ParDo(Either())
    )
    run_plain(pipeline, settings)
    assert sorted(found) == [4 * (8 * each + 1) for each in range(40)]


@pytest.mark.parametrize("whole_batches", [True, False])
def test_a_batch_goes_to_the_next_dofn_as_it_is_through_a_flatten_too(whole_batches: bool) -> None:
    pipeline = beam.Pipeline()
    tripled = pipeline | beam.Create(list(range(8))) | beam.ParDo(Tripled())
    found = collect((tripled, tripled) | beam.Flatten() | beam.ParDo(DoubledArray()))
    run_plain(pipeline, Settings(1, without=set() if whole_batches else {"whole_batches"}))
    assert sorted(found) == sorted(2 * [6 * each for each in range(8)])
    is_same = {id(each) for each in DoubledArray.seen} == {id(each) for each in Tripled.made}
    assert is_same is whole_batches
    assert len(DoubledArray.seen) == 2 * len(Tripled.made) == 2


def test_process_takes_what_is_too_little_for_a_batch_and_everything_if_batches_are_switched_off() -> None:
    def calls(elements: list[Any], without: Iterable[str] = ()) -> set[str]:
        Either.calls.clear()
        pipeline = beam.Pipeline()
        found = collect(pipeline | beam.Create(elements).with_output_types(int) | beam.ParDo(Either()))
        run_plain(pipeline, Settings(1, without=frozenset(without)))
        assert sorted(found) == [2 * each for each in range(len(elements))]
        assert sum(count for _, count in Either.calls) == len(elements)
        return {name for name, _ in Either.calls}

    many, few = list(range(FEWEST_ELEMENTS)), list(range(FEWEST_ELEMENTS - 1))
    apart = [TimestampedValue(each, each) for each in many]
    assert calls(many) == {"process_batch"}
    assert calls(few) == {"process"}
    assert calls(apart) == {"process"}
    assert calls(many, without={"whole_batches"}) == {"process"}


@SETTINGS
def test_elements_of_batches_and_batches_of_elements(settings: Settings) -> None:
    pipeline = beam.Pipeline()
    repeated = pipeline | beam.Create([0, 3, 2]) | beam.ParDo(Repeated())
    assert repeated.element_type is int
    elements = collect(repeated, "Elements")
    doubled = collect(repeated | beam.ParDo(Doubled()), "Doubled elements")
    lengths = repeated | beam.ParDo(Lengths())
    assert lengths.element_type == beam.typehints.Tuple[int, int]
    run_plain(pipeline, settings)
    assert sorted(elements) == [2, 2, 3, 3, 3]
    assert sorted(doubled) == [4, 4, 6, 6, 6]
    assert all(Doubled.seen)


class Seen(beam.DoFn):
    """Tells for each element what came together with it, and where and when."""

    @beam.DoFn.yields_elements
    def process_batch(
        self,
        batch: list[int],
        offset: int,
        window: Any = beam.DoFn.WindowParam,
        at: Any = beam.DoFn.TimestampParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[tuple[int, int, int]]:
        assert pane.timing == PaneInfoTiming.UNKNOWN
        yield from [(int(at), int(window.start), len(batch) + offset)] * len(batch)


@SETTINGS
def test_a_batch_has_one_timestamp_and_one_window_and_side_inputs_are_those_of_the_window(
    settings: Settings,
) -> None:
    pipeline = beam.Pipeline()
    timed = [TimestampedValue(each, each // 2) for each in range(6)]
    side = pipeline | "Offset" >> beam.Create([TimestampedValue(10 * each, each) for each in range(-1, 4)])
    side = side | "Seconds" >> beam.WindowInto(FixedWindows(1))
    windows = pipeline | beam.Create(timed).with_output_types(int) | beam.WindowInto(SlidingWindows(2, 1))
    found = collect_timed(windows | beam.ParDo(Seen(), AsSingleton(side)))
    run_plain(pipeline, settings)
    expected = {(at, start) for at in range(3) for start in (at - 1, at)}
    assert {(at, start) for (at, start, _), _, _ in found} == expected
    assert len(found) == 12
    for (at, start, count), micros, window in found:
        # A side input's window belongs to the last moment of the main input's.
        assert (at * 1_000_000, start) == (micros, int(window.start))
        assert count - 10 * (start + 1) in ((2,) if settings.partitions == 1 else (1, 2))


class Starts(Same):
    """Replaces elements by the start of their window, batch by batch."""

    def process_batch(self, batch: list[int], window: Any = beam.DoFn.WindowParam) -> Iterator[list[int]]:
        yield [int(window.start)] * len(batch)


@SETTINGS
def test_a_batch_in_several_windows_comes_once_for_each_and_windows_are_kept_apart(
    settings: Settings,
) -> None:
    pipeline = beam.Pipeline()
    elements = pipeline | beam.Create(list(range(20)))
    placed = elements | beam.FlatMap(
        lambda number: [
            WindowedValue(number, 0, [IntervalWindow(number % 2, 2), IntervalWindow(-1, 3 + number % 2)])
        ]
    ).with_output_types(int)
    found = collect_timed(placed | beam.ParDo(Starts()))
    run_plain(pipeline, settings)
    ends = [(start, int(window.end)) for start, _, window in found]
    assert all(start == int(window.start) for start, _, window in found)
    assert sorted(ends) == sorted(10 * [(0, 2), (1, 2), (-1, 3), (-1, 4)])


class Routed(Same):
    """Has an output of its own for odd numbers, and one without a reader."""

    def process_batch(self, batch: np.ndarray) -> Iterator[np.ndarray]:
        yield batch[batch % 2 == 0]
        yield TaggedOutput("odd", batch[batch % 2 == 1])  # type: ignore[misc]
        yield TaggedOutput("unread", batch)  # type: ignore[misc]
        yield batch[:0]


def test_batches_may_be_tagged_and_those_that_nobody_reads_are_counted_by_the_element() -> None:
    pipeline = beam.Pipeline()
    even, odd = pipeline | beam.Create(list(range(9))) | beam.ParDo(Routed()).with_outputs("odd", main="even")
    found = collect(even, "Even"), collect(odd, "Odd")
    metrics = run_plain(pipeline, Settings(1))
    assert (sorted(found[0]), sorted(found[1])) == ([0, 2, 4, 6, 8], [1, 3, 5, 7])
    assert metrics["counters", "ParDo(Routed)", "penstock", "outputs_without_reader"] == 9


class Moved(Same):
    """Gives batches a time and a window of their own."""

    def process_batch(self, batch: list[int]) -> Iterator[list[int]]:
        yield HomogeneousWindowedBatch.of(batch, 7, (GlobalWindow(),))  # type: ignore[misc]


class Stamped(beam.DoFn):
    @beam.DoFn.yields_elements
    def process_batch(self, batch: list[int]) -> Iterator[int]:
        for element in batch:
            yield TimestampedValue(element, element)  # type: ignore[misc]


def test_batches_and_their_elements_may_bring_times_of_their_own() -> None:
    pipeline = beam.Pipeline()
    elements = pipeline | beam.Create([1, 2])
    moved = collect_timed(elements | beam.ParDo(Moved()), "Moved")
    stamped = collect_timed(elements | beam.WindowInto(FixedWindows(2)) | beam.ParDo(Stamped()), "Stamped")
    run_plain(pipeline)
    assert {micros for _, micros, _ in moved} == {7_000_000}
    assert {(value, micros, int(window.start)) for value, micros, window in stamped} == {
        (1, 1_000_000, 0),
        (2, 2_000_000, 2),
    }


class Broken(Same):
    def __init__(self, how: str) -> None:
        self.how = how

    def process_batch(self, batch: list[int]) -> Iterator[list[int]]:
        match self.how:
            case "raises":
                raise ValueError("no")
            case "stops":
                raise StopIteration
            case "returns":
                return batch  # type: ignore[return-value]
            case "value":
                return iter([TimestampedValue(batch, 0)])  # type: ignore[list-item]
            case "text":
                return "ab"  # type: ignore[return-value]
        return iter([batch, None, 1 / 0])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("raises", ValueError, "no"),
        ("stops", RuntimeError, "StopIteration"),
        (
            "returns",
            TypeError,
            "Received int from a DoFn that was expected to produce a batch (List[<class 'int'>])",
        ),
        ("value", TypeError, "Received TimestampedValue from a DoFn"),
        ("text", TypeError, "discouraged"),
        ("divides", ZeroDivisionError, "division"),
    ],
)
def test_an_error_names_the_step_and_not_the_elements(how: str, kind: type[Exception], text: str) -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([987654]) | "Break" >> beam.ParDo(Broken(how)) | beam.Map(str)
    with pytest.raises(StepFailure) as raised:
        run_plain(pipeline)
    failure = find_failure(str(raised.value))
    assert failure is not None
    assert (failure.kind, failure.element) == (kind.__name__, None)
    assert "'Break'" in failure.where
    assert text in failure.message
    assert "987654" not in str(failure.lines) + failure.message


@pytest.mark.parametrize("kind", [DoubledArray, DoubledSeries, DoubledArrow])
def test_elements_that_a_batch_cannot_have_are_refused_and_not_changed(kind: type[beam.DoFn]) -> None:
    for odd in (0.5, None, 2**64, "987654"):
        pipeline = beam.Pipeline()
        elements = pipeline | beam.Create([1, odd]) | beam.Map(lambda x: x).with_output_types(int)
        _ = elements | "Break" >> beam.ParDo(kind())
        with pytest.raises(StepFailure) as raised:
            run_plain(pipeline, Settings(1))
        failure = find_failure(str(raised.value))
        assert failure is not None
        assert "an element of a batch does not match its type hint" in failure.message
        assert "'Break'" in failure.where
        assert "987654" not in str(failure.lines) + failure.message


class Counting(Same):
    def process_batch(self, batch: list[int]) -> Iterator[list[int]]:
        Metrics.counter("test", "seen").inc(len(batch))
        yield batch[: len(batch) // 2]
        Metrics.counter("test", "seen").inc(len(batch))


def test_what_a_batch_counts_is_its_own_step_s() -> None:
    pipeline = beam.Pipeline()
    one = pipeline | beam.Create(list(range(40))) | "One" >> beam.ParDo(Counting())
    _ = one | "Two" >> beam.ParDo(Counting())
    metrics = run_plain(pipeline, Settings(1))
    assert [metrics["counters", label, "test", "seen"] for label in ("One", "Two")] == [80, 40]
