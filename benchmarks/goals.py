"""The goals that were set before anything was measured, and whether they are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from cells import TWINS
from recorded import Ratio, Recorded
from sql_speed import WHOLE
from stream_report import markdown

_BY_HAND = "PySpark by hand, same Python parse"
_SQL = "Spark SQL, no Python"
_PARSED = "native, same Python parse"
_BEAM = "Beam's in-process runner"
_PER_KEY = "`transformWithState` per key, in Python"
_TITLES = {
    "team_sums": "sums per team and two minutes",
    "user_sessions": "sums per user and session",
    "word_count": "word count",
}


@dataclass(frozen=True)
class Goal:
    """A ratio that users asked for."""

    work: str
    against: str  # The contender that it is compared with.
    bound: float
    ratio: Callable[[Recorded], Ratio | None]  # Finds the measured ratio.
    # True if it is a ratio of speeds, and more is better; else of times, and less is better.
    is_speed: bool = True

    @property
    def asked(self) -> str:
        """The goal in words."""
        return f"{'at least' if self.is_speed else 'at most'} {self.bound:g}"

    def verdict(self, recorded: Recorded) -> tuple[str, str, str]:
        """The ratio by wall and by processor time, and whether it is reached, all for people."""
        ratio = self.ratio(recorded)
        if ratio is None:
            return "", "", "not measured yet"
        shown = ["" if value is None else f"{value:.2f}" for value in ratio]
        held = [
            value >= self.bound if self.is_speed else value <= self.bound
            for value in ratio
            if value is not None
        ]
        if not any(held):
            return shown[0], shown[1], "no"
        if all(held):
            return shown[0], shown[1], "reached"
        return shown[0], shown[1], f"only by {'wall' if held[0] else 'CPU'}"


def _batch() -> Iterator[Goal]:
    for name, title in _TITLES.items():
        yield Goal(title, _BY_HAND, 0.9, _batch_speed(name, "handwritten"))
    yield Goal("sums per team, typed, no Python needed", _SQL, 0.95, _batch_speed("typed_sums", "native_sql"))
    yield Goal(_TITLES["team_sums"], _SQL, 0.67, _batch_speed("team_sums", "native_sql"))
    yield Goal(_TITLES["user_sessions"], _SQL, 0.85, _batch_speed("user_sessions", "native_sql"))
    for name, title in _TITLES.items():
        yield Goal(title, _BEAM, 10, _batch_speed(name, "beam"))
    steps = partial(Recorded.speed, name="steps", entrant="many_steps", against="one_step")
    yield Goal("20 `Map`s", "one `Map` doing the same", 0.7, steps)
    yield Goal("stateful DoFn, 10,000 keys", _BEAM, 8, _batch_speed("user_hours", "beam"))


def _streams() -> Iterator[Goal]:
    for against, name in ((_PARSED, "native_python"), (_SQL, "native_sql")):
        yield Goal(_streamed("sums per team"), against, 0.7, _stream_speed("stream_replay", "sums", name))
    for workload, title in (("team_panes", "team"), ("user_panes", "user")):
        found = _stream_speed("stream_replay", workload, "rows")
        yield Goal(_streamed(f"sums per {title}, early and late"), _PER_KEY, 20, found)
    stateful = _stream_speed("stream_stateful", "stateful", "rows")
    yield Goal(_streamed("stateful DoFn, 100,000 keys"), _PER_KEY, 5, stateful)
    yield from _cells()
    latency = partial(Recorded.latency, against="native_python")
    yield Goal("from source to sink, 1,000 events/s", _PARSED, 1.3, latency, is_speed=False)


def _cells() -> Iterator[Goal]:
    """The goals of rows of the table of streams."""
    growth = "10,000 rows over a million keys"
    for title, row, bound in (
        ("filter and project, expressions", "parquet/expressions/none/parquet", 0.95),
        ("typed sums per team, expressions", "parquet/expressions/teams/parquet", 0.9),
        ("typed sums per user, expressions", "parquet/expressions/users/parquet", 0.9),
        ("typed sums per team, functions", "parquet/functions/teams/parquet", 0.9),
        ("typed sums per user, functions", "parquet/functions/users/parquet", 0.9),
        ("sums per team from lines", "text/functions/teams/parquet", 0.95),
        (growth, "parquet/expressions/counts/nothing: a micro-batch", 0.8),
        (f"{growth}, early panes", "parquet/functions/counts_early/nothing: a micro-batch", 0.5),
        ("filling a million keys", "parquet/expressions/counts/nothing: filling", 0.7),
        ("typed sums per user, early and late", "parquet/functions/panes/parquet", 40),
        ("stateful DoFn over typed rows, 100,000 keys", "parquet/functions/stateful/parquet", 20),
        ("a windowed join", "parquet/functions/join/parquet", 0.9),
        ("an idle stream, CPU", "parquet/expressions/idle/nothing", 0.83),
        ("an empty micro-batch", "parquet/expressions/empty/nothing", 1),
    ):
        twin = TWINS[row.partition(":")[0]]
        yield Goal(_streamed(title), twin, bound, partial(Recorded.row_speed, row=row))


def _nexmark() -> Iterator[Goal]:
    for mode, bound in (("batch", 0.6), ("streaming", 0.5)):
        found = partial(Recorded.nexmark_speed, mode=mode)
        yield Goal(f"Nexmark, {mode}, geometric mean", _BY_HAND, bound, found)


def _sql() -> Iterator[Goal]:
    for name, (title, *_) in WHOLE.items():
        found = partial(Recorded.sql_speed, part="batch", work=name)
        yield Goal(f"SQL: {title}", "Spark SQL", 0.95, found)
    sums = partial(Recorded.sql_speed, part="stream", work="sums")
    yield Goal("SQL: windowed sums of a stream", "the Python API", 0.9, sums)
    planned = partial(Recorded.planning, seconds=10)
    yield Goal("SQL: 1,000 queries parsed and planned", "ten seconds", 1, planned, is_speed=False)


def _processes() -> Iterator[Goal]:
    yield Goal("a whole tiny process, CPU", "a tiny PySpark job", 0.6, _startup, is_speed=False)
    warm = partial(
        Recorded.times_as_long,
        name="latency",
        against="frames",
        kinds=("median_wall_seconds", "mean_cpu_seconds"),
    )
    yield Goal("a tiny pipeline, warm", "the same with data frames", 1.5, warm, is_speed=False)


def _batch_speed(name: str, against: str) -> Callable[[Recorded], Ratio | None]:
    return partial(Recorded.speed, name=name, against=against)


def _stream_speed(name: str, workload: str, against: str) -> Callable[[Recorded], Ratio | None]:
    return partial(Recorded.stream_speed, name=name, workload=workload, against=against)


def _startup(recorded: Recorded) -> Ratio | None:
    """Only the processors' time was asked for."""
    kinds = ("median_wall_seconds", "median_cpu_seconds")
    found = recorded.times_as_long("startup", "pyspark", kinds)
    return found and Ratio(None, found.cpu)


def _streamed(title: str) -> str:
    return f"stream: {title}"


def _beam_pipelines() -> Iterator[Goal]:
    for name in ("team_sums", "word_count"):
        found = partial(Recorded.speed, name=name, entrant="beam_runner", against="penstock")
        yield Goal(f"{_TITLES[name]}, a Beam pipeline", "penstock's SDK", 0.7, found)
    hosted = partial(Recorded.speed, name="user_hours", entrant="beam_runner", against="beam")
    yield Goal("stateful DoFn, 10,000 keys, a Beam pipeline", _BEAM, 5, hosted)
    for work, title in (("pieces_claimed", "by the piece"), ("records_claimed", "by the record")):
        found = partial(Recorded.paired_speed, name="splittable_speed", work=work)
        yield Goal(f"splittable DoFn, 1,000 restrictions, claims {title}", "a source", 0.77, found)
    upserts = partial(Recorded.paired_speed, name="database_speed", work="upserts")
    yield Goal("upserts into PostgreSQL", "COPY and merge by hand", 0.7, upserts)


GOALS = (*_batch(), *_streams(), *_nexmark(), *_sql(), *_beam_pipelines(), *_processes())


def summary_table(recorded: Recorded) -> str:
    """Penstock's speed in batch, beside those that it is mostly compared with; by processor time in parentheses."""

    def shown(name: str, against: str) -> str:
        ratio = recorded.speed(name, against)
        return "" if ratio is None else f"{ratio.wall:.2f} ({ratio.cpu:.2f})"

    rows = [
        (title, *(shown(name, against) for against in ("handwritten", "native_sql", "beam")))
        for name, title in _TITLES.items()
    ]
    return markdown(("speed against", "by hand, same Python parse", _SQL, _BEAM), rows)


def goals_table(recorded: Recorded) -> str:
    """The goals, the measurements, and whether the goals are reached."""
    rows = [(f"{goal.work}, against {goal.against}", goal.asked, *goal.verdict(recorded)) for goal in GOALS]
    return markdown(("work", "asked", "by wall", "by CPU", "reached"), rows)
