"""The metrics that a pipeline records, and the queries for them (Beam's ``apache_beam.metrics.metric``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from penstock.error import noun_for, refusal
from penstock.metrics.execution import (
    BOUNDED_TRIES,
    COUNTERS,
    DISTRIBUTIONS,
    GAUGES,
    HISTOGRAMS,
    STRING_SETS,
    MetricKey,
    MetricResult,
    Snapshot,
    current_container,
    current_work,
    results_of,
)
from penstock.metrics.histogram import BucketType
from penstock.metrics.lineage import Lineage
from penstock.metrics.metricbase import (
    BoundedTrie,
    Counter,
    Distribution,
    Gauge,
    Histogram,
    Metric,
    MetricName,
    StringSet,
)

__all__ = ["Lineage", "MetricResults", "Metrics", "MetricsFilter"]


def _namespace_and_name(metric_name: MetricName) -> tuple[str, str]:
    return metric_name.namespace or "", metric_name.name or ""


class _Delegating(Metric):
    def __init__(self, metric_name: MetricName) -> None:
        super().__init__(metric_name)
        self._key = _namespace_and_name(metric_name)


class DelegatingCounter(_Delegating, Counter):
    """A counter of the running step; outside of a running pipeline it does not count."""

    def inc(self, n: int = 1) -> None:
        # A copy of the container's own method, since this is called for every element.
        container = current_work.container
        if container is not None:
            try:
                container.counters[self._key] += n
            except KeyError:
                container.counters[self._key] = n


class DelegatingDistribution(_Delegating, Distribution):
    """A distribution of the running step."""

    def update(self, value: Any) -> None:
        container = current_work.container
        if container is not None:
            container.update_distribution(self._key, int(value))


class DelegatingGauge(_Delegating, Gauge):
    """A gauge of the running step."""

    def set(self, value: Any) -> None:
        container = current_container()
        if container is not None:
            container.set_gauge(self._key, int(value))


class DelegatingStringSet(_Delegating, StringSet):
    """A set of strings of the running step."""

    def add(self, value: str) -> None:
        """Adds a string; TypeError for any other value."""
        if not isinstance(value, str):
            what = f"a string set takes strings, not {noun_for(value)}"
            raise refusal(TypeError, what, hint="convert it with str()")
        container = current_container()
        if container is not None:
            container.add(STRING_SETS, self._key, value)


class DelegatingBoundedTrie(_Delegating, BoundedTrie):
    """A set of paths of the running step."""

    def add(self, value: Iterable[str]) -> None:
        container = current_container()
        if container is not None:
            container.add(BOUNDED_TRIES, self._key, tuple(value))


class DelegatingHistogram(_Delegating, Histogram):
    """A histogram of the running step."""

    def __init__(self, metric_name: MetricName, bucket_type: BucketType) -> None:
        super().__init__(metric_name)
        self._bucket_type = bucket_type

    def update(self, value: float) -> None:
        container = current_container()
        if container is not None:
            container.update_histogram(self._key, self._bucket_type, value)


class Metrics:
    """Creates metrics, which count for the step that uses them (Beam's ``Metrics``).

    Metrics can be pickled, so a DoFn may hold them. Each function takes a `namespace`, which is a string or the class
    that counts, and a `name`; neither may be empty.

    >>> moves = Metrics.counter("game", "moves")
    >>> moves.inc()
    >>> str(moves.metric_name)
    'MetricName(namespace=game, name=moves)'
    """

    DelegatingBoundedTrie = DelegatingBoundedTrie
    DelegatingCounter = DelegatingCounter
    DelegatingDistribution = DelegatingDistribution
    DelegatingGauge = DelegatingGauge
    DelegatingHistogram = DelegatingHistogram
    DelegatingStringSet = DelegatingStringSet

    @staticmethod
    def get_namespace(namespace: type | str) -> str:
        """Returns the text of a namespace: of a class its module and name."""
        if isinstance(namespace, type):
            return f"{namespace.__module__}.{namespace.__name__}"
        if isinstance(namespace, str):
            return namespace
        what = f"Unknown namespace type: {type(namespace).__name__}"
        raise refusal(ValueError, what, hint="pass a class or a string")

    @staticmethod
    def counter(namespace: type | str, name: str) -> Counter:
        """Returns a counter: a sum of integers."""
        return DelegatingCounter(_name(namespace, name))

    @staticmethod
    def distribution(namespace: type | str, name: str, process_wide: bool = False) -> Distribution:
        """Returns a distribution of integers: sum, count, minimum and maximum; `process_wide` has no effect."""
        return DelegatingDistribution(_name(namespace, name))

    @staticmethod
    def gauge(namespace: type | str, name: str, process_wide: bool = False) -> Gauge:
        """Returns a gauge: the latest of integers; Beam's `process_wide` has no effect."""
        return DelegatingGauge(_name(namespace, name))

    @staticmethod
    def string_set(namespace: type | str, name: str) -> StringSet:
        """Returns a set of the different strings seen, up to a million characters in total."""
        return DelegatingStringSet(_name(namespace, name))

    @staticmethod
    def bounded_trie(namespace: type | str, name: str) -> BoundedTrie:
        """Returns a set of the different paths seen; if there are more than a hundred, they are shortened."""
        return DelegatingBoundedTrie(_name(namespace, name))

    @staticmethod
    def histogram(
        namespace: type | str, name: str, bucket_type: BucketType, logger: object = None
    ) -> Histogram:
        """Returns a histogram, which counts the numbers in each bucket; Beam's `logger` has no effect."""
        return DelegatingHistogram(_name(namespace, name), bucket_type)


def _name(namespace: type | str, name: str) -> MetricName:
    return MetricName(Metrics.get_namespace(namespace), name)


class MetricsFilter:
    """The metrics that a query asks for; each method narrows it and returns the filter (Beam's ``MetricsFilter``).

    Several names, namespaces or steps mean any of them. A step is a part of a label at its ``/`` marks.

    >>> sorted(MetricsFilter().with_name("moves").with_names(["wins"]).names)
    ['moves', 'wins']
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._namespaces: set[str] = set()
        self._steps: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """The names asked for; none means any."""
        return frozenset(self._names)

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces asked for; none means any."""
        return frozenset(self._namespaces)

    @property
    def steps(self) -> frozenset[str]:
        """The steps asked for; none means any."""
        return frozenset(self._steps)

    def with_metric(self, metric: Metric) -> MetricsFilter:
        """Asks for the name and namespace of a metric."""
        namespace, name = _namespace_and_name(metric.metric_name)
        return self.with_name(name).with_namespace(namespace)

    def with_name(self, name: str) -> MetricsFilter:
        """Asks for a name."""
        return self.with_names([name])

    def with_names(self, names: Iterable[str]) -> MetricsFilter:
        """Asks for several names; ``ValueError`` if they are one string."""
        self._names.update(_several(names, "names"))
        return self

    def with_namespace(self, namespace: type | str) -> MetricsFilter:
        """Asks for a namespace."""
        return self.with_namespaces([namespace])

    def with_namespaces(self, namespaces: Iterable[type | str]) -> MetricsFilter:
        """Asks for several namespaces; ``ValueError`` if they are one string."""
        self._namespaces.update(Metrics.get_namespace(each) for each in _several(namespaces, "namespaces"))
        return self

    def with_step(self, step: str) -> MetricsFilter:
        """Asks for a step."""
        return self.with_steps([step])

    def with_steps(self, steps: Iterable[str]) -> MetricsFilter:
        """Asks for several steps; ``ValueError`` if they are one string."""
        self._steps.update(_several(steps, "steps"))
        return self


def _several(values: Iterable[Any], what: str) -> Iterable[Any]:
    if isinstance(values, str):
        raise refusal(ValueError, f"{what} must be a collection, not a string", hint=f"write [{values!r}]")
    return values


class MetricResults:
    """The metrics of a run of a pipeline (Beam's ``MetricResults``).

    Args:
        committed: The snapshots of work that succeeded, merged.
        attempted: The snapshots of all work; the same by default.

    >>> results = MetricResults({("counters", "A", "game", "moves"): 2})
    >>> results.query(MetricsFilter().with_name("moves"))["counters"][0].committed
    2
    """

    COUNTERS: ClassVar[str] = COUNTERS
    DISTRIBUTIONS: ClassVar[str] = DISTRIBUTIONS
    GAUGES: ClassVar[str] = GAUGES
    STRINGSETS: ClassVar[str] = STRING_SETS
    BOUNDED_TRIES: ClassVar[str] = BOUNDED_TRIES
    HISTOGRAMS: ClassVar[str] = HISTOGRAMS

    def __init__(self, committed: Snapshot | None = None, attempted: Snapshot | None = None) -> None:
        self._committed = committed or {}
        self._attempted = self._committed if attempted is None else attempted

    @staticmethod
    def matches(filter: MetricsFilter | None, metric_key: MetricKey) -> bool:
        """True if a filter asks for a metric; no filter asks for all."""
        if filter is None:
            return True
        metric = metric_key.metric
        return (
            (not filter.namespaces or metric.namespace in filter.namespaces)
            and (not filter.names or metric.name in filter.names)
            and (not filter.steps or any(_lies_in(step, metric_key.step) for step in filter.steps))
        )

    def query(self, filter: MetricsFilter | None = None) -> dict[str, list[MetricResult]]:
        """Returns the metrics that a filter asks for, or all.

        Returns:
            A list for each kind, empty if nothing is found: ``counters`` of ints, ``distributions``,
            ``gauges``, ``string_sets`` of sets, ``bounded_tries`` and ``histograms``.
        """
        everything = results_of(self._committed, self._attempted)
        return {
            kind: [result for result in results if self.matches(filter, result.key)]
            for kind, results in everything.items()
        }


def _lies_in(part: str, label: str) -> bool:
    return f"/{part}/" in f"/{label}/"
