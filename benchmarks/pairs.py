"""Times two ways to do the same work in turns, so that whatever else the machine does meets both."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from processes import tree_cpu_seconds

Run = Callable[..., Any]


def _nothing() -> tuple[()]:
    return ()


def paired(
    native: Run,
    ours: Run,
    warming_turns: int,
    turns: int,
    prepare: tuple[Callable[[], tuple[Any, ...]], Callable[[], tuple[Any, ...]]] = (_nothing, _nothing),
) -> dict[str, Any]:
    """The seconds of two runs, in turns, and the median of the ratios of neighbours.

    The preparation of each of them is not timed, and returns its arguments.
    """
    found: dict[str, list[tuple[float, float]]] = {"native": [], "penstock": []}
    sides = [("native", native, prepare[0]), ("penstock", ours, prepare[1])]
    for turn in range(-warming_turns, turns):
        # Each side is the first one in every other turn.
        for name, run, before in sides if turn % 2 else sides[::-1]:
            arguments = before()
            cpu, wall = tree_cpu_seconds(os.getpid()), time.perf_counter()
            run(*arguments)
            wall, cpu = time.perf_counter() - wall, tree_cpu_seconds(os.getpid()) - cpu
            if turn >= 0:
                found[name].append((wall, cpu))
    numbers: dict[str, Any] = {}
    for at, kind in enumerate(("wall", "cpu")):
        pairs = zip(found["native"], found["penstock"], strict=True)
        numbers[f"speed_by_{kind}"] = round(
            statistics.median(one[at] / max(other[at], 0.001) for one, other in pairs), 3
        )
        for name, times in found.items():
            seconds = [round(each[at], 3) for each in times]
            numbers.setdefault(name, {})[f"{kind}_seconds"] = statistics.median(seconds)
            numbers[name][f"{kind}_seconds_of_runs"] = seconds
    return numbers
