"""Steps whose user function sees only the element: plain loops over a batch's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, filterfalse, islice, starmap
from operator import length_hint
from types import GeneratorType
from typing import Any

from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.results import UNAWAITED, check_result
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.windowed_value import WindowedValue
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.outputs import Outputs, Timed, refuse_unawaited
from penstock_spark.worker.pushing import Node, Records

_SPECIAL = (TaggedOutput, TimestampedValue, WindowedValue, *UNAWAITED)
"""The classes of outputs that are not simply values."""

_USUAL = frozenset((GeneratorType, list, tuple))
"""The usual results of functions, which need no check."""


def plain(batch: Batch, values: list[Any], outputs: Outputs) -> Batch | None:
    """Returns the batch of a step's outputs, one for each input or any number if the metadata is shared.

    None if a value has its own tag or windows, or only some values have a timestamp, so that each value must
    be inspected.
    """
    kinds = set(map(type, values))
    if not outputs.kinds.keys().isdisjoint(kinds):
        if len(kinds) == 1 and isinstance(timed := outputs.kinds[next(iter(kinds))], Timed):
            own = [value.value for value in values]
            return outputs.retime(Batch(own, timed.times_micros(values), batch.windows, batch.panes))
        values[:] = map(outputs.kinds[kinds.pop()] if len(kinds) == 1 else outputs.own, values)
        kinds = set(map(type, values))
    if not _has_special(kinds):
        return batch.with_values(values)
    if any(issubclass(kind, UNAWAITED) for kind in kinds):
        refuse_unawaited(values, outputs.where)
    if kinds == {TimestampedValue}:
        timestamps = [value.timestamp_micros for value in values]
        own = [value.value for value in values]
        return outputs.retime(Batch(own, timestamps, batch.windows, batch.panes))
    return None


def are_plain(values: list[Any], outputs: Outputs) -> bool:
    """True if none of a step's outputs has its own tag, time or windows, or belongs to another library."""
    kinds = set(map(type, values))
    return outputs.kinds.keys().isdisjoint(kinds) and not _has_special(kinds)


def _has_special(kinds: set[type]) -> bool:
    return any(issubclass(kind, _SPECIAL) for kind in kinds)


def check_complete(found: int, expected: int) -> None:
    """Notices a StopIteration that left user code: Python's loops take it for the end of the batch."""
    if found != expected:
        raise make_stop_iteration_error()


def make_stop_iteration_error() -> RuntimeError:
    """Returns the error for user code that raised StopIteration, as Python itself raises it for generators."""
    return refusal(
        RuntimeError,
        "the function raised StopIteration",
        hint="give next() a default, or catch StopIteration",
    )


class ValueStep(Node):
    """A function of an element's value; `starred` passes the parts of the value as arguments."""

    def __init__(
        self, fn: Callable[..., Any], starred: bool, outputs: Outputs, metrics: MetricsContainer, where: str
    ) -> None:
        self.fn = fn
        self.starred = starred
        self.outputs = outputs
        self.metrics = metrics
        self.where = where


class MapStep(ValueStep):
    """Makes one output for each input (Beam's ``Map`` and ``MapTuple``)."""

    def push(self, batch: Batch) -> Records:
        set_current(self.metrics)
        try:
            apply = starmap if self.starred else map
            values = list(apply(self.fn, elements := iter(batch.values)))
            check_complete(len(values), len(batch.values))
        except Exception as error:
            fail_step(error, self.where, find_last_read(batch.values, elements))
        yield from push_mapped(batch, values, self.outputs)


def push_mapped(batch: Batch, values: list[Any], outputs: Outputs) -> Records:
    """Sends the results of a function for the elements of a batch on, one for one."""
    out = plain(batch, values, outputs)
    if out is None:
        yield from outputs.route(zip(((value,) for value in values), batch.rows(), strict=True))
    else:
        yield from outputs.main.push(out)


class StampStep(ValueStep):
    """Assigns new timestamps to the inputs, which the function returns in microseconds (``WithTimestamps``)."""

    def push(self, batch: Batch) -> Records:
        set_current(self.metrics)
        try:
            timestamps = list(map(self.fn, elements := iter(batch.values)))
            check_complete(len(timestamps), len(batch.values))
        except Exception as error:
            fail_step(error, self.where, find_last_read(batch.values, elements))
        stamped = Batch(batch.values, timestamps, batch.windows, batch.panes)
        yield from self.outputs.main.push(self.outputs.retime(stamped))


class FilterStep(ValueStep):
    """The inputs for which the function is true (Beam's ``Filter``)."""

    def push(self, batch: Batch) -> Records:
        set_current(self.metrics)
        try:
            selectors = list(map(self.fn, elements := iter(batch.values)))
            check_complete(len(selectors), len(batch.values))
            if isinstance(selectors[0], UNAWAITED):
                # It would count as true.
                refuse_unawaited(selectors, self.where)
            kept = batch.select(selectors)
        except Exception as error:
            fail_step(error, self.where, find_last_read(batch.values, elements))
        if kept.values:
            yield from self.outputs.main.push(kept)


class FlatMapStep(ValueStep):
    """Makes any number of outputs for each input (Beam's ``FlatMap``, and ParDo of a DoFn that sees only the element).

    Where the batch's metadata is shared, the outputs of all its elements are one stream, cut into chunks; a function
    that yields forever is consumed a chunk at a time.
    """

    def push(self, batch: Batch) -> Records:
        apply: Callable[..., Iterator[Any]] = starmap if self.starred else map
        read_all: list[bool] = []
        elements = iter(batch.values)
        results = apply(self.fn, chain(elements, _noting_the_end(read_all)))
        find = partial(find_last_read, batch.values, elements)
        if not batch.shared:
            yield from self.outputs.route(
                zip(self._guarded(results, read_all, find), batch.rows(), strict=True)
            )
            return
        stream = chain.from_iterable(filterfalse(_is_nothing, results))
        while values := self._chunk(stream, read_all, find):
            out = plain(batch, values, self.outputs)
            if out is None:
                one = next(Batch([None], batch.timestamps, batch.windows, batch.panes).rows())
                yield from self.outputs.route(((value,), one) for value in values)
            else:
                before = self.outputs.sizer.begin()
                yield from self.outputs.main.push(out)
                self.outputs.sizer.learn(len(values), before)

    def _chunk(
        self, stream: Iterator[Any], read_all: list[bool], find: Callable[[], tuple[Any, ...]]
    ) -> list[Any]:
        set_current(self.metrics)
        most = self.outputs.sizer.elements
        try:
            values = list(islice(stream, most))
            if len(values) < most and not read_all:
                raise make_stop_iteration_error()
        except Exception as error:
            fail_step(error, self.where, find())
        return values

    def _guarded(
        self, results: Iterator[Any], read_all: list[bool], find: Callable[[], tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yields the results, with each exception marked with this step and this step's metrics current."""
        while True:
            set_current(self.metrics)
            try:
                result = next(results)
                if result is not None:
                    check_result(result)
            except StopIteration:
                if not read_all:
                    fail_step(make_stop_iteration_error(), self.where, find())
                return
            except Exception as error:
                fail_step(error, self.where, find())
            yield result


def _noting_the_end(read_all: list[bool]) -> Iterator[Any]:
    """Yields nothing, but notes that it was asked: everything before it was read, and no user code ended the
    loop.
    """
    read_all.append(True)
    return
    yield


def find_last_read(values: list[Any], elements: Iterator[Any]) -> tuple[Any, ...]:
    """Returns the element that a loop over a batch read last, as a 1-tuple; () if it has read none."""
    read = len(values) - length_hint(elements)
    return (values[read - 1],) if read else ()


def _is_nothing(result: object) -> bool:
    if result is None:
        return True
    if type(result) not in _USUAL:
        check_result(result)
    return False
