"""Ends a streaming query: stops it, notes its end in the checkpoint, and tells the user."""

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
"""Turns Spark's exception into the user's."""


def stop_query(started: Any, translate: Translate) -> BaseException | None:
    """Stops Spark's query; returns the exception that this raised, if any."""
    try:
        started.stop()
    except Exception as error:
        return translate(error)
    return None


def state_at_end(state: str, failure: BaseException | None) -> str:
    """The last state of a run that was in another state, and perhaps failed.

    >>> [state_at_end(state, None) for state in ("RUNNING", "DRAINING", "CANCELLING")]
    ['DONE', 'DRAINED', 'CANCELLED']
    >>> state_at_end("DRAINING", ValueError())
    'FAILED'
    """
    return PipelineState.FAILED if failure is not None else _ENDS.get(state, PipelineState.DONE)


def note_end(checkpoint: Checkpoint, state: str, translate: Translate) -> BaseException | None:
    """Notes in the checkpoint that all windows have fired, if they have; returns the exception if this fails."""
    if state not in (PipelineState.DONE, PipelineState.DRAINED):
        return None
    try:
        checkpoint.check()
        checkpoint.note_end(state)
    except Exception as error:
        return translate(error)
    return None


def tell_end(run: str, state: str, failure: BaseException | None, backlog: Backlog | None) -> None:
    """Logs an end that the user did not ask for; the backlog is None without a drain."""
    if failure is not None:
        _LOGGER.error("the query of the run %s failed: %s", run, failure)
    elif state == PipelineState.CANCELLED and backlog is not None:
        _LOGGER.warning("cancelled before it had drained: %s", unread(backlog))


def unread(backlog: Backlog) -> str:
    labels = ", ".join(repr(label) for label in backlog.labels())
    return (
        f"some data of {labels} was not read yet"
        if labels
        else "all data was read, but some windows had not fired"
    )
