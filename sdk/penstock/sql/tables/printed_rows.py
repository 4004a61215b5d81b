"""Prints the rows of a table as they arrive."""

from __future__ import annotations

from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.io.each_batch import ForEachBatch
from penstock.relations.changelog import Changelog
from penstock.sql.console import format_change


class PrintRows(PTransform[Any, Any]):
    """Prints each row as a line where the program runs: ``+`` for a new row, ``-`` for one that is undone.

    Args:
        prefix: The beginning of each line.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self._prefix = prefix

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        changes = pcoll | "Changes" >> Changelog() if may_retract(pcoll) else pcoll
        prefix = self._prefix

        def show(rows: list[Any], number: int) -> None:
            for row in rows:
                print(f"{prefix}{format_change(row)}")

        printed: PCollection[Any] = changes | "Print" >> ForEachBatch(show)
        return printed
