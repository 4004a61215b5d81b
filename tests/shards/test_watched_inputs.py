"""`Watch` in a stream, without Spark: each output leaves once, whatever is repeated, killed and read again."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.watch import PollResult, Watch, after_total_of
from penstock.machines.records import MAX_MICROS
from penstock.transforms.window import FixedWindows, TimestampedValue
from tests.shards.test_splittable_streams import Committed, query_of

SECOND = 1_000_000

WORLD: dict[str, list[int]] = {}
"""The numbers that each input has grown to, which are their own times; 0 ends it."""


@pytest.fixture(autouse=True)
def empty_world() -> None:
    WORLD.clear()


def numbers_of(name: str) -> PollResult[int]:
    """The numbers of an input so far, in no order."""
    numbers = [TimestampedValue(number, number) for number in reversed(WORLD[name]) if number]
    if 0 in WORLD[name]:
        return PollResult.complete(numbers)
    return PollResult.incomplete(numbers).with_watermark(max(WORLD[name], default=0))


NOW = [0.0]


def now() -> float:
    return NOW[0]


def watch(**options: Any) -> Watch[str, int]:
    return Watch(numbers_of, 1, output_coder=beam.coders.VarIntCoder(), **options)


def restarted(run: Committed, shards: int, *steps: Any) -> Committed:
    """Another query over the state of one that is gone."""
    again = Committed(query_of(*steps, shards=shards))
    again.query._headers, again.query._stores = run.query._headers, run.query._stores
    again.query.number, again.out = run.query.number, run.out
    return again


@pytest.mark.parametrize("seed", range(12))
def test_each_output_leaves_once_although_batches_are_repeated_and_programs_die(seed: int) -> None:
    rng = Random(seed)
    shards = rng.choice([1, 2, 3])
    options: dict[str, Any] = {"timestamp_cursor": rng.random() < 0.5}
    run = Committed(query_of(watch(**options), beam.Reshuffle(), shards=shards))
    second = 10.0
    for name in "abc":
        WORLD[name] = []
    run.batch(second, [*"abc"], rng.randrange(3))
    for _ in range(12):
        second += rng.choice([0.2, 0.7, 3.0])
        numbers = WORLD[rng.choice("abc")]
        latest = max(numbers, default=0)
        numbers += range(latest + 1, latest + 1 + rng.randrange(4))
        for _ in range(rng.randrange(3)):
            run.batch(second, repeats=1)
            second += 0.5
        if rng.random() < 0.4:
            run = restarted(run, shards, watch(**options), beam.Reshuffle())
    for name in "abc":
        WORLD[name].append(0)
    run.batch(second + 5, repeats=1)
    run.batch(second + 6, repeats=1)
    assert sorted(run.out) == sorted((name, number) for name in "abc" for number in WORLD[name] if number)


def test_windows_close_by_the_watermarks_that_polls_promise() -> None:
    # The input itself has the time 10, before which nothing is on time.
    WORLD["a"] = [21, 22, 28]
    run = Committed(query_of(watch(), beam.WindowInto(FixedWindows(10)), beam.CombinePerKey(sum)))
    assert run.batch(10, ["a"], commands=[("end", "Read")]) == run.batch(11) == []
    WORLD["a"].append(32)
    assert run.batch(13) == []
    assert run.batch(14) == [("a", 71)]


def test_an_input_holds_the_watermark_until_its_last_poll_and_then_has_no_state() -> None:
    WORLD["a"] = []
    run = Committed(query_of(watch()))
    run.batch(10, ["a"], commands=[("end", "Read")])
    run.batch(11)
    assert run.leaving == 10 * SECOND
    WORLD["a"] = [17]
    run.batch(13)
    run.batch(14)
    assert any(store.pages for store in run.query._stores.values())
    assert run.leaving == 17 * SECOND
    WORLD["a"].append(0)
    run.batch(16)
    run.batch(17)
    assert run.leaving == MAX_MICROS
    assert run.out == [("a", 17)]
    assert not any(store.pages for store in run.query._stores.values())


def test_a_time_after_which_polls_stop_and_a_drain_end_an_input() -> None:
    for end in ("time", "drain"):
        WORLD["a"] = [1]
        termination = after_total_of(60) if end == "time" else None
        run = Committed(query_of(watch(termination=termination, now_fn=now)))
        NOW[0] = 0.0
        run.batch(10, ["a"], commands=[("end", "Read")])
        run.batch(11)
        assert run.leaving < MAX_MICROS
        NOW[0] = 61.0
        run.batch(13, commands=[("drain", "")] if end == "drain" else [])
        run.batch(14)
        assert run.leaving == MAX_MICROS
        assert run.out == [("a", 1)]


def test_a_batch_refuses_to_watch_inputs() -> None:
    pipeline = beam.Pipeline(mode="batch")
    _ = pipeline | beam.Create(["a"]) | "Numbers" >> watch()
    told = r"(?s)whose work on an element may never end.*Numbers/Poll.*leave out mode='batch'"
    with pytest.raises(UnsupportedByRunner, match=told):
        pipeline.run()
