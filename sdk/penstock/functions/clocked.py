"""A DoFn without state that asks when its elements have arrived."""

from __future__ import annotations

from collections.abc import Callable

from penstock.functions.dofn import DoFn
from penstock.utils.timestamp import MIN_TIMESTAMP


def _before_all_times() -> int:
    return MIN_TIMESTAMP.micros


class ClockedDoFn(DoFn):
    """The base of DoFns without state that ask for the processing time (penstock's own).

    Attributes:
        now_micros: Returns the time at which the current elements arrived; a stream sets it. In a batch, the clock
            stays at the minimum time.
    """

    now_micros: Callable[[], int] = staticmethod(_before_all_times)
