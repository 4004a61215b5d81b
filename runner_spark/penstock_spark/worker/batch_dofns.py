"""DoFns that take or return whole batches: a ``process_batch``, and methods that yield batches.

A batch that was yielded stays whole, as a `PackedBatch`, until some step asks for its elements. A DoFn that takes such
batches receives it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.batches import BatchConverter
from penstock.functions.results import check_result
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.typehints.typehints import show_type
from penstock.utils.windowed_value import HomogeneousWindowedBatch, WindowedValue
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.outputs import Outputs, Row
from penstock_spark.worker.pushing import Consumer, Records
from penstock_spark.worker.sizes import bytes_of
from penstock_spark.worker.steps import make_stop_iteration_error

FEWEST_ELEMENTS = 8
"""The average size below which batches are too small: a DoFn that also has ``process`` then gets elements one by one,
and smaller batches are gathered until they are larger. One batch costs as much as some elements do."""

Converter = BatchConverter[Any, Any]


class PackedBatch(Batch):
    """A batch as a DoFn has yielded it; its elements are unpacked when they are needed."""

    __slots__ = ("_values", "_where", "converter", "whole")

    def __init__(self, whole: object, converter: Converter, where: str, row: Row) -> None:
        self._values: list[Any] | None = None
        self._where = where
        self.whole = whole
        self.converter = converter
        _, self.timestamps, self.windows, self.panes = row

    @property
    def values(self) -> list[Any]:  # type: ignore[override]
        if self._values is None:
            try:
                self._values = list(self.converter.explode_batch(self.whole))
            except Exception as error:
                fail_step(error, self._where)
        return self._values

    def estimated_bytes(self) -> int:
        """Returns the approximate memory that the batch takes; its elements are not unpacked for that."""
        return bytes_of(self.whole)


class BatchOutputs:
    """Sends the batches that a method yields on."""

    def __init__(self, outputs: Outputs, converter: Converter, metrics: MetricsContainer, where: str) -> None:
        self._outputs = outputs
        self._converter = converter
        self._metrics = metrics
        self._where = where
        self._kept = 0

    def send(self, results: Iterable[Any] | None, row: Row) -> Records:
        """Sends each batch that was yielded for a row on, before it asks for the next one.

        Elements of small batches wait until there are more of them, so that later steps get larger batches.
        """
        for result in self._guarded(results):
            tag, whole = (result.tag, result.value) if isinstance(result, TaggedOutput) else (None, result)
            own = row
            if isinstance(whole, HomogeneousWindowedBatch):
                # As for elements with their own windows.
                own = (None, whole.timestamp.micros, tuple(whole.windows), whole.pane_info)
                whole = whole.values
            length = self._length(whole)
            packed = PackedBatch(whole, self._converter, self._where, own)
            if length >= FEWEST_ELEMENTS:
                yield from self.drain()
                yield from self._outputs.push(tag, packed)
            elif length:
                self._outputs.keep(tag, packed.values, own)
                self._kept += length
                if self._kept >= self._outputs.sizer.elements:
                    yield from self.drain()

    def drain(self) -> Records:
        self._kept = 0
        return self._outputs.drain()

    def _guarded(self, results: Iterable[Any] | None) -> Iterator[Any]:
        set_current(self._metrics)
        try:
            for result in results if results is not None else ():
                yield result
                set_current(self._metrics)
        except Exception as error:
            fail_step(error, self._where)

    def _length(self, whole: object) -> int:
        try:
            if not isinstance(whole, TimestampedValue | WindowedValue):
                return self._converter.get_length(whole)
        except Exception:
            # The error below says more.
            pass
        kind, expected = type(whole).__name__, show_type(self._converter.batch_type)
        what = f"Received {kind} from a DoFn that was expected to produce a batch ({expected})"
        hint = "yield whole batches, and do not return one; @DoFn.yields_elements is for elements"
        return fail_step(refusal(TypeError, what, where=self._where, hint=hint), self._where)


@dataclass(eq=False)
class YieldingBatches:
    """Calls a method that yields batches, once for each row."""

    call: Callable[[Row], Any]
    each_window: bool  # Whether an element in several windows is processed once for each.
    outputs: BatchOutputs
    metrics: MetricsContainer
    where: str

    def push(self, batch: Batch) -> Records:
        for row in (batch.explode() if self.each_window else batch).rows():
            yield from self.outputs.send(call_guarded(self.metrics, self.where, self._called, row), row)
        yield from self.outputs.drain()

    def _called(self, row: Row) -> Any:
        try:
            results = self.call(row)
        except StopIteration:
            raise make_stop_iteration_error() from None
        if results is not None:
            check_result(results)
        return results


@dataclass(eq=False)
class BatchLoop:
    """Makes the batches that ``process_batch`` takes."""

    whole_loop: Consumer
    single_loop: Consumer | None  # Takes elements, if the DoFn has ``process`` too.
    converter: Converter
    metrics: MetricsContainer
    where: str
    # True if a batch of the right type stays whole, and if DoFns that have both methods get batches at all.
    as_they_are: bool = True

    def push(self, batch: Batch) -> Records:
        if not self.as_they_are and self.single_loop is not None:
            return self.single_loop.push(batch)
        if self.as_they_are and isinstance(batch, PackedBatch) and batch.converter == self.converter:
            return self.whole_loop.push(batch.with_values([batch.whole]))
        if self.single_loop is not None and _is_scattered(batch):
            return self.single_loop.push(batch)
        if batch.shared:
            return self.whole_loop.push(batch.with_values([self._made_of(batch.values)]))
        full = batch.expand()
        parts = _alike(full)
        wholes = [self._made_of([full.values[place] for place in places]) for places in parts]
        return self.whole_loop.push(full.taken([places[0] for places in parts]).with_values(wholes))

    def _made_of(self, values: list[Any]) -> object:
        return call_guarded(self.metrics, self.where, self.converter.produce_batch, values)


def _is_scattered(batch: Batch) -> bool:
    """True if its elements would make batches of too few elements each."""
    parts, count = 1, len(batch.values)
    if isinstance(batch.timestamps, list):
        parts = len(set(batch.timestamps))
    if not batch.shared and parts * FEWEST_ELEMENTS <= count:
        parts = len(_alike(batch.expand()))
    return parts * FEWEST_ELEMENTS > count


def _alike(full: Batch) -> Collection[list[int]]:
    """Returns the indexes of elements with the same timestamp, windows and pane.

    Identity separates windows and panes, as in `penstock_spark.worker.batch.by_windows`: equal ones may make
    two batches.

    >>> list(_alike(Batch(["a", "b", "c"], [1, 2, 1]).expand()))
    [[0, 2], [1]]
    """
    found: dict[tuple[Any, int, int], list[int]] = {}
    names = zip(full.timestamps, map(id, full.windows), map(id, full.panes), strict=True)  # type: ignore[arg-type]
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return found.values()
