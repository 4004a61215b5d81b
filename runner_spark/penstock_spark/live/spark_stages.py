"""Asks Spark how far the jobs of a batch have come, through the status that Spark keeps anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.utils import clock
from penstock_spark.live.snapshot import Stages
from penstock_spark.session.backend import JobNow
from penstock_spark.session.backends import backend_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DONE_JOB = frozenset({"SUCCEEDED", "FAILED"})


@dataclass(frozen=True)
class StageNow:
    """The state of a Spark stage."""

    tasks: int
    done: int
    rows: int  # The rows that it has read from outside of Spark.
    written: int  # The rows that it has written to the outside.
    began_seconds: float  # When it was first seen at work.


@dataclass
class SparkStages:
    """The known stages of a run; asks Spark again only about those that were running.

    `jobs` returns the jobs of the run, and `stage` the tasks, done tasks, rows and written rows of a stage that has
    begun.
    """

    jobs: Callable[[], Iterable[JobNow]]
    stage: Callable[[int], tuple[int, int, int, int] | None]
    _known: dict[int, StageNow] = field(default_factory=dict)
    _over: dict[int, JobNow] = field(default_factory=dict)

    def look(self, now_at: tuple[int, int, str]) -> tuple[Stages, int, int]:
        """Returns the progress of the run, the rows that it has read, and the rows that it has written."""
        running = []
        for job in self.jobs():
            if job.number not in self._over:
                self._see(job)
                running.append(job)
                if _is_over(job):
                    self._over[job.number] = job
        part, parts, doing = now_at
        # At the end, all that were known are done.
        at_work = [job for job in running if not _is_over(job)] or self._over.values()
        stages = stages_of(doing, part, parts, at_work, self._known, clock.monotonic_seconds())
        rows = sum(stage.rows for stage in self._known.values())
        return stages, rows, sum(stage.written for stage in self._known.values())

    def _see(self, job: JobNow) -> None:
        for number in job.stages:
            before = self._known.get(number)
            if before is not None and before.done == before.tasks > 0:
                continue
            found = self.stage(number)
            if found is not None:
                began = before.began_seconds if before is not None else clock.monotonic_seconds()
                tasks, done, rows, written = found
                self._known[number] = StageNow(tasks, done, rows, written, began)


def stages_of(
    doing: str,
    part: int,
    parts: int,
    jobs: Iterable[JobNow],
    known: Mapping[int, StageNow],
    now_seconds: float,
) -> Stages:
    """Returns the progress of the jobs of a part; Spark skips stages whose result an earlier job has left.

    >>> half = StageNow(8, 4, 0, 0, began_seconds=10.0)
    >>> found = stages_of("Sum", 1, 1, [JobNow(0, "RUNNING", (0, 1))], {0: half}, 14.0)
    >>> found.done, found.known, found.tasks_done, found.tasks, found.seconds_left
    (0, 2, 4, 8, None)
    >>> stages_of("Sum", 1, 1, [JobNow(0, "RUNNING", (0,))], {0: half}, 14.0).seconds_left
    4.0
    """
    numbers = sorted(
        {number for job in jobs for number in job.stages if number in known or not _is_over(job)}
    )
    done = [number for number in numbers if number in known and _is_done(known[number])]
    working = [known[number] for number in numbers if number in known and not _is_done(known[number])]
    tasks, tasks_done = sum(each.tasks for each in working), sum(each.done for each in working)
    is_last = len(numbers) - len(done) == len(working)
    lefts = [_seconds_left(each, now_seconds) for each in working]
    known_lefts = [left for left in lefts if left is not None]
    return Stages(
        doing,
        part,
        parts,
        len(done),
        len(numbers),
        tasks_done,
        tasks,
        max(known_lefts) if is_last and known_lefts and len(known_lefts) == len(lefts) else None,
    )


def _is_over(job: JobNow) -> bool:
    return job.status in _DONE_JOB


def _is_done(stage: StageNow) -> bool:
    return stage.done == stage.tasks > 0


def _seconds_left(stage: StageNow, now_seconds: float) -> float | None:
    """Returns the seconds that the tasks that are not done take, if they take as long as the others."""
    if not stage.done:
        return None
    return (now_seconds - stage.began_seconds) / stage.done * (stage.tasks - stage.done)


def stages_in(spark: SparkSession, tag: str) -> SparkStages:
    """Returns the stages of the jobs of a session with a tag."""
    progress = backend_of(spark).progress(tag)
    return SparkStages(progress.jobs, progress.stage)
