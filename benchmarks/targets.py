"""Where a run writes: always to the same place, which is empty before each run."""

from __future__ import annotations

import shutil
from pathlib import Path


def empty_target(folder: Path, name: str) -> Path:
    """Where a run of that name writes, and, beside it, what it has for a checkpoint; neither is there yet."""
    target = folder / "written" / name
    for old in (target, checkpoint_of(target)):
        shutil.rmtree(old, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def checkpoint_of(target: Path) -> Path:
    """The checkpoint of a stream that writes to a folder."""
    return target.with_name(f"{target.name}-checkpoint")
