"""Builds the grouping, or other program, that the settings of a scenario describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.construction.ptransform import PTransform
from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.triggers import AccumulationMode, ClosingBehavior, OnTimeBehavior
from penstock.windows.windowing import Windowing
from penstock_conformance.malformed import Malformed
from penstock_conformance.moments import micros_of
from penstock_conformance.names import names
from penstock_conformance.scenario import Scenario
from penstock_conformance.walking import ProgramMachine

T = TypeVar("T")

_UNBOUNDED = Duration.from_micros(MAX_TIMESTAMP.micros)
_ACCUMULATION = {
    "discarding": AccumulationMode.DISCARDING,
    "accumulating": AccumulationMode.ACCUMULATING,
    "retracting": AccumulationMode.ACCUMULATING_AND_RETRACTING,
}
_TIMESTAMP = {
    "end of window": TimestampCombiner.OUTPUT_AT_EOW,
    "earliest": TimestampCombiner.OUTPUT_AT_EARLIEST,
    "latest": TimestampCombiner.OUTPUT_AT_LATEST,
    "earliest transformed": TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED,
}
_ON_TIME = {"always": OnTimeBehavior.FIRE_ALWAYS, "if non-empty": OnTimeBehavior.FIRE_IF_NON_EMPTY}
_CLOSING = {"always": ClosingBehavior.FIRE_ALWAYS, "if non-empty": ClosingBehavior.FIRE_IF_NON_EMPTY}

_OF_ALL = ("windows", "lateness", "input_retracts", "program")


@dataclass(frozen=True)
class Program:
    """The grouping of a scenario: the arguments of `penstock.machines.grouping.GroupingMachine`."""

    windowing: Windowing
    combine: CombineFn | None
    input_retracts: bool
    transform: PTransform[Any, Any] | None = None  # A program instead of a grouping, from pairs to pairs.

    def machine(self) -> Any:
        """Its machine: a `GroupingMachine`, or one with the same methods."""
        if self.transform is not None:
            return ProgramMachine(self.transform, self.windowing)
        return GroupingMachine(self.windowing, self.combine, self.input_retracts)


def program_of(scenario: Scenario) -> Program:
    """The grouping of a scenario; the model may refuse it with a ValueError or TypeError."""
    settings = scenario.settings
    try:
        _check_alone(settings)
        lateness = settings.get("lateness", "0")
        return Program(
            windowing=Windowing(
                _evaluated(settings["windows"]),
                _evaluated(settings["trigger"]) if "trigger" in settings else None,
                _choice(settings, "accumulation", _ACCUMULATION, None),
                _choice(settings, "timestamp", _TIMESTAMP, None),
                _UNBOUNDED if lateness == "unbounded" else Duration.from_micros(micros_of(lateness)),
                on_time_behavior=_choice(settings, "on_time", _ON_TIME, OnTimeBehavior.FIRE_ALWAYS),
                closing_behavior=_choice(settings, "closing", _CLOSING, ClosingBehavior.FIRE_IF_NON_EMPTY),
            ),
            combine=_evaluated(settings["combine"]) if "combine" in settings else None,
            input_retracts=_choice(settings, "input_retracts", {"yes": True, "no": False}, False),
            transform=_evaluated(settings["program"]) if "program" in settings else None,
        )
    except Malformed as error:
        raise error.at(scenario.place) from None


def _check_alone(settings: Mapping[str, str]) -> None:
    """Refuses settings of groupings beside a program."""
    others = [name for name in settings if name not in _OF_ALL]
    if "program" in settings and others:
        what = f"a program has no setting {others[0]}, which belongs to groupings"
        raise Malformed(what, hint=f"leave out {' and '.join(others)}, or the program")


def _choice(settings: Mapping[str, str], name: str, choices: Mapping[str, T], default: T) -> T:
    text = settings.get(name)
    if text is None:
        return default
    if text not in choices:
        raise Malformed(f"{name} is {text!r}", hint=f"write one of: {', '.join(choices)}")
    return choices[text]


def _evaluated(text: str) -> Any:
    try:
        return eval(text, names())
    except (NameError, SyntaxError) as error:
        hint = "write it in Python, with the names of `names.py`"
        raise Malformed(f"{text!r} cannot be understood: {error}", hint=hint) from None
