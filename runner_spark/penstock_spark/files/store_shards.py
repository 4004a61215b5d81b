"""Shards for object stores: a task writes each to its own disk, and stores it when it is whole."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.io.files.object_stores import upload


class _Shard(Protocol):
    def write(self, values: object) -> Any: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class OpenInStore:
    """Opens shards by their URLs."""

    open_shard: Callable[[str], _Shard]  # Opens one on a local disk.

    def __call__(self, url: str) -> StoreShard:
        return StoreShard(self.open_shard, url)


class StoreShard:
    def __init__(self, open_shard: Callable[[str], _Shard], url: str) -> None:
        folder = tempfile.mkdtemp(prefix="penstock-")
        # Also a task that fails leaves nothing on its disk.
        self._clean = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._local = os.path.join(folder, "shard")
        self._url = url
        self._writer = open_shard(self._local)

    def write(self, values: object) -> Any:
        return self._writer.write(values)

    def close(self) -> None:
        self._writer.close()
        upload(self._local, self._url)
        self._clean()
