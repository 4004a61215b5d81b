"""The record of a generator: all that is known about it, for the binder, for what computes it and for Spark's text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.scalars.tree import Scalar
from penstock.sql.plan.relations import Columns

Arguments = tuple[Scalar, ...]
Bind = Callable[[Arguments], tuple[Arguments, Columns]]
"""Checks the arguments of a call; returns what is computed of each row, and the columns; raises SqlTypeError."""
MakeRows = Callable[[Sequence[Any], int], Iterable[tuple[Any, ...]]]
"""Makes the rows of a call from the values of its arguments and the number of its columns."""


@dataclass(frozen=True)
class Generator:
    """A function that makes any number of rows of each row.

    Attributes:
        name: Its name in capitals.
        bind: Checks a call.
        rows: Makes the rows.
        spark: The call as Spark has it, with ``{all}`` for the arguments and ``{rows}`` for the number of rows that
            they make.
        in_from_only: Whether it may stand in ``FROM`` alone, and not in ``SELECT`` and ``LATERAL VIEW``.
        has_outer: Whether ``_OUTER`` behind its name makes a row of NULLs where there would be none.
        constants: How many of its first arguments do not depend on a row.
    """

    name: str
    bind: Bind
    rows: MakeRows
    spark: str
    in_from_only: bool = False
    has_outer: bool = True
    constants: int = 0
