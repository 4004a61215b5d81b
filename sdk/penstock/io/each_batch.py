"""Passes the elements of each micro-batch to the program that runs the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock import graph
from penstock.base.labels import label_from_callable
from penstock.error import noun_for, refusal
from penstock.io.sink_transforms import SinkTransform
from penstock.typehints.annotations import signature_as_written

__all__ = ["EachBatchSink", "ForEachBatch", "WriteToMemory"]

BatchFunction: TypeAlias = Callable[[list[Any], int], Any]


@dataclass(frozen=True, eq=False)
class EachBatchSink(graph.Sink):
    """A function that the driver calls with the elements of a micro-batch and its number."""

    function: BatchFunction

    def describe(self) -> str:
        return f"each batch: {label_from_callable(self.function)}"


class ForEachBatch(SinkTransform):
    """Calls a function with the elements of each micro-batch, where the program runs (penstock's own); no output.

    The call is ``function(elements, batch_id)`` for each micro-batch with elements, with ascending numbers; in batch
    mode, it is called once, with number 0. After a crash, the last call may be repeated with the same elements and
    number. So the function has its effect exactly once if it stores the number together with its output, and ignores a
    number that it has stored. It runs in the program itself, and may use all of its objects.

    All elements of a micro-batch must fit into the driver's memory.

    >>> ForEachBatch(lambda elements, batch_id: print(batch_id, len(elements))).sink.describe()
    'each batch: <lambda at ...:1>'
    """

    sink: EachBatchSink

    def __init__(self, function: BatchFunction) -> None:
        if not callable(function):
            what = f"ForEachBatch needs a function, but got {function!r}"
            hint = "pass one that takes a list of elements and the micro-batch's number"
            raise refusal(TypeError, what, hint=hint)
        _check_takes_two(function)
        super().__init__(EachBatchSink(function))


class WriteToMemory(SinkTransform):
    """Appends each element to a list of the program (penstock's own); no output.

    It is meant for tests and small results: all elements must fit into memory. A stream's list grows with each
    micro-batch.

    Example: ``totals | WriteToMemory(found)``.
    """

    sink: graph.DriverList

    def __init__(self, into: list[Any]) -> None:
        if not isinstance(into, list):
            what = f"WriteToMemory needs a list, but got {noun_for(into)}"
            raise refusal(TypeError, what, hint="write found = [], and pass it")
        super().__init__(graph.DriverList(into))


def _check_takes_two(function: Callable[..., Any]) -> None:
    try:
        signature = signature_as_written(function)
    except ValueError:
        return  # Some functions that are not written in Python have no signature.
    try:
        signature.bind([], 0)
    except TypeError as error:
        what = f"the function of ForEachBatch cannot be called with two arguments: {error}"
        hint = "write it as def function(elements, batch_id)"
        raise refusal(TypeError, what, hint=hint) from None
