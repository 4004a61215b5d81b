"""The work that is measured: each workload's lines, and what has to come out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import lines
import totals
from totals import WINDOW_SECONDS, Totals
from workload import Workload

__all__ = ["WINDOW_SECONDS", "WORKLOADS", "Totals", "Workload"]

WORD_COUNT = Workload("word_count", "bytes", 120_000_000, lines.text, totals.word_count)
TEAM_SUMS = Workload("team_sums", "lines", 2_500_000, lines.scores, totals.team_sums)
USER_SESSIONS = Workload("user_sessions", "lines", 2_000_000, lines.visits, totals.user_sessions)
TYPED_SUMS = Workload("typed_sums", "rows", 20_000_000, lines.scores, totals.typed_sums, form="parquet")
USER_HOURS = Workload("user_hours", "lines", 400_000, lines.scores, totals.user_hours)
STEPPED = Workload("stepped", "lines", 1_000_000, lines.numbers, totals.stepped_sum)
FEW_KEYS = Workload("few_keys", "lines", 500_000, lines.moments_of_few, totals.moment_counts)
MANY_KEYS = Workload("many_keys", "lines", 500_000, lines.moments_of_many, totals.moment_counts)


def _keyed(name: str, size: int, found: Callable[[], Iterator[str]]) -> Workload:
    return Workload(name, "lines", size, found, totals.key_sums)


EVEN_KEYS = _keyed("even_keys", 1_000_000, lines.even_keys)
HOT_KEY = _keyed("hot_key", 1_000_000, lines.hot_key)
SKEWED_KEYS = _keyed("skewed_keys", 1_000_000, lines.skewed_keys)
LARGE_VALUES = _keyed("large_values", 40, lines.large_sizes)
SMALL_VALUES = _keyed("small_values", 40_000, lines.small_sizes)
WIDE_ROWS = _keyed("wide_rows", 10_000, lines.wide_rows)
NARROW_ROWS = _keyed("narrow_rows", 500_000, lines.narrow_rows)

WORKLOADS = (
    *(WORD_COUNT, TEAM_SUMS, USER_SESSIONS, TYPED_SUMS, USER_HOURS, STEPPED, FEW_KEYS, MANY_KEYS),
    *(EVEN_KEYS, HOT_KEY, SKEWED_KEYS, LARGE_VALUES, SMALL_VALUES, WIDE_ROWS, NARROW_ROWS),
)
