"""Asks the status store of a SparkContext what the tasks of a micro-batch do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock_spark.session.backend import TaskActivity

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark import SparkContext
    from pyspark.sql.streaming.query import StreamingQuery


def activity_of(started: StreamingQuery, context: SparkContext) -> TaskActivity | None:
    """Returns what Spark does for a query; None while it rests."""
    status = started.status
    if not status["isTriggerActive"]:
        return None
    store, tracker, run = context._jsc.sc().statusStore(), context.statusTracker(), str(started.runId)
    stages = []
    for number in tracker.getActiveJobsIds():
        group, job = store.job(number).jobGroup(), tracker.getJobInfo(number)
        if job is not None and group.isDefined() and group.get() == run:
            stages += [_stage(store.lastStageAttempt(each)) for each in job.stageIds]
    return TaskActivity(status["message"], tuple(sorted(stage for stage in stages if stage)))


def _stage(stage: JavaObject) -> tuple[int, ...]:
    """A stage that is at work; empty if it waits or is over."""
    if not stage.numActiveTasks():
        return ()
    rows = (
        stage.inputRecords(),
        stage.shuffleReadRecords(),
        stage.shuffleWriteRecords(),
        stage.outputRecords(),
    )
    return (stage.stageId(), stage.attemptId(), stage.numTasks(), stage.numCompleteTasks(), *rows)


def longest_task(context: SparkContext, activity: TaskActivity) -> str | None:
    """Returns the words for the task that has been at work for the longest time; None without one."""
    store = context._jsc.sc().statusStore()
    at_work = []
    for number, attempt, tasks, done, *_ in activity.stages:
        found = store.taskList(number, attempt, tasks)
        for task in (found.apply(place) for place in range(found.size())):
            if task.status() == "RUNNING":
                at_work.append((task.launchTime().getTime(), number, tasks, done, task))
    if not at_work:
        return None
    began_millis, number, tasks, done, task = min(at_work, key=lambda each: each[:2])
    jvm: JVMView = context._jvm
    seconds = (jvm.java.lang.System.currentTimeMillis() - began_millis) / 1_000
    return (
        f"the task {task.index()} of Spark stage {number}, of which {done} of {tasks} tasks are done, has run for "
        f"{seconds:.0f} s in the executor {task.executorId()} on {task.host()}"
    )
