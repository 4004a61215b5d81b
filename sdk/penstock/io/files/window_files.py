"""The windowing of files that a stream writes window by window, as Beam does."""

from __future__ import annotations

from dataclasses import replace

from penstock.graph import Sink
from penstock.windows.triggers import AccumulationMode, AfterWatermark
from penstock.windows.window_fn import FixedWindows
from penstock.windows.windowing import Windowing, default_windowing


def windowing_of_files(windowing: Windowing, is_bounded: bool, sink: Sink) -> Windowing:
    """Returns the windowing of elements that a sink writes to files.

    Bounded input has one window, and ignores the sink's ``triggering_frequency``.

    >>> from penstock.io.files.shards import Shards
    >>> from penstock.io.formats.text_sink import TextFileSink
    >>> every_minute = TextFileSink(Shards("/out/a"), triggering_frequency=60)
    >>> windowing_of_files(default_windowing(), False, every_minute).windowfn
    FixedWindows(size=Duration(60), offset=Duration(0))
    """
    if is_bounded:
        return default_windowing()
    if sink.triggering_frequency:
        return Windowing(
            FixedWindows(sink.triggering_frequency), AfterWatermark(), AccumulationMode.DISCARDING
        )
    if windowing.accumulation_mode == AccumulationMode.ACCUMULATING_AND_RETRACTING:
        # A file's content cannot be retracted.
        return replace(windowing, accumulation_mode=AccumulationMode.DISCARDING)
    return windowing
