"""Jobs that Spark has given up because a machine was lost."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.pvalue import AsIter
from tests.runner.plain_runner import Frame, collect, run_plain

GIVEN_UP = (
    "Job aborted due to stage failure: A shuffle map stage with indeterminate output was failed and retried. "
    "However, Spark cannot rollback the ResultStage 5 to re-process the input data, and has to fail this job."
)
SPENT = "Job aborted due to stage failure: Task 0 in stage 14.0 failed 4 times"


def failing(monkeypatch: pytest.MonkeyPatch, job: str, text: str, times: int) -> list[Any]:
    """Lets a job fail that often, and returns the frames that it was run on."""
    frames: list[Any] = []
    whole: Any = Frame.__dict__[job]

    def run(frame: Frame) -> Any:
        frames.append(frame)
        if len(frames) <= times:
            raise RuntimeError(text)
        return whole.fget(frame) if isinstance(whole, property) else whole(frame)

    monkeypatch.setattr(Frame, job, property(run) if isinstance(whole, property) else run)
    return frames


def run() -> list[Any]:
    """A side input is collected, rows with two readers are kept, and the last stage has no rows."""
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create(range(10)) | beam.Map(lambda number: number)
    sums = numbers | beam.Map(lambda number, others: number + sum(others), AsIter(numbers))
    _ = numbers | beam.Reshuffle() | "Unread" >> beam.Map(lambda number: number)
    found = collect(sums)
    run_plain(pipeline)
    return sorted(found)


@pytest.mark.parametrize("job", ["toArrow", "collect", "write"])
def test_a_job_that_spark_has_given_up_runs_once_more_on_other_shuffles(job, monkeypatch):
    frames = failing(monkeypatch, job, GIVEN_UP, 1)
    assert run() == [*range(45, 55)]
    # A frame that is kept is the same; it is computed again.
    assert (frames[0] is frames[1]) == (job == "write")


@pytest.mark.parametrize(("text", "runs"), [(GIVEN_UP, 4), (SPENT, 1)])
def test_a_job_that_fails_again_and_again_or_otherwise_fails_the_run(text, runs, monkeypatch):
    frames = failing(monkeypatch, "toArrow", text, 9)
    with pytest.raises(RuntimeError, match="Job aborted"):
        run()
    assert len(frames) == runs
