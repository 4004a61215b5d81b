"""The table of commits: which micro-batch of each stream is in a database, and which driver may write the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock_connectors.database.address import Address
from penstock_connectors.database.errors import make_write_error
from penstock_spark.connecting.tables import is_committed
from penstock_spark.connecting.writing import MicroBatch

COMMITS = "penstock_commits"


def begin_batch(
    known: Sequence[Any], note: Callable[[int], int], driver: str, batch: MicroBatch, address: Address
) -> bool:
    """Notes the number of a micro-batch, in the transaction that writes it; False if it has been written.

    It is an error if another driver may write the stream.

    Args:
        known: The stream's rows in the table: the number of its last micro-batch, and the driver that may write it.
        note: Writes the number over the given last one, if this driver still has the row, and returns how many rows it
            has changed.
        driver: The driver that asks.
        batch: The micro-batch.
        address: The table that gets its rows.
    """
    [(last, owner)] = known or [(None, None)]
    if owner != driver:
        raise make_displaced_error(address, is_other=owner is not None)
    if is_committed(last, batch.number):
        return False
    if not note(last):
        raise make_displaced_error(address, is_other=True)
    return True


def make_displaced_error(address: Address, is_other: bool) -> Exception:
    if is_other:
        said = "another run has taken over this stream"
        return make_write_error(address, said, "let the other one run, or stop it and start this one again")
    said = f"the row of this stream in {COMMITS} has been deleted"
    return make_write_error(address, said, "never delete rows of streams that run")
