"""A drawing in words, for whoever does not see it."""

from __future__ import annotations

from penstock.figures.layout import Layout
from penstock.figures.pane_marks import pane_title
from penstock.figures.recording import Recording

_PANES_MAX = 30
_MODES = {"batch": "In batch", "micro_batch": "In micro-batches", "streaming": "Streaming"}


def description(layout: Layout, recording: Recording) -> str:
    """What a drawing shows: how many elements there are, and which panes came when."""
    count, panes = len(recording.inputs), recording.panes
    texts = [f"{_MODES.get(recording.mode, recording.mode)}: {_counted(count, 'element')}"]
    dropped = sum(each.is_dropped for each in recording.inputs)
    if dropped:
        texts.append(f", {dropped} of them dropped")
    texts.append(f", {_counted(len(panes), 'pane')}")
    if panes:
        texts.append(": " + "; ".join(pane_title(layout, pane) for pane in panes[:_PANES_MAX]))
    if len(panes) > _PANES_MAX:
        texts.append(f"; and {len(panes) - _PANES_MAX} more")
    return "".join(texts) + "."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
