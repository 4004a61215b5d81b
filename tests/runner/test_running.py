"""However a run of a stream ends, nothing is left that would wait for it when the program ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock_spark.live.snapshot import RunSnapshot, StepError
from penstock_spark.live.stream_snapshots import RunFacts
from penstock_spark.lowering.readings import OpenReading
from penstock_spark.reports.metrics import Watermarks, watermarks_of
from penstock_spark.runs import running
from penstock_spark.runs.native_grouping import native_reports
from penstock_spark.runs.running import StreamRun, nothing_comes_after


def nothing(*_: Any) -> None:
    """Does nothing."""


def broken(*_: Any) -> None:
    raise OSError("the disk is full")


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is called when the program ends."""
    registered: list[Any] = []
    stand_in = SimpleNamespace(register=registered.append, unregister=registered.remove)
    monkeypatch.setattr(running, "atexit", stand_in)
    return registered


class Seen:
    """A view that notes what it is shown."""

    def __init__(self) -> None:
        self.shown: list[RunSnapshot] = []

    def show(self, now: RunSnapshot) -> None:
        self.shown.append(now)

    def close(self) -> None:
        self.shown.append(self.shown[-1])


def run(
    monkeypatch: pytest.MonkeyPatch,
    *,
    stop: Any = nothing,
    release: Any = nothing,
    views: Any = (),
    **others: Any,
) -> StreamRun:
    """A query that rests until somebody stops it."""
    monkeypatch.setattr(StreamRun, "_fold", nothing)
    monkeypatch.setattr(StreamRun, "watermarks", lambda self: Watermarks({}, MIN_MICROS))
    jvm = SimpleNamespace(lastProgress=lambda: None)
    started = SimpleNamespace(isActive=True, stop=stop, _jsq=jvm)
    query = SimpleNamespace(rests=False, readings=(), is_finite=False, ending_by_pauses=())
    checkpoint = SimpleNamespace(is_new=True, lost=None, release=release, lease=None, place=None)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    context = SimpleNamespace(
        metrics=SimpleNamespace(value={}, see=nothing), run="r", tidy_up=nothing, spark=spark
    )
    about = RunFacts("name", "r", "streaming", 0)
    return StreamRun(
        started,  # type: ignore[arg-type]
        query,  # type: ignore[arg-type]
        checkpoint,  # type: ignore[arg-type]
        0,
        context,  # type: ignore[arg-type]
        lambda error: error,
        nothing,
        about,
        views,
        **others,
    )


def resting(
    monkeypatch: pytest.MonkeyPatch, shards: int, grouping: str | None = None, **parts: Any
) -> StreamRun:
    """A finite query over one source, which has been read to its end."""
    waiting = {"isDataAvailable": False, "isTriggerActive": False, "message": "Waiting for data to arrive"}
    jvm = SimpleNamespace(lastProgress=lambda: None)
    started = SimpleNamespace(isActive=True, stop=nothing, _jsq=jvm, status=waiting)
    spec: Any = SimpleNamespace(origin="Read", readers=(1,) if shards else ())
    reading = OpenReading(None, spec, True, is_staged=True)  # type: ignore[arg-type]
    query = SimpleNamespace(rests=True, readings=(reading,), is_finite=True, ending_by_pauses=(reading,))
    checkpoint = SimpleNamespace(
        **{"is_new": False, "lost": None, "release": nothing, "lease": None, "place": None}
        | {"is_draining": lambda: False}
        | parts
    )
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    context = SimpleNamespace(
        metrics=SimpleNamespace(value={}, see=nothing), run="r", tidy_up=nothing, spark=spark
    )
    about = RunFacts("name", "r", "streaming", 0, native_grouping=grouping)
    return StreamRun(started, query, checkpoint, shards, context, lambda error: error, nothing, about)  # type: ignore[arg-type]


def test_a_run_whose_predecessor_has_read_everything_tells_the_groupings_that_the_source_has_ended(
    at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told, is_told = [], threading.Event()

    def command(*words: str) -> None:
        told.append(words)
        is_told.set()

    made = resting(monkeypatch, 1, command=command)
    assert is_told.wait(20)
    made.cancel()
    assert told == [("end", "Read")]


def test_a_run_is_watched_for_micro_batches_that_make_no_progress(
    at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, is_watched = [], threading.Event()

    def watch(batch: int) -> None:
        watched.append(batch)
        is_watched.set()

    monkeypatch.setattr(running, "stall_watcher_of", lambda started, context: SimpleNamespace(watch=watch))
    made = run(monkeypatch)
    assert is_watched.wait(20)
    made.cancel()
    assert set(watched) == {-1}


def report_of(batch: int, second: int, dropped: int | None = None) -> dict[str, Any]:
    """Spark's report of a micro-batch; without `dropped`, there was nothing to read."""
    return {
        "batchId": batch,
        "timestamp": f"2026-01-02T03:04:0{second}.000Z",
        "durationMs": {} if dropped is None else {"addBatch": 1},
        "eventTime": {},
        "observedMetrics": {"penstock_ahead": {"penstock_ahead": dropped or 0}},
        "stateOperators": [
            {"numRowsDroppedByWatermark": dropped or 0, "numRowsTotal": 1, "memoryUsedBytes": 8}
        ],
        "sources": [],
    }


def test_a_watermark_counts_when_the_windows_have_fired_for_it() -> None:
    at_end = {"eventTime": {"watermark": "+294247-01-09T04:00:44.775Z"}}
    assert native_reports("Sum", report_of(1, 2) | at_end) == {}
    told = watermarks_of(native_reports("Sum", report_of(1, 3, 0) | at_end))
    assert told.earliest_micros() == MAX_MICROS


@pytest.mark.parametrize("grouping", ["Sum", None])
def test_a_run_that_continues_has_spark_fire_what_was_due(
    grouping: str | None, at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    is_watched = threading.Event()

    def watch(*_: Any) -> Any:
        is_watched.set()
        return SimpleNamespace(watch=nothing)

    monkeypatch.setattr(running, "stall_watcher_of", watch)
    made = resting(monkeypatch, 1, grouping, command=lambda name, *_: told.append(name))
    assert is_watched.wait(20)
    made.cancel()
    assert ("continue" in told) is (grouping is not None)


@pytest.mark.parametrize("looks", [(0, 1, 2, 3, 4), (0, 3, 4), (2, 4), (1, 2, 4), (4,)])
def test_each_report_of_a_grouping_of_sparks_is_counted_once_however_rarely_one_looks(
    looks: tuple[int, ...], at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(monkeypatch)
    made.cancel()
    made.about = replace(made.about, native_grouping="Sum", sources=("Read",))
    reports = [report_of(*each) for each in ((0, 1, 1), (1, 2), (1, 3, 10), (2, 4, 100), (3, 5, 1000))]
    for look in looks:
        java = {name: lambda value=value: value for name, value in reports[look].items()}
        made.started._jsq.lastProgress = lambda java=java: SimpleNamespace(**java)
        made.started.lastProgress = reports[look]  # type: ignore[misc]
        made.started.recentProgress = reports[: look + 1]  # type: ignore[misc]
        made._new_progress()
    assert made.snapshot() == {
        ("counters", "Sum", "penstock", "elements_dropped_as_late"): 1111,
        ("counters", "Read", "penstock", "elements_ahead_of_the_clock"): 1111,
    }


def test_a_micro_batch_is_seen_whose_number_spark_has_reported_when_there_was_nothing_to_read(
    at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(monkeypatch)
    made.cancel()
    seen = []
    # While it rests, Spark reports the number of the micro-batch that comes next.
    for batch, second in ((0, 1), (0, 1), (0, 2), (0, 2), (1, 3)):
        report = report_of(batch, second)
        java = SimpleNamespace(**{name: lambda value=value: value for name, value in report.items()})
        made.started._jsq.lastProgress = lambda java=java: java
        made.started.lastProgress = report  # type: ignore[misc]
        made.started.recentProgress = [report]  # type: ignore[misc]
        seen.append(made._new_progress())
    told = [report and (report["batchId"], report["timestamp"][17:19]) for report in seen]
    assert told == [(0, "01"), None, (0, "02"), None, (1, "03")]


def test_a_drain_that_is_asked_for_when_the_run_has_ended_comes_too_late(
    at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[StreamRun] = []
    is_made = threading.Event()

    def release() -> None:
        assert is_made.wait(20)
        made[0].state = "DRAINING"

    made.append(resting(monkeypatch, 0, release=release))
    is_made.set()
    assert made[0].join(20)
    assert made[0].state == "DONE"


@pytest.mark.parametrize(
    ("parts", "state"),
    [({}, "CANCELLED"), ({"stop": broken}, "FAILED"), ({"release": broken}, "FAILED")],
    ids=["cancelled", "Spark does not stop it", "the checkpoint is not released"],
)
def test_a_run_that_has_ended_is_forgotten_by_the_end_of_the_program(
    parts: dict[str, Any], state: str, at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(monkeypatch, **parts)
    assert len(at_exit) == 1
    made.cancel()
    assert (made.state, at_exit) == (state, [])
    assert str(made.failure or "") == ("the disk is full" if parts else "")


@pytest.mark.usefixtures("at_exit")
def test_the_last_snapshot_of_a_run_that_failed_says_so_before_anybody_who_waits_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = Seen()
    made = run(monkeypatch, stop=broken, views=[view])
    made.cancel()
    last, closed = view.shown[-2:]
    assert (last.state, last.errors) == ("FAILED", (StepError("OSError"),))
    assert closed is last
    assert made.look() == last


AWAY = '{"format": 1, "position": 7, "away": 1}'
CLOCKED = {"is_finite": True}
ENDS_WHEN_READ = {"is_finite": True, "ends_when_read": True}
STAGED = {"is_finite": True, "is_staged": True}


@pytest.mark.parametrize(
    ("kind", "offsets", "is_planned_before", "is_read"),
    [
        (ENDS_WHEN_READ, ("1", "1"), False, True),
        (ENDS_WHEN_READ, ("1", "1"), True, False),  # Something may have arrived since it was planned.
        (ENDS_WHEN_READ, ("1", "2"), False, False),
        (ENDS_WHEN_READ, (None, "1"), False, False),
        (ENDS_WHEN_READ, (AWAY, AWAY), False, False),  # It could not be reached.
        (STAGED, ("1", "1"), False, True),  # An earlier run has read its end, and died before it noted that.
        (STAGED, ("1", "1"), True, True),
        (STAGED, ("1", "2"), False, False),
        (CLOCKED, ("1", "1"), False, False),  # Its next second has not passed yet.
        (CLOCKED, ("1", "2"), False, False),
    ],
)
def test_a_micro_batch_without_anything_new_is_the_end_of_some_finite_sources(
    kind: dict[str, bool], offsets: tuple[str | None, str], is_planned_before: bool, is_read: bool
) -> None:
    reading = OpenReading(None, None, **kind)  # type: ignore[arg-type]
    source = dict(zip(("startOffset", "endOffset"), offsets, strict=True))
    assert nothing_comes_after(reading, source, is_planned_before) is is_read


def test_spark_is_asked_again_when_it_writes_another_micro_batch_or_none(
    at_exit: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, numbers, asked = [0.0], iter([None, None, 4, 4, 4, 5, 5, 5, None]), []
    at_looks: list[tuple[float, int | None]] = []

    class Looks(threading.Event):
        """Lets a quarter of a second pass before each look, and stops the run after the last one."""

        def wait(self, timeout: float | None = None) -> bool:
            now[0] += 0.25 if len(asked) != 7 else 1.0
            return len(asked) == 9

    def being_written() -> int | None:
        asked.append(next(numbers))
        return asked[-1]

    def new_progress(self: StreamRun) -> None:
        at_looks.append((now[0], asked[-1]))

    monkeypatch.setattr(running.clock, "monotonic_seconds", lambda: now[0])
    monkeypatch.setattr(StreamRun, "_new_progress", new_progress)
    monkeypatch.setattr(running, "stall_watcher_of", lambda *_: SimpleNamespace(watch=nothing))
    made = run(monkeypatch, stopping=Looks(), being_written=being_written)
    assert made._over.wait(20)
    # 4 is asked for once, 5 again after a second, and nothing at work every time, also when the run has stopped.
    assert at_looks == [(0.25, None), (0.5, None), (0.75, 4), (1.5, 5), (2.75, 5), (3.0, None), (3.25, None)]
