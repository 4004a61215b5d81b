"""A running streaming query: a thread watches it, and ends it when its sources have ended."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import RunnerError, refusal
from penstock.machines.pane_counts import Tally
from penstock.machines.records import MAX_MICROS
from penstock.metrics.execution import ELEMENTS, ROWS, TALLIES, Snapshot, merge_snapshots, take_out
from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.checkpoints.custody.folder import Checkpoint
from penstock_spark.checkpoints.custody.requests import CANCEL, DRAIN, SIGNAL, Request
from penstock_spark.checkpoints.custody.run_records import RunRecord
from penstock_spark.live.checkpoint_size import CheckpointMeter
from penstock_spark.live.pace import AtWork
from penstock_spark.live.progress import render_last_line
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.stream_snapshots import (
    RunFacts,
    StreamFacts,
    errors_of,
    run_record,
    stream_snapshot,
    with_elements,
    with_progress,
    with_tallies,
)
from penstock_spark.live.views import View, Watch
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.query import Query
from penstock_spark.lowering.readings import OpenReading
from penstock_spark.process.progress import print_progress
from penstock_spark.reports.metrics import (
    Reports,
    Watermarks,
    find_ended_sources,
    find_rows,
    forget_reports,
    merge_reports,
    take_reports,
    take_snapshots,
    watermarks_of,
)
from penstock_spark.runs.draining import Backlog, is_away, say_cancelled_early, say_still_reading
from penstock_spark.runs.native_grouping import native_counts, native_reports, native_rows, native_writes
from penstock_spark.runs.outside_commands import OutsideCommands
from penstock_spark.runs.own_record import OwnRecord
from penstock_spark.runs.stalls import stall_watcher_of
from penstock_spark.session.backends import backend_of

_AT_WORK_SECONDS = 1.0
"""The seconds between two questions to Spark while it writes a micro-batch: until its end, there is no news."""

_WORD_SECONDS = 10.0
"""The seconds between two messages of a drain about the data that is left to read."""

_EXIT_SECONDS_MAX = 30.0
"""The seconds that a program waits at its end for its query to stop."""

_WAITING = "Waiting for data to arrive"
"""Spark's status of a query after it has asked all sources and found nothing new."""

_LOGGER = logging.getLogger(__name__)
_ENDS = {
    PipelineState.CANCELLING: PipelineState.CANCELLED,
    PipelineState.DRAINING: PipelineState.DRAINED,
}


@dataclass(eq=False)
class StreamRun:
    started: Any
    query: Query
    checkpoint: Checkpoint
    shards: int
    context: Context
    translate: Callable[[Exception], BaseException]  # Turns Spark's exception into the user's.
    close_sinks: Callable[[], None]  # Called at a good end, before the query is stopped.
    about: RunFacts
    views: Sequence[View] = ()
    stopping: threading.Event = field(default_factory=threading.Event)  # Set before the query is stopped.
    # Returns the micro-batch that is being written now, if any.
    being_written: Callable[[], int | None] = lambda: None
    signals: frozenset[str] = frozenset()  # The names of the signals that triggers wait for.
    available_now: bool = False  # Whether it ends when it has read what was there at its start.
    record: OwnRecord | None = None  # What it keeps of itself; None if its checkpoint goes with it.
    tells_end: bool = False  # Whether it prints a line when it has come to a good end.

    def __post_init__(self) -> None:
        self.failure: BaseException | None = None  # What made it fail.
        self.failure_trace: TracebackType | None = None  # Its lines, before anyone raises it.
        self._counting = threading.Lock()
        self._waiting = 0  # How many threads wait for the end, and get what made it fail.
        self._snapshot: Snapshot = {}
        self._seen = StreamFacts()
        self._ended_micros: int | None = None
        self._at_work: AtWork | None = None  # The micro-batch that was being written at the last look.
        self._reports: Reports = {}  # Of finished micro-batches: a report comes before its micro-batch is written.
        self._ended: set[str] = set()
        self._reported = (-1, "")  # The micro-batch and the time in the last report of Spark.
        self._next_batch = 0  # The micro-batch of the next report, if only one has ended by then.
        # True if a source could not be reached when the last micro-batch was planned.
        self._is_any_away = False
        self._over = threading.Event()
        # A drain that an earlier run began continues: its sources have already ended.
        self._has_paused = False  # Whether it ends with windows that the next run continues.
        self._drains = bool(self.shards) and not self.checkpoint.is_new and self.checkpoint.is_draining()
        self._backlog: Backlog | None = None
        self._next_word = self._begins_at = self._next_look = 0.0
        self._written: int | None = None  # The micro-batch that was being written at the last look.
        obey = {DRAIN: self._obey_drain, CANCEL: self._obey_cancel, SIGNAL: self._obey_signal}
        self._outside = OutsideCommands(self.checkpoint.place, self.checkpoint.lease, obey)
        # One of `penstock.runners.runner.PipelineState`.
        self.state = PipelineState.DRAINING if self._drains else PipelineState.RUNNING
        # If a program ended with a running query, Spark would call it while Python shuts down.
        atexit.register(self._end_with_program)
        place = self.checkpoint.place if self.checkpoint.lease is not None else None
        if self.record is not None:
            self._seen = replace(self._seen, runs=self.record.earlier)
        self._meter: CheckpointMeter | None = None
        if place is not None:
            self._meter = CheckpointMeter(place, self.checkpoint.spark_place.inside("state"))
        self._view = Watch(self._look_and_measure, self.views, self.context.run)
        threading.Thread(target=self._watch, name=f"penstock {self.context.run}", daemon=True).start()

    @property
    def _batch(self) -> int:
        """Returns the micro-batch of the last report of Spark; -1 before the first one."""
        return self._reported[0]

    def join(self, seconds: float | None) -> bool:
        # It does not join the thread: if a signal interrupts a join, Python takes the thread for ended.
        with self._counting:
            self._waiting += 1
        try:
            return self._over.wait(seconds)
        finally:
            with self._counting:
                self._waiting -= 1

    def cancel(self) -> None:
        """Stops the query where it is, and waits until it has stopped."""
        if not PipelineState.is_terminal(self.state):
            self.state = PipelineState.CANCELLING
            self.stopping.set()
        self._over.wait()

    def _end_with_program(self) -> None:
        self.stopping.set()
        self._over.wait(_EXIT_SECONDS_MAX)

    def drain(self) -> None:
        """Reads all data that has arrived, then ends all sources, so that all windows fire and the query ends."""
        if self.state == PipelineState.RUNNING:
            self._find_backlog()
            self.state = PipelineState.DRAINING

    def _find_backlog(self) -> None:
        """Begins to follow the data that has arrived by now; the thread that watches takes it from here."""
        self._next_word = clock.monotonic_seconds() + _WORD_SECONDS
        backlog = Backlog(
            self.query.readings,
            self.query.first_reading,
            self.checkpoint.spark_place.inside("sources"),
            asked_millis=clock.micros() // 1_000,
            is_any_away=self._is_any_away,
        )
        self._begins_at = clock.monotonic_seconds() + backlog.poll_seconds
        if not backlog.poll_seconds:
            backlog.begin(self._last_planned())
        self._backlog = backlog

    def _last_planned(self) -> int:
        """The number of the last micro-batch that may have been planned by now.

        An earlier run may have planned one that this run repeats.
        """
        finished = self._last_finished()
        return max(-1 if finished is None else finished, self.checkpoint.last_begun) + 1

    def _last_finished(self) -> int | None:
        """The number of the last finished micro-batch; None without one, or if Spark has died."""
        with contextlib.suppress(Exception):
            if (report := backend_of(self.context.spark).last_report(self.started)) is not None:
                return report[0]
        return None

    def signal(self, name: str) -> None:
        try:
            self.checkpoint.command("signal", name)
        except Exception as error:
            told = self.translate(error)
            raise told from told.__cause__

    def _obey_drain(self, _: Request) -> str:
        self.drain()
        return "the run drains: it reads the data that has arrived, fires all windows, and ends"

    def _obey_cancel(self, _: Request) -> str:
        self.state = PipelineState.CANCELLING
        self.stopping.set()
        return "the run stops at its current position; the next run continues from there"

    def _obey_signal(self, request: Request) -> str:
        name = request.argument
        if name not in self.signals:
            what = f"no trigger of the run waits for the signal {name!r}"
            raise refusal(ValueError, what, where="", hint=hint_at_name(name, self.signals))
        self.signal(name)
        return f"all windows that wait for the signal {name!r} fire"

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look(self) -> RunSnapshot:
        """The present state of the stream, from known facts; asks Spark nothing."""
        now_micros = self._ended_micros or clock.micros()
        seen = self._seen
        if self._meter is not None:
            seen = replace(seen, checkpoint=self._meter.last)
        return stream_snapshot(
            self.about,
            seen,
            self.state,
            self.watermarks(),
            self._snapshot,
            now_micros,
            self.failure,
            self._look_at_work(now_micros),
        )

    def _look_and_measure(self) -> RunSnapshot:
        if self._meter is not None:
            self._meter.measure_if_due()
        return self.look()

    def _look_at_work(self, now_micros: int) -> AtWork | None:
        """Returns the micro-batch that is being written, and since when it is seen; None if none is."""
        number, before = self.being_written(), self._at_work
        if number is None:
            self._at_work = None
        elif before is None or before.number != number:
            self._at_work = AtWork(number, now_micros)
        return self._at_work

    def _describe(self, state: str = PipelineState.RUNNING) -> RunRecord:
        """Returns the present record of this run."""
        errors = errors_of(self.failure, self.about.steps, self.about.places)
        return run_record(self.about, self._seen, self._snapshot, state, clock.micros(), errors)

    def watermarks(self) -> Watermarks:
        """The watermarks of the last finished micro-batch, by grouping."""
        return watermarks_of(self._reports)

    def _watch(self) -> None:
        try:
            with backend_of(self.context.spark).watch_for_waiting():
                self._follow()
            if not self.stopping.is_set():
                # The next micro-batch may have begun. No sink gets only a part of it.
                self.close_sinks()
        except Exception as error:
            lost = self._displacement()
            self.failure = self.translate(error) if lost is None else lost
        finally:
            try:
                # A request from now on comes too late.
                self._stop(self.state)
            except Exception as error:
                self.failure = self.failure or self.translate(error)
                self.state = PipelineState.FAILED
            finally:
                # Whatever went wrong: otherwise the program would keep this object, and wait for it at its end.
                atexit.unregister(self._end_with_program)
                self._ended_micros = clock.micros()
                if self.tells_end and self.state in (PipelineState.DONE, PipelineState.DRAINED):
                    with contextlib.suppress(Exception):
                        print_progress(render_last_line(self.look()))
                self.failure_trace = None if self.failure is None else self.failure.__traceback__
                self._view.end()
                self._over.set()

    def _displacement(self) -> BaseException | None:
        """The error that says that another run has taken the place of this one; Spark's own error does not say it."""
        with contextlib.suppress(Exception):
            self.checkpoint.check()
        return self.checkpoint.lost

    def _follow(self) -> None:
        """Returns when the query is over, or must be stopped."""
        if self._drains:
            # If all windows had fired, only this command starts a micro-batch, which reports that the query is over.
            self.checkpoint.command("drain")
        elif self.about.native_grouping is not None and not self.checkpoint.is_new:
            # Windows may have been due when an earlier run stopped, for which Spark starts no micro-batch.
            self.checkpoint.command("continue")
        if self.available_now and not self._drains:
            self._find_backlog()
        standing_still = stall_watcher_of(self.started, self.context.spark)
        look_seconds = backend_of(self.context.spark).look_seconds
        while not self.stopping.wait(look_seconds):
            if self.checkpoint.lost is not None:
                raise self.checkpoint.lost
            self._outside.look()
            if self.record is not None:
                self.record.keep(self._describe)
            if self._is_at_work():
                continue
            # A dead query looks like an idle one, so this check comes first.
            if not self.started.isActive:
                raise self._cause_of_death()
            progress = self._new_progress()
            if progress is not None and self._is_over(progress):
                return
            standing_still.watch(self._batch)
            is_resting = self._is_resting()
            if is_resting and self._ends_by_pausing():
                return
            if self._is_drained(progress, is_resting):
                # The next run continues with the windows that are open, unless they were to fire.
                self._has_paused = self.state != PipelineState.DRAINING
                return

    def _is_at_work(self) -> bool:
        """True if Spark still writes the micro-batch of the last check: a call to Java costs CPU time on both sides."""
        number, now = self.being_written(), clock.monotonic_seconds()
        if number is not None and number == self._written and now < self._next_look:
            return True
        self._written, self._next_look = number, now + _AT_WORK_SECONDS
        return False

    def _cause_of_death(self) -> Exception:
        """The error that ended a query that was not stopped through this object."""
        failure: Exception | None = self.started.exception()
        if failure is not None:
            return failure
        return RunnerError(
            "Spark's query.stop(), or the end of the session, stopped the stream before its end",
            hint="stop a run with result.cancel() or result.drain(); the next run continues from the last commit in "
            "the checkpoint",
        )

    def _new_progress(self) -> Mapping[str, Any] | None:
        """Spark's last report, if it is new since the last call.

        A query that has found nothing new for a while also reports that, with the number of its next micro-batch.
        """
        report = backend_of(self.context.spark).last_report(self.started)
        if report is None or report == self._reported:
            return None
        before, self._reported = self._reported, report
        progress: Mapping[str, Any] = self.started.lastProgress
        passed: list[Mapping[str, Any]] = []
        if self._batch > self._next_batch:
            # Several micro-batches have ended since the last look.
            passed = [
                earlier
                for earlier in self.started.recentProgress
                if before < (int(earlier["batchId"]), earlier["timestamp"]) < report
            ]
        for each in (*passed, progress):
            self.context.metrics.see(each)
        rows = find_rows(self.context.metrics, self.context.run)
        self._fold(self._batch)
        self._reports |= native_reports(self.about.native_grouping, progress)
        self._is_any_away = any(is_away(source["endOffset"]) for source in progress["sources"])
        for each in (*passed, progress):
            self._see(each, rows.get(int(each["batchId"]), {}))
        self._next_batch = self._batch + ("addBatch" in progress["durationMs"])
        return progress

    def _see(self, progress: Mapping[str, Any], rows: Mapping[str, int]) -> None:
        """Notes Spark's report for the view; a report from another version of Spark must not end the run.

        The workers have counted `rows`, by the label of their source.
        """
        try:
            counted = native_counts(self.about, progress)
            self._snapshot = merge_snapshots(self._snapshot, counted)
            known = {**native_rows(self.about, progress), **rows}
            self._seen = with_progress(self._seen, progress, self.about, known)
            if written := native_writes(self.about, progress):
                self._seen = with_elements(self._seen, written, clock.micros(), self.about)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            _LOGGER.debug("a report from Spark was not understood: %r", error)

    def _is_resting(self) -> bool:
        """True if Spark waits for new data; asks Spark only if the answer matters."""
        ends_by_pausing = not self._ended.issuperset(each.spec.origin for each in self.query.ending_by_pauses)
        if not (ends_by_pausing or self._backlog is not None):
            return False
        status = self.started.status
        is_at_work = status["isDataAvailable"] or status["isTriggerActive"]
        return not is_at_work and status["message"] == _WAITING

    def _ends_by_pausing(self) -> bool:
        """Ends the finite sources of an idle query; returns whether that is the end of the query.

        A query without groupings receives no commands; it is over if all of its sources are finite.
        """
        if self._is_any_away or self._last_finished() not in (None, self._batch):
            # Unknown data of a source is not read; or the last report, which may say so, is still to be seen.
            return False
        if self.state != PipelineState.DRAINING:
            # An earlier run may have read the end of a staged source, and died before it noted its own.
            for reading in self.query.ending_by_pauses:
                self._end(reading)
        all_end = self.query.ending_by_pauses == self.query.readings
        return not self.shards and self.state != PipelineState.DRAINING and all_end

    def _is_drained(self, progress: Mapping[str, Any] | None, is_resting: bool) -> bool:
        """In a drain, ends all sources once they have been read; returns whether that is the end of the query."""
        if self._backlog is None or self._drains:
            return False
        if not self._backlog.has_begun and clock.monotonic_seconds() >= self._begins_at:
            self._backlog.begin(self._last_planned())
        if progress is not None:
            self._backlog.see_progress(progress)
        self._backlog.see_status(is_resting)
        if self._backlog.labels():
            if clock.monotonic_seconds() > self._next_word:
                self._next_word = clock.monotonic_seconds() + _WORD_SECONDS
                is_drain = self.state == PipelineState.DRAINING
                _LOGGER.warning("%s", say_still_reading(is_drain, self._unread_places()))
            return False
        if self.state != PipelineState.DRAINING:
            return True
        self._drains = True
        if self.shards:
            self.checkpoint.command("drain")
        return not self.shards

    def _end(self, reading: OpenReading) -> None:
        """Reports to the groupings, once for each source, that it has ended."""
        origin = reading.spec.origin
        if origin not in self._ended:
            self._ended.add(origin)
            if reading.spec.readers or reading.has_windows:
                self.checkpoint.command("end", origin)

    def _stop(self, state: str) -> None:
        try:
            self.started.stop()
        except Exception as error:
            self.failure = self.failure or self.translate(error)
        with contextlib.suppress(Exception):
            # A micro-batch may have ended since the last look.
            self._new_progress()
        ending = state_at_end(state, self.failure)
        is_good = ending in (PipelineState.DONE, PipelineState.DRAINED)
        # A run that has come to its end has nothing to do with a micro-batch that was begun afterwards.
        self._fold(self._last_finished() if is_good else None)
        if (self.shards or self.about.has_groupings) and is_good and not self._has_paused:
            try:
                self.checkpoint.check()
                self.checkpoint.note_end(ending)
            except Exception as error:
                self.failure = self._displacement() or self.translate(error)
        forget_reports(self.context.metrics, self.context.run)
        self.context.tidy_up()
        ending = state_at_end(state, self.failure)
        if self.record is not None:
            self.record.write(partial(self._describe, ending))
        # After the release, another run may begin.
        self.checkpoint.release()
        self._tell_end(ending)
        self.state = ending

    def _tell_end(self, state: str) -> None:
        """Logs an end that the user did not ask for; a caller that waits receives the failure as an exception."""
        if self.failure is not None and not self._waiting:
            _LOGGER.error("the query of the run %s failed: %s", self.context.run, self.failure)
        elif self.failure is None and state == PipelineState.CANCELLED and self._backlog is not None:
            is_kept = self.checkpoint.lease is not None
            said = say_cancelled_early(not self.available_now, self._unread_places(), is_kept)
            if said is not None:
                _LOGGER.warning("%s", said)

    def _unread_places(self) -> list[str]:
        labels = [] if self._backlog is None else self._backlog.labels()
        return [self.about.places.get(label, f"at step {label!r}") for label in labels]

    def _fold(self, batch: int | None) -> None:
        metrics, run = self.context.metrics, self.context.run
        taken, tallies = take_out(take_snapshots(metrics, run, batch), TALLIES)
        taken, counted = take_out(taken, ELEMENTS)
        taken, _ = take_out(taken, ROWS)
        self._snapshot = merge_snapshots(self._snapshot, taken)
        self._reports = merge_reports(self._reports, take_reports(metrics, run, batch))
        self._note(tallies, counted)

    def _note(self, tallies: Mapping[str, Tally], counted: Mapping[str, int]) -> None:
        seen = with_tallies(self._seen, tallies, self.watermarks(), self.about)
        self._seen = with_elements(seen, counted, clock.micros(), self.about)

    def _is_over(self, progress: Mapping[str, Any]) -> bool:
        is_read = [self._is_read(number, progress) for number in range(len(self.query.readings))]
        for reading, done in zip(self.query.readings, is_read, strict=True):
            if reading.ends_when_read and done:
                self._end(reading)
        reports = self.watermarks()
        all_fired = len(reports.by_shard) == self.shards and reports.earliest_micros() >= MAX_MICROS
        if self.state == PipelineState.DRAINING:
            return self._drains and all_fired
        return all(is_read) and self.query.is_finite and self._batch >= self.query.batches - 1 and all_fired

    def _is_read(self, number: int, progress: Mapping[str, Any]) -> bool:
        """True if a source has been read to its end, or had nothing new."""
        origin = self.query.readings[number].spec.origin
        if origin in self._ended or origin in find_ended_sources(
            self.context.metrics, self.context.run, self._batch
        ):
            return True
        is_planned_before = self._batch <= self.checkpoint.last_begun
        source = progress["sources"][self.query.first_reading + number]
        return nothing_comes_after(self.query.readings[number], source, is_planned_before)


def nothing_comes_after(reading: OpenReading, source: Mapping[str, Any], is_planned_before: bool) -> bool:
    """True if a source has been read to its end, as far as a micro-batch shows that has read nothing of it.

    Args:
        reading: The source.
        source: What Spark reports of it.
        is_planned_before: Whether an earlier run has planned the micro-batch, and something may have arrived since.
    """
    start, end = source["startOffset"], source["endOffset"]
    if start is None or start != end or is_away(end):
        return False
    # Only its tasks know when a source is over that follows the clock: its next second may not have passed yet.
    return reading.is_staged or (reading.ends_when_read and not is_planned_before)


def state_at_end(state: str, failure: BaseException | None) -> str:
    """The last state of a run that was in another state, and perhaps failed.

    >>> [state_at_end(state, None) for state in ("RUNNING", "DRAINING", "CANCELLING")]
    ['DONE', 'DRAINED', 'CANCELLED']
    >>> state_at_end("DRAINING", ValueError())
    'FAILED'
    """
    return PipelineState.FAILED if failure is not None else _ENDS.get(state, PipelineState.DONE)
