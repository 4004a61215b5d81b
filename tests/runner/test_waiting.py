"""When a run on a cluster says that its tasks wait for a core, without Spark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from penstock.error import RunnerError
from penstock_spark.session.classic import waiting
from penstock_spark.session.classic.waiting import Waiting, waiting_in, warn_of_waiting, watch_for_waiting

MASTER = "spark://10.0.0.1:7077"
WAITS = Waiting(tasks=2, executors=0)


@pytest.fixture
def said_when(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[Sequence[Waiting | None]], list[tuple[int, str]]]:
    """Returns the messages, and after how many looks, if the looks find these things."""

    def said(found: Sequence[Waiting | None]) -> list[tuple[int, str]]:
        waits, at_looks = iter(found), []
        now = SimpleNamespace(seconds=100.0, looks=0)

        def is_over(seconds: float) -> bool:
            at_looks.extend([now.looks] * (len(caplog.messages) - len(at_looks)))
            now.seconds += seconds
            now.looks += 1
            return now.looks > len(found)

        monkeypatch.setattr(waiting.clock, "monotonic_seconds", lambda: now.seconds)
        with caplog.at_level(logging.WARNING):
            warn_of_waiting(lambda: next(waits), MASTER, is_over)
        return list(zip(at_looks, caplog.messages, strict=True))

    return said


def test_tasks_that_wait_for_long_are_told_more_and_more_seldom(said_when):
    looks, said = zip(*said_when([WAITS] * 40), strict=True)
    assert looks == (5, 9, 17, 33)
    assert said[0].startswith(f"2 tasks have waited 20 s for a core of {MASTER}, and no task is running: ")
    assert "the program has no executor\n  hint: " in said[0]
    assert "have waited 160 s" in said[3]


def test_a_short_wait_is_not_told(said_when):
    assert said_when([*[WAITS] * 4, None, *[WAITS] * 4, None]) == []


def test_the_end_of_a_wait_is_told_and_the_next_wait_begins_anew(said_when):
    looks, said = zip(*said_when([*[Waiting(1, 3)] * 6, None, None, *[WAITS] * 5]), strict=True)
    assert looks == (5, 7, 13)
    assert said[0].startswith("1 task has waited 20 s ")
    assert "executors (3) that do not take tasks" in said[0]
    assert said[1] == f"tasks have a core of {MASTER} again"


@pytest.mark.parametrize(
    ("known", "has", "hint"),
    [
        pytest.param(True, "no executor\n", "other programs use all cores", id="the master knows it"),
        pytest.param(
            None, "no executor, and its master does not answer\n", "start the master", id="no master"
        ),
    ],
)
def test_a_program_without_an_executor_is_told_what_its_master_knows(caplog, known, has, hint):
    looks = iter(range(100))
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(waiting.clock, "monotonic_seconds", lambda: 5.0 * next(looks))
        warn_of_waiting(lambda: WAITS, MASTER, lambda _: bool(caplog.messages), lambda: known)
    assert has in caplog.messages[0]
    assert hint in caplog.messages[0]


def test_a_run_whose_program_the_master_has_forgotten_ends_with_the_reason(monkeypatch):
    """Spark would let it wait forever, and never say that the master does not know it any more."""
    monkeypatch.setattr(waiting, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "_PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(waiting, "waiting_in", lambda context: WAITS)
    monkeypatch.setattr(waiting, "is_known_to_master", lambda context: False)
    cancelled = threading.Event()
    context = SimpleNamespace(master=MASTER, cancelAllJobs=cancelled.set)

    def run():
        with watch_for_waiting(context):
            assert cancelled.wait(30)
            raise ConnectionError("Job 3 cancelled as part of cancellation of all jobs")

    with pytest.raises(RunnerError, match="forgotten this program") as caught:
        run()
    assert "a stream continues where it was" in str(caught.value)


def test_a_session_that_ends_ends_the_looking(caplog):
    def look():
        raise ConnectionRefusedError

    warn_of_waiting(look, MASTER, lambda seconds: False)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param([], None, id="no job"),
        pytest.param([(4, 1, 0)], Waiting(3, 2), id="a stage without a task at work"),
        pytest.param([(4, 1, 0), (2, 0, 1)], None, id="another stage is at work"),
        pytest.param([(4, 4, 0)], None, id="a stage that is about to end"),
    ],
)
def test_tasks_wait_if_none_is_at_work_and_some_are_to_be_done(stages, expected):
    names = ("numTasks", "numCompletedTasks", "numActiveTasks")
    infos = [SimpleNamespace(**dict(zip(names, stage, strict=True))) for stage in stages]
    # Spark forgets stages.
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: range(len(infos) + 1), getStageInfo=[*infos, None].__getitem__
    )
    executors = SimpleNamespace(getExecutorInfos=lambda: ["driver", "0", "1"])
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: executors))
    context = SimpleNamespace(statusTracker=lambda: tracker, _jsc=java)
    assert waiting_in(context) == expected


@pytest.mark.parametrize(("master", "asked"), [("local[2]", False), (MASTER, True)])
def test_only_a_cluster_is_asked_and_only_within_the_block(monkeypatch, master, asked):
    began = []
    ended = []

    def watch(look, name, is_over, ask):
        began.append(name)
        ended.append(is_over(60))

    monkeypatch.setattr(waiting, "warn_of_waiting", watch)
    with watch_for_waiting(SimpleNamespace(master=master)):
        pass
    for thread in threading.enumerate():
        if thread.name == "penstock waiting":
            thread.join()
    assert began == [MASTER] * asked
    assert ended == [True] * asked
