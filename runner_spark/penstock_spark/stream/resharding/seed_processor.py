"""An operator that stores the state of levels: pieces of pages and headers become shards, in one micro-batch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock_spark.stream.level_processor import ShardProcessor

if TYPE_CHECKING:
    from penstock_spark.stream.resharding.moved_pages import Piece, Waits
    from penstock_spark.stream.state.header import Header


class SeedProcessor(ShardProcessor):
    """Levels as `penstock_spark.stream.level_processor.LevelProcessor` will find them; rows of other levels pass."""

    def __init__(self, levels: tuple[int, ...], shards: int, sys_path: tuple[str, ...]) -> None:
        self._levels = levels
        self._shards = shards
        self._sys_path = sys_path

    def handleInputRows(self, key: object, rows: Iterator[Any], timerValues: object) -> Iterator[Any]:
        from penstock_spark.shipping.import_paths import import_like_driver
        from penstock_spark.stream.tasks import take_seeds

        import_like_driver(self._sys_path)
        yield from take_seeds(self._levels, self._shards, rows, self._pages)


def seed_of_piece(piece: Piece) -> bytes:
    return pickle.dumps((True, piece), pickle.HIGHEST_PROTOCOL)


def seed_of_header(header: Header, waits: Mapping[str, Waits]) -> bytes:
    """Pickles the header of a new shard without notes, with the waits of the old shards."""
    from penstock_spark.worker.batch import dumps

    return dumps((False, (header.encoded(), dict(waits))))
