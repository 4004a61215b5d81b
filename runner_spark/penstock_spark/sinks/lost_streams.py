"""The errors of a stream into a table, if the checkpoint or the table has forgotten the other one."""

from __future__ import annotations

from penstock.error import refusal


def checkpoint_is_gone(table: str, where: str) -> ValueError:
    """The error of a stream that starts for the first time, and has written to the table before."""
    what = f"{table} has micro-batches of this stream, whose checkpoint is gone"
    return refusal(ValueError, what, where=where, hint="write to another table, or use another checkpoint")


def stream_is_unknown(table: str, why: str, where: str) -> LookupError:
    """The error of a stream that has started before, and of which the table knows nothing."""
    what = f"{table} does not know this stream{why}, so it may lack what the stream has written"
    hint = (
        "use a new checkpoint to write everything again, or give the write another label to go on from here"
    )
    return refusal(LookupError, what, where=where, hint=hint)
