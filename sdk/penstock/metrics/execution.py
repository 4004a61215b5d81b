"""The counts of workers: the container of the running step, its snapshots, and the results of queries.

A runner makes a `MetricsContainer` for each step of a task, makes it current while the step works, and sends
its snapshot to the driver, which keeps one snapshot for each partition of a stage, so that a retried task
counts once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from penstock.metrics.cells import (
    BoundedTrieData,
    DistributionData,
    DistributionResult,
    GaugeData,
    GaugeResult,
    StringSetData,
)
from penstock.metrics.histogram import BucketType, HistogramData, HistogramResult
from penstock.metrics.metricbase import MetricName
from penstock.utils import clock

COUNTERS = "counters"
DISTRIBUTIONS = "distributions"
GAUGES = "gauges"
STRING_SETS = "string_sets"
BOUNDED_TRIES = "bounded_tries"
HISTOGRAMS = "histograms"
KINDS = (COUNTERS, DISTRIBUTIONS, GAUGES, STRING_SETS, BOUNDED_TRIES, HISTOGRAMS)

RECORDINGS = "recordings"
"""The kind of recordings for drawings, which are not metrics."""

TALLIES = "tallies"
"""The kind of what the view of a run counts, which are not metrics either."""

ELEMENTS = "elements"
"""The kind of counts of elements on edges, which the view of a run also counts; its number is the step."""

ROWS = "rows"
"""The kind of counts of what sources have read, for the record of a run; its step is the source."""

Snapshot = dict[tuple[str, str, str, str], Any]
"""Values by kind, step, namespace and name: integers for counters, else the frozen data of `cells`."""

_Name = tuple[str, str]
# The number of strings or paths that wait in a set before they are reduced to their limits.
_WAITING_ITEMS = 10_000


@dataclass(frozen=True)
class MetricKey:
    """A metric at a step, by the step's full label (Beam's ``MetricKey``); `labels` are Beam's, and usually empty."""

    step: str
    metric: MetricName
    labels: Mapping[str, str] | Set[str] | None = None

    def __post_init__(self) -> None:
        own = frozenset(self.labels) if isinstance(self.labels, Set) else dict(self.labels or {})
        object.__setattr__(self, "labels", own)

    def __hash__(self) -> int:
        return hash((self.step, self.metric, frozenset(self.labels or ())))

    def __repr__(self) -> str:
        return f"MetricKey(step={self.step}, metric={self.metric}, labels={self.labels})"


@dataclass(frozen=True)
class MetricResult:
    """The result of a query for a metric at a step (Beam's ``MetricResult``).

    Attributes:
        key: The `MetricKey`.
        committed: The value over work that succeeded; None if the runner does not know.
        attempted: The value over all work, including repeated work.
    """

    key: MetricKey
    committed: Any
    attempted: Any

    @property
    def result(self) -> Any:
        """The committed value, or the attempted one if there is none (as Beam: or if it is zero)."""
        return self.committed or self.attempted

    def __repr__(self) -> str:
        return f"MetricResult(key={self.key}, committed={self.committed}, attempted={self.attempted})"


class MetricsContainer:
    """The metrics of one step in one task, by (namespace, name); one thread writes to it.

    `note_current_in` records its `number`.

    >>> container = MetricsContainer("Count")
    >>> container.inc(("game", "moves"), 2)
    >>> container.snapshot()
    {('counters', 'Count', 'game', 'moves'): 2}
    """

    __slots__ = (
        "counters",
        "distributions",
        "gauges",
        "histograms",
        "many",
        "number",
        "step_name",
        "waiting",
    )

    def __init__(self, step_name: str, number: int = 0) -> None:
        self.step_name = step_name
        self.number = number
        self.counters: dict[_Name, int] = {}
        self.distributions: dict[_Name, list[int]] = {}
        self.gauges: dict[_Name, GaugeData] = {}
        self.histograms: dict[_Name, HistogramData] = {}
        self.many: dict[tuple[str, _Name], Any] = {}
        self.waiting: dict[tuple[str, _Name], set[Any]] = {}

    def inc(self, name: _Name, n: int = 1) -> None:
        """Adds to a counter."""
        try:
            self.counters[name] += n
        except KeyError:
            self.counters[name] = n

    def update_distribution(self, name: _Name, value: int) -> None:
        """Adds a number to a distribution."""
        cell = self.distributions.get(name)
        if cell is None:
            self.distributions[name] = [value, 1, value, value]
            return
        cell[0] += value
        cell[1] += 1
        if value < cell[2]:
            cell[2] = value
        elif value > cell[3]:
            cell[3] = value

    def set_gauge(self, name: _Name, value: int) -> None:
        """Sets a gauge now."""
        self.gauges[name] = GaugeData(value, clock.seconds())

    def update_histogram(self, name: _Name, bucket_type: BucketType, value: float) -> None:
        """Adds a number to a histogram."""
        self.histograms[name] = (self.histograms.get(name) or HistogramData(bucket_type)).record(value)

    def add(self, kind: str, name: _Name, item: object) -> None:
        """Adds an item to a string set or a bounded trie; `kind` says which."""
        waiting = self.waiting.setdefault((kind, name), set())
        waiting.add(item)
        if len(waiting) >= _WAITING_ITEMS:
            self._fold(kind, name)

    def keep(self, data: object, kind: str = RECORDINGS) -> None:
        """Keeps data with a ``combine`` that travels with the metrics; queries do not show it."""
        key = kind, ("penstock", kind)
        self.many[key] = _combine(data, self.many.get(key))

    def absorb(self, other: MetricsContainer) -> None:
        """Adds the counts of another container, such as a helper thread's, which may still count.

        >>> container, helper = MetricsContainer("Count"), MetricsContainer("Count")
        >>> helper.inc(("game", "moves"), 2)
        >>> container.absorb(helper)
        >>> container.counters
        {('game', 'moves'): 2}
        """
        for name, count in dict(other.counters).items():
            self.inc(name, count)
        for name, (total, count, least, most) in dict(other.distributions).items():
            cell = self.distributions.setdefault(name, [0, 0, least, most])
            cell[:] = cell[0] + total, cell[1] + count, min(cell[2], least), max(cell[3], most)
        for name, gauge in dict(other.gauges).items():
            self.gauges[name] = _combine(gauge, self.gauges.get(name))
        for name, histogram in dict(other.histograms).items():
            self.histograms[name] = _combine(histogram, self.histograms.get(name))
        for key, data in dict(other.many).items():
            self.many[key] = _combine(data, self.many.get(key))
        for (kind, name), items in dict(other.waiting).items():
            for item in set(items):
                self.add(kind, name, item)

    def snapshot(self) -> Snapshot:
        """Returns all counts so far, as plain frozen data that can be pickled."""
        for kind, name in list(self.waiting):
            self._fold(kind, name)
        distributions = {name: DistributionData(*cell) for name, cell in self.distributions.items()}
        by_kind: tuple[tuple[str, Mapping[_Name, Any]], ...] = (
            (COUNTERS, self.counters),
            (DISTRIBUTIONS, distributions),
            (GAUGES, self.gauges),
            (HISTOGRAMS, self.histograms),
        )
        step = self.step_name
        taken = {(kind, step, *name): value for kind, values in by_kind for name, value in values.items()}
        return {**taken, **{(kind, step, *name): value for (kind, name), value in self.many.items()}}

    def _fold(self, kind: str, name: _Name) -> None:
        items = self.waiting.pop((kind, name))
        more = StringSetData.of(items) if kind == STRING_SETS else BoundedTrieData.of(items)
        self.many[kind, name] = _combine(more, self.many.get((kind, name)))


class _Current(threading.local):
    container: MetricsContainer | None = None


current_work = _Current()
_noted: Any = [0]


def current_container() -> MetricsContainer | None:
    """Returns the container of the running step in this thread; None outside of a running pipeline."""
    return current_work.container


def set_current(container: MetricsContainer | None) -> None:
    """Makes a container the current one of this thread; a runner calls it when it goes from step to step."""
    current_work.container = container
    if container is not None:
        _noted[0] = container.number


def note_current_in(place: object) -> None:
    """Writes the number of each container that becomes current into the first item of a sequence.

    >>> place = [0]
    >>> note_current_in(place)
    >>> set_current(MetricsContainer("Count", 7))
    >>> place
    [7]
    """
    global _noted
    _noted = place


def merge_snapshots(first: Snapshot, second: Snapshot) -> Snapshot:
    """Returns the two snapshots merged; associative and commutative, with ``{}`` as the neutral element."""
    merged = dict(first)
    for key, value in second.items():
        merged[key] = _combine(value, merged.get(key))
    return merged


def _combine(value: Any, so_far: Any) -> Any:
    if so_far is None:
        return value
    return so_far + value if isinstance(value, int) else so_far.combine(value)


_SHOWN: Mapping[str, Callable[[Any], Any]] = {
    COUNTERS: int,
    DISTRIBUTIONS: DistributionResult,
    GAUGES: GaugeResult,
    STRING_SETS: StringSetData.get_result,
    BOUNDED_TRIES: lambda data: data,
    HISTOGRAMS: HistogramResult,
}


def find_recordings(snapshot: Snapshot) -> dict[str, Any]:
    """Returns the data that `MetricsContainer.keep` got, by step."""
    return {step: data for (kind, step, *_), data in snapshot.items() if kind == RECORDINGS}


def take_out(snapshot: Snapshot, kind: str) -> tuple[Snapshot, dict[str, Any]]:
    """Returns a snapshot without the entries of a kind, and these entries, by step.

    >>> take_out({("tallies", "Sum", "penstock", "tallies"): 1, ("counters", "Sum", "n", "x"): 2}, TALLIES)
    ({('counters', 'Sum', 'n', 'x'): 2}, {'Sum': 1})
    """
    rest = {key: data for key, data in snapshot.items() if key[0] != kind}
    return rest, {step: data for (own, step, *_), data in snapshot.items() if own == kind}


def results_of(committed: Snapshot, attempted: Snapshot) -> dict[str, list[MetricResult]]:
    """Returns the results of a query without a filter, by kind, in the order of steps and names.

    >>> found = results_of({}, {("counters", "A", "n", "x"): 2})
    >>> found["counters"][0].attempted, found["gauges"]
    (2, [])
    """
    found: dict[str, list[MetricResult]] = {kind: [] for kind in KINDS}
    for key in sorted({*committed, *attempted}):
        kind, step, namespace, name = key
        if kind not in found:
            continue
        shown = [_SHOWN[kind](taken[key]) if key in taken else None for taken in (committed, attempted)]
        found[kind].append(MetricResult(MetricKey(step, MetricName(namespace, name)), *shown))
    return found
