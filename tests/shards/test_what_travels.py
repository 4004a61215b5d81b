"""A micro-batch sends little from operator to operator: nothing of it grows with the square of the shards."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder, IngressTime
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, TimestampCombiner
from penstock_spark.stream.resharding import merged_headers
from penstock_spark.stream.shards.shard import Shard
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.transport import outbox
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import loads
from penstock_spark.worker.messages import LogicalTime, Message
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
LEVELS = 3
EARLY = AfterWatermark(early=AfterProcessingTime(1))


class Watched(ToyQuery):
    """A toy query that notes what each level gets: rows, and the bytes of those that have no elements."""

    def _level(self, number: int, program: bytes, rows: list[Any], *others: Any) -> list[Any]:
        own = [payload for level, _, payload in rows if level == number]
        self.rows[number] = len(own)
        self.told[number] = [len(payload) for payload in own if not _message(payload).parts]
        return super()._level(number, program, rows, *others)

    def batch(self, *args: Any, **kwargs: Any) -> dict[str, list[Any]]:
        self.rows: Counter[int] = Counter()
        self.told: dict[int, list[int]] = {}
        return super().batch(*args, **kwargs)

    def headers(self) -> list[Header]:
        return [Header.decoded(data) for data in self._headers.values()]


def _message(payload: bytes) -> Message:
    message = loads(payload)
    return message if isinstance(message, Message) else Message((0, 0))


def sums_in_a_row(shards: int, window: Any, policy: Any, made: type[ToyQuery] = Watched) -> Any:
    """Sums of pairs (key, second), each of the sums before it, all keys being as far apart as they can be."""
    pipeline = beam.Pipeline()
    read = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
        event_time=None if isinstance(policy, IngressTime) else (lambda pair: pair[1]), watermark=policy
    )
    pairs = pipeline | "Read" >> read | beam.Map(lambda pair: (pair[0], 1)) | window
    for level in range(LEVELS):
        pairs |= f"Sum{level}" >> beam.CombinePerKey(sum)
        pairs |= f"Next{level}" >> beam.MapTuple(lambda key, number: ((key, key), number))
    _ = pairs | "Show" >> beam.Map(_shown) | WriteToMemory([])
    return made(pipeline, shards=shards, without=("native_streams",))


def _shown(pair: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> Any:
    return repr(pair), window.start.micros, pane.timing, pane.index


def test_a_micro_batch_without_elements_sends_a_row_to_each_shard_of_a_level() -> None:
    for shards in (2, 8, 32):
        query = sums_in_a_row(
            shards,
            beam.WindowInto(FixedWindows(10), trigger=EARLY, accumulation_mode=AccumulationMode.DISCARDING),
            BoundedDisorder(0),
        )
        query.batch({"Read": [[("a", 1)]]}, 2 * SECOND)
        query.batch({}, 4 * SECOND)
        query.batch({}, 5 * SECOND)
        # Level 1 hears from Spark.
        assert query.rows == {1: 0, 2: shards, 3: shards}


@pytest.mark.parametrize("keys", [1, 40])
def test_a_watermark_that_nobody_holds_back_is_told_once_to_each_shard(keys: int) -> None:
    """The rows of tasks that read have the only squares: each task tells each shard what it saw of event times."""
    for shards in (2, 8, 32):
        query = sums_in_a_row(shards, beam.WindowInto(FixedWindows(10)), BoundedDisorder(0))
        for second in (5, 15, 25):
            tasks = [[(f"{task} {key}", second) for key in range(keys)] for task in range(4)]
            query.batch({"Read": tasks}, second * SECOND)
            assert query.rows[1] == 4 * shards
            # Shards with elements for a level send them; besides, each shard hears of time and of the watermark once.
            assert [len(query.told[level]) <= shards for level in (2, 3)] == [True, True]
        assert all(size < 400 for sizes in query.told.values() for size in sizes)


def test_what_a_shard_keeps_does_not_grow_with_the_number_of_shards() -> None:
    sizes = []
    for shards in (2, 64):
        query = sums_in_a_row(shards, beam.WindowInto(FixedWindows(10)), BoundedDisorder(0))
        for second in (5, 15, 25):
            query.batch({"Read": [[(str(key), second) for key in range(100)]]}, second * SECOND)
        sizes.append(max(len(header.encoded()) for header in query.headers()))
        assert not any(header.held or any(header.holds.values()) for header in query.headers())
    assert sizes[1] <= sizes[0]


def test_what_goes_to_many_shards_is_not_copied_for_all_of_them_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "BYTES_AT_ONCE", 1_000)
    rows = [(1, shard, bytes(400)) for shard in range(50)]
    found = list(outbox.records_of(rows, tuple(range(50))))
    assert [row["shard"] for batch in found for row in batch.to_pylist()] == list(range(50))
    assert max(batch.column("payload").nbytes for batch in found) < 1_400
    assert list(outbox.records_of([], ())) == []


EARLIEST, LAST = TimestampCombiner.OUTPUT_AT_EARLIEST, TimestampCombiner.OUTPUT_AT_EOW
CASES = {
    "the end": (None, EARLIEST, BoundedDisorder(3)),
    "early": (EARLY, EARLIEST, BoundedDisorder(3)),
    "early, by arrival": (EARLY, LAST, IngressTime()),
}


@pytest.mark.parametrize("case", CASES)
def test_shards_that_hold_a_watermark_back_give_what_one_shard_gives(case: str) -> None:
    """Times of windows are those of their first elements, so that each shard holds its output back by its own."""
    one, *others = (panes_of(case, shards) for shards in (1, 2, 7))
    assert others == [one, one]
    assert sum(one[0].values()) > 10


def test_holds_go_on_when_there_are_more_shards() -> None:
    panes, reached, last = panes_of("the end", 1)
    found, reached_anew, last_anew = panes_of("the end", 3, divided=5)
    assert (found, last_anew) == (panes, last)
    # A query that continues sends no watermark before the next micro-batch that moves one.
    assert all(anew in ({}, before) for anew, before in zip(reached_anew, reached, strict=True))


def panes_of(case: str, shards: int, divided: int | None = None) -> Any:
    """The panes of a random input, and how far the watermarks came; the number of shards may change again and again."""
    trigger, output, policy = CASES[case]
    window = beam.WindowInto(
        FixedWindows(10),
        trigger=trigger,
        accumulation_mode=AccumulationMode.DISCARDING,
        timestamp_combiner=output,
    )
    random, panes, reached = Random(7), Counter[Any](), []
    query = sums_in_a_row(shards, window, policy, ToyQuery)
    for second in range(0, 90, 3):
        pairs = [(random.choice("abcdefgh"), second - random.randrange(4)) for _ in range(3)]
        given = query.batch({"Read": [pairs[:2], pairs[2:]] if second % 2 else []}, second * SECOND)
        panes.update(pane for own in given.values() for pane in own)
        reached.append(query.watermarks)
        for before, after in pairwise(reached[-1].values()):
            assert after[0] == before[1], "a level does not hear how far the one before it is"
        if divided is not None and second % 9 == 6:
            query = query.divided(divided if query.shards == shards else shards)
    given = query.batch({}, 90 * SECOND, [("drain", "")])
    panes.update(pane for own in given.values() for pane in own)
    return panes, reached, query.watermarks


def times_of_estimates() -> list[dict[int, list[LogicalTime]]]:
    """The logical times at which the shards of level 2 estimate watermarks, by shard, for each micro-batch."""
    window = beam.WindowInto(FixedWindows(10), trigger=EARLY, accumulation_mode=AccumulationMode.DISCARDING)
    read = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(watermark=IngressTime())
    pairs = beam.Pipeline() | "Read" >> read | beam.Map(lambda key: (key, 1)) | window
    sums = pairs | "First" >> beam.CombinePerKey(sum) | "Early again" >> window
    _ = (sums, pairs) | beam.Flatten() | "Second" >> beam.CombinePerKey(sum) | WriteToMemory([])
    query = ToyQuery(pairs.pipeline, shards=4, without=("native_streams",))
    found: list[dict[int, list[LogicalTime]]] = []
    estimate = Shard._estimate

    def noted(shard: Shard, logical_time: LogicalTime, summaries: Any) -> None:
        if "Second" in shard.operators:
            found[-1].setdefault(shard.number, []).append(logical_time)
        estimate(shard, logical_time, summaries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shard, "_estimate", noted)
        for second in range(0, 30, 3):
            found.append({})
            # A single key: its early panes come to one shard of the second level.
            query.batch({"Read": [["a"]]}, second * SECOND)
    return found


def test_shards_estimate_watermarks_at_the_times_that_all_of_them_have() -> None:
    """A pane that the clock has fired between two steps comes to one shard alone, and moves no watermark there."""
    by_shard = times_of_estimates()
    assert all(len(times) == 4 for times in by_shard)
    assert all(len({tuple(own) for own in times.values()}) == 1 for times in by_shard)
    assert len({own for times in by_shard for own in times[0]}) == len(by_shard)


BREAKS = {
    "a shard does not say that it holds a watermark back": (
        (Shard, "_send_marks", "if hold != held:", "if hold == MAX_MICROS != held:")
    ),
    "a shard does not say that it holds a watermark back no more": (
        (Shard, "_send_marks", "if hold != held:", "if hold != held and hold < MAX_MICROS:")
    ),
    "a shard says nothing of its own": (Shard, "_send_marks", "own = max(micros, before)", "own = common"),
    "who gets elements does not hear the time": (
        (Outbox, "take", "along.get(level, Message(self.producer, number))", "Message(self.producer, number)")
    ),
    "who gets no elements does not hear the time": (Outbox, "take", "if (level, shard) not in own]", "if 0]"),
    "what was sent is forgotten when there are more shards": (
        (merged_headers, "_merge_sent", "min(micros, *(header", "max(micros, *(header")
    ),
    "a shard estimates when a pane comes to it alone": (
        (Shard, "_at", "if logical_time in inbox.common:\n        #", "if True:\n        #")
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_of_what_is_told_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, function, old, new = BREAKS[name]
    source = textwrap.dedent(inspect.getsource(getattr(owner, function)))
    assert old in source
    made: dict[str, Any] = {}
    namespace = sys.modules[owner.__module__ if isinstance(owner, type) else owner.__name__]
    exec(f"from __future__ import annotations\n{source.replace(old, new)}", vars(namespace), made)
    monkeypatch.setattr(owner, function, made[function])
    with pytest.raises(AssertionError):
        _hold_and_divide()


def _hold_and_divide() -> None:
    test_shards_that_hold_a_watermark_back_give_what_one_shard_gives("the end")
    test_holds_go_on_when_there_are_more_shards()
    test_shards_estimate_watermarks_at_the_times_that_all_of_them_have()
