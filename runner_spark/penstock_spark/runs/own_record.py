"""The record that a run keeps of itself in its checkpoint, for people; a folder that cannot be written ends nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.checkpoints.custody.run_records import RunRecord, begin_record, write_record
from penstock_spark.files.place import Place

EVERY_SECONDS = 5.0
"""The maximum time between two writes of a run: a run that dies was seen within this time."""

_FIRST_SECONDS = 1.0
"""The time between the first two writes; it doubles up to the maximum, so that short runs are seen as well."""

_LOGGER = logging.getLogger(__name__)


class OwnRecord:
    """The record of one run, from its claim to its end; a run whose checkpoint goes with it writes none.

    Args:
        first: The facts that are known before the claim.
    """

    def __init__(self, first: RunRecord) -> None:
        self.last = first
        self.earlier: tuple[RunRecord, ...] = ()
        self._place: Place | None = None
        self._began_seconds = self._next_seconds = 0.0

    def begin(self, place: Place, claim: int) -> None:
        """Writes it for the first time, as soon as the run has claimed its checkpoint."""
        self._place, self.last = place, replace(self.last, claim=claim)
        self._began_seconds = clock.monotonic_seconds()
        self._wait()
        try:
            self.earlier = begin_record(place, self.last)
        except Exception:
            _LOGGER.debug("cannot write the record of the run", exc_info=True)

    def keep(self, describe: Callable[[], RunRecord]) -> None:
        """Writes what `describe` returns, if the last time is long ago."""
        if self._place is not None and clock.monotonic_seconds() >= self._next_seconds:
            self.write(describe)

    def write(self, describe: Callable[[], RunRecord]) -> None:
        """Writes what `describe` returns."""
        if self._place is None:
            return
        self._wait()
        try:
            self.last = describe()
            write_record(self._place, self.last)
        except Exception:
            _LOGGER.debug("cannot write the record of the run", exc_info=True)

    def note_failed_start(self, state: str, error: str) -> None:
        """Writes how a run has ended that got no further than its claim; a run that has noted its end keeps that."""
        if not PipelineState.is_terminal(self.last.state):
            self.write(lambda: replace(self.last, state=state, error=error, seen_micros=clock.micros()))

    def _wait(self) -> None:
        now = clock.monotonic_seconds()
        self._next_seconds = now + min(max(now - self._began_seconds, _FIRST_SECONDS), EVERY_SECONDS)
