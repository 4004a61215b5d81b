"""Frames with an end, and the little of Spark that reads the state of a query and passes it to a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from penstock_spark.session.shard_keys import shard_keys
from tests.simulation.simulated_disk import File, plain
from tests.simulation.simulated_spark import Jobs, Query, Row, Session, Source, Stream, last_commit

_TYPES = {
    "level": pa.int32(),
    "shard": pa.int32(),
    "page": pa.int32(),
    "payload": pa.binary(),
    "content": pa.binary(),
    "grouping": pa.string(),
}


@dataclass(frozen=True, eq=False)
class Column:
    """A column, or what is computed of columns."""

    of: Callable[[dict[str, Any]], Any]

    def isin(self, *values: Any) -> Column:
        return Column(lambda row: self.of(row) in values)

    def __eq__(self, value: object) -> Column:  # type: ignore[override]
        return Column(lambda row: self.of(row) == value)

    def __and__(self, other: Column) -> Column:
        return Column(lambda row: self.of(row) and other.of(row))


@dataclass(frozen=True, eq=False)
class Table:
    """A frame: a function for each of its tasks, which yields rows."""

    session: Session
    bodies: tuple[Callable[[], Iterable[Any]], ...]
    columns: tuple[str, ...]

    def __getitem__(self, name: str) -> Column:
        return Column(lambda row: row[name])

    def where(self, condition: Column) -> Table:
        def kept(body: Callable[[], Iterable[Any]]) -> Iterator[Any]:
            for row in body():
                if condition.of(dict(zip(self.columns, row, strict=True))):
                    yield row

        return self._with(kept, self.columns)

    def mapInArrow(self, function: Any, schema: Any) -> Table:
        def mapped(body: Callable[[], Iterable[Any]]) -> Iterator[Any]:
            for record in function(iter(self._records(body()))):
                yield from zip(*(column.to_pylist() for column in record.columns), strict=True)

        return self._with(mapped, tuple(column.split()[0] for column in schema.split(",")))

    def _with(self, change: Callable[[Any], Iterator[Any]], columns: tuple[str, ...]) -> Table:
        return Table(self.session, tuple(partial(change, body) for body in self.bodies), columns)

    def _records(self, rows: Iterable[Any]) -> list[pa.RecordBatch]:
        """A record for every three rows."""
        found = list(rows)
        records = []
        for first in range(0, len(found), 3):
            values = zip(*found[first : first + 3], strict=True)
            arrays = [pa.array(own, _TYPES.get(name)) for name, own in zip(self.columns, values, strict=True)]
            records.append(pa.RecordBatch.from_arrays(arrays, names=list(self.columns)))
        return records

    def unionAll(self, other: Table) -> Table:
        return Table(self.session, (*self.bodies, *other.bodies), self.columns)

    def partitions(self) -> list[list[Any]]:
        return Jobs(self.session).stage(list(self.bodies))

    def collect(self) -> list[Any]:
        rows = [row for part in self.partitions() for row in part]
        return [SimpleNamespace(**dict(zip(self.columns, row, strict=True))) for row in rows]

    def groupBy(self, name: str) -> Any:
        def sums(*names: str) -> Any:
            def collect() -> list[Any]:
                found: dict[Any, list[int]] = {}
                for row in self.collect():
                    sums = found.setdefault(getattr(row, name), [0] * len(names))
                    for number, each in enumerate(names):
                        sums[number] += getattr(row, each)
                return [(key, *values) for key, values in found.items()]

            return SimpleNamespace(collect=collect)

        return SimpleNamespace(sum=sums)

    @property
    def write(self) -> Any:
        return SimpleNamespace(parquet=self._write)

    def _write(self, location: str) -> None:
        """The rows of each task get their names one after the other, and no reader sees half of them."""
        world, disk, folder = self.session.world, self.session.disk, plain(location)
        for number, rows in enumerate(self.partitions()):
            world.change(f"write the rows {number}", partial(disk.put, f"{folder}/part-{number:05d}", rows))
        world.change("write the mark", partial(disk.put, f"{folder}/_SUCCESS", b""))


def number_table(session: Session) -> Table:
    """One row with a number."""
    return Table(session, (lambda: [(0,)],), ("id",))


def pages_of_operator(session: Session, location: str, operator: int) -> Table:
    """The pages of an operator after the last finished micro-batch, like Spark's reader of state."""
    disk, folder = session.disk, plain(location)
    session.world.look(f"read the state of {location}")
    version = last_commit(disk, folder) + 1
    shards = disk.names(f"{folder}/state/{operator}")
    assert shards, f"Spark finds no state of the operator {operator} in {location}"
    keys = shard_keys(len(shards))

    def pages(shard: int) -> Iterator[tuple[Any, ...]]:
        path = f"{folder}/state/{operator}/{shard}/{version}.zip"
        found = disk.find(path)
        assert isinstance(found, File), f"Spark does not find {path}"
        for (grouping, page), (content,) in found.content.items():
            yield keys[shard], grouping, page, content

    bodies = tuple(partial(pages, shard) for shard in range(len(shards)))
    return Table(session, bodies, ("shard", "grouping", "page", "content"))


@dataclass(eq=False)
class Seeds(Source):
    """The rows that a table has written, which come in one micro-batch."""

    folder: str = ""

    def latest(self, before: Any, query: Query) -> Any:
        return 0

    def has_news(self, before: Any, query: Query) -> bool:
        return before is None

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[list[Row]]:
        names = [name for name in query.disk.names(self.folder) if name.startswith("part-")]
        found = [query.disk.find(f"{self.folder}/{name}") for name in names]
        return [node.content for node in found if isinstance(node, File)]


def quiet_session(session: Session, conf: dict[str, str]) -> Any:
    """A session of the same driver, whose queries are not watched."""
    own = Session(session.world, session.disk, session.process)
    own.executors = session.executors

    def parquet(location: str) -> Stream:
        return Stream(own, (Seeds(folder=plain(location)),))

    own.readStream = SimpleNamespace(schema=lambda schema: SimpleNamespace(parquet=parquet))
    return own
