"""The runs of a checkpoint: when each began and ended, how, and how far it came; a small file for each run.

The folder ``runs`` of a checkpoint has a file for each claim, such as ``000012.json``. A run writes only its own file:
at its start, now and then until its end, and then. So two runs never write the same one, and a run that dies
leaves what it wrote last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from penstock_spark.checkpoints.custody.lease import name_of
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import RUN

RUNS = "runs"
RUNS_MAX = 30
"""The number of runs that are kept: the last ones."""

DIED = "DIED"
"""The end of a run that has not noted any, though a later run has begun."""


@dataclass(frozen=True)
class RunRecord:
    """A run of a checkpoint.

    Attributes:
        claim: The number of its claim.
        run: Its name.
        began_micros: When it began, by its machine's clock.
        seen_micros: When it last wrote this.
        state: How it ended: a `penstock.runners.runner.PipelineState`, or `DIED`; ``RUNNING`` until then.
        penstock: The version of penstock.
        spark: The version of Spark.
        rows: The rows that its sources have emitted; None if unknown.
        first_batch: Its first finished micro-batch; None before it.
        last_batch: Its last finished micro-batch; None before the first.
        error: The type of the exception that ended it, and the step; empty without one.
        dropped: The elements that its steps have dropped because they came too late; None if unknown.
    """

    claim: int
    run: str
    began_micros: int
    seen_micros: int
    state: str
    penstock: str = ""
    spark: str = ""
    rows: int | None = None
    first_batch: int | None = None
    last_batch: int | None = None
    error: str = ""
    dropped: int | None = None


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("claim", "began_micros", "seen_micros"), (int,)),
    **dict.fromkeys(("run", "state", "penstock", "spark", "error"), (str,)),
    **dict.fromkeys(("rows", "first_batch", "last_batch", "dropped"), (int, type(None))),
}


def write_record(place: Place, record: RunRecord) -> None:
    """Writes the record of a run, over an earlier one of the same run."""
    content = {"format": RUN.number, **asdict(record)}
    place.inside(RUNS).replace(_file_of(record.claim), json.dumps(content, ensure_ascii=False).encode())


def begin_record(place: Place, record: RunRecord) -> tuple[RunRecord, ...]:
    """Writes the record of a run that begins; deletes all but the last ones, and returns those of earlier runs."""
    folder = place.inside(RUNS)
    folder.make()
    write_record(place, record)
    numbers = [number for name in folder.names() if (number := _number_of(name)) is not None]
    for number in sorted(numbers)[:-RUNS_MAX]:
        folder.delete(_file_of(number))
    return tuple(each for each in read_records(place) if each.claim < record.claim)


def read_records(place: Place, *, is_last_alive: bool = True) -> tuple[RunRecord, ...]:
    """Returns the runs of a checkpoint, in order; files that this version cannot read are left out.

    A run that has not noted its end has died if a later one has begun, or if it is the last one and not alive.
    """
    folder = place.inside(RUNS)
    found = [record for name in folder.names() if (record := _read(folder, name)) is not None]
    ordered = sorted(found, key=lambda record: record.claim)
    return tuple(
        replace(record, state=DIED)
        if record.state == "RUNNING" and not (is_last_alive and record is ordered[-1])
        else record
        for record in ordered
    )


def _file_of(claim: int) -> str:
    return name_of(claim, "json")


def _number_of(name: str) -> int | None:
    digits, _, kind = name.partition(".")
    return int(digits) if digits.isdecimal() and kind == "json" else None


def _read(folder: Place, name: str) -> RunRecord | None:
    if _number_of(name) is None:
        return None
    try:
        found: dict[str, Any] = json.loads(folder.read(name))
        if found.pop("format") != RUN.number:
            return None
        # An earlier version did not note the dropped elements.
        noted = {"dropped": None, **found}
        known = {each.name: noted[each.name] for each in fields(RunRecord)}
    except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError):
        return None
    # A view shows this, and a file may hold anything.
    is_whole = all(type(value) in _TYPES[field] for field, value in known.items())
    return RunRecord(**known) if is_whole else None
