"""The folders in which this package keeps files between the runs of one user, or until the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def candidate_folders(name: str) -> Iterator[Path]:
    """Yields existing, writable folders to try in turn: one that is kept for the user, then a temporary one.

    The kept folder lies in ``$PENSTOCK_CACHE``, else in ``$XDG_CACHE_HOME/penstock``, else in
    ``~/.cache/penstock``. It is left out if it cannot be made or written, belongs to another user
    or is writable for others, because programs run from it.
    """
    kept = find_kept_folder(name)
    if kept is not None:
        yield kept
    yield temporary_folder(name)


def temporary_folder(name: str) -> Path:
    folder = tempfile.mkdtemp(prefix=f"penstock-{name}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def find_kept_folder(name: str) -> Path | None:
    """Returns the folder of that name that is kept for the user; None if there is nowhere to keep it."""
    try:
        folder = _root() / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        mine = status.st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK)
        shared = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    except (OSError, RuntimeError):
        # Path.home raises RuntimeError for a user without a home.
        return None
    return folder if mine and not shared else None


def _root() -> Path:
    if own := os.environ.get("PENSTOCK_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(shared) if os.path.isabs(shared) else Path.home() / ".cache") / "penstock"
