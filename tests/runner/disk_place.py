"""A folder of a checkpoint on this machine's disk, without Spark."""

from __future__ import annotations

from pathlib import Path

from penstock_spark.files import disk_place

OFFSETS = b"v1\n{}" + 9 * b"\n-"
"""Spark's note of a micro-batch that reads nothing of up to nine sources."""

COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
"""Spark's note of a finished micro-batch."""


def note_micro_batch(place: DiskPlace, batch: int, *logs: str, folder: str = "spark") -> None:
    """Notes that a micro-batch was planned and finished, or in some logs only, as Spark does."""
    for log in logs or ("offsets", "commits"):
        file = place.path / folder / log / str(batch)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(OFFSETS if log == "offsets" else COMMIT)


class DiskPlace(disk_place.DiskPlace):
    """A folder of this machine; it may be told to fail with one of the next changes.

    Args:
        path: The folder.
        changes: How many changes it makes before it fails, in a list that its children share; None: all.
    """

    def __init__(self, path: Path, changes: list[int] | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.location = str(path)
        self.changes = changes

    def make(self) -> None:
        self._change()
        super().make()

    def write(self, name: str, content: bytes) -> None:
        self._change()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / f".{name}.hidden").write_bytes(content)
        self.rename(f".{name}.hidden", name)

    def replace(self, name: str, content: bytes) -> None:
        self.delete(name)
        self.write(name, content)

    def rename(self, old: str, new: str) -> None:
        self._change()
        assert not (self.path / new).exists()
        super().rename(old, new)

    def claim(self, name: str, content: bytes) -> bool:
        self._change()
        return super().claim(name, content)

    def delete(self, name: str) -> None:
        self._change()
        super().delete(name)

    def inside(self, name: str) -> DiskPlace:
        return DiskPlace(self.path / name, self.changes)

    def _change(self) -> None:
        if self.changes is not None:
            self.changes[0] -= 1
            if self.changes[0] < 0:
                raise InterruptedError
