"""Collects the times of events to the sink while a query runs."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable
from typing import Any

_PATIENCE_SECONDS = 300
_POLL_SECONDS = 1.0


class Delays:
    """Collects delays of events, except those born in the first `warming_seconds` or after `seconds` more."""

    def __init__(self, warming_seconds: float, seconds: float) -> None:
        self._wait_seconds_max = warming_seconds + seconds + _PATIENCE_SECONDS
        self._warming_micros, self._micros = int(warming_seconds * 1e6), int(seconds * 1e6)
        self._first_micros = 0
        self._millis: list[float] = []
        self._micro_batches = 0
        self._is_over = threading.Event()

    def add(self, born_micros: Iterable[int]) -> None:
        """Takes note of the events of a micro-batch, by the moments at which they were born."""
        born = list(born_micros)
        now = _now_micros()
        self._first_micros = self._first_micros or now + self._warming_micros
        end_micros = self._first_micros + self._micros
        counted = [(now - micros) / 1_000 for micros in born if self._first_micros <= micros < end_micros]
        self._millis += counted
        self._micro_batches += bool(counted)
        if max(born, default=0) >= end_micros:
            self._is_over.set()

    def wait(self, query: Any) -> None:
        """Waits until all events that count have come."""
        deadline = time.monotonic() + self._wait_seconds_max
        while not self._is_over.wait(_POLL_SECONDS):
            if not query.isActive or time.monotonic() > deadline:
                raise RuntimeError(f"only {len(self._millis)} events have come") from query.exception()

    def numbers(self) -> dict[str, Any]:
        """The numbers of events and micro-batches, and the percentiles of the delays from the first to the
        99th.
        """
        if len(self._millis) < 2:
            raise RuntimeError("events have to count for longer than a micro-batch takes")
        percentiles = statistics.quantiles(self._millis, n=100)
        return {
            "events": len(self._millis),
            "micro_batches": self._micro_batches,
            "percentiles_millis": [round(millis, 1) for millis in percentiles],
        }


def _now_micros() -> int:
    return time.time_ns() // 1_000
