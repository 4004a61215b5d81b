"""Keeps small messages on the socket between a Python worker and Spark from waiting for each other.

Neither side of the socket sets ``TCP_NODELAY``: the system holds a small message back until the other side has
acknowledged the previous one, and by default Linux acknowledges after 40 ms. Spark sends a task and then its first
rows, and rows and then their end: each task of each micro-batch would wait that long, for nothing, once or more.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TypeVar

_Record = TypeVar("_Record")


def acknowledge_each(records: Iterator[_Record]) -> Iterator[_Record]:
    """Yields the records; acknowledges each before it waits for the next."""
    confirm_at_once()
    for record in records:
        yield record
        confirm_at_once()


def confirm_at_once() -> None:
    """Makes the system acknowledge Spark's messages at once, and send small ones at once; takes microseconds.

    It does nothing outside of a Spark worker, or if the worker's socket is not a TCP socket.
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
        # It is not a socket, or is closed already: its reader will raise the error.
        return


def _number_of_socket() -> int | None:
    """Returns the file number of the socket that Spark's worker reads, which it keeps in a local variable."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and "infile" in frame.f_code.co_varnames:
            reading: object = frame.f_locals.get("infile")
            return int(reading.fileno()) if hasattr(reading, "fileno") else None
        frame = frame.f_back
    return None
