"""Who is measured beside whom, and how much of the work those get that would take too long with all of it."""

from __future__ import annotations

from dataclasses import dataclass

import workloads
from workload import Workload

_BEAM_PARTS = (0.02, 0.05)
_RDD_PARTS = (0.1, 0.3)


@dataclass(frozen=True)
class Entrant:
    """One side of a comparison."""

    name: str  # As in the numbers.
    title: str  # For people.
    workload: Workload  # Its input, and the expected output.
    worker: str  # The process that does it, as `contender` knows it.
    job: str  # As the worker knows it.
    # The parts of the input that its runs get. A contender that would take too long with all of it gets two
    # small parts, and the rate between them counts.
    fractions: tuple[float, ...] = (1.0,)

    def sizes(self, scale: float) -> tuple[int, ...]:
        """The sizes of its inputs, run by run."""
        return tuple(max(1, int(self.workload.size * scale * fraction)) for fraction in self.fractions)


@dataclass(frozen=True)
class Comparison:
    """Contenders that take turns with the same work."""

    name: str  # As on the command line, and in the name of the file of numbers.
    title: str  # For people.
    entrants: tuple[Entrant, ...]  # The others are compared with the first one.
    warming_turns: int = 3  # The first turns do not count, because Java is still compiling.


def _peers(workload: Workload, title: str) -> Comparison:
    """All contenders with the same work."""
    job = workload.name

    def entrant(worker: str, title: str, fractions: tuple[float, ...] = (1.0,)) -> Entrant:
        return Entrant(worker, title, workload, worker, job, fractions)

    entrants = (
        entrant("handwritten", "PySpark by hand, same Python parse"),
        entrant("penstock", "penstock"),
        entrant("beam_runner", "the Beam pipeline on penstock's runner"),
        entrant("native_sql", "Spark SQL, no Python"),
        entrant("rdd", "PySpark's RDDs", _RDD_PARTS),
        entrant("beam", "Beam's in-process runner", _BEAM_PARTS),
        entrant("plain", "plain Python, one process"),
    )
    return Comparison(job, title, entrants)


def _shapes(name: str, title: str, *sides: tuple[str, str, Workload, str]) -> Comparison:
    """Pipelines of ours beside their harmless twin, which comes first: names, titles, inputs and jobs."""
    entrants = (Entrant(name, title, workload, "penstock", job) for name, title, workload, job in sides)
    return Comparison(name, title, tuple(entrants))


_TYPED = Comparison(
    "typed_sums",
    "sums per team and two minutes, from Parquet to Parquet",
    (
        Entrant("native_sql", "Spark SQL, no Python", workloads.TYPED_SUMS, "columns", "by_hand"),
        Entrant("penstock", "penstock", workloads.TYPED_SUMS, "columns", "penstock"),
    ),
    # All of it is Java, which continues to compile for a dozen turns.
    warming_turns=12,
)
_STATEFUL = Comparison(
    "user_hours",
    "a stateful DoFn with a value and a timer, 10,000 keys",
    (
        Entrant("beam", "Beam's in-process runner", workloads.USER_HOURS, "beam", "user_hours", (0.05, 0.15)),
        Entrant("penstock", "penstock", workloads.USER_HOURS, "penstock", "user_hours"),
        Entrant(
            "beam_runner",
            "the Beam pipeline on penstock's runner",
            workloads.USER_HOURS,
            "beam_runner",
            "user_hours",
        ),
    ),
)

COMPARISONS = (
    _peers(workloads.TEAM_SUMS, "sums per team and two minutes"),
    _peers(workloads.USER_SESSIONS, "sums per user and session"),
    _peers(workloads.WORD_COUNT, "word count"),
    _TYPED,
    _STATEFUL,
    _shapes(
        "steps",
        "a chain of 20 `Map`s",
        ("one_step", "one `Map` that does the same", workloads.STEPPED, "one_step"),
        ("many_steps", "20 `Map`s", workloads.STEPPED, "many_steps"),
    ),
    _shapes(
        "keys_combined",
        "`CombinePerKey(sum)`, 10,000 keys",
        ("even", "all keys alike", workloads.EVEN_KEYS, "combined"),
        ("hot", "nine in ten elements of one key", workloads.HOT_KEY, "combined"),
        ("hot_in_parts", "the same, `with_hot_key_fanout(8)`", workloads.HOT_KEY, "combined_in_parts"),
        ("skewed", "by Zipf's law", workloads.SKEWED_KEYS, "combined"),
    ),
    _shapes(
        "keys_grouped",
        "`GroupByKey`, 10,000 keys",
        ("even", "all keys alike", workloads.EVEN_KEYS, "grouped"),
        ("hot", "nine in ten elements of one key", workloads.HOT_KEY, "grouped"),
        ("skewed", "by Zipf's law", workloads.SKEWED_KEYS, "grouped"),
    ),
    _shapes(
        "many_windows",
        "`GroupByKey` in windows",
        ("many_keys", "a million keys, one window each", workloads.MANY_KEYS, "moments"),
        ("few_keys", "100 keys, 10,000 windows each", workloads.FEW_KEYS, "moments"),
    ),
    _shapes(
        "large_values",
        "`GroupByKey` of 400 MB",
        ("small", "values of 10 kB", workloads.SMALL_VALUES, "sizes"),
        ("large", "values of 10 MB", workloads.LARGE_VALUES, "sizes"),
    ),
    _shapes(
        "wide_rows",
        "`GroupByKey` of five million fields",
        ("narrow", "rows of 9 fields", workloads.NARROW_ROWS, "rows"),
        ("wide", "rows of 499 fields", workloads.WIDE_ROWS, "rows"),
    ),
)
