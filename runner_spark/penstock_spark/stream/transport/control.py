"""Rows that no Python task has made: heartbeats, and commands from the driver.

Spark writes them itself, as text, so that a micro-batch in which nothing else happens needs no task of ours before
level 1: ``heartbeat <clock>`` and ``command <clock> <json>``, with the clock in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from penstock.error import refusal
from penstock.machines.records import MAX_MICROS
from penstock.machines.splittable import DRAIN
from penstock_spark.process.written_formats import COMMAND as COMMAND_FORMAT
from penstock_spark.source_watermarks import ENDED
from penstock_spark.stream.program import LevelProgram
from penstock_spark.worker.batch import loads
from penstock_spark.worker.messages import LogicalTime, Message, TaskCounts, WatermarkUpdate

HEARTBEAT, COMMAND = "heartbeat ", "command "
COMMANDS = ("signal", "end", "drain")
_DRIVER = (-1, 0)


class Command(NamedTuple):
    """A command of the driver to a running query."""

    clock_micros: int  # The time of the micro-batch.
    name: str  # ``signal``, ``end`` (of a source) or ``drain`` (the end of all sources).
    argument: str = ""  # The signal's name, or the source's origin.

    @property
    def ends_input(self) -> bool:
        """True if some awaited input will not come."""
        return self.name != "signal"


def decode_row(payload: bytes) -> Message | TaskCounts | Command | int:
    """Decodes a row for a shard: a message, the counts of a task, a command, or the clock of a heartbeat."""
    if payload[:1] == b"\x80":
        message: Message | TaskCounts = loads(payload)
        return message
    text = payload.decode("utf-8", "replace")
    try:
        if text.startswith(HEARTBEAT):
            return int(text.removeprefix(HEARTBEAT))
        clock, _, command = text.removeprefix(COMMAND).partition(" ")
        fields = json.loads(command)
        name, argument = fields["command"], fields.get("name") or ""
        if name not in COMMANDS or not isinstance(argument, str):
            raise ValueError("it is not a command")
        moment, number = int(clock), fields.get("format")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        what = "a file in the folder control of the checkpoint is not a command"
        hint = (
            "leave that folder to penstock; start again with a checkpoint that has not been changed by hand"
        )
        raise refusal(ValueError, what, hint=hint) from None
    COMMAND_FORMAT.check(number)
    return Command(moment, name, argument)


def heartbeat(clock_micros: int) -> Message:
    logical_time = LogicalTime(clock_micros, clock_micros)
    return Message(_DRIVER, timeline=[logical_time], ends={logical_time})


def make_commanded(commands: Iterable[Command], program: LevelProgram, logical_time: LogicalTime) -> Message:
    message = Message(_DRIVER, timeline=[logical_time])
    for command in commands:
        match command.name:
            case "signal":
                message.signals.append((logical_time, command.argument))
            case "end":
                message.summaries.append((logical_time, command.argument, ENDED))
            case "drain":
                message.signals.append((logical_time, DRAIN))
                message.summaries += [(logical_time, origin, ENDED) for origin in program.estimated]
                message.watermark_updates += [
                    WatermarkUpdate(logical_time, origin, MAX_MICROS) for origin in program.played
                ]
    return message
