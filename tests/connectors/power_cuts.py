"""Kills programs of tests by a signal that no process of them outlives, like a power cut."""

from __future__ import annotations

import os
import signal
import threading

_all_at_their_moments = threading.Barrier(1)


def expect(streams: int) -> None:
    """Says that one power cut is meant for several streams, each of which waits at its moment for the others."""
    global _all_at_their_moments
    _all_at_their_moments = threading.Barrier(streams)


def die() -> None:
    """Kills this program and all that it has started, as soon as each of its streams is at its moment."""
    _all_at_their_moments.wait()
    os.killpg(0, signal.SIGKILL)
