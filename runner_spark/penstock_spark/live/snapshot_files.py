"""The file of a run's snapshot beside its checkpoint, for those who look from elsewhere or later."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock.error import refusal
from penstock_spark.files.file_store import disk_path
from penstock_spark.live.snapshot import RunSnapshot

NAME = "live.json"
"""The file, in the folder of the checkpoint. Each snapshot replaces the last one: the history in it is bounded."""

KEEP_SECONDS = 2.0
"""The minimum time between two writes of the file by a run."""


def read_snapshot(location: str | os.PathLike[str]) -> RunSnapshot:
    """Returns the last snapshot of a run, from the folder of its checkpoint or from a copy of the file.

    Raises:
        ValueError: There is none, it is damaged, or it is of another version.
    """
    path = _path_of(location)
    try:
        content = path.read_bytes()
    except OSError as error:
        what = f"there is no {NAME} in {os.fspath(location)}: {error.strerror}"
        hint = "run the pipeline with --live or --live_port, and with a checkpoint_location"
        raise refusal(ValueError, what, hint=hint) from None
    try:
        return RunSnapshot.from_json(content)
    except ValueError as error:
        what, _, rest = str(error).partition("\n")
        raise ValueError(f"{what}\n  in {path}\n{rest}") from None


class FollowedRun:
    """The kept snapshot of a run, reread whenever it is replaced; an unreadable file leaves the last one.

    Args:
        location: The folder of the checkpoint, or a copy of the file.

    Raises:
        ValueError: The folder has no readable snapshot.
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self._location = location
        self._last = read_snapshot(location)

    def look(self) -> RunSnapshot:
        """Returns the newest snapshot."""
        with suppress(ValueError):
            self._last = read_snapshot(self._location)
        return self._last


def _path_of(location: str | os.PathLike[str]) -> Path:
    text = os.fspath(location)
    found = disk_path(text)
    if found is None:
        scheme = text.partition("://")[0]
        what = f"the snapshot of a run is read from a disk of this machine, not from {scheme}"
        raise refusal(ValueError, what, hint=f"copy {text.rstrip('/')}/{NAME} here, and name the copy")
    path = Path(found)
    return path / NAME if path.is_dir() else path
