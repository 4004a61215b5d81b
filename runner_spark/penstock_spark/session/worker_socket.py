"""The socket between a Python worker and Spark, on which small messages need not wait for each other.

Neither side of it sets ``TCP_NODELAY``: a small message is held back until the other side's system has confirmed the
one before, and Linux puts that off for 40 ms where it is not asked. Spark sends a task and then its first rows, and
rows and then their end: each task of each micro-batch would wait that long, for nothing, once or more.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeVar

_Record = TypeVar("_Record")


def promptly(records: Iterator[_Record]) -> Iterator[_Record]:
    """The same records; what has come is confirmed before a record is waited for.

    Args:
        records: What Spark sends to this task.
    """
    confirm_at_once()
    for record in records:
        yield record
        confirm_at_once()


def confirm_at_once() -> None:
    """Has the system confirm what has come from Spark, and send small messages as they are; takes microseconds.

    It does nothing outside of Spark's workers, and where their socket is none of TCP's.
    """
    try:
        number = _number_of_socket()
        if number is None:
            return
        with socket.socket(fileno=os.dup(number)) as known:
            if known.family in (socket.AF_INET, socket.AF_INET6):
                known.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if hasattr(socket, "TCP_QUICKACK"):
                    known.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    except (OSError, ValueError):
        # It is read in a way of its own, is no socket, or is closed already: whoever reads from it will say so.
        return


def _number_of_socket() -> int | None:
    """The file number of what Spark's worker reads, which it keeps in a local variable."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and "infile" in frame.f_code.co_varnames:
            reading: Any = frame.f_locals.get("infile")
            return int(reading.fileno()) if hasattr(reading, "fileno") else None
        frame = frame.f_back
    return None
