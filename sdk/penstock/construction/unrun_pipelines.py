"""Warns at the end of a program about pipelines that were never run, which would otherwise go unnoticed."""

from __future__ import annotations

import atexit
import logging
import sys
from dataclasses import dataclass

from penstock.error import three_parts
from penstock.where import Location, find_caller

_LOGGER = logging.getLogger(__name__)

_SHOWN = 3
"""The number of pipelines that are shown."""


@dataclass(eq=False)
class UnrunPipeline:
    """A pipeline that has not been run or shown yet."""

    location: Location | None
    steps: int = 0

    def forget(self) -> None:
        """Called when a pipeline is run or shown, or when its user has seen an error."""
        _unrun.pop(self, None)


_unrun: dict[UnrunPipeline, None] = {}


def note() -> UnrunPipeline:
    """Notes that the user makes a pipeline."""
    made = UnrunPipeline(find_caller())
    if made.location is not None:
        _unrun[made] = None
    return made


@atexit.register
def _warn() -> None:
    # Who types, or whose program ends with an error, knows that a pipeline was not run; and a test may only build one.
    if hasattr(sys, "ps1") or hasattr(sys, "last_value") or "pytest" in sys.modules:
        return
    forgotten: dict[Location | None, UnrunPipeline] = {}
    for made in _unrun:
        if made.steps:
            # Those of one line have one reason.
            forgotten.setdefault(made.location, made)
    for made in list(forgotten.values())[:_SHOWN]:
        count = "one transform" if made.steps == 1 else f"{made.steps} transforms"
        _LOGGER.warning(
            three_parts(
                f"a pipeline of {count} was never run",
                where=f"made at {made.location}",
                hint="make it with 'with beam.Pipeline() as p:', or call its run() at the end",
            )
        )
