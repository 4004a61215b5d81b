"""Commands from other processes: the run that holds a checkpoint obeys them once, and answers; nobody else does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.error import RunnerError, refusal
from penstock_spark.checkpoints.custody.folder import open_at
from penstock_spark.checkpoints.custody.holder import this_holder
from penstock_spark.checkpoints.custody.lease import HOLDERS, Lease, Timing, take_lease
from penstock_spark.checkpoints.custody.requests import (
    Answer,
    Request,
    answer_request,
    send_request,
    take_requests,
)
from penstock_spark.checkpoints.custody.status import Life, command_run, read_status
from penstock_spark.files.disk_place import DiskPlace
from penstock_spark.runs.outside_commands import OutsideCommands
from tests.runner.checkpoint_plans import Pipeline

QUICK = Timing(beat_seconds=0.02, silence_seconds=0.3)
DRAIN = Request("drain", "", "me")


def refuse(_: Request) -> str:
    raise refusal(ValueError, "no trigger waits", where="", hint="there are none")


@contextmanager
def obeying(place: DiskPlace, lease: Lease, obeyed: list[Request]) -> Iterator[None]:
    """A run that obeys."""

    def obey(request: Request) -> str:
        obeyed.append(request)
        return "the run drains"

    over = threading.Event()
    commands = OutsideCommands(place, lease, {"drain": obey, "signal": refuse})

    def look() -> None:
        while not over.wait(0.01):
            commands.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def left(place: DiskPlace) -> list[str]:
    """The files of commands and answers."""
    kinds = ("command", "taken", "answer")
    return [name for name in place.inside(HOLDERS).names() if name.split(".")[1] in kinds]


def test_a_run_obeys_once_and_answers(tmp_path: Path) -> None:
    place, obeyed = DiskPlace(tmp_path), list[Request]()
    lease = take_lease(place, this_holder("first"), timing=QUICK)
    with obeying(place, lease, obeyed):
        assert send_request(place, lease.number, DRAIN, 30) == Answer(True, "the run drains")
        refused = send_request(place, lease.number, Request("signal", "flush", "me"), 30)
        assert refused == Answer(False, "no trigger waits\n  hint: there are none")
    assert obeyed == [DRAIN]
    assert left(place) == []
    lease.release()


def test_a_command_is_for_one_run(tmp_path: Path) -> None:
    place, obeyed = DiskPlace(tmp_path), list[Request]()
    first = take_lease(place, this_holder("first"), timing=QUICK)
    with pytest.raises(
        RunnerError, match="not answered within 0 seconds, and the command 'drain' was withdrawn"
    ):
        send_request(place, first.number, DRAIN, 0)
    assert left(place) == []
    first.release()
    place.inside(HOLDERS).write("000001.command.1-a", b"{}")
    second = take_lease(place, this_holder("second"), timing=QUICK)
    assert left(place) == []
    with obeying(place, second, obeyed):
        assert send_request(place, second.number, DRAIN, 30).is_obeyed
    assert obeyed == [DRAIN]
    second.release()


def test_a_command_that_is_taken_and_not_answered_may_still_take_effect(tmp_path: Path) -> None:
    place, taken = DiskPlace(tmp_path), threading.Event()

    def take() -> None:
        while not taken.wait(0.005):
            names = [name for name in left(place) if ".command." in name]
            if list(take_requests(place, 1, names)):
                taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    with pytest.raises(RunnerError, match="it has taken the command 'drain', which may still take effect"):
        send_request(place, 1, DRAIN, 1)
    taken.set()
    thread.join()
    [name] = left(place)
    answer_request(place, 1, name.replace("taken", "command"), Answer(True, "late"))
    take_lease(place, this_holder("next"), timing=QUICK).release()
    assert [name for name in left(place) if name.startswith("000001")] == left(place)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "the command cannot be read"),
        (b"[]", "the command cannot be read"),
        (b'{"format": 1, "command": "drain"}', "the command has no 'argument'"),
        (b'{"format": 2, "command": "x"}', "a newer penstock wrote a command to a run from outside"),
        (b'{"format": 1, "command": "x", "argument": "", "sender": ""}', "the command 'x' does not exist"),
    ],
    ids=["not JSON", "a list", "a part", "newer", "unknown"],
)
def test_a_command_that_the_run_does_not_understand_is_refused(
    tmp_path: Path, content: bytes, says: str
) -> None:
    place = DiskPlace(tmp_path)
    place.inside(HOLDERS).write("000001.command.1-a", content)
    [(_, answer)] = take_requests(place, 1, ["000001.command.1-a"])
    assert isinstance(answer, Answer)
    assert not answer.is_obeyed
    assert answer.text.startswith(says)


def test_a_folder_that_cannot_be_written_does_not_end_a_run(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    lease = take_lease(place, this_holder("first"), timing=QUICK)
    lease.release()
    lease.commands = ("000001.command.1-a",)

    class Broken(DiskPlace):
        def inside(self, name: str) -> DiskPlace:
            raise OSError("the disk is full")

    OutsideCommands(Broken(tmp_path), lease, {}).look()


def test_the_life_of_a_run_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    with pytest.raises(ValueError, match="the folder is not a penstock checkpoint: it holds nothing"):
        read_status(place)
    open_at(place, Pipeline().signature())
    assert read_status(place, QUICK).life is Life.STOPPED
    with pytest.raises(RunnerError, match="no run holds the checkpoint\n"):
        command_run(place, DRAIN, 0)
    lease = take_lease(place, this_holder("first"), timing=QUICK)
    status = read_status(place, QUICK)
    assert (status.life, status.claim, status.planned) == (Life.RUNNING, lease.number, -1)
    assert status.holder.startswith("the run first (process ")
    with obeying(place, lease, []):
        assert command_run(place, DRAIN, 30).is_obeyed
    lease.release()
    assert read_status(place, QUICK).life is Life.STOPPED
    with pytest.raises(RunnerError, match=r"no run holds the checkpoint; the run first .* has stopped"):
        command_run(place, DRAIN, 0)
    holders = place.inside("holders")
    [over] = [name for name in holders.names() if name.endswith(".over")]
    holders.delete(over)
    [beat] = [name for name in holders.names() if ".beat." in name]
    holders.delete(beat)
    assert read_status(place, QUICK).life is Life.DEAD
    place.write("ended.json", json.dumps({"format": 1, "state": "DRAINED", "at": "noon"}).encode())
    status = read_status(place, QUICK)
    assert (status.life, status.end) == (Life.ENDED, "DRAINED at noon")
    with pytest.raises(ValueError, match="the run of the checkpoint has ended: DRAINED at noon"):
        command_run(place, DRAIN, 0)
