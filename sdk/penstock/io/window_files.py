"""The windowing of files that a stream writes window by window, as Beam does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.graph import Sink
from penstock.windows.triggers import AccumulationMode, AfterWatermark
from penstock.windows.window_fn import FixedWindows
from penstock.windows.windowing import Windowing, default_windowing


def windowing_of_files(windowing: Windowing, is_bounded: bool, sink: Sink) -> Windowing:
    """The windowing of elements that a sink writes to files.

    Bounded input has one window, and ignores the sink's ``triggering_frequency``.

    >>> from penstock.io.text_sink import Shards, TextSink
    >>> every_minute = TextSink(Shards("/out/a"), triggering_frequency=60)
    >>> windowing_of_files(default_windowing(), False, every_minute).windowfn
    FixedWindows(size=Duration(60), offset=Duration(0))
    """
    if is_bounded:
        return default_windowing()
    seconds: Any = getattr(sink, "triggering_frequency", None)
    if seconds:
        return Windowing(FixedWindows(seconds), AfterWatermark(), AccumulationMode.DISCARDING)
    if windowing.accumulation_mode == AccumulationMode.ACCUMULATING_AND_RETRACTING:
        # A file's content cannot be retracted.
        return replace(windowing, accumulation_mode=AccumulationMode.DISCARDING)
    return windowing
