"""Measures the folder of a checkpoint now and then, in the thread of the view, and never for a micro-batch."""

from __future__ import annotations

import logging

from penstock.utils import clock
from penstock_spark.files.place import Place
from penstock_spark.live.snapshot import CheckpointNow

EVERY_SECONDS = 30.0
"""The minimum time between two measurements."""

SECOND_AFTER_SECONDS = 5.0
"""The minimum time between the first two: the first one comes before the state does."""

COST_MAX = 0.005
"""The largest share of the time that measurements take: the listing of a large folder on a store takes long."""

_LOGGER = logging.getLogger(__name__)


class CheckpointMeter:
    """The size of a checkpoint, as it was last measured.

    Args:
        place: Its folder.
        state: The folder with the state that Spark keeps.

    Attributes:
        last: What was measured last.
    """

    def __init__(self, place: Place, state: Place) -> None:
        self._place, self._state = place, state
        self._next_seconds = 0.0
        self._pause_seconds = SECOND_AFTER_SECONDS
        self.last = CheckpointNow(place.location)

    def measure_if_due(self) -> None:
        """Measures the folder if that was long ago; what cannot be measured is unknown."""
        began_seconds = clock.monotonic_seconds()
        if began_seconds < self._next_seconds:
            return
        try:
            total, files = self._place.size()
            state, _ = self._state.size()
            self.last = CheckpointNow(self._place.location, total, state, files, clock.micros())
        except Exception as error:
            _LOGGER.debug("the checkpoint cannot be measured: %s", type(error).__name__)
        took_seconds = clock.monotonic_seconds() - began_seconds
        self._next_seconds = clock.monotonic_seconds() + max(self._pause_seconds, took_seconds / COST_MAX)
        self._pause_seconds = EVERY_SECONDS
