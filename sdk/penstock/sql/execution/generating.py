"""Each row with the rows that a generator makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.scalars.row_functions import Predicate, Projection
from penstock.sql.generators.functions import RECORDS
from penstock.sql.plan.relations import Generate

Row = tuple[Any, ...]


class GeneratedRows:
    """Emits the rows that a relation has for a row of its input.

    Args:
        relation: The relation.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT, SqlType
    >>> from penstock.sql.plan.relations import ColumnDef, Values
    >>> tags = ColumnDef("tags", SqlType("ARRAY", True, BIGINT))
    >>> column, tag = Column(0, tags.name, tags.type), ColumnDef("tag", BIGINT)
    >>> made = GeneratedRows(Generate(Values((), (tags,)), "EXPLODE", (column,), (tag,)))
    >>> list(made(([1, 2],))), list(made(([],)))
    ([([1, 2], 1), ([1, 2], 2)], [])
    """

    def __init__(self, relation: Generate) -> None:
        self._arguments = Projection(relation.arguments)
        self._rows = RECORDS[relation.name].rows
        self._width = len(relation.generated)
        self._is_outer = relation.outer
        self._kind = relation.kind
        self._condition = None if relation.condition is None else Predicate(relation.condition)

    def __call__(self, row: Row) -> Iterable[Row]:
        """The rows."""
        made: Iterable[Row] = self._rows(self._arguments.function(row), self._width)
        rows = [(*row, *each) for each in made]
        if self._is_outer and not rows:
            rows = [self._alone(row)]
        if self._condition is not None:
            holds = self._condition.function
            rows = [each for each in rows if holds(each)]
        match self._kind:
            case "semi":
                return (row,) if rows else ()
            case "left_anti":
                return () if rows else (row,)
            case "left" if not rows:
                return (self._alone(row),)
        return rows

    def _alone(self, row: Row) -> Row:
        """The row with NULLs in place of a generated one."""
        return (*row, *(None,) * self._width)
