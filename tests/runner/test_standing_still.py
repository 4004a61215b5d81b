"""A run of a stream says when it makes no progress, and names a task."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from penstock_spark.runs import stalls
from penstock_spark.runs.stalls import StallWatcher, stall_watcher_of
from penstock_spark.session.backend import TaskActivity
from penstock_spark.session.classic.task_activity import activity_of, longest_task

AT_WORK = TaskActivity("Processing new data", ((12, 0, 2, 1, 0, 8, 0, 0),))
FURTHER = TaskActivity("Processing new data", ((12, 0, 2, 1, 0, 9, 0, 0),))
ASKING = TaskActivity("Getting offsets from Topics", ())


def told(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    found: Sequence[tuple[int, TaskActivity | None]],
) -> list[tuple[int, str]]:
    """What a run says, and at which second, if each look finds a finished micro-batch and what Spark does."""
    now = SimpleNamespace(seconds=0)
    monkeypatch.setattr(stalls.clock, "monotonic_seconds", lambda: now.seconds)
    looks = iter(found)
    here: list[TaskActivity | None] = []
    watch = StallWatcher(lambda: here[-1], lambda doing: "task 1" if doing.stages else None)
    said: list[tuple[int, str]] = []
    with caplog.at_level(logging.WARNING):
        for batch, doing in looks:
            here.append(doing)
            now.seconds += 10
            watch.watch(batch)
            said += [(now.seconds, text) for text in caplog.messages[len(said) :]]
    return said


def test_a_stream_that_stands_still_says_so_more_and_more_seldom(monkeypatch, caplog):
    seconds, said = zip(*told(monkeypatch, caplog, [(3, AT_WORK)] * 200), strict=True)
    # It has been seen first at the second 10.
    assert seconds == (130, 370, 850, 1810)
    assert said[0].startswith(
        "the stream has made no progress for 120 s: task 1\n  hint: see what the Python worker"
    )
    assert "for 1800 s" in said[-1]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([(3, AT_WORK), (3, FURTHER)] * 50, id="rows go through"),
        pytest.param([(batch, AT_WORK) for batch in range(50) for _ in range(12)], id="micro-batches end"),
        pytest.param(([(3, AT_WORK)] * 12 + [(3, None)]) * 5, id="it rests between"),
        pytest.param([(3, None)] * 100, id="it rests"),
    ],
)
def test_a_stream_that_makes_progress_or_rests_says_nothing(monkeypatch, caplog, found):
    assert told(monkeypatch, caplog, found) == []


def test_a_driver_that_stands_still_says_what_spark_says(monkeypatch, caplog):
    [(_, said)] = told(monkeypatch, caplog, [(3, ASKING)] * 14)
    assert (
        "no task is running, and Spark says 'Getting offsets from Topics'\n  hint: see what Java's threads"
        in said
    )


def test_a_stream_that_goes_on_standing_still_says_so_once_an_hour(monkeypatch, caplog):
    seconds = [second for second, _ in told(monkeypatch, caplog, [(3, AT_WORK)] * 2_000)]
    assert [after - before for before, after in pairwise(seconds)][-3:] == [3_600] * 3


def test_micro_batches_that_all_take_long_are_not_all_told(monkeypatch, caplog):
    found = [(batch, AT_WORK) for batch in range(20) for _ in range(14)]
    assert len(told(monkeypatch, caplog, found)) == 1


def test_a_spark_that_does_not_answer_ends_no_run(monkeypatch, caplog):
    now = SimpleNamespace(seconds=0)
    monkeypatch.setattr(stalls.clock, "monotonic_seconds", lambda: now.seconds)
    watch = stall_watcher_of(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    now.seconds = 20
    watch.watch(0)
    assert caplog.messages == []


def option(value: Any) -> SimpleNamespace:
    return SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)


def methods(**values: Any) -> SimpleNamespace:
    return SimpleNamespace(**{name: (lambda value=value: value) for name, value in values.items()})


def test_the_task_is_named_that_has_been_at_work_longest_for_this_query(monkeypatch, caplog):
    rows = dict.fromkeys(("inputRecords", "shuffleReadRecords", "shuffleWriteRecords", "outputRecords"), 0)
    stages = {
        number: methods(
            stageId=number, attemptId=0, numTasks=2, numActiveTasks=2 - done, numCompleteTasks=done, **rows
        )
        for number, done in ((1, 0), (7, 1), (8, 2))
    }

    def task(index: int, status: str, began_millis: int) -> SimpleNamespace:
        time = methods(getTime=began_millis)
        return methods(index=index, status=status, launchTime=time, executorId="4", host="one.host")

    tasks = [task(0, "SUCCESS", 0), task(1, "RUNNING", 5_000), task(2, "RUNNING", 60_000)]
    jobs = {0: "another query", 1: None, 2: "mine"}
    store = SimpleNamespace(
        job=lambda number: methods(jobGroup=option(jobs[number])),
        lastStageAttempt=stages.__getitem__,
        taskList=lambda stage, attempt, most: SimpleNamespace(
            size=lambda: len(tasks), apply=tasks.__getitem__
        ),
    )
    job_stages = {0: [1], 1: [1], 2: [7, 8]}
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: [0, 1, 2],
        getJobInfo=lambda number: SimpleNamespace(stageIds=job_stages[number]),
    )
    context: Any = SimpleNamespace(
        _jsc=methods(sc=methods(statusStore=store)),
        _jvm=SimpleNamespace(
            java=SimpleNamespace(lang=SimpleNamespace(System=methods(currentTimeMillis=125_000)))
        ),
        statusTracker=lambda: tracker,
    )
    started = SimpleNamespace(status={"isTriggerActive": True, "message": "Processing"}, runId="mine")
    assert activity_of(started, context) == TaskActivity("Processing", ((7, 0, 2, 1, 0, 0, 0, 0),))
    assert longest_task(context, TaskActivity("Processing", ((7, 0, 2, 1),))) == (
        "the task 1 of Spark stage 7, of which 1 of 2 tasks are done, has run for 120 s in the executor 4 on one.host"
    )
    assert longest_task(context, TaskActivity("Processing", ())) is None
