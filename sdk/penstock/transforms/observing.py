"""Steps beside the main flow: log elements, branch off, wait for other PCollections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.construction.applicable import T
from penstock.construction.ptransform import PTransform, ptransform_fn
from penstock.construction.pvalue import AsIter, PCollection
from penstock.functions.dofn import DoFn
from penstock.transforms.elements.pardo import FlatMap, Map, ParDo
from penstock.transforms.grouping.group_by_key import GroupByKey
from penstock.typehints import KV, with_input_types, with_output_types
from penstock.utils.timestamp import Timestamp, format_time
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo

_LOGGER = logging.getLogger("penstock.transforms.util")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


@with_input_types(T)
@with_output_types(T)
class LogElements(PTransform[Any, Any]):
    """Logs or prints each element where the worker runs, and emits it unchanged (Beam's ``LogElements``).

    Args:
        label: The step's name.
        prefix: The start of each line.
        with_timestamp: Whether the line has the timestamp.
        with_window: Whether the line has the window's start and end.
        level: A level of `logging`, for the logger ``penstock.transforms.util``; None prints.
        with_pane_info: Whether the line has the pane.
        use_epoch_time: Whether times are whole seconds since the epoch rather than RFC 3339.

    Example: ``words | LogElements(prefix="word: ", level=logging.INFO)``.
    """

    def __init__(
        self,
        label: str | None = None,
        prefix: str = "",
        with_timestamp: bool = False,
        with_window: bool = False,
        level: int | None = None,
        with_pane_info: bool = False,
        use_epoch_time: bool = False,
    ) -> None:
        super().__init__(label)
        self._fn = LoggingDoFn(prefix, with_timestamp, with_window, level, with_pane_info, use_epoch_time)

    def expand(self, input: PCollection[T]) -> PCollection[T]:
        return input | ParDo(self._fn).with_output_types(input.element_type)


@dataclass(eq=False)
class LoggingDoFn(DoFn):
    """The DoFn of `LogElements`, with the same arguments."""

    prefix: str = ""
    with_timestamp: bool = False
    with_window: bool = False
    level: int | None = None
    with_pane_info: bool = False
    use_epoch_time: bool = False

    def process(
        self,
        element: object,
        timestamp: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane_info: PaneInfo = DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        line = f"{self.prefix}{element}"
        if self.with_timestamp:
            line += f", timestamp={self._formatted(timestamp)!r}"
        if self.with_window:
            start, end = self._formatted(window.start), self._formatted(window.end)
            line += f", window(start={start}, end={end})"
        if self.with_pane_info:
            line += f", pane_info={pane_info!r}"
        if self.level in _LEVELS:
            _LOGGER.log(self.level, line)
        else:
            print(line)
        yield element

    def _formatted(self, timestamp: Timestamp) -> object:
        if self.use_epoch_time:
            return timestamp.seconds()
        return format_time(timestamp)


@with_input_types(T)
@with_output_types(T)
class Tee(PTransform[Any, Any]):
    """Applies other transforms to its input, and emits the input unchanged (Beam's ``Tee``).

    Args:
        *consumers: Transforms, or functions of a PCollection that apply some.

    Example: ``lines | Tee(WriteToText("copy")) | CountWords()``.
    """

    def __init__(self, *consumers: PTransform[Any, Any] | Callable[[Any], Any]) -> None:
        super().__init__()
        self._consumers = consumers

    def expand(self, input: PCollection[T]) -> PCollection[T]:
        for consumer in self._consumers:
            input | (consumer if isinstance(consumer, PTransform) else ptransform_fn(consumer)())
        return input


@with_input_types(T)
@with_output_types(T)
class WaitOn(PTransform[Any, Any]):
    """Emits its input when other PCollections are complete, window by window (Beam's ``WaitOn``).

    Example: ``queries | WaitOn(written_tables) | Map(ask)``.
    """

    def __init__(self, *to_be_waited_on: Any) -> None:
        super().__init__()
        self._to_be_waited_on = to_be_waited_on

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        """Takes each of the others, emptied, as a side input, which is ready when its window is over."""
        # The grouping waits for the end of the window.
        sides = [
            AsIter(
                other
                | f"WaitOn{number}" >> (FlatMap(_nothing).with_output_types(KV[int, int]) | GroupByKey())
            )
            for number, other in enumerate(self._to_be_waited_on)
        ]
        return pcoll | Map(_the_element, *sides).with_output_types(pcoll.element_type)


def _nothing(_: object) -> tuple[Any, ...]:
    return ()


def _the_element(element: object, *_: object) -> object:
    return element
