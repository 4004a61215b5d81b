"""The facts that a drawing shows: the elements that arrived at one grouping, its panes, and its watermark."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.machines.recorder import RecordedInput, RecordedPane


@dataclass(frozen=True)
class Recording:
    """The events of one grouping.

    Attributes:
        inputs: The elements, in order of arrival.
        panes: The panes, in order.
        watermark: Pairs of a processing time and the event time of the watermark from then on, in order of processing
            time; ``MIN_MICROS`` and ``MAX_MICROS`` are infinite. In a micro-batch the watermark may start over.
        mode: ``batch``, ``micro_batch`` or ``streaming``.
        is_complete: Whether it contains everything that happened.
        epoch_micros: The zero of the labels of both axes.
        counts_steps: Whether processing time did not advance, and each of its seconds is one step.

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
