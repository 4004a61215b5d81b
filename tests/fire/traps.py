"""Traps at the points where the program under fire commits: the next one that comes by dies, or loses a file.

The program looks for ``trap.json``, which names a point, the call at which it springs, and what then happens: ``kill``
kills all of the program's processes; ``delete`` and ``truncate`` harm the first file that the commit is about to name.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

POINTS: dict[str, tuple[str, str, str]] = {
    "files are named": ("penstock_spark.sinks.files", "", "_name_files"),
    "a Delta table is committed": ("penstock_connectors.delta.writer", "_Commit", "_add"),
    "an Iceberg table is committed": ("pyiceberg.table", "Transaction", "commit_transaction"),
    "rows are merged": ("penstock_connectors.database.postgres", "PostgresWriter", "_merge"),
    "rows are committed": ("penstock_connectors.database.postgres", "PostgresWriter", "commit"),
    "a micro-batch is written": ("penstock_spark.lowering.batch_writer", "BatchWriter", "__call__"),
    "a checkpoint is opened": ("penstock_spark.checkpoints.custody.folder", "", "write_plan"),
}
"""The points, as the module, the class and the name of the function that is called there."""

MOMENTS = ("before", "after")


def set_up(folder: Path) -> None:
    """Puts a trap around the function of each point."""
    for point, (module, owner, name) in POINTS.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue
        place = getattr(found, owner) if owner else found
        setattr(place, name, _trapped(folder, point, getattr(place, name)))


def _trapped(folder: Path, point: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        _spring(folder, point, "before", arguments)
        result = function(*arguments, **named)
        _spring(folder, point, "after", arguments)
        return result

    return wrapped


def _spring(folder: Path, point: str, moment: str, arguments: tuple[Any, ...]) -> None:
    file = folder / "trap.json"
    try:
        trap = json.loads(file.read_text())
    except FileNotFoundError:
        return
    if (trap["point"], trap["moment"]) != (point, moment):
        return
    if trap["action"] == "kill":
        file.unlink()
        _die()
    # A commit without files has nothing to lose: the next one has.
    elif written := [each.path for each in arguments[1] if os.path.getsize(each.path)]:
        file.unlink()
        _harm(trap["action"], Path(written[0]))


def _die() -> None:
    """Kills this program's processes as a power cut would, and itself last."""
    from tests.fire import program_processes

    own = os.getpid()
    others = [each.pid for each in program_processes.processes_of(os.getsid(0)) if each.pid != own]
    program_processes.kill(others)
    os.kill(own, signal.SIGKILL)


def _harm(action: str, path: Path) -> None:
    if action == "delete":
        path.unlink()
    else:
        os.truncate(path, os.path.getsize(path) // 2)
