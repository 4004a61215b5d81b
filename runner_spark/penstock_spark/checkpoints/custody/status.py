"""Reads from a checkpoint who holds it, whether that run lives, and how far it has come."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, replace
from itertools import chain

from penstock.error import RunnerError, refusal
from penstock.runners.runner import PipelineState
from penstock.utils.timestamp import Timestamp, format_time
from penstock_spark.checkpoints.custody.folder import Checkpoint, find_at, read_end
from penstock_spark.checkpoints.custody.lease import Timing, find_holder, is_held
from penstock_spark.checkpoints.custody.plans import numbers_of_plans
from penstock_spark.checkpoints.custody.requests import CANCEL, Answer, Request, send_request
from penstock_spark.checkpoints.custody.run_records import DIED, RunRecord, read_records
from penstock_spark.checkpoints.spark_logs import last_micro_batch
from penstock_spark.files.place import Place

_NO_PLAN = {
    "folder": "spark",
    "mode": "",
    "penstock": "",
    **{name: [] for name in ("sources", "levels", "sinks")},
}
"""Stands for the plan of a checkpoint in which no run has written one."""


class Life(enum.Enum):
    """The life of the run that holds a checkpoint."""

    RUNNING = "running"
    """It shows signs of life."""

    STOPPED = "stopped"
    """It has stopped in good order; another run may continue."""

    DEAD = "dead"
    """Its processes are gone, or it shows no sign of life; another run may continue."""

    ENDED = "ended"
    """All of its windows have fired, and no other run may continue."""


@dataclass(frozen=True)
class CheckpointStatus:
    """A checkpoint at one time.

    Attributes:
        location: Its folder.
        life: Whether its last run lives.
        holder: That run, with its process, its machine and the time when it began; empty if unknown.
        claim: The number of the run's claim.
        end: How and when it ended, if all of its windows have fired.
        is_draining: Whether a drain has begun, and has not come to its end.
        planned: The last micro-batch that was planned; -1 before the first.
        planned_at: When it was planned; empty before the first.
        finished: The last micro-batch that is finished; -1 before the first.
        mode: ``micro_batch`` or ``streaming``; empty, like all that comes after it, if no run has written a plan.
        penstock: The version that wrote its plan.
        spark: The version of Spark that wrote it.
        sources: The labels of the sources.
        groupings: The labels of the steps with state.
        sinks: The labels of the sinks.
        runs: Its last runs, the first one first.
    """

    location: str
    life: Life
    holder: str
    claim: int
    end: str
    is_draining: bool
    planned: int
    planned_at: str
    finished: int
    mode: str
    penstock: str
    spark: str
    sources: tuple[str, ...]
    groupings: tuple[str, ...]
    sinks: tuple[str, ...]
    runs: tuple[RunRecord, ...] = ()


def read_status(place: Place, timing: Timing = Timing()) -> CheckpointStatus:
    """Reads what a checkpoint says; watches the heartbeat of a run on another machine for some seconds.

    Raises:
        ValueError: The folder is not a checkpoint, or another version has written it.
    """
    found = find_holder(place)
    # Its first run may be about to write its plan, or have failed before that.
    is_begun = bool(found.number) and not numbers_of_plans(place)
    checkpoint = Checkpoint(place, _NO_PLAN, 0, is_new=True) if is_begun else find_at(place)
    plan = checkpoint.plan
    is_alive = bool(found.number) and not found.is_released and is_held(place, found.number, timing)
    # The run may have ended while its heartbeat was watched.
    end = read_end(place)
    logs = checkpoint.spark_place
    # In this order, a micro-batch that is planned and finished meanwhile does no harm.
    finished = last_micro_batch(logs.inside("commits"))
    planned = last_micro_batch(logs.inside("offsets"))
    if end:
        life = Life.ENDED
    elif is_alive:
        life = Life.RUNNING
    else:
        life = Life.DEAD if found.number and not find_holder(place).is_released else Life.STOPPED
    return CheckpointStatus(
        place.location,
        life,
        str(found.holder or ""),
        found.number,
        end,
        checkpoint.is_draining() and not end,
        planned,
        _read_time(logs, planned),
        finished,
        plan["mode"],
        plan["penstock"],
        plan.get("spark", ""),
        tuple(source["label"] for source in plan["sources"]),
        tuple(chain.from_iterable([*plan["levels"], plan.get("native", {})])),
        tuple(plan["sinks"]),
        _with_micro_batches(read_records(place, is_last_alive=life is Life.RUNNING), found.number, finished),
    )


def _with_micro_batches(records: tuple[RunRecord, ...], claim: int, finished: int) -> tuple[RunRecord, ...]:
    """Adds the micro-batches that the last run has finished since it noted what it does, or before it died."""
    if not records or records[-1].claim != claim or records[-1].state not in (PipelineState.RUNNING, DIED):
        return records
    *earlier, last = records
    before = max((each.last_batch for each in earlier if each.last_batch is not None), default=-1)
    if finished <= before:
        return records
    first = before + 1 if last.first_batch is None else last.first_batch
    return (*earlier, replace(last, first_batch=first, last_batch=finished))


def command_run(place: Place, request: Request, timeout_seconds: float) -> Answer:
    """Sends the run that holds a checkpoint a command, and returns its answer.

    Raises:
        ValueError: The folder is not a checkpoint, another version holds it, or all windows have fired.
        RunnerError: No run holds the checkpoint, or its run has not answered in time.
    """
    find_at(place)
    if end := read_end(place):
        what = f"the run of the checkpoint has ended: {end}"
        raise refusal(ValueError, what, where=f"in {place.location}", hint="there is nothing left to do")
    found = find_holder(place)
    is_gone = not found.number or found.is_released
    if is_gone or (found.holder is not None and found.holder.is_dead()):
        raise _make_nobody_error(
            place, request, str(found.holder or ""), "has stopped" if is_gone else "has died"
        )
    return send_request(place, found.number, request, timeout_seconds)


def _make_nobody_error(place: Place, request: Request, holder: str, how: str) -> RunnerError:
    what = "no run holds the checkpoint" + (f"; {holder} {how}" if holder else "")
    hint = "start its program, which continues from there, and send the command then"
    if request.command == CANCEL:
        hint = "there is nothing to cancel; start its program to continue"
    return RunnerError(what, where=f"in {place.location}", hint=hint)


def _read_time(logs: Place, number: int) -> str:
    """Returns when a micro-batch was planned; empty if Spark does not say it in a form that is known."""
    try:
        line = logs.read(f"offsets/{number}").decode().splitlines()[1]
        millis = int(json.loads(line)["batchTimestampMs"])
    except (LookupError, OSError, TypeError, ValueError):
        return ""
    return format_time(Timestamp.from_micros(millis * 1_000))
