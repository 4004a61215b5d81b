"""What the measurements say: medians, ratios, a table for people and numbers for machines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workloads import Workload

BASE = "handwritten"
"""The contender that the others are compared with."""


@dataclass(frozen=True)
class Times:
    """What one run took.

    Attributes:
        size: Of its input, in the workload's unit.
        wall_seconds: From the order to the answer.
        cpu_seconds: Of all processes together: Python, Java, and Spark's Python workers.
    """

    size: int
    wall_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Measured:
    """A contender's counted runs of a workload.

    Attributes:
        title: The contender's name for people.
        times: Of each run.
    """

    title: str
    times: tuple[Times, ...]

    def is_extended(self, size: int) -> bool:
        """Whether no run was over the whole input."""
        return all(times.size < size for times in self.times)

    def seconds(self, kind: str, size: int) -> float:
        """The median at a size; beyond the measured sizes, along the straight line through the two largest.

        The line leaves out what a run costs however small its input is, and so it flatters nobody.

        >>> times = [Times(1, 3.0, 1.0), Times(1, 4.0, 1.0), Times(1, 3.5, 1.0), Times(2, 5.5, 1.0)]
        >>> Measured("m", tuple(times)).seconds("wall_seconds", 10)
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
        # Where noise is larger than the difference, all of the time is taken for the input's.
        slope = slope if slope > 0 else medians[largest] / largest
        return medians[largest] + slope * (size - largest)


def summary(workload: Workload, size: int, measured: dict[str, Measured]) -> dict[str, Any]:
    """A workload's raw numbers, medians and ratios, as JSON takes them."""
    contenders = {}
    for name, runs in measured.items():
        numbers: dict[str, Any] = {"extended": runs.is_extended(size)}
        for kind in ("wall_seconds", "cpu_seconds"):
            numbers[kind] = round(runs.seconds(kind, size), 3)
            numbers[f"speed_by_{kind.partition('_')[0]}"] = round(
                measured[BASE].seconds(kind, size) / runs.seconds(kind, size), 3
            )
        contenders[name] = {**numbers, "runs": [_rounded(times) for times in runs.times]}
    return {"title": workload.title, "size": size, "unit": workload.unit, "contenders": contenders}


def _rounded(times: Times) -> dict[str, Any]:
    return {name: round(value, 3) for name, value in asdict(times).items()}


def table(summed: dict[str, Any], measured: dict[str, Measured]) -> str:
    """The table of a workload."""
    head = ("", "wall s", "CPU s", "speed by wall", "speed by CPU", "wall s, each run")
    rows: list[Sequence[str]] = [head]
    for name, numbers in summed["contenders"].items():
        star = " *" if numbers["extended"] else ""
        rows.append(
            (
                f"{measured[name].title}{star}",
                *(f"{numbers[kind]:.2f}" for kind in ("wall_seconds", "cpu_seconds")),
                *(f"{numbers[kind]:.2f}" for kind in ("speed_by_wall", "speed_by_cpu")),
                " ".join(f"{run['wall_seconds']:.2f}" for run in numbers["runs"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [f"{summed['title']}, {summed['size']:,} {summed['unit']}"]
    for row in rows:
        first, *middle, last = (
            cell.rjust(width) if 0 < column < len(head) - 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(["", first, *middle, last]).rstrip())
    sizes = {run["size"] for numbers in summed["contenders"].values() for run in numbers["runs"]}
    if smaller := sorted(sizes - {summed["size"]}):
        lines.append(
            f"  * measured with {' and '.join(f'{size:,}' for size in smaller)} {summed['unit']}, "
            "extended along a straight line"
        )
    return "\n".join(lines)
