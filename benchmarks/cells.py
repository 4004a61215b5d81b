"""The cells of the table of streams: what each reads, does to elements, groups by and writes, and who its twin is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

SQL = "Spark SQL"
ARROW = "the same Python in `mapInArrow`"
PER_KEY = "`transformWithState` per key"
JOIN = "Spark's own join"
UPDATE = "an update query"


@dataclass(frozen=True)
class Cell:
    """One work for penstock and for its twin, a query by hand that does the same."""

    source: str  # "parquet", "json", or "text", whose lines a function of Python parses.
    step: str  # "expressions" that can be read, "functions" of Python over elements, or a query in "sql".
    grouping: str  # As `cell_penstock` and `cell_native` know it.
    sink: str  # "parquet" or "nothing".
    twin: str  # For people.
    measure: str = "replay"  # As `stream_table` knows it.
    part: float = 1.0  # Of the events; less where a twin would take too long.
    is_quick: bool = False  # Whether `--quick` measures it.

    @property
    def name(self) -> str:
        """As on the command line and in the numbers.

        >>> Cell("parquet", "expressions", "teams", "nothing", SQL).name
        'parquet/expressions/teams/nothing'
        """
        return "/".join((self.source, self.step, self.grouping, self.sink))


def _quick(*parts: str, **more: object) -> Cell:
    return Cell(*parts, is_quick=True, **more)  # type: ignore[arg-type]


CELLS = (
    _quick("parquet", "expressions", "none", "parquet", SQL),
    Cell("parquet", "expressions", "none", "nothing", SQL),
    _quick("parquet", "functions", "none", "parquet", ARROW),
    Cell("parquet", "functions", "none", "nothing", ARROW),
    Cell("json", "expressions", "none", "parquet", SQL),
    Cell("text", "functions", "none", "parquet", ARROW),
    _quick("parquet", "expressions", "teams", "parquet", SQL),
    Cell("parquet", "expressions", "teams", "nothing", SQL),
    _quick("parquet", "functions", "teams", "parquet", ARROW),
    Cell("json", "expressions", "teams", "parquet", SQL),
    Cell("json", "functions", "teams", "parquet", ARROW),
    _quick("text", "functions", "teams", "parquet", ARROW),
    Cell("text", "expressions", "teams", "parquet", ARROW),
    _quick("parquet", "expressions", "users", "parquet", SQL),
    Cell("parquet", "functions", "users", "parquet", ARROW),
    Cell("text", "functions", "users", "parquet", ARROW),
    Cell("parquet", "sql", "none", "parquet", SQL),
    _quick("parquet", "sql", "teams", "parquet", SQL),
    Cell("parquet", "sql", "users", "parquet", SQL),
    Cell("json", "sql", "users", "parquet", SQL),
    Cell("parquet", "expressions", "counts", "nothing", UPDATE, measure="growth"),
    Cell("parquet", "functions", "counts", "nothing", UPDATE, measure="growth"),
    Cell("parquet", "functions", "counts_early", "nothing", UPDATE, measure="growth"),
    Cell("parquet", "functions", "panes", "parquet", PER_KEY, part=0.1),
    Cell("parquet", "functions", "panes_by_count", "parquet", PER_KEY, part=0.1),
    Cell("parquet", "functions", "stateful", "parquet", PER_KEY, part=0.1),
    Cell("parquet", "functions", "join", "parquet", JOIN, part=0.4),
    Cell("parquet", "expressions", "empty", "nothing", SQL, measure="empty"),
    Cell("parquet", "expressions", "idle", "nothing", SQL, measure="idle"),
)

TWINS = {cell.name: cell.twin for cell in CELLS}
"""For people, by the names of cells."""


def choose(patterns: Iterable[str], is_quick: bool) -> list[Cell]:
    """The cells whose names match a pattern, or have it among their parts; without patterns, all or the quick ones.

    >>> [cell.name for cell in choose(["text/*/users/*"], False)]
    ['text/functions/users/parquet']
    >>> {cell.grouping for cell in choose(["users"], False)}
    {'users'}
    """
    wanted = tuple(patterns)
    if not wanted:
        return [cell for cell in CELLS if cell.is_quick or not is_quick]
    found = [cell for cell in CELLS if any(_matches(cell, pattern) for pattern in wanted)]
    unmatched = [pattern for pattern in wanted if not any(_matches(cell, pattern) for cell in CELLS)]
    if unmatched:
        names = ", ".join(cell.name for cell in CELLS)
        raise ValueError(f"no cell is {', '.join(unmatched)}; choose from {names}")
    return found


def _matches(cell: Cell, pattern: str) -> bool:
    return fnmatchcase(cell.name, pattern) or pattern in cell.name.split("/")
