"""The values that a pipeline is written with, under Beam's path (`apache_beam.pvalue`)."""

from __future__ import annotations

from penstock.base.row import Row
from penstock.base.tagged_output import TaggedOutput
from penstock.construction.pvalue import (
    AsDict,
    AsIter,
    AsList,
    AsMultiMap,
    AsSideInput,
    AsSingleton,
    DoOutputsTuple,
    EmptySideInput,
    PBegin,
    PCollection,
    PDone,
    PValue,
    T,
)

__all__ = [
    "AsDict",
    "AsIter",
    "AsList",
    "AsMultiMap",
    "AsSideInput",
    "AsSingleton",
    "DoOutputsTuple",
    "EmptySideInput",
    "PBegin",
    "PCollection",
    "PDone",
    "PValue",
    "Row",
    "T",
    "TaggedOutput",
]
