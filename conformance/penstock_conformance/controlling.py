"""The commands for streams that run elsewhere: ``status``, ``drain``, ``cancel``, ``signal`` and ``update``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

from penstock.base.engine import make_spark_runner
from penstock.error import refusal
from penstock.options.pipeline_options import SparkOptions
from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_conformance.program_graphs import pipeline_of_program
from penstock_conformance.stored_state import format_table
from penstock_conformance.subcommands import Commands
from penstock_spark.checkpoints.custody.requests import CANCEL, DRAIN, SIGNAL, Request, describe_sender
from penstock_spark.checkpoints.custody.run_records import RunRecord
from penstock_spark.checkpoints.custody.status import CheckpointStatus, Life, command_run, read_status
from penstock_spark.files.disk_place import open_place
from penstock_spark.files.place import Place
from penstock_spark.live.formatting import escape_control_characters, format_count, format_lag, format_moment
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.snapshot_files import read_snapshot

REFUSED = 1
_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.5

_LIVES = {
    Life.RUNNING: "running",
    Life.STOPPED: "stopped",
    Life.DEAD: "dead: the process is gone, or shows no sign of life",
}

_CONTINUES = "its program continues from here"
_BEGINS = "no micro-batch has begun, so its program starts from the beginning"


def add_commands(commands: Commands) -> None:
    """Adds the commands to a parser's."""
    status = commands.add_parser(
        "status",
        help="show the state of a checkpoint's stream",
        description="Prints who holds a checkpoint, whether that run lives, how far it has come, and the last runs.",
        epilog="Example: penstock status /checkpoints/scores",
    )
    status.set_defaults(run=_status)
    status.add_argument("checkpoint", help="the folder of the checkpoint")
    status.add_argument("--json", action="store_true", help="print it as JSON")
    _add_command(commands, DRAIN, "let a stream read what has arrived, fire all windows, and end")
    _add_command(commands, CANCEL, "stop a stream at its current position; its program continues from there")
    signal = _add_command(commands, SIGNAL, "fire the windows of a stream that wait with AfterSignal")
    signal.add_argument("name", help="the name of the signal")
    update = commands.add_parser(
        "update",
        help="continue a stream with a changed program",
        description="Compares a changed program with the checkpoint of a stream, and says what changes. If it fits, "
        "starts the program with --checkpoint_location and --take_over: the run that holds the checkpoint ends, and "
        "the new one continues from its last commit. If it does not fit, nothing happens to the stream.",
        epilog="Example: penstock update /checkpoints/scores scores.py --arguments --mode=streaming",
    )
    update.set_defaults(run=_update)
    update.add_argument("checkpoint", help="the folder of the checkpoint")
    update.add_argument("program", type=Path, help="the file of the changed program, or job in SQL")
    update.add_argument("--check", action="store_true", help="only compare, and start nothing")
    update.add_argument(
        "--arguments",
        nargs=argparse.REMAINDER,
        default=[],
        help="the program's own arguments: all that comes after this",
    )


def _add_command(commands: Commands, name: str, what: str) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name,
        help=what,
        description=f"Tells the run that holds a checkpoint to {name}, from any machine that reaches the checkpoint, "
        "and prints its answer.",
        epilog=f"Example: penstock {name} /checkpoints/scores" + (" flush" if name == SIGNAL else ""),
    )
    made.set_defaults(run=_command, command=name, name="", wait=False)
    made.add_argument("checkpoint", help="the folder of the checkpoint")
    made.add_argument(
        "--timeout",
        type=float,
        default=_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="how long to wait for the answer; default: %(default)g",
    )
    if name != SIGNAL:
        made.add_argument("--wait", action="store_true", help="wait until the run has ended")
    return made


def _command(options: argparse.Namespace) -> int:
    if options.timeout < 0:
        what = f"--timeout is {options.timeout:g}"
        raise refusal(ValueError, what, where="", hint="use a number of seconds, 0 or more")
    place = open_place(options.checkpoint)
    answer = command_run(place, Request(options.command, options.name, describe_sender()), options.timeout)
    print(answer.text, file=sys.stdout if answer.is_obeyed else sys.stderr, flush=True)
    if not answer.is_obeyed:
        return REFUSED
    if options.wait:
        print(_describe_life(_wait_for_end(place)))
    return 0


def _wait_for_end(place: Place) -> CheckpointStatus:
    """Waits until the run that holds a checkpoint has ended."""
    while (found := read_status(place)).life is Life.RUNNING:
        clock.sleep(_POLL_SECONDS)
    return found


def _status(options: argparse.Namespace) -> int:
    found = read_status(open_place(options.checkpoint))
    if options.json:
        fields = {**dataclasses.asdict(found), "life": found.life.value}
        print(json.dumps(fields, ensure_ascii=False))
        return 0
    lines = [
        ("checkpoint", found.location),
        ("state", _describe_life(found)),
        ("run", found.holder or "unknown"),
        ("draining", "yes" if found.is_draining else ""),
        ("micro-batches", _progress(found)),
        ("mode", found.mode),
        ("written by", _versions(found)),
        ("sources", ", ".join(found.sources)),
        ("groupings", ", ".join(found.groupings)),
        ("sinks", ", ".join(found.sinks)),
        *_view(options.checkpoint),
    ]
    width = max(len(name) for name, _ in lines)
    print("\n".join(f"{name.ljust(width)}  {text}" for name, text in lines if text))
    if found.runs:
        now_micros = clock.micros()
        cells = [_cells_of_run(record, now_micros) for record in reversed(found.runs)]
        print("\n".join(["\nruns", *(f"  {line}" for line in format_table(_RUN_COLUMNS, cells))]))
    return 0


_RUN_COLUMNS = ("number", "began", "time", "end", "rows", "dropped", "micro-batches", "error")


def _cells_of_run(record: RunRecord, now_micros: int) -> dict[str, str]:
    """A run as the live page shows it; the numbers of runs are those of their claims."""
    is_begun = record.first_batch is not None
    is_running = record.state == PipelineState.RUNNING
    # The clock of its machine may be ahead of this one's.
    until_micros = max(record.seen_micros, now_micros) if is_running else record.seen_micros
    return {
        "number": str(record.claim),
        "began": format_moment(record.began_micros),
        "time": format_lag(until_micros - record.began_micros),
        "end": record.state.lower(),
        "rows": "unknown" if record.rows is None else format_count(record.rows),
        "dropped": "unknown" if record.dropped is None else format_count(record.dropped),
        "micro-batches": f"{record.first_batch} to {record.last_batch}" if is_begun else "none",
        "error": escape_control_characters(record.error),
    }


def _describe_life(found: CheckpointStatus) -> str:
    if found.life is Life.ENDED:
        return f"ended: {found.end}"
    last = found.runs[-1] if found.runs else None
    has_failed = last is not None and last.claim == found.claim and last.state == PipelineState.FAILED
    says = "stopped by an error" if found.life is Life.STOPPED and has_failed else _LIVES[found.life]
    if found.life is Life.RUNNING:
        return says
    return f"{says}; {_CONTINUES if found.planned >= 0 else _BEGINS}"


def _versions(found: CheckpointStatus) -> str:
    return " on ".join(
        f"{name} {version}"
        for name, version in (("penstock", found.penstock), ("Spark", found.spark))
        if version
    )


def _progress(found: CheckpointStatus) -> str:
    """Says how far a stream has come.

    >>> from penstock_spark.checkpoints.custody.status import Life
    >>> one = CheckpointStatus("c", Life.RUNNING, "", 1, "", False, 4, "then", 3, "streaming", "", "", (), (), ())
    >>> _progress(one), _progress(dataclasses.replace(one, planned=-1, finished=-1))
    ('4 finished, and one begun at then', 'none yet')
    >>> _progress(dataclasses.replace(one, life=Life.STOPPED))
    '4 finished; one that was begun at then was interrupted, and runs again'
    """
    if found.planned < 0:
        return "none yet"
    done = f"{found.finished + 1} finished"
    at = f" at {found.planned_at}" if found.planned_at else ""
    if found.planned == found.finished:
        return f"{done}, the last begun{at}"
    if found.life is Life.RUNNING:
        return f"{done}, and one begun{at}"
    return f"{done}; one that was begun{at} was interrupted, and runs again"


def _view(location: str) -> list[tuple[str, str]]:
    """Reads the last snapshot of a run, if it keeps one."""
    try:
        snapshot: RunSnapshot = read_snapshot(location)
    except ValueError:
        return [("", "")]
    lines = [(f"rows of {each.label}", format_count(each.rows)) for each in snapshot.sources]
    for each in snapshot.groupings:
        lag = f", {format_lag(each.event_lag_micros)} behind" if each.event_lag_micros is not None else ""
        lines.append((f"watermark of {each.label}", f"{format_moment(each.output_micros)}{lag}"))
    return [*lines, ("as of", format_moment(snapshot.at_micros))]


def _update(options: argparse.Namespace) -> int:
    added = [f"--checkpoint_location={options.checkpoint}", "--take_over"]
    arguments = [*options.arguments, *added]
    pipeline = pipeline_of_program(options.program, arguments)
    taken = pipeline.options.view_as(SparkOptions).checkpoint_location
    if taken != options.checkpoint:
        what = f"the program does not read its command line: its checkpoint_location is {taken!r}"
        hint = "make the pipeline with beam.Pipeline(options=PipelineOptions())"
        raise refusal(ValueError, what, where=f"in {options.program}", hint=hint)
    changes = make_spark_runner().check_update(pipeline, pipeline.options, options.checkpoint)
    for each in changes:
        print(each)
    print("the program fits the checkpoint" + ("" if changes else "; its state is unchanged"), flush=True)
    if not options.check:
        is_job = options.program.suffix == ".sql"
        command = ["-m", "penstock", "sql"] if is_job else []
        os.execv(sys.executable, [sys.executable, *command, str(options.program), *arguments])
    return 0
