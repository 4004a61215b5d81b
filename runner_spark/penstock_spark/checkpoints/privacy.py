"""Who may write to a checkpoint: what is in it is unpickled, and whoever writes a pickle runs code where it is read."""

from __future__ import annotations

import logging
import os
import re
import stat

from penstock.error import RunnerError, three_parts

_LOCAL = re.compile(r"(?:file:(?://)?)?(/.*)")
_LOGGER = logging.getLogger(__name__)


def make_private(location: str) -> None:
    """Makes a folder on a local disk that only this user reaches; does nothing where there is one.

    Args:
        location: Its URI; other file systems are left alone.
    """
    path = _local_path(location)
    if path is not None and not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)


def check_writers(location: str) -> None:
    """Warns where others may write to a checkpoint that is there, or own it, and refuses it where everybody may write.

    Args:
        location: Its URI; of other file systems than a local disk nothing is known.

    Raises:
        RunnerError: Everybody may write, and there is something that will be unpickled.
    """
    path = _local_path(location)
    if path is None or os.name != "posix" or not os.path.isdir(path):
        return
    status = os.stat(path)
    everybody = bool(status.st_mode & stat.S_IWOTH)
    if everybody and os.listdir(path):
        raise RunnerError(
            f"everybody on this machine may write to the checkpoint {path}, and what is in it is unpickled",
            hint=f"if you trust what is there, run: chmod -R go-rwx {path}; or begin in a folder of its own",
        )
    others = {
        "everybody may write to it": everybody,
        "its group may write to it": bool(status.st_mode & stat.S_IWGRP),
        "it belongs to another user": status.st_uid != os.geteuid(),
    }
    for why in [why for why, holds in others.items() if holds]:
        hint = "who writes to a checkpoint can run code as you; let penstock make the folder, or chmod 700 it"
        _LOGGER.warning("%s", three_parts(f"the checkpoint {path} is not yours alone: {why}", hint=hint))


def _local_path(location: str) -> str | None:
    match = _LOCAL.fullmatch(location)
    return match[1] if match else None
