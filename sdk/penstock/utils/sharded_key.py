"""A key together with one of its shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ShardedKey:
    """A key and one of its shards, whose bytes have no other meaning (Beam's ``ShardedKey``)."""

    key: Any
    shard_id: bytes

    @property
    def _shard_id(self) -> bytes:
        """Beam's name for the shard."""
        return self.shard_id
