"""The plans in the folder of a checkpoint: each run writes its own, and the one with the highest number is the latest.

The number is the number of the run's claim. So if a run hangs, is taken for dead, and writes its plan after
its successor has written one, it overwrites nothing, and its plan is not the latest. A file system need not refuse
to replace a file: a local disk does not, and object stores only look first.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from penstock.error import refusal
from penstock_spark.checkpoints.contract.compare import Signature
from penstock_spark.checkpoints.spark_logs import last_micro_batch
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import PLAN

NOT_A_PLAN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors of reading, as a plan, a file that is not a plan."""

_NAME = re.compile(r"plan-([1-9]\d*)\.json")
_TYPES = {
    **dict.fromkeys(("penstock", "mode", "clock", "heartbeat", "id", "folder"), (str,)),
    **dict.fromkeys(("sources", "levels", "steps", "sinks", "dropped"), (list,)),
    **dict.fromkeys(("format", "shards", "parallelism", "since", "inputs"), (int,)),
    **dict.fromkeys(("planned", "before"), (int, type(None))),
}
"""The fields in the file of a plan, with their types."""

_PARTS = {"sources": dict, "levels": dict, "steps": str, "sinks": str, "dropped": str}
"""The types of the entries in the lists of a plan."""


@dataclass(frozen=True)
class KeptPlan:
    """A plan as the folder has it."""

    number: int
    content: Signature
    # The number of the plan that is in force until a micro-batch has been finished with this one; None if this one is
    # in force from the beginning.
    before: int | None


def name_of_plan(number: int) -> str:
    """Returns the name of a plan's file.

    >>> name_of_plan(7)
    'plan-7.json'
    """
    return f"plan-{number}.json"


def numbers_of_plans(place: Place) -> list[int]:
    return [int(found[1]) for name in place.names() if (found := _NAME.fullmatch(name))]


def read_latest_plans(place: Place) -> list[KeptPlan]:
    """Returns the latest plan and, if it is another one, the one in force: the last that has finished a micro-batch.

    So a user can undo an update that fails at once. A plan that a run has written after it was taken for dead may have
    a number between those two; it is never read.
    """
    numbers = numbers_of_plans(place)
    if not numbers:
        return []
    try:
        latest = _read(place, max(numbers))
        if latest.before is None or _has_finished(place, latest.content):
            return [latest]
        if latest.before not in numbers:
            raise make_plan_file_error(place, latest.before, "it is missing")
        return [latest, _read(place, latest.before)]
    except FileNotFoundError:
        if numbers_of_plans(place) == numbers:
            raise
        # A run has just begun, and has deleted the files that it does not need.
        return read_latest_plans(place)


def write_plan(place: Place, plan: KeptPlan) -> None:
    """Writes a plan with a number that no other has; if this is interrupted, the folder is as it was."""
    content = {**plan.content, "before": plan.before}
    place.write(name_of_plan(plan.number), json.dumps(content, indent=2, ensure_ascii=False).encode())


def forget_plans_before(place: Place, plan: KeptPlan) -> None:
    """Deletes the plans with lower numbers, except the one that is in force until then."""
    for number in numbers_of_plans(place):
        if number < plan.number and number != plan.before:
            place.delete(name_of_plan(number))


def make_plan_file_error(place: Place, number: int, why: str) -> ValueError:
    """Returns the refusal of a plan's file."""
    hint = "restore the file, or start again in another folder"
    what = f"{name_of_plan(number)} is not the plan of a checkpoint ({why})"
    return refusal(ValueError, what, where=f"in {place.location}", hint=hint)


def _has_finished(place: Place, plan: Signature) -> bool:
    """True if a plan has finished a micro-batch, or has planned one that the folder before does not know."""
    logs = place.inside(plan["folder"])
    if plan["planned"] is not None and last_micro_batch(logs.inside("offsets")) > plan["planned"]:
        return True
    return bool(plan["since"] <= last_micro_batch(logs.inside("commits")))


def _read(place: Place, number: int) -> KeptPlan:
    try:
        plan: Signature = json.loads(place.read(name_of_plan(number)))
        written, writer = plan.get("format"), plan.get("penstock")
        wrong = [key for key, kinds in _TYPES.items() if not _is_of(plan, key, kinds)]
    except NOT_A_PLAN as error:
        why = "it is not JSON" if isinstance(error, ValueError) else "it has an unexpected structure"
        raise make_plan_file_error(place, number, why) from None
    if type(written) is int:
        PLAN.check(written, f"in {place.location}", writer)
    if wrong:
        raise make_plan_file_error(place, number, ", ".join(wrong))
    return KeptPlan(number, plan, plan.pop("before"))


def _is_of(plan: Signature, key: str, kinds: tuple[type, ...]) -> bool:
    value = plan.get(key)
    parts = value if isinstance(value, list) else []
    return key in plan and type(value) in kinds and all(_is_part(key, part) for part in parts)


def _is_part(key: str, part: Any) -> bool:
    is_source = key == "sources" and isinstance(part, dict)
    names = (part.get("label"), part.get("kind")) if is_source else ()
    return isinstance(part, _PARTS[key]) and all(isinstance(name, str) for name in names)
