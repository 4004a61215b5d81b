"""What a drawing shows: the elements that arrived at one grouping, the panes it gave, and where the watermark was."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.machines.recorder import RecordedInput, RecordedPane


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
