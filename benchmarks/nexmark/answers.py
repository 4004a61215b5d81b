"""Checks the answer of a query, row by row, against the plain reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pyarrow.parquet as pq

from nexmark.model import Event, parse
from nexmark.queries import QUERIES, as_line
from nexmark.readings import READINGS


def lines_in(folder: Path) -> Iterator[str]:
    """The lines of all parts in a folder, whichever contender has written them; rows of Parquet also become lines."""
    for part in sorted(path for path in folder.rglob("part-*") if path.is_file()):
        if part.suffix == ".parquet":
            for record in pq.ParquetFile(part).iter_batches():
                yield from map(as_line, zip(*(column.to_pylist() for column in record.columns), strict=True))
        else:
            yield from part.read_text(encoding="utf-8").splitlines()


@lru_cache(maxsize=1)
def _events(source: Path) -> list[Event]:
    return list(map(parse, lines_in(source / "lines")))


def expected(source: Path, query: str) -> list[str]:
    """The lines of the plain reading of a query; they are kept beside the events."""
    path = source / f"answer-{query}.txt"
    if not path.exists():
        rows = QUERIES[query].answer(map(as_line, READINGS[query](_events(source))))
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path.read_text(encoding="utf-8").splitlines()


def check(source: Path, query: str, written: Path) -> int:
    """Compares a contender's output, row by row, with the expected rows; returns their number."""
    found = QUERIES[query].answer(lines_in(written))
    wanted = expected(source, query)
    if found != wanted:
        missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        example = next(iter([*missing, *extra]))
        raise AssertionError(
            f"{written.name}: {missing.total()} rows are missing and {extra.total()} are wrong; one is {example!r}"
        )
    return len(found)
