"""Lets one run at a time hold a checkpoint: claims have numbers, two runs cannot claim the same, and the highest holds.

The folder ``holders`` of a checkpoint has, for each claim,

==================  =================================================================
``000012.json``     who holds it
``000012.beat.7``   a heartbeat; the number rises every few seconds
``000012.over``     the holder has stopped, and touches nothing any more
``000012.command.`` and what follows: `penstock_spark.checkpoints.custody.requests`
==================  =================================================================

It never compares the clocks of two machines: a holder is dead if its processes have ended, or if its heartbeat does
not change while another run watches.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from penstock.error import RunnerError
from penstock.utils import clock
from penstock_spark.checkpoints.custody.holder import Holder
from penstock_spark.checkpoints.custody.plans import numbers_of_plans
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import CLAIM

HOLDERS = "holders"
COMMAND = "command."
"""The beginning of the kind of a file with a command for the holder."""

_DIGITS = 6
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timing:
    beat_seconds: float = 2.0  # The time between two heartbeats.
    # The time without a heartbeat after which another run takes the holder for dead.
    silence_seconds: float = 10.0


class CheckpointInUse(RunnerError):
    """Another run holds the checkpoint."""


class FoundHolder(NamedTuple):
    """The latest claim to a checkpoint."""

    number: int  # 0 if no run has claimed it.
    holder: Holder | None  # None if that is not known.
    is_released: bool  # Whether its run has stopped in good order.


class Lease:
    """This run's claim to a checkpoint."""

    def __init__(self, place: Place, number: int, timing: Timing) -> None:
        self._place = place.inside(HOLDERS)
        self._location = place.location
        self.number = number
        self._timing = timing
        self._beats = 0
        # The names of the files with commands for this run, as they were at the last look.
        self.commands: tuple[str, ...] = ()
        self._loss: Callable[[], CheckpointInUse] | None = None
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="penstock lease", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> CheckpointInUse | None:
        """Why this run no longer holds the checkpoint, if that is known; None while it does.

        Each call makes an error of its own: several threads raise it, and each would add its stack to a shared one.
        """
        return None if self._loss is None else self._loss()

    def check(self) -> None:
        """Raises CheckpointInUse if this run no longer holds the checkpoint; called before each commit."""
        names = self._place.names()
        self.commands = tuple(each for each in names if each.startswith(name_of(self.number, COMMAND)))
        latest = max(_claims(names), default=0)
        if latest != self.number and self._loss is None:
            holder = _holder(self._place, names, latest)
            self._loss = (
                partial(_make_displaced_error, self._location, holder)
                if latest
                else partial(_make_deleted_error, self._location)
            )
        if self._loss is not None:
            raise self._loss()

    def release(self) -> None:
        """Says that the run has stopped, so that a waiting run may start."""
        if self._released.is_set():
            return
        self._released.set()
        self._thread.join()
        try:
            self._place.write(name_of(self.number, "over"), b"")
        except Exception:
            # The next run finds that the process has ended, or that the heartbeat has stopped.
            _LOGGER.debug("%s: cannot release the claim %d", self._location, self.number, exc_info=True)

    def _keep(self) -> None:
        while not self._released.wait(self._timing.beat_seconds):
            try:
                self._beat()
                self.check()
            except CheckpointInUse:
                # Heartbeats continue until the run has stopped: the run that takes over waits for that.
                continue
            except Exception:
                _LOGGER.debug("%s: cannot write a heartbeat", self._location, exc_info=True)

    def _beat(self) -> None:
        self._place.write(name_of(self.number, f"beat.{self._beats + 1}"), b"")
        self._place.delete(name_of(self.number, f"beat.{self._beats}"))
        self._beats += 1


def take_lease(place: Place, me: Holder, take_over: bool = False, timing: Timing = Timing()) -> Lease:
    """Claims a checkpoint; with `take_over`, it waits until a run that holds it has stopped."""
    # Plans have the numbers of claims, and the claims may have been deleted.
    planned = numbers_of_plans(place)
    holders = place.inside(HOLDERS)
    names = holders.names()
    earlier = max(_claims(names), default=0)
    _check_format(place, names, earlier)
    if not take_over and is_held(place, earlier, timing):
        raise _make_refusal(place.location, _holder(holders, names, earlier))
    number = max([earlier, *planned]) + 1
    holders.make()
    if not holders.claim(name_of(number, "json"), json.dumps(me.as_json()).encode()):
        raise _make_refusal(place.location, _holder(holders, holders.names(), number))
    lease = Lease(place, number, timing)
    try:
        if take_over and earlier:
            _wait_until(lambda: not is_held(place, earlier, timing), place.location)
            lease.check()
        for name in holders.names():
            if (own := _number(name)) is not None and own < number:
                holders.delete(name)
    except BaseException:
        lease.release()
        raise
    return lease


def find_holder(place: Place) -> FoundHolder:
    """Reads who holds a checkpoint, or held it last.

    Raises:
        ValueError: A run of another version holds it.
    """
    holders = place.inside(HOLDERS)
    names = holders.names()
    number = max(_claims(names), default=0)
    _check_format(place, names, number)
    return FoundHolder(number, _holder(holders, names, number), name_of(number, "over") in names)


def _wait_until(is_free: Callable[[], bool], location: str) -> None:
    if is_free():
        return
    _LOGGER.warning("%s: waiting until the run that holds it has stopped", location)
    while not is_free():
        clock.sleep(0.05)


def is_held(place: Place, number: int, timing: Timing) -> bool:
    """True if the run that made a claim may still be running; watches its heartbeat if necessary."""
    holders = place.inside(HOLDERS)
    before = holders.names()
    if not number or name_of(number, "over") in before:
        return False
    holder = _holder(holders, before, number)
    if holder is not None and holder.is_dead():
        return False
    until = clock.monotonic_seconds() + timing.silence_seconds
    signs = _signs(before, number)
    while clock.monotonic_seconds() < until:
        clock.sleep(timing.beat_seconds / 10)
        names = holders.names()
        if name_of(number, "over") in names or (holder is not None and holder.is_dead()):
            return False
        if _signs(names, number) != signs:
            return True
    who = holder or "an unknown run"
    _LOGGER.warning("%s: %s has no heartbeat, and counts as dead", place.location, who)
    return False


def name_of(number: int, kind: str) -> str:
    """Returns the name of a file of a claim, in the folder of all claims.

    >>> name_of(12, "over")
    '000012.over'
    """
    return f"{number:0{_DIGITS}d}.{kind}"


def _number(name: str) -> int | None:
    digits = name.partition(".")[0]
    return int(digits) if digits.isdecimal() else None


def _claims(names: list[str]) -> list[int]:
    return [int(name.partition(".")[0]) for name in names if _number(name) and name.endswith(".json")]


def _signs(names: list[str], number: int) -> list[str]:
    return [name for name in names if name.startswith(name_of(number, "beat."))]


def _holder(holders: Place, names: list[str], number: int) -> Holder | None:
    """The run that made a claim; None if the file cannot be read, for example while it is being written."""
    name = name_of(number, "json")
    if name not in names:
        return None
    try:
        return Holder.from_json(json.loads(holders.read(name)))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _check_format(place: Place, names: list[str], number: int) -> None:
    """Refuses a checkpoint that a run of another version holds or has left: it may show its life in another way."""
    name = name_of(number, "json")
    if name in names and name_of(number, "over") not in names:
        try:
            written = json.loads(place.inside(HOLDERS).read(name))["format"]
        except (KeyError, RecursionError, TypeError, ValueError):
            return  # It is just being written, or damaged.
        if type(written) is int:
            CLAIM.check(written, f"in {place.location}")


def _make_refusal(location: str, holder: Holder | None) -> CheckpointInUse:
    return CheckpointInUse(
        f"the checkpoint {location} is held by {holder or 'another run'}",
        hint="wait for that run, cancel or drain it, or pass --take_over to end it and continue where it stopped",
    )


def _make_displaced_error(location: str, holder: Holder | None) -> CheckpointInUse:
    return CheckpointInUse(
        f"this run was displaced: the checkpoint {location} is now held by {holder or 'another run'}",
        hint="the other run continues from the last commit of this one; `penstock status` shows whether it runs",
    )


def _make_deleted_error(location: str) -> CheckpointInUse:
    return CheckpointInUse(
        f"the checkpoint {location} was deleted while this run held it",
        hint="cancel a run before you delete its checkpoint; its sinks still have what it wrote",
    )
