"""The work that keeps something for each key, with a state of each key that is written by hand."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from flavours import InFrames, InRows, Key, Processor
from keyed_inputs import EXPIRY_SECONDS, JOIN_SECONDS, SIDES
from stream_native import lines_of, parsed_in_python, run_to_the_end, with_watermark

TOTALS = "key string, total long"
PAIRS = "key string, start long, owed long"


class Expire(Processor):
    """The total of a user, once nothing has come for a while; the state is the total and when the timer is due."""

    fields = ("score", "second")
    columns = ("key", "total")

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("total", "total long, due_millis long")

    def on_events(self, key: Key, events: Iterable[tuple[int, int]], times: TimerValues) -> Iterable[Key]:
        """Adds the scores of a micro-batch to the total; Spark learns only the last timer."""
        total, old_millis = self._state.get() or (0, 0)
        due_millis = old_millis
        for score, second in events:
            total += score
            due_millis = (second + EXPIRY_SECONDS) * 1_000
        self._state.update((total, due_millis))
        if due_millis != old_millis:
            if old_millis:
                self._handle.deleteTimer(old_millis)
            self._handle.registerTimer(due_millis)
        return ()

    def on_timer(self, key: Key, due_millis: int) -> Iterable[Key]:
        """The total, which is then forgotten."""
        total, _ = self._state.get()
        self._state.clear()
        return [(key[0], int(total))]


class RowExpire(Expire, InRows):
    pass


class FrameExpire(Expire, InFrames):
    pass


class Join(Processor):
    """Pairs of the orders and payments of an id and window; the state is both, in one value, until the window ends."""

    fields = ("side", "score")
    columns = ("key", "start", "owed")

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("sides", "pickled binary")

    def on_events(self, key: Key, events: Iterable[tuple[int, int]], times: TimerValues) -> Iterable[Key]:
        """The amount that is owed, for each pair that an event makes with an earlier one."""
        name, start = key
        found = self._state.get()
        sides: list[list[int]] = pickle.loads(found[0]) if found else [[], []]
        for side, amount in events:
            for other in sides[1 - side]:
                yield name, start, amount - other if side == 0 else other - amount
            sides[side].append(amount)
        self._state.update((pickle.dumps(sides),))
        if not found:
            self._handle.registerTimer((start + JOIN_SECONDS) * 1_000)

    def on_timer(self, key: Key, due_millis: int) -> Iterable[Key]:
        """Forgets both sides."""
        self._state.clear()
        return ()


class RowJoin(Join, InRows):
    pass


class FrameJoin(Join, InFrames):
    pass


def events_of(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    """Events with the key of a line, its number as ``score``, its second and its time, which the watermark follows."""
    return with_watermark(parsed_in_python(lines_of(spark, source, files_per_batch), 0))


def _stateful(
    flavour: str,
    processor: Callable[[], StatefulProcessor],
    spark: SparkSession,
    source: str,
    target: str,
    files_per_batch: int = 1,
) -> dict[str, Any]:
    grouped = events_of(spark, source, files_per_batch).drop("time").groupBy("key")
    totals = getattr(grouped, flavour)(processor(), TOTALS, "Append", "EventTime")
    return run_to_the_end(totals.select(F.concat_ws("\t", "key", "total")), target)


def _join(
    flavour: str,
    processor: Callable[[], StatefulProcessor],
    spark: SparkSession,
    source: str,
    target: str,
    files_per_batch: int = 1,
) -> dict[str, Any]:
    orders, payments = (
        events_of(spark, f"{source}/{name}", files_per_batch).withColumn("side", F.lit(side))
        for side, name in enumerate(SIDES)
    )
    start = F.expr(f"second div {JOIN_SECONDS} * {JOIN_SECONDS}")
    grouped = orders.union(payments).drop("time").withColumn("start", start).groupBy("key", "start")
    pairs = getattr(grouped, flavour)(processor(), PAIRS, "Append", "EventTime")
    return run_to_the_end(pairs.select(F.concat_ws("\t", F.concat_ws(" ", "key", "start"), "owed")), target)


def _jobs(flavour: str, expire: type[Expire], join: type[Join]) -> dict[str, Any]:
    stateful, joined = partial(_stateful, flavour, expire), partial(_join, flavour, join)
    return {"stateful": stateful, "stateful_fill": stateful, "join": joined, "join_fill": joined}


ROW_JOBS = _jobs("transformWithState", RowExpire, RowJoin)
FRAME_JOBS = _jobs("transformWithStateInPandas", FrameExpire, FrameJoin)
