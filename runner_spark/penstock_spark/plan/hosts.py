"""The hosts of groupings as values of the plan: each folds the values of a key and window, by some loop."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Loop(Enum):
    """The ways in which tasks before a grouping fold their values; all have the same results."""

    CALLS = "the methods of the CombineFn, called with many values at a time; without one, lists"
    VALUES = "the expressions of the fold, in a loop over keys and values"
    PAIRS = "the same, in a loop over pairs as they come, with only a window for each"
    SESSIONS = "elements of overlapping sessions together, as far as one task sees them"


class Rows(Enum):
    """The forms of rows between the tasks before a grouping and the grouping."""

    PICKLES = "partial results, or the values themselves, pickled"
    NUMBERS = "the same, but an integer of 64 bits as a number"


@dataclass(frozen=True)
class BySpark:
    """Spark's own aggregate adds up what tasks of Python have added up in parts, in two columns."""

    loop: Loop


@dataclass(frozen=True)
class InPython:
    """Python reads all partial results of a window at once, from a sorted exchange."""

    reason: str  # Why Spark's own aggregate does not do it; a clause for `explain`.
    loop: Loop = Loop.CALLS
    rows: Rows = Rows.PICKLES

    def __str__(self) -> str:
        return f"in Python: {self.reason}"


@dataclass(frozen=True)
class ByMachine:
    """The elements of a key go through the machine of the grouping, or of the DoFn, one by one in event-time order."""

    reason: str  # Why no simpler way does it; a clause for `explain`.
    input_retracts: bool  # Whether elements may retract earlier ones.

    def __str__(self) -> str:
        return f"by the machine: {self.reason}"


Host = BySpark | InPython | ByMachine
"""The host of a grouping of a batch."""


class State(Enum):
    """The forms in which the shards of a stream keep a grouping."""

    BY_KEY = "a machine for each key"
    BY_WINDOW = "a table of keys for each window"


@dataclass(frozen=True)
class InShards:
    """The host of a grouping of a stream in Python."""

    state: State
    # The way in which tasks that read fold the elements of one logical time; None if they arrive one by one.
    arriving: Loop | None
    reason: str  # Why Spark's own aggregate does not do it; a clause for `explain`.

    def __str__(self) -> str:
        return f"in Python: {self.reason}"
