"""Programs made at random: a windowing, and a script of elements, watermark steps and clock steps to play to it."""

from __future__ import annotations

import importlib
import random
from dataclasses import dataclass
from typing import Any

from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark
from penstock.utils.timestamp import MAX_TIMESTAMP
from tests.beam.beam_panes import in_seconds

SECOND = 1_000_000
END_OF_TIME = AdvanceWatermark(MAX_TIMESTAMP.micros)

Step = AddElement | AdvanceWatermark | AdvanceClock


@dataclass(frozen=True)
class Make:
    """A call of a name that both packages have: ``Make("FixedWindows", 10, 3)``."""

    name: str
    arguments: tuple[Any, ...]

    def __init__(self, name: str, *arguments: Any) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "arguments", arguments)

    def build(self, module: Any) -> Any:
        built = [part.build(module) if isinstance(part, Make) else part for part in self.arguments]
        return getattr(module, self.name)(*built)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Program:
    """One windowing and one script, in words that both packages understand.

    Values are powers of two, so that a sum tells which elements are in it.

    Attributes:
        windows: Such as ``Make("FixedWindows", 10)``.
        trigger: Such as ``Make("AfterCount", 2)``.
        mode: Name of an `AccumulationMode`.
        lateness: In seconds.
        timestamps: Name of a `TimestampCombiner`.
        summed: Whether values are summed, not listed.
        script: What happens. The end of time comes after it.
    """

    windows: Make
    trigger: Make
    mode: str
    lateness: int
    timestamps: str
    summed: bool
    script: tuple[Step, ...]

    def windowing(self, package: str) -> dict[str, Any]:
        """The arguments of a package's ``WindowInto``."""
        window = importlib.import_module(f"{package}.transforms.window")
        trigger = importlib.import_module(f"{package}.transforms.trigger")
        return {
            "windowfn": self.windows.build(window),
            "trigger": self.trigger.build(trigger),
            "accumulation_mode": getattr(trigger.AccumulationMode, self.mode),
            "timestamp_combiner": getattr(window.TimestampCombiner, self.timestamps),
            "allowed_lateness": self.lateness,
        }

    def __str__(self) -> str:
        words = [
            str(self.windows),
            str(self.trigger),
            self.mode,
            f"lateness {self.lateness}",
            self.timestamps,
        ]
        return "\n".join(
            [", ".join(words), *(f"  {number}: {said(step)}" for number, step in enumerate(self.script))]
        )


def said(step: Step) -> str:
    """A step in a few words, in seconds."""
    match step:
        case AddElement():
            return f"{step.value} at {in_seconds(step.timestamp_micros)} for {step.key}"
        case AdvanceWatermark():
            return f"watermark {in_seconds(step.watermark_micros)}"
        case AdvanceClock():
            return f"clock {in_seconds(step.clock_micros)}"


def programs(seed: int, count: int) -> list[Program]:
    """Some programs that share a script: that is what makes them cheap on Beam."""
    dice = random.Random(seed)
    script = _script(dice)
    return [_program(dice, script) for _ in range(count)]


def _program(dice: random.Random, script: tuple[Step, ...]) -> Program:
    windows, trigger = _windows(dice), _trigger(dice, 3)
    # Beam's runner does not know how to run a sum where everything is at its default.
    can_sum = (windows.name, trigger.name) != ("GlobalWindows", "DefaultTrigger")
    return Program(
        windows=windows,
        trigger=trigger,
        mode=dice.choice(["DISCARDING", "ACCUMULATING"]),
        lateness=dice.choice([0, 0, 1, 5, 20, 1000]),
        timestamps=dice.choice(["OUTPUT_AT_EOW", "OUTPUT_AT_EARLIEST", "OUTPUT_AT_LATEST"]),
        summed=dice.random() < 0.5 and can_sum,
        script=script,
    )


def _windows(dice: random.Random) -> Make:
    match dice.randrange(8):
        case 0:
            return Make("GlobalWindows")
        case 1 | 2 | 3:
            size = dice.choice([5, 10, 20])
            return Make("FixedWindows", size, dice.choice([0, 0, 3]))
        case 4:
            return Make("SlidingWindows", 10, dice.choice([4, 5, 10]), dice.choice([0, 2]))
        case _:
            return Make("Sessions", dice.choice([2, 4, 10]))


def _trigger(dice: random.Random, depth: int) -> Make:
    """A trigger, mostly a small one."""
    if depth == 1 or dice.random() < 0.2:
        return _simple_trigger(dice)
    match dice.randrange(7):
        case 0 | 1:
            return Make("Repeatedly", _trigger(dice, depth - 1))
        case 2:
            return Make("AfterWatermark", _maybe(dice, depth), _maybe(dice, depth))
        case 3:
            return Make("OrFinally", _trigger(dice, depth - 1), _trigger(dice, depth - 1))
        case kind:
            name = {4: "AfterAny", 5: "AfterAll", 6: "AfterEach"}[kind]
            return Make(name, *(_trigger(dice, depth - 1) for _ in range(dice.choice([2, 2, 3]))))


def _maybe(dice: random.Random, depth: int) -> Make | None:
    return _trigger(dice, depth - 1) if dice.random() < 0.6 else None


def _simple_trigger(dice: random.Random) -> Make:
    match dice.randrange(20):
        case 0 | 1:
            return Make("DefaultTrigger")
        case 2 | 3:
            return Make("Always")
        case 4:
            return Make("_Never")
        case 5 | 6 | 7 | 8 | 9:
            return Make("AfterWatermark")
        case 10 | 11 | 12 | 13 | 14 | 15:
            return Make("AfterCount", dice.randint(1, 3))
        case _:
            return Make("AfterProcessingTime", dice.choice([0, 1, 3, 10]))


def _script(dice: random.Random) -> tuple[Step, ...]:
    """A watermark that follows event time, more or less, and elements around it: early, on time, late, very late."""
    keys = ["a", "b"] if dice.random() < 0.25 else ["a"]
    times: list[int] = []
    steps: list[Step] = []
    now = dice.choice([-30, 0, 0, 100]) * SECOND
    watermark = clock = None
    for _ in range(dice.randint(3, 25)):
        match dice.randrange(8):
            case 0 | 1:
                now += dice.choice([1, 3, 8, 20]) * SECOND
                later = now - dice.choice([0, 1, 5]) * SECOND
                if watermark is None or later > watermark:
                    watermark = later
                    steps.append(AdvanceWatermark(watermark))
            case 2:
                clock = (clock or 0) + dice.choice([1, 2, 3, 10]) * SECOND
                steps.append(AdvanceClock(clock))
            case _:
                again = bool(times) and dice.random() < 0.15
                at = dice.choice(times) if again else now + _distance(dice)
                times.append(at)
                steps.append(AddElement(2 ** (len(times) - 1), at, key=dice.choice(keys)))
    return (*steps, AdvanceClock((clock or 0) + 100 * SECOND))


def _distance(dice: random.Random) -> int:
    """How far an element is from where event time has come to, in microseconds."""
    seconds = dice.choice(
        [dice.randint(0, 4), dice.randint(0, 12), dice.randint(-8, 0), dice.randint(-40, 0)]
    )
    return seconds * SECOND + dice.choice([0, 0, 0, 500_000, 1, -1])
