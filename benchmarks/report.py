"""Reports measurements: medians, ratios, a table for people and numbers for machines."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from comparisons import Comparison, Entrant
from stream_report import markdown

Numbers = dict[str, Any]
"""A value that JSON takes."""


@dataclass(frozen=True)
class Times:
    """The cost of one run."""

    size: int  # The size of the input, in the workload's unit.
    wall_seconds: float  # From the order to the answer.
    cpu_seconds: float  # Of all processes together: Python, Java, and Spark's Python workers.
    peak_megabytes: float = 0.0  # The sum of the most memory that each of these processes had resident.


@dataclass(frozen=True)
class Measured:
    """The counted runs of one side."""

    times: tuple[Times, ...]

    def is_extended(self, size: int) -> bool:
        """True if no run was over the whole input."""
        return all(times.size < size for times in self.times)

    def seconds(self, kind: str, size: int) -> float:
        """The median at a size; beyond the measured sizes, along the straight line through the two largest.

        The line leaves out the cost of a run that does not depend on its input, so it flatters no contender.

        >>> walls = [(1, 3.0), (1, 4.0), (1, 3.5), (2, 5.5)]
        >>> times = tuple(Times(size, wall, cpu_seconds=1.0, peak_megabytes=9.0) for size, wall in walls)
        >>> Measured(times).seconds("wall_seconds", 10)
        21.5
        """
        medians: dict[int, float] = {
            measured: statistics.median(
                getattr(times, kind) for times in self.times if times.size == measured
            )
            for measured in {times.size for times in self.times}
        }
        largest = max(medians)
        if largest >= size:
            return medians[largest]
        smaller = max((other for other in medians if other < largest), default=0)
        slope = (medians[largest] - medians.get(smaller, 0.0)) / (largest - smaller)
        # Where noise is larger than the difference, all of the time counts as the input's.
        slope = slope if slope > 0 else medians[largest] / largest
        return medians[largest] + slope * (size - largest)


def summary(comparison: Comparison, scale: float, measured: dict[str, Measured]) -> Numbers:
    """A comparison's raw numbers, medians and ratios; speeds are relative to the first entrant's."""
    entrants = {entrant.name: _entrant_summary(entrant, scale, measured) for entrant in comparison.entrants}
    base = next(iter(entrants.values()))
    for numbers in entrants.values():
        for kind in ("wall", "cpu"):
            numbers[f"speed_by_{kind}"] = round(base[f"{kind}_seconds"] / numbers[f"{kind}_seconds"], 3)
    return {"title": comparison.title, "entrants": entrants}


def _entrant_summary(entrant: Entrant, scale: float, measured: dict[str, Measured]) -> Numbers:
    size, runs = max(1, int(entrant.workload.size * scale)), measured[entrant.name]
    return {
        "title": entrant.title,
        "size": size,
        "unit": entrant.workload.unit,
        "extended": runs.is_extended(size),
        "wall_seconds": _rounded(runs.seconds("wall_seconds", size)),
        "cpu_seconds": _rounded(runs.seconds("cpu_seconds", size)),
        "peak_megabytes": max(round(times.peak_megabytes) for times in runs.times),
        "runs": [{name: round(value, 3) for name, value in asdict(times).items()} for times in runs.times],
    }


def _rounded(seconds: float) -> float:
    """Takes a time that is too short to be measured for a millisecond."""
    return max(0.001, round(seconds, 3))


def table(numbers: Numbers) -> str:
    """A comparison for people: a title, a row for each entrant, and which of them got small parts only."""
    head = ("", "wall s", "each run", "CPU s", "speed by wall", "by CPU", "memory MB")
    entrants = numbers["entrants"].values()
    rows = [
        (
            f"{found['title']}{' *' if found['extended'] else ''}",
            f"{found['wall_seconds']:.2f}",
            _spread(found),
            f"{found['cpu_seconds']:.2f}",
            f"{found['speed_by_wall']:.2f}",
            f"{found['speed_by_cpu']:.2f}",
            f"{found['peak_megabytes']:,}",
        )
        for found in entrants
    ]
    lines = [f"{numbers['title']}, {sizes(numbers)}:", "", markdown(head, rows)]
    if any(found["extended"] for found in entrants):
        lines += ["", "\\* measured with two small parts, and extended along the straight line through both."]
    return "\n".join(lines)


def sizes(numbers: Numbers) -> str:
    """Says the amount of work of a comparison; of twins, each has as much.

    >>> sizes({"entrants": {"one": {"size": 40, "unit": "lines"}, "other": {"size": 40_000, "unit": "lines"}}})
    '40 or 40,000 lines'
    """
    found = {(entrant["size"], entrant["unit"]) for entrant in numbers["entrants"].values()}
    units = sorted({unit for _, unit in found})
    return f"{' or '.join(f'{size:,}' for size, _ in sorted(found))} {units[0]}"


def _spread(found: Numbers) -> str:
    """The shortest and the longest of the runs, where they had all of the input."""
    walls = [run["wall_seconds"] for run in found["runs"]]
    return "" if found["extended"] else f"{min(walls):.2f} to {max(walls):.2f}"
