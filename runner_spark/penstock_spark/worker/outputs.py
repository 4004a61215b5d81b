"""The outputs of a step: where tagged values go, and which timestamp and windows a value leaves with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.functions.results import UNAWAITED, make_unawaited_error
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.windowed_value import PaneInfo, WindowedValue, unknown_pane
from penstock.windows.window_fn import GlobalWindows, WindowFn
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import CHUNK_ELEMENTS, Batch, Windows
from penstock_spark.worker.batch_sizer import BatchSizer, Scale
from penstock_spark.worker.pushing import Consumer, Records
from penstock_spark.worker.windowing import make_assigner

Row = tuple[Any, int, Windows, Any]
"""Value, timestamp in microseconds, windows and pane of the element a step works on."""


@dataclass(frozen=True)
class Timed:
    """The conversion of another library's values with a time, of which there may be very many, to penstock's.

    Attributes:
        one: Makes a `TimestampedValue` of one.
        times_micros: The times of several.
    """

    one: Callable[[Any], TimestampedValue[Any]]
    times_micros: Callable[[Sequence[Any]], list[int]]

    def __call__(self, value: object) -> TimestampedValue[Any]:
        return self.one(value)


class Outputs:
    """The consumers of a step's outputs by tag; None is the main output.

    Outputs with a tag that is not read are dropped, as in Beam, and counted in the system metric
    ``penstock:outputs_without_reader``. A value with a timestamp, but without windows, gets the windows that
    the input's WindowFn has for that timestamp, once for each window of the input element, as in Beam; its
    pane is unknown. The outputs for a retraction are retractions, unless they have a pane of their own.
    """

    def __init__(
        self,
        by_tag: dict[str | None, Consumer],
        metrics: MetricsContainer,
        where: str,
        windowfn: WindowFn | None,
        kinds: Mapping[type, Callable[[Any], Any]],
        scale: Scale,
    ) -> None:
        self.main = by_tag[None]
        self.metrics = metrics
        self.where = where
        self.kinds = kinds  # `DoFn.output_kinds`
        self._scale = scale
        self.sizer = BatchSizer(scale, CHUNK_ELEMENTS)  # Of a step that makes many outputs of an input.
        self._by_tag = by_tag
        self._assign = None if type(windowfn) is GlobalWindows else make_assigner(windowfn)
        self._pending: dict[str | None, Batch] = {}

    def route(self, results: Iterable[tuple[Iterable[Any] | None, Row]]) -> Records:
        """Sends the results of each element on; each keeps its element's metadata unless it has its own."""
        count = 0
        for values, row in results:
            if values is None:
                continue
            # A tuple raises nothing while it is read.
            for value in values if type(values) is tuple else self._values(values):
                self.add(value, row)
                count += 1
                if count >= self.sizer.elements:
                    yield from self.drain()
                    set_current(self.metrics)
                    count = 0
        yield from self.drain()

    def _values(self, values: Iterable[Any]) -> Iterator[Any]:
        try:
            yield from values
        except Exception as error:
            fail_step(error, self.where)

    def add(self, value: object, row: Row) -> None:
        """Keeps one result for the next `drain`."""
        tag = None
        _, timestamp, windows, pane = row
        if self.kinds:
            value = self.own(value)
        if isinstance(value, TaggedOutput):
            tag, value = value.tag, value.value
        if isinstance(value, WindowedValue):
            timestamp, windows = value.timestamp_micros, tuple(value.windows)
            pane, value = value.pane_info, value.value
        elif isinstance(value, TimestampedValue):
            timestamp, value = value.timestamp_micros, value.value
            retimed = self.retime(Batch([value], [timestamp], [windows], pane))
            windows, pane = retimed.windows[0], retimed.panes
        batch = self._pending.get(tag)
        if batch is None:
            batch = self._pending[tag] = Batch.growing()
        batch.values.append(value)
        batch.timestamps.append(timestamp)  # type: ignore[union-attr]
        batch.windows.append(windows)  # type: ignore[union-attr]
        batch.panes.append(pane)

    def own(self, value: object) -> object:
        """Converts an output of another library's class to penstock's; returns any other value unchanged."""
        change = self.kinds.get(type(value))
        return value if change is None else change(value)

    def keep(self, tag: str | None, values: list[Any], row: Row) -> None:
        """Keeps plain values for the next `drain`."""
        self._pending.setdefault(tag, Batch.growing()).extend(Batch(values, *row[1:]))

    def retime(self, batch: Batch) -> Batch:
        """Returns values with new timestamps, in their new windows; the batch still has the old ones."""
        panes = _unknown(batch.panes)
        if self._assign is None:
            return Batch(batch.values, batch.timestamps, batch.windows, panes)
        try:
            made = self._assign(batch)
        except Exception as error:
            fail_step(error, self.where)
        count = len(batch.values)
        new = made if isinstance(made, list) else [made] * count
        old = batch.windows if isinstance(batch.windows, list) else [batch.windows] * count
        windows = [after * len(before) for after, before in zip(new, old, strict=True)]
        return Batch(batch.values, batch.timestamps, windows, panes)

    def drain(self) -> Records:
        """Sends the kept outputs on."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        before = self.sizer.begin()
        if len(pending) > 1:
            # They exist at the same time, though each has its own reader.
            self._scale.weigh(sum(batch.estimated_bytes() for batch in pending.values()))
        for tag, batch in pending.items():
            if isinstance(batch.values[0], UNAWAITED):
                refuse_unawaited(batch.values, self.where)
            yield from self.push(tag, batch.collapse())
        self.sizer.learn(sum(len(batch.values) for batch in pending.values()), before)

    def push(self, tag: str | None, batch: Batch) -> Records:
        consumer = self._by_tag.get(tag)
        if consumer is None:
            self.metrics.inc(("penstock", "outputs_without_reader"), len(batch.values))
        else:
            yield from consumer.push(batch)


def refuse_unawaited(values: Iterable[Any], where: str) -> NoReturn:
    """Fails the step that returns coroutines as its outputs."""
    fail_step(make_unawaited_error(values), where)


def _unknown(panes: PaneInfo | list[PaneInfo]) -> object:
    """Panes, or one for all elements, without their numbers; only whether they retract is left."""
    if isinstance(panes, list):
        return [unknown_pane(pane.kind) for pane in panes]
    return unknown_pane(panes.kind)
