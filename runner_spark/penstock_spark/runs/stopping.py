"""How a streaming query is brought to its end: what it is told, what is noted, and what the user is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from penstock.runners.runner import PipelineState
from penstock_spark.checkpoints import Checkpoint
from penstock_spark.runs.draining import Backlog

_LOGGER = logging.getLogger(__name__)
_ENDS = {
    PipelineState.CANCELLING: PipelineState.CANCELLED,
    PipelineState.DRAINING: PipelineState.DRAINED,
}

Translate = Callable[[Exception], BaseException]
"""From what Spark raised to what is raised to the user."""


def stop_query(started: Any, translate: Translate) -> BaseException | None:
    """Stops Spark's query; what that raised, if anything."""
    try:
        started.stop()
    except Exception as error:
        return translate(error)
    return None


def state_at_end(state: str, failure: BaseException | None) -> str:
    """The state in which a run ends that was in another, of `penstock.runners.runner.PipelineState`.

    >>> [state_at_end(state, None) for state in ("RUNNING", "DRAINING", "CANCELLING")]
    ['DONE', 'DRAINED', 'CANCELLED']
    >>> state_at_end("DRAINING", ValueError())
    'FAILED'
    """
    return PipelineState.FAILED if failure is not None else _ENDS.get(state, PipelineState.DONE)


def note_end(checkpoint: Checkpoint, state: str, translate: Translate) -> BaseException | None:
    """Notes in the checkpoint that all windows have fired, if they have; what that raised, if anything."""
    if state not in (PipelineState.DONE, PipelineState.DRAINED):
        return None
    try:
        checkpoint.check()
        checkpoint.note_end(state)
    except Exception as error:
        return translate(error)
    return None


def tell_end(run: str, state: str, failure: BaseException | None, backlog: Backlog | None) -> None:
    """Logs an end that is not the one that was asked for.

    Args:
        run: The run's name.
        state: The state at the end.
        failure: What made it fail.
        backlog: What a drain had still to read; None if nobody asked for one.
    """
    if failure is not None:
        _LOGGER.error("the query of the run %s failed: %s", run, failure)
    elif state == PipelineState.CANCELLED and backlog is not None:
        _LOGGER.warning("cancelled before it was drained: %s", unread(backlog))


def unread(backlog: Backlog) -> str:
    """What is left of what was there when a drain was asked for, in words."""
    labels = ", ".join(repr(label) for label in backlog.labels())
    return (
        f"not all of {labels} had been read"
        if labels
        else "all had been read, and windows were still to fire"
    )
