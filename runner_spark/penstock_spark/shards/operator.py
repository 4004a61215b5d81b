"""The levels of a streaming query inside of Spark: one pass for the sources, and a stateful operator for each level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from penstock_spark.operators.batch import loads
from penstock_spark.operators.failure import show_elements
from penstock_spark.shards.header import Header
from penstock_spark.shards.levels import Row, own_packets, play_shard, play_sources
from penstock_spark.shards.program import LevelProgram

ROWS = "level int, shard int, payload binary"
_SCHEMA = pa.schema([("level", pa.int32()), ("shard", pa.int32()), ("payload", pa.binary())])


def prepared(program: bytes, sys_path: tuple[str, ...]) -> LevelProgram:
    """A level's program in a worker."""
    sys.path.extend(folder for folder in sys_path if folder not in sys.path)
    loaded: LevelProgram = loads(program)
    show_elements(loaded.show_elements)
    return loaded


def source_function(
    program: bytes, shard_keys: tuple[int, ...], metrics: Any, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow`` over the heartbeat, one row of which is a micro-batch's number.

    Args:
        program: The pickled `LevelProgram`.
        shard_keys: What stands for each shard in rows.
        metrics: A Spark accumulator that takes snapshots.
        sys_path: Folders that the driver imports from and the worker should too.
    """

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        loaded = prepared(program, sys_path)
        for record in records:
            for batch in record.column(0).to_pylist():
                rows, snapshot = play_sources(loaded, batch)
                if snapshot:
                    metrics.add({(loaded.run, 0, batch): snapshot})
                if rows:
                    yield _record(rows, shard_keys)

    return run


def _record(rows: list[Row], shard_keys: tuple[int, ...]) -> pa.RecordBatch:
    levels, shards, payloads = zip(*rows, strict=True)
    keys = [shard_keys[shard] for shard in shards]
    columns = [pa.array(levels, pa.int32()), pa.array(keys, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


class _PageStore:
    """The pages of one grouping in Spark's state."""

    def __init__(self, pages: Any, label: str) -> None:
        self._pages = pages
        self._label = label

    def get(self, number: int) -> bytes | None:
        """A page."""
        found = self._pages.getValue((self._label, number))
        return None if found is None else bytes(found[0])

    def put(self, number: int, page: bytes) -> None:
        """Keeps a page."""
        self._pages.updateValue((self._label, number), (page,))

    def remove(self, number: int) -> None:
        """Forgets a page."""
        self._pages.removeKey((self._label, number))


class LevelProcessor(StatefulProcessor):  # type: ignore[misc]
    """A level as a stateful operator: its keys are shards, and one call is one shard's micro-batch.

    Args:
        program: The pickled `LevelProgram`.
        shard_keys: What stands for each shard in rows.
        metrics: A Spark accumulator that takes snapshots.
        sys_path: Folders that the driver imports from and the worker should too.
    """

    def __init__(
        self, program: bytes, shard_keys: tuple[int, ...], metrics: Any, sys_path: tuple[str, ...]
    ) -> None:
        self._program = program
        self._shard_keys = shard_keys
        self._metrics = metrics
        self._sys_path = sys_path

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self._header = handle.getValueState("header", "header binary")
        self._pages = handle.getMapState("pages", "grouping string, page int", "page binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """One shard's micro-batch."""
        program = prepared(self._program, self._sys_path)
        number = self._shard_keys.index(key[0])
        packets, passing = own_packets(program, (tuple(row) for row in rows), loads)
        stored = self._header.get()
        header = Header.decoded(None if stored is None else bytes(stored[0]))
        given, snapshot = play_shard(program, number, packets, header, self._store_of)
        self._header.update((header.encoded(),))
        if snapshot and packets:
            step = max((moment.step for packet in packets for moment in packet.timeline), default=0)
            self._metrics.add({(program.run, program.number, (number, step)): snapshot})
        for level, shard, payload in given:
            yield SparkRow(level=level, shard=self._shard_keys[shard], payload=payload)
        for level, shard_key, payload in passing:
            yield SparkRow(level=level, shard=shard_key, payload=bytes(payload))

    def _store_of(self, label: str) -> _PageStore:
        return _PageStore(self._pages, label)

    def close(self) -> None:
        """Nothing to close: Spark does."""
