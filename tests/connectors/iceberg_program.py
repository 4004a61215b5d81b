"""A program that tests kill and start again: scores of files, one in each micro-batch, into an Iceberg table.

Arguments: ``append`` or ``merge``, the folders of the input, the catalog and the checkpoint; then the number of the
micro-batch and the moment, ``before`` or ``after`` its commit, at which the program kills itself and all that it has
started.
"""

from __future__ import annotations

import sys
from typing import Any

from pyiceberg.table import Transaction

import penstock as beam
from penstock.io.iceberg import WriteToIceberg
from penstock_connectors.iceberg import writer
from tests.connectors import power_cuts
from tests.connectors.iceberg_tables import TABLE, properties
from tests.connectors.scores import HIGHEST, highest_of, pipeline_of, scores_of


def kill_at(number: int, moment: str) -> None:
    """Lets the driver die as by a power cut when it commits a micro-batch."""
    now = [-1]
    transaction_of = writer._Commit._transaction
    commit = Transaction.commit_transaction

    def noting(self: Any, catalog: Any, table: Any, written: Any, batch: Any, mark: str) -> Any:
        now[0] = batch.number
        return transaction_of(self, catalog, table, written, batch, mark)

    def dying(self: Any) -> Any:
        if now[0] == number and moment == "before":
            power_cuts.die()
        result = commit(self)
        if now[0] == number and moment == "after":
            power_cuts.die()
        return result

    writer._Commit._transaction = noting  # type: ignore[method-assign]
    Transaction.commit_transaction = dying  # type: ignore[method-assign]


def build(how: str, source: str, target: str, checkpoint: str) -> beam.Pipeline:
    """The pipeline, which has an end."""
    pipeline = pipeline_of(checkpoint, "--fast_start")
    scores = scores_of(pipeline, source)
    if how == "append":
        _ = scores | WriteToIceberg(TABLE, properties(target), partition_by="team")
    else:
        _ = highest_of(scores) | WriteToIceberg(
            TABLE, properties(target), key="team", value="highest", schema=HIGHEST
        )
    return pipeline


if __name__ == "__main__":
    kill_at(int(sys.argv[5]), sys.argv[6])
    build(*sys.argv[1:5]).run().wait_until_finish()
