"""The folders that runs write to: each run has a new one."""

from __future__ import annotations

import shutil
import time
from pathlib import Path


def empty_target(folder: Path, name: str) -> Path:
    """Makes the folder of a run; its checkpoint is beside it, and output of earlier runs of that name is deleted.

    No folder comes twice, since one that was removed can be there again: once a minute Spark writes down state that
    it holds, and may be at it when the query has ended.
    """
    own = folder / "written" / name
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True, exist_ok=True)
    return own / str(time.time_ns())


def checkpoint_of(target: Path) -> Path:
    """The checkpoint of a stream that writes to a folder."""
    return target.with_name(f"{target.name}-checkpoint")
