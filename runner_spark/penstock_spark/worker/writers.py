"""Writers of whole pages, and of a sink's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.coders.deterministic import encode_keys
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch, encode_page
from penstock_spark.worker.disk_errors import make_unwritable_error
from penstock_spark.worker.keys import shard_of
from penstock_spark.worker.pairs import split_pairs
from penstock_spark.worker.program import PageWriterSpec, SinkWriterSpec
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.rows import first_number, page_records


class PageWriter(Node):
    """Writes batches as pages, as they come or spread over shards."""

    def __init__(self, spec: PageWriterSpec, stage: int, partition: int) -> None:
        self.spec = spec
        self._next_shard = partition
        self._number = first_number(stage, partition)

    def push(self, batch: Batch) -> Records:
        try:
            if self.spec.shards == 0:
                pages, shards = [encode_page(batch)], None
            else:
                parts = self._by_key(batch) if self.spec.by_key else self._in_turn(batch)
                pages = [encode_page(part) for part in parts.values()]
                shards = list(parts)
        except Exception as error:
            fail_step(error, self.spec.where)
        first = self._number
        self._number += len(pages)
        yield page_records(self.spec.output, self.spec.tag, pages, first, shards)

    def _in_turn(self, batch: Batch) -> dict[int, Batch]:
        count = self.spec.shards
        start, self._next_shard = self._next_shard, (self._next_shard + len(batch.values)) % count
        return {
            (start + turn) % count: batch.every(turn, count) for turn in range(min(count, len(batch.values)))
        }

    def _by_key(self, batch: Batch) -> dict[int, Batch]:
        keys, _ = split_pairs(batch, self.spec.where)
        places: dict[int, list[int]] = {}
        for place, name in enumerate(encode_keys(keys)):
            places.setdefault(shard_of(name, self.spec.shards), []).append(place)
        return {shard: batch.taken(some) for shard, some in places.items()}


class SinkWriter(Node):
    def __init__(self, spec: SinkWriterSpec) -> None:
        self.spec = spec
        self._encoder: Any = None

    def setup(self) -> None:
        """Makes the encoder, so that an empty task still writes its header."""
        self._encoder = self._guard(self.spec.make_encoder)

    def _guard(self, call: Callable[..., Any], *args: object) -> object:
        try:
            return call(*args)
        except OSError as error:
            fail_step(make_unwritable_error(error, self.spec.where), self.spec.where)
        except Exception as error:
            fail_step(error, self.spec.where)

    def start(self) -> Records:
        return self._out(self._guard(self._encoder.start))

    def push(self, batch: Batch) -> Records:
        return self._out(self._guard(self._encoder.encode, batch.values))

    def finish(self) -> Records:
        return self._out(self._guard(self._encoder.finish))

    def _out(self, record: pa.RecordBatch | None) -> Records:
        return iter(() if record is None else (record,))
