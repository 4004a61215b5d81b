"""What a drawing shows: the elements that arrived at one grouping, the panes it gave, and where the watermark was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VALUE_LENGTH_MAX = 40
"""So many characters a value in a recording has at most."""


@dataclass(frozen=True)
class RecordedInput:
    """An element that arrived at a grouping.

    Attributes:
        event_micros: Its event time, in microseconds.
        clock_micros: The processing time at which it arrived.
        key: Its key as text; empty if there are no keys.
        value: Its value as text, see `value_text`.
        is_retraction: Whether it takes its value back.
        is_dropped: Whether a window no longer took it.

    >>> RecordedInput(3_000_000, 5_000_000, "game", "7").value
    '7'
    """

    event_micros: int
    clock_micros: int
    key: str
    value: str
    is_retraction: bool = False
    is_dropped: bool = False


@dataclass(frozen=True)
class RecordedPane:
    """A pane that a grouping gave.

    Attributes:
        start_micros: Where its window begins, in microseconds; ``MIN_MICROS`` of `penstock.machines.records` for the
            GlobalWindow.
        end_micros: Where its window ends; ``MAX_MICROS`` for the GlobalWindow.
        clock_micros: The processing time at which it came.
        key: Its key as text; empty if there are no keys.
        value: Its value as text, see `value_text`.
        timing: A constant of `penstock.utils.windowed_value.PaneInfoTiming`.
        index: Its number among the panes of its window.
        is_retraction: Whether it takes an earlier pane's value back.
        is_last: Whether no other pane of its window follows.

    >>> RecordedPane(0, 10_000_000, 12_000_000, "game", "7", timing=1, index=0).is_retraction
    False
    """

    start_micros: int
    end_micros: int
    clock_micros: int
    key: str
    value: str
    timing: int
    index: int
    is_retraction: bool = False
    is_last: bool = False


@dataclass(frozen=True)
class Recording:
    """What happened at one grouping.

    Attributes:
        title: What it shows.
        inputs: The elements, as they arrived.
        panes: The panes, as they came.
        watermark: Pairs of a processing time and an event time: from that moment on the watermark is there. In order
            of processing time; ``MIN_MICROS`` and ``MAX_MICROS`` are the infinite ones. In a micro-batch it may begin
            anew.
        mode: ``batch``, ``micro_batch`` or ``streaming``.
        is_complete: Whether all that happened is in it, or there was more than it could take.
        epoch_micros: The moment that the labels of both axes count from.
        counts_steps: Whether processing time stood still, and each second of it is one step of what happened.

    >>> Recording("one element", (RecordedInput(3_000_000, 5_000_000, "", "7"),), (), ()).mode
    'streaming'
    """

    title: str
    inputs: tuple[RecordedInput, ...]
    panes: tuple[RecordedPane, ...]
    watermark: tuple[tuple[int, int], ...]
    mode: str = "streaming"
    is_complete: bool = True
    epoch_micros: int = 0
    counts_steps: bool = False


def value_text(value: Any) -> str:
    """A value as a drawing shows it, in at most `VALUE_LENGTH_MAX` characters.

    >>> value_text("v1"), value_text(1.283333), value_text(["a", 2])
    ('v1', '1.283', '[a, 2]')
    >>> value_text(None), len(value_text("x" * 100))
    ('None', 40)
    """
    text = _text(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[: VALUE_LENGTH_MAX - 1]}…"


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case float():
            return f"{value:.4g}" if abs(value) < 1e4 else f"{value:g}"
        case list():
            # One more than can be shown is enough: the values of a group may be many.
            return f"[{', '.join(map(_text, value[: VALUE_LENGTH_MAX + 1]))}]"
        case tuple():
            return f"({', '.join(map(_text, value[: VALUE_LENGTH_MAX + 1]))})"
        case _:
            return repr(value)
