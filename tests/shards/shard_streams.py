"""Shards of one grouping without Spark: a recorded input, cut into micro-batches, over stores in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from penstock.coders.deterministic import encode_keys
from penstock.machines.grouping import GroupingMachine
from penstock.machines.pane_counts import PaneCounter
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Event,
    Signal,
)
from penstock.machines.trigger_machine import WATERMARK
from penstock.machines.window_machine import WindowMachine
from penstock.utils.windowed_value import unknown_pane
from penstock_spark.passes.choose_folds import state_of_shards
from penstock_spark.stream.shards.grouping_state import keys_of, machine_for
from penstock_spark.stream.shards.operators import GroupingOperator
from penstock_spark.stream.shards.shard import Shard
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.transport.inbox import inbox_of
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import Batch, dumps, loads
from penstock_spark.worker.batch_sizer import Scale, SizedConsumer
from penstock_spark.worker.keys import find_keys_to_pickle, shard_of
from penstock_spark.worker.messages import LogicalTime, Message, Part, WatermarkUpdate

SOURCE = "Source"
GROUPING = "Group"


class DictStore:
    """Pages in a dictionary."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        return [self.pages.get(number) for number in numbers]

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        for number, page in items:
            if page is None:
                del self.pages[number]
            else:
                self.pages[number] = page


class Gathered:
    """Takes panes down."""

    def __init__(self, into: list[tuple[LogicalTime, Any]], outbox: Outbox) -> None:
        self.into = into
        self.outbox = outbox

    def push(self, batch: Batch) -> Any:
        for (key, value), timestamp, windows, pane in batch.rows():
            self.into.append((self.outbox.now, key, value, windows[0], timestamp, pane))
        return iter(())


def machine_of(
    windowing: Any, combine: Any = None, input_retracts: bool = False, may_be_by_window: bool = True
) -> GroupingMachine | WindowMachine:
    """The machine of a grouping, as a plan chooses it."""
    state = state_of_shards(windowing, combine, input_retracts, may_be_by_window)
    return machine_for(windowing, combine, input_retracts, state)


class Stream:
    """One grouping in several shards, from micro-batch to micro-batch.

    Args:
        machine: Its machine.
        shards: The number of shards.
        micro_batch: Whether each micro-batch is a round of its own.
        columns: The same grouping as a machine of windows in columns, which then does the work.

    Attributes:
        lag_micros: How far each source's watermark is behind the events', by label; None if it has none yet.
        outputs: Where the watermark of each shard's output was after each micro-batch.
    """

    def __init__(
        self,
        machine: GroupingMachine,
        shards: int = 2,
        micro_batch: bool = False,
        columns: WindowMachine | None = None,
    ) -> None:
        self.machine = machine
        self.working = columns or machine
        self.lag_micros: dict[str, int | None] = {SOURCE: 0}
        self.outputs: list[int] = []
        self.shards = shards
        self.micro_batch = micro_batch
        self.headers: list[bytes | None] = [None] * shards
        self.stores = [DictStore() for _ in range(shards)]
        self.panes: list[Any] = []
        self.dropped: list[Any] = []
        self.clock_micros = MIN_MICROS
        self.step = 0
        self.tallier = PaneCounter()

    def batch(self, events: list[Event], ends: bool = False) -> None:
        """One micro-batch."""
        messages = self._messages(events, ends)
        for number in range(self.shards):
            header = Header.decoded(self.headers[number])
            outbox = Outbox((1, number), self.shards)
            notes = header.notes.setdefault(GROUPING, PageNotes())
            table = GroupingOperator(
                tuple(self.lag_micros),
                (2,),
                outbox,
                keys_of(self.working, self.stores[number], notes, self.shards),
                SizedConsumer(Gathered(self.panes, outbox), Scale()),
                lambda dropped: self.dropped.append((dropped.element.value, dropped.reason, dropped.count)),
                nullcontext,
                tallier=self.tallier,
            )
            shard = Shard(number, {GROUPING: table}, header, outbox, self.micro_batch)
            for _ in shard.run(inbox_of([loads(dumps(messages[number]))], header.last)):
                raise AssertionError("panes are gathered, not handed up")
            shard.save()
            self.outputs.append(shard.outputs[GROUPING])
            self.headers[number] = header.encoded()

    def _messages(self, events: list[Event], ends: bool) -> list[Message]:
        messages = [Message((0, 0)) for _ in range(self.shards)]
        for event in events:
            clock = getattr(event, "clock_micros", None)
            self.clock_micros = self.clock_micros if clock is None else clock
            moment = LogicalTime(self.step, self.clock_micros)
            self.step += 1
            for message in messages:
                self._add(message, moment, event)
            if isinstance(event, AddElement):
                self._arrive(messages, moment, event)
        if ends:
            moment = LogicalTime(self.step, self.clock_micros)
            for message in messages:
                message.timeline.append(moment)
                message.watermark_updates += [
                    WatermarkUpdate(moment, source, MAX_MICROS) for source in self.lag_micros
                ]
        return messages

    def _add(self, message: Message, moment: LogicalTime, event: Event) -> None:
        message.timeline.append(moment)
        match event:
            case AdvanceWatermark(micros):
                levels = {WATERMARK: micros, **event.percentile_micros}
                message.watermark_updates += [
                    WatermarkUpdate(moment, source, ahead_micros - lag_micros, percentile)
                    for source, lag_micros in self.lag_micros.items()
                    if lag_micros is not None
                    for percentile, ahead_micros in levels.items()
                ]
            case AdvanceClock():
                message.ends.add(moment)
            case Signal(name):
                message.signals.append((moment, name))

    def _arrive(self, messages: list[Message], moment: LogicalTime, event: AddElement) -> None:
        [name] = encode_keys([event.key])
        windows = self.machine.assign(event.timestamp_micros, (event.key, event.value))
        batch = Batch([event.value], event.timestamp_micros, windows, unknown_pane(event.kind))
        message = messages[shard_of(name, self.shards)]
        message.parts.setdefault(GROUPING, []).append(Part(moment, [name], batch))
        message.pickled_keys.update(find_keys_to_pickle([name], [event.key]))
