"""The names and interfaces of metrics (Beam's ``apache_beam.metrics.metricbase``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.error import refusal

__all__ = [
    "BoundedTrie",
    "Counter",
    "Distribution",
    "Gauge",
    "Histogram",
    "Metric",
    "MetricName",
    "StringSet",
]


@dataclass(frozen=True)
class MetricName:
    """The name of a metric within a namespace (Beam's ``MetricName``).

    Args:
        namespace: Usually the class that counts.
        name: Unique in the namespace.
        urn: Beam's; a metric of the system has one instead.
        labels: Beam's; further names of such a metric.

    >>> str(MetricName("game", "moves"))
    'MetricName(namespace=game, name=moves)'
    """

    namespace: str | None
    name: str | None
    urn: str | None = None
    labels: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for part in ("namespace", "name"):
            if not self.urn and not getattr(self, part):
                what = f"Metric {part} must be non-empty"
                raise refusal(ValueError, what, hint=f"give a {part}, such as 'game'")
        object.__setattr__(self, "labels", dict(self.labels or {}))

    def __hash__(self) -> int:
        return hash((self.namespace, self.name, self.urn))

    def __str__(self) -> str:
        system = f", urn={self.urn}, labels={self.labels}" if self.urn else ""
        return f"MetricName(namespace={self.namespace}, name={self.name}{system})"


class Metric:
    """A measure with a `MetricName` (Beam's ``Metric``); made by `penstock.metrics.metric.Metrics`."""

    def __init__(self, metric_name: MetricName) -> None:
        self.metric_name = metric_name


class Counter(Metric):
    """A sum of integers (Beam's ``Counter``)."""

    def inc(self, n: int = 1) -> None:
        """Adds `n`."""
        raise NotImplementedError

    def dec(self, n: int = 1) -> None:
        """Subtracts `n`."""
        self.inc(-n)


class Distribution(Metric):
    """Sum, count, minimum and maximum of integers (Beam's ``Distribution``)."""

    def update(self, value: object) -> None:
        """Adds a number; a fraction is dropped."""
        raise NotImplementedError


class Gauge(Metric):
    """The latest of integers (Beam's ``Gauge``)."""

    def set(self, value: object) -> None:
        """Sets the number; a fraction is dropped."""
        raise NotImplementedError


class StringSet(Metric):
    """The different strings seen (Beam's ``StringSet``)."""

    def add(self, value: str) -> None:
        """Adds a string."""
        raise NotImplementedError


class BoundedTrie(Metric):
    """The different paths seen, shortened if there are many (Beam's ``BoundedTrie``)."""

    def add(self, value: Any) -> None:
        """Adds a path: an iterable of strings."""
        raise NotImplementedError


class Histogram(Metric):
    """Counts the numbers in each of some buckets (Beam's ``Histogram``)."""

    def update(self, value: Any) -> None:
        """Adds a number."""
        raise NotImplementedError
