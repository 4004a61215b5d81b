"""Checks who may write to a checkpoint: a run unpickles its content, so anyone who can write to it can run code."""

from __future__ import annotations

import logging
import os
import re
import stat

from penstock.error import RunnerError, three_parts

_LOCAL = re.compile(r"(?:file:(?://)?)?(/.*)")
_LOGGER = logging.getLogger(__name__)


def make_private(location: str) -> None:
    """Makes a folder on a local disk that only this user can access; leaves existing folders and other disks alone."""
    path = _local_path(location)
    if path is not None and not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)


def check_writers(location: str) -> None:
    """Warns if others may write to an existing checkpoint on a local disk, or own it.

    A checkpoint that anyone may write to is an error if it has content that a run would unpickle.
    """
    path = _local_path(location)
    if path is None or os.name != "posix" or not os.path.isdir(path):
        return
    status = os.stat(path)
    anyone = bool(status.st_mode & stat.S_IWOTH)
    if anyone and os.listdir(path):
        raise RunnerError(
            f"anyone on this machine can write to the checkpoint {path}, whose content can run code as you",
            hint=f"if you trust its content, run: chmod -R go-rwx {path}; or start in a new folder",
        )
    others = {
        "anyone can write to it": anyone,
        "its group can write to it": bool(status.st_mode & stat.S_IWGRP),
        "it belongs to another user": status.st_uid != os.geteuid(),
    }
    for why in [why for why, holds in others.items() if holds]:
        hint = "let penstock create the folder, or run chmod 700 on it: its content can run code as you"
        _LOGGER.warning("%s", three_parts(f"the checkpoint {path} is not yours alone: {why}", hint=hint))


def _local_path(location: str) -> str | None:
    match = _LOCAL.fullmatch(location)
    return match[1] if match else None
