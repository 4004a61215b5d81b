"""One workload: its input as a file, and the comparison of what comes out with what has to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from totals import Totals, numbered


@dataclass(frozen=True)
class Workload:
    """Lines in, totals by name out."""

    name: str  # As in the names of its files.
    unit: str  # What sizes count: ``bytes``, ``lines`` or ``rows``.
    size: int  # The size at full scale.
    lines: Callable[[], Iterator[str]]  # Gives the same endless lines at every call.
    totals: Callable[[Iterable[str]], Totals]  # The expected output for some lines.
    form: str = "txt"  # The input's format, ``txt`` or ``parquet``.

    def make_input(self, folder: Path, size: int) -> Path:
        """Writes an input and its totals, unless they are there already; a smaller one is a larger one's
        beginning.
        """
        path = folder / f"{self.name}-{size}.{self.form}"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".unfinished")
            with unfinished.open("w", encoding="ascii") as file:
                file.writelines(f"{line}\n" for line in self._first_lines(size))
            with unfinished.open(encoding="ascii") as file:
                totals_of(path).write_text(json.dumps(self.totals(file)))
            if self.form == "parquet":
                _as_parquet(unfinished)
            unfinished.rename(path)
        return path

    def _first_lines(self, size: int) -> Iterator[str]:
        if self.unit != "bytes":
            yield from islice(self.lines(), size)
            return
        used = 0
        for line in self.lines():
            used += len(line) + 1
            if used > size:
                return
            yield line


def totals_of(source: Path) -> Path:
    """The file with what has to come out."""
    return source.with_suffix(".json")


def _as_parquet(path: Path) -> None:
    """Makes a Parquet file of a text file of scores."""
    from pyarrow import csv, parquet

    names = csv.ReadOptions(column_names=["user", "team", "score", "at"])
    parquet.write_table(csv.read_csv(path, names), path)


def check(source: Path, target: Path) -> None:
    """Compares a contender's output, total by total, with the expected output."""
    expected: Totals = json.loads(totals_of(source).read_text())
    written: Totals = {}
    for name, total in _written(target):
        if name in written:
            raise AssertionError(f"{target.name}: {name!r} is there twice")
        written[name] = total
    if written != expected:
        wrong = sorted(name for name, _ in written.items() ^ expected.items())
        raise AssertionError(f"{target.name}: {len(wrong)} totals are wrong, such as that of {wrong[0]!r}")


def _written(target: Path) -> Iterator[tuple[str, int]]:
    for part in sorted(target.glob("part-*")):
        if part.suffix == ".parquet":
            continue
        with part.open() as file:
            for line in file:
                name, _, total = line.rstrip("\n").partition("\t")
                yield name, int(total)
    if tables := sorted(target.glob("*.parquet")):
        from pyarrow import parquet

        rows = [row for table in tables for row in parquet.read_table(table).to_pylist()]
        yield from numbered((row["team"], row["total"]) for row in rows).items()
