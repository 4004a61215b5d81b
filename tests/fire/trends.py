"""True if a number that was measured again and again is level or grows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import linear_regression, mean, median

_GROWTH_MIN = 0.05
"""A number grows if the second half of its samples rises by more than this part of its mean in an hour."""

_NOISE = 3.0
"""It also must rise by so many standard errors of the slope."""


@dataclass(frozen=True)
class Trend:
    """How a number has changed."""

    name: str
    quarter: float  # The median of the second quarter of the samples.
    middle: float  # The median of the third quarter.
    end: float  # The median of the last quarter.
    per_hour: float  # The slope in the second half.
    grows: bool

    def line(self) -> str:
        """The trend for people."""
        shown = "".join(f"{_short(each):>12}" for each in (self.quarter, self.middle, self.end))
        return f"{self.name:52}{shown}{_short(self.per_hour):>12}  {'GROWS' if self.grows else 'level'}"


def trend_of(name: str, samples: list[dict[str, float]]) -> Trend:
    """The trend of one number; a sample without it counts as 0."""
    seconds = [sample["seconds"] for sample in samples]
    values = [float(sample.get(name, 0)) for sample in samples]
    quarter = len(values) // 4
    late, late_values = seconds[2 * quarter :], values[2 * quarter :]
    slope, error = _slope(late, late_values)
    per_hour = slope * 3600
    is_much = per_hour > _GROWTH_MIN * max(mean(late_values), 1e-9)
    return Trend(
        name,
        median(values[quarter : 2 * quarter]),
        median(values[2 * quarter : 3 * quarter]),
        median(values[3 * quarter :]),
        per_hour,
        is_much and slope > _NOISE * error,
    )


def _slope(times: list[float], values: list[float]) -> tuple[float, float]:
    """The slope of the line of least squares, and its standard error."""
    slope, start = linear_regression(times, values)
    rest = sum((value - start - slope * time) ** 2 for time, value in zip(times, values, strict=True))
    middle = mean(times)
    spread = sum((time - middle) ** 2 for time in times)
    return slope, (rest / max(1, len(times) - 2) / spread) ** 0.5


def _short(value: float) -> str:
    """A number with a thousand's letter.

    >>> _short(1234567.0), _short(-12.3), _short(0.0)
    ('1.23M', '-12.3', '0')
    """
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"
