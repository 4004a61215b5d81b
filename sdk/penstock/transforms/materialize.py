"""Bringing elements back to the program that runs the pipeline."""

from __future__ import annotations

from typing import Any

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform


class Materialize(PTransform[Any, Any]):
    """Appends every element to a list when the pipeline has run; for what fits into memory.

    Args:
        into: The list.
    """

    def __init__(self, into: list[Any]) -> None:
        super().__init__()
        self.into = into

    def to_primitive(self) -> graph.Primitive:
        """A `Write` to the list."""
        return graph.Write(graph.DriverList(self.into))

    def expand(self, pcoll: Any) -> pvalue.PDone:
        """Gives nothing."""
        self._check_pcollection(pcoll)
        return pvalue.PDone(pcoll.pipeline)
