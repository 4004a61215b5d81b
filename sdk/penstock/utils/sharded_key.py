"""A key together with the shard of it that some of its values are in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ShardedKey:
    """A key and one of its shards (Beam's ``ShardedKey``).

    Attributes:
        key: The user's key.
        shard_id: Which shard, as bytes that mean nothing else.

    >>> ShardedKey("amy", b"3").key
    'amy'
    """

    key: Any
    shard_id: bytes

    @property
    def _shard_id(self) -> bytes:
        """Beam's name for the shard."""
        return self.shard_id
