"""Commands from other processes to the run that holds a checkpoint, and its answers.

The folder ``holders`` of a checkpoint has, for each command to the run with the claim 12,

======================================  ================================================
``000012.command.<microseconds>-<id>``  the command
``000012.taken.<microseconds>-<id>``    the same, since the run has taken it
``000012.answer.<microseconds>-<id>``   what the run has answered
======================================  ================================================

The run lists this folder anyway, with each heartbeat. It takes a command by renaming its file, so the sender
knows whether it may still be withdrawn. A command is for one run: the next run deletes what has the number of an
earlier claim.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.error import RunnerError, refusal
from penstock.utils import clock
from penstock.utils.identifiers import identifier
from penstock_spark.checkpoints.custody.lease import COMMAND, HOLDERS, name_of
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import REQUEST

DRAIN, CANCEL, SIGNAL = COMMANDS = ("drain", "cancel", "signal")

_TAKEN, _ANSWER = "taken", "answer"
_DIGITS = 20
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Request:
    """A command to a run.

    Attributes:
        command: One of `COMMANDS`.
        argument: The name of a signal; empty for other commands.
        sender: Who sends it, for people.
    """

    command: str
    argument: str = ""
    sender: str = ""


@dataclass(frozen=True)
class Answer:
    """The answer of a run to a command.

    Attributes:
        is_obeyed: Whether the run executes the command.
        text: What it does now, as a clause; or why it does not, in three parts.
    """

    is_obeyed: bool
    text: str


def describe_sender() -> str:
    """Returns who this process is, for the log of the run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"user {os.getuid()}"
    return f"{user} on {socket.gethostname()}"


def send_request(place: Place, claim: int, request: Request, timeout_seconds: float) -> Answer:
    """Sends the run that has a claim a command, and returns its answer.

    Args:
        place: The checkpoint.
        claim: The number of the run's claim.
        request: The command.
        timeout_seconds: How long to wait for the answer.

    Raises:
        RunnerError: The run has not answered in that time.
    """
    folder = place.inside(HOLDERS)
    files = _Files(claim, f"{clock.micros():0{_DIGITS}}-{identifier()[:8]}")
    content = {"format": REQUEST.number, "command": request.command, "argument": request.argument}
    folder.write(files.command, json.dumps({**content, "sender": request.sender}).encode())
    until = clock.monotonic_seconds() + timeout_seconds
    while True:
        names = folder.names()
        if files.answer in names:
            answer = _read_answer(folder, files.answer)
            for each in (files.command, files.taken, files.answer):
                folder.delete(each)
            return answer
        if clock.monotonic_seconds() >= until:
            raise _make_timeout(folder, files, request, timeout_seconds)
        clock.sleep(_POLL_SECONDS)


def take_requests(place: Place, claim: int, names: Iterable[str]) -> Iterator[tuple[str, Request | Answer]]:
    """Takes the commands to the run with a claim, in the order in which they were sent.

    Yields the name of each with the command itself, or with the answer to a command that this version cannot read.

    Args:
        place: The checkpoint.
        claim: The number of the run's claim.
        names: The names of the files of its commands.
    """
    folder = place.inside(HOLDERS)
    for name in names:
        files = _Files(claim, name.removeprefix(name_of(claim, COMMAND)))
        try:
            folder.rename(files.command, files.taken)
        except OSError:
            continue  # It has been withdrawn.
        yield name, _read_request(folder, files.taken)


def answer_request(place: Place, claim: int, name: str, answer: Answer) -> None:
    """Answers the sender of a command."""
    folder, files = place.inside(HOLDERS), _Files(claim, name.removeprefix(name_of(claim, COMMAND)))
    content = {"format": REQUEST.number, "is_obeyed": answer.is_obeyed, "text": answer.text}
    folder.write(files.answer, json.dumps(content).encode())
    folder.delete(files.taken)


@dataclass(frozen=True)
class _Files:
    """The names of the files of a command.

    Attributes:
        claim: The number of the claim of the run that it is for.
        key: What distinguishes it from all others.
    """

    claim: int
    key: str

    @property
    def command(self) -> str:
        return name_of(self.claim, COMMAND) + self.key

    @property
    def taken(self) -> str:
        return name_of(self.claim, f"{_TAKEN}.{self.key}")

    @property
    def answer(self) -> str:
        return name_of(self.claim, f"{_ANSWER}.{self.key}")


def _read_request(folder: Place, file: str) -> Request | Answer:
    try:
        fields = json.loads(folder.read(file))
        written = fields.get("format")
    except (AttributeError, RecursionError, ValueError):
        return Answer(False, "the command cannot be read")
    try:
        REQUEST.check(written, f"in {folder.location}")
        request = Request(*(fields[each] for each in ("command", "argument", "sender")))
    except ValueError as error:
        return Answer(False, str(error))
    except KeyError as missing:
        return Answer(False, f"the command has no {missing}")
    if request.command not in COMMANDS:
        what = f"the command {request.command!r} does not exist"
        return Answer(False, f"{what}\n  hint: send one of {', '.join(COMMANDS)}")
    return request


def _read_answer(folder: Place, file: str) -> Answer:
    try:
        fields = json.loads(folder.read(file))
        return Answer(bool(fields["is_obeyed"]), str(fields["text"]))
    except (LookupError, RecursionError, TypeError, ValueError):
        what = "the answer of the run cannot be read"
        raise refusal(ValueError, what, where=f"in {folder.location}", hint="check its log") from None


def _make_timeout(folder: Place, files: _Files, request: Request, timeout_seconds: float) -> RunnerError:
    folder.delete(files.command)
    what = f"the run has not answered within {timeout_seconds:g} seconds"
    if files.taken in folder.names():
        text = f"{what}, but it has taken the command {request.command!r}, which may still take effect"
        hint = "check its state with `penstock status`, and its log"
    else:
        text = f"{what}, and the command {request.command!r} was withdrawn"
        hint = "wait longer with --timeout; if its program hangs, end the process: the next run continues"
    return RunnerError(text, where=f"in {folder.location}", hint=hint)
