"""The record that a run keeps of itself in its checkpoint, for people; a folder that cannot be written ends nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.checkpoints.custody.run_records import RunRecord, begin_record, write_record
from penstock_spark.files.place import Place

EVERY_SECONDS = 60.0
"""The time between two writes of a run: a run that dies was seen within this time."""

_LOGGER = logging.getLogger(__name__)


class OwnRecord:
    """The record of one run.

    Args:
        place: The checkpoint; None for a run whose checkpoint goes with it.
        describe: Returns the present record, with a state.
    """

    def __init__(self, place: Place | None, describe: Callable[[str], RunRecord]) -> None:
        self._place, self._describe = place, describe
        self._next_seconds = clock.monotonic_seconds() + EVERY_SECONDS

    def begin(self) -> tuple[RunRecord, ...]:
        """Writes it for the first time, and returns the records of earlier runs."""
        if self._place is None:
            return ()
        try:
            return begin_record(self._place, self._describe(PipelineState.RUNNING))
        except Exception:
            _LOGGER.debug("cannot write the record of the run", exc_info=True)
            return ()

    def keep(self) -> None:
        """Writes it if that was long ago."""
        if self._place is not None and clock.monotonic_seconds() >= self._next_seconds:
            self.write(PipelineState.RUNNING)

    def write(self, state: str) -> None:
        """Writes it with a state."""
        if self._place is None:
            return
        self._next_seconds = clock.monotonic_seconds() + EVERY_SECONDS
        try:
            write_record(self._place, self._describe(state))
        except Exception:
            _LOGGER.debug("cannot write the record of the run", exc_info=True)
