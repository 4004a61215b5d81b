"""Rows that no Python task has made: heartbeats, and commands from the driver.

Spark writes them itself, as text, so that a micro-batch in which nothing else happens needs no task of ours before
level 1: ``beat <clock>`` and ``command <clock> <json>``, with the clock in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from penstock.machines.records import MAX_MICROS
from penstock_spark.operators.batch import loads
from penstock_spark.shards.packets import Mark, Moment, Packet
from penstock_spark.shards.program import LevelProgram
from penstock_spark.source_watermarks import Summary

BEAT, COMMAND = "beat ", "command "
_DRIVER = (-1, 0)


class Command(NamedTuple):
    """Something that the driver asks for while a query runs.

    Attributes:
        clock_micros: The moment of the micro-batch.
        name: ``signal``, ``end`` (of a source) or ``drain`` (the end of all sources).
        argument: The signal's name, or the source's origin.
    """

    clock_micros: int
    name: str
    argument: str = ""

    @property
    def ends_input(self) -> bool:
        """Whether something that was still awaited will not come."""
        return self.name != "signal"


def decoded(payload: bytes) -> Packet | Command | int:
    """A row for a shard: a packet, a command, or the clock of a heartbeat."""
    if payload[:1] == b"\x80":
        packet: Packet = loads(payload)
        return packet
    text = payload.decode("utf-8")
    if text.startswith(BEAT):
        return int(text.removeprefix(BEAT))
    clock, _, command = text.removeprefix(COMMAND).partition(" ")
    fields = json.loads(command)
    return Command(int(clock), fields["command"], fields.get("name") or "")


def beat(clock_micros: int) -> Packet:
    """The packet of a heartbeat."""
    moment = Moment(clock_micros, clock_micros)
    return Packet(_DRIVER, timeline=[moment], ends={moment})


def commanded(commands: Iterable[Command], program: LevelProgram, moment: Moment) -> Packet:
    """The packet of commands that take effect at a moment."""
    packet = Packet(_DRIVER, timeline=[moment])
    for command in commands:
        match command.name:
            case "signal":
                packet.signals.append((moment, command.argument))
            case "end":
                packet.summaries.append((moment, command.argument, Summary(ended=True)))
            case "drain":
                packet.summaries += [(moment, origin, Summary(ended=True)) for origin in program.estimated]
                packet.marks += [Mark(moment, origin, 0, MAX_MICROS) for origin in program.played]
    return packet
