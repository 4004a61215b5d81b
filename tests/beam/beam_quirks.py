"""The ways in which Beam's runner differs from penstock: each is a switch of the model, and a row of the page."""

from __future__ import annotations

from enum import Enum


class Quirk(Enum):
    """What Beam does, where penstock does something else; conformance/differences.md says who is right."""

    EXPIRES_ONE_LATER = "a window still takes elements at the very moment at which its lateness is over"
    NEVER_CLOSES = "what a window still holds when its lateness is over is not given"
    NEVER_LETS_GO = "a window stays when its lateness is over: it fires, and later windows merge with it"
    DROPS_BEFORE_MERGING = (
        "an element is judged by its own window's age, not by that of the window it merges into"
    )
    LAST_UNSAID = "only a finished trigger makes a pane the last one"
    HELD_TIMING = "early and late are judged by the output watermark, which other windows and keys hold back"
    CLOCK_FOR_WATERMARK = "where the clock fires a trigger, its time is taken for the watermark"
    RINGS_ON_REQUEST = "the end of a window is noticed only if an element set a timer for it"
    CLOCK_UNREAD = "a processing-time trigger fires at any timer of the clock, and at nothing else"
    PARTS_FORGET = "the parts of a composite trigger do not know that they have finished"
    MERGES_TRIGGERS = "windows that merge add up what their triggers know"
    FINISHED_SPREADS = "a window that merges with a finished one is finished"
    EMPTY_PANES = "a trigger that fires gives a pane even if nothing is new"
    KEEPS_HOLD = "an early pane leaves its timestamp to the next one"
    HOLDS_LATE = (
        "an element behind the watermark but not behind the output watermark counts for the timestamp"
    )
