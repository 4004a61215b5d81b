"""DoFns with state and timers give in a batch what Beam's own runner gives: the same elements, timestamps and windows.

What Beam gives is in a file; with the mark ``soak``, Beam is asked again, and the file is compared with its answer.

Both sides are built by the same code, which gets the package as an argument. What decision 0013 decides otherwise, or
Beam leaves open, is not compared: elements come in the order of their times, so that both take them in one order; no
timer is of processing time or lies beyond the end of its window. Beam's runner fires the timers of several tags at the
end of its input, but not in the order of their times, so what one does must not matter to another.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.runner.plain_runner import Settings, collect, run_plain

PROGRAMS = 28
GIVEN_BY_BEAM = Path(__file__).with_name("given_by_beam.jsonl")
"""The number of a program and one of the elements that Beam's runner gives for it, in each line."""

KV = tuple[str, int]


class Sdk:
    """One of the two packages, and short names for its parts."""

    def __init__(self, name: str) -> None:
        self.beam = importlib.import_module(name)
        self.coders = importlib.import_module(f"{name}.coders")
        self.state = importlib.import_module(f"{name}.transforms.userstate")
        self.time = importlib.import_module(f"{name}.transforms.timeutil").TimeDomain
        self.window = importlib.import_module(f"{name}.transforms.window")

    def cells(self) -> dict[str, Any]:
        """A cell of each type."""
        # Beam cannot add to an empty cell with a mean, or with the largest value.
        count = importlib.import_module(f"{self.beam.__name__}.transforms.combiners").CountCombineFn()
        integers, accumulators = self.coders.VarIntCoder(), self.coders.FastPrimitivesCoder()
        return {
            "value": self.state.ReadModifyWriteStateSpec("value", integers),
            "bag": self.state.BagStateSpec("bag", integers),
            "set": self.state.SetStateSpec("set", integers),
            "sum": self.state.CombiningValueStateSpec("sum", accumulators, sum),
            "count": self.state.CombiningValueStateSpec("count", accumulators, count),
        }

    def event_timer(self, name: str) -> Any:
        return self.state.TimerSpec(name, self.time.WATERMARK)


def running(sdk, n):
    """A value that is read, written and cleared."""
    dofn, cells = sdk.beam.DoFn, sdk.cells()

    class Running(dofn):
        def process(self, element, value=dofn.StateParam(cells["value"])):
            key, number = element
            total = (value.read() or 0) + number
            if total % (n + 2) == 0:
                value.clear()
            else:
                value.write(total)
            yield key, total

    return Running()


def batched(sdk, n):
    """A bag that is given away whenever it is full."""
    dofn, cells = sdk.beam.DoFn, sdk.cells()

    class Batched(dofn):
        def process(self, element, bag=dofn.StateParam(cells["bag"])):
            key, number = element
            bag.add(number)
            held = list(bag.read())
            if len(held) > n:
                bag.clear()
                bag.add(0)
                yield key, sorted(held)

    return Batched()


def distinct(sdk, n):
    """A set that says what is new, and is emptied now and then."""
    dofn, cells = sdk.beam.DoFn, sdk.cells()

    class Distinct(dofn):
        def process(self, element, seen=dofn.StateParam(cells["set"])):
            key, number = element
            before = set(seen.read())
            if number % (n + 5) == 0:
                seen.clear()
            seen.add(number)
            yield key, [number in before, sorted(seen.read())]

    return Distinct()


def combined(sdk, n):
    """Two combining cells, of which one is cleared."""
    dofn, cells = sdk.beam.DoFn, sdk.cells()

    class Combined(dofn):
        def process(
            self, element, total=dofn.StateParam(cells["sum"]), count=dofn.StateParam(cells["count"])
        ):
            key, number = element
            total.add(number)
            count.add(number)
            yield key, [total.read(), count.read()]
            if number % (n + 3) == 0:
                total.clear()

    return Combined()


def at_last(sdk, n):
    """A timer that each element sets anew, or unsets: what is in a bag is given when it fires."""
    dofn, cells, timer = sdk.beam.DoFn, sdk.cells(), sdk.event_timer("last")

    class AtLast(dofn):
        def process(
            self,
            element,
            at=dofn.TimestampParam,
            bag=dofn.StateParam(cells["bag"]),
            last=dofn.TimerParam(timer),
        ):
            _, number = element
            bag.add(number)
            if number % (n + 4) == 0:
                last.clear()
            else:
                last.set(at + 1)

        @sdk.state.on_timer(timer)
        def tell(self, key=dofn.KeyParam, at=dofn.TimestampParam, bag=dofn.StateParam(cells["bag"])):
            yield key, [sorted(bag.read()), seconds(at)]
            bag.clear()

    return AtLast()


def counting_down(sdk, n):
    """A timer that sets itself anew, some times."""
    dofn, cells, timer = sdk.beam.DoFn, sdk.cells(), sdk.event_timer("tick")

    class CountingDown(dofn):
        def process(
            self,
            element,
            at=dofn.TimestampParam,
            left=dofn.StateParam(cells["value"]),
            total=dofn.StateParam(cells["sum"]),
            tick=dofn.TimerParam(timer),
        ):
            total.add(element[1])
            left.write(n % 4)
            tick.set(at)

        @sdk.state.on_timer(timer)
        def tell(
            self,
            key=dofn.KeyParam,
            at=dofn.TimestampParam,
            left=dofn.StateParam(cells["value"]),
            total=dofn.StateParam(cells["sum"]),
            tick=dofn.TimerParam(timer),
        ):
            yield key, [left.read(), total.read()]
            if left.read() > 0:
                left.write(left.read() - 1)
                tick.set(at)

    return CountingDown()


def tagged(sdk, n):
    """A timer for each tag, of which some are unset again."""
    dofn, cells, timer = sdk.beam.DoFn, sdk.cells(), sdk.event_timer("tagged")

    class Tagged(dofn):
        def process(
            self,
            element,
            at=dofn.TimestampParam,
            seen=dofn.StateParam(cells["set"]),
            own=dofn.TimerParam(timer),
        ):
            _, number = element
            seen.add(number)
            if number % (n + 4) == 0:
                own.clear(dynamic_timer_tag=str(number % 5))
            else:
                own.set(at, dynamic_timer_tag=str(number % 5))

        @sdk.state.on_timer(timer)
        def tell(self, key=dofn.KeyParam, tag=dofn.DynamicTimerTagParam, seen=dofn.StateParam(cells["set"])):
            yield key, [tag, sorted(seen.read())]

    return Tagged()


DOFNS = (running, batched, distinct, combined, at_last, counting_down, tagged)


def seconds(at: Any) -> int:
    """The nearest whole second: all times here are seconds, but for the last instants of windows."""
    return int((at.micros + 500_000) // 1_000_000)


def program(number: int) -> tuple[Any, int, int, list[tuple[str, int, int]]]:
    """A DoFn with its number, the number of its windows, and elements with their times; the same on every run."""
    choose = random.Random(f"state {number}")
    times = sorted(choose.sample(range(100, 200), choose.choice([0, 1, 10, 30, 60])))
    elements = [(choose.choice("abc"), choose.randrange(12), at) for at in times]
    return DOFNS[number % len(DOFNS)], choose.randrange(6), number // len(DOFNS) % 4, elements


def windows(sdk: Sdk, n: int) -> Any:
    """One of the WindowFns, as both packages have them."""
    module = sdk.window
    fixed = module.FixedWindows(10), module.FixedWindows(17, offset=3)
    return (module.GlobalWindows(), *fixed, module.SlidingWindows(20, 10))[n]


def build(sdk: Sdk, pipeline: Any, number: int) -> Any:
    """What a program gives: texts of elements with their timestamps and the ends of their windows."""
    make, n, windowing, elements = program(number)
    beam, stamped = sdk.beam, sdk.window.TimestampedValue
    pairs = pipeline | f"{number} values" >> beam.Create(elements)
    timed = pairs | f"{number} times" >> beam.MapTuple(
        lambda key, value, at: stamped((key, value), at)
    ).with_output_types(KV)
    return (
        timed
        | f"{number} windows" >> beam.WindowInto(windows(sdk, windowing))
        | f"{number} {make.__name__}" >> beam.ParDo(make(sdk, n))
        | f"{number} seen" >> seen(sdk)
    )


def seen(sdk: Sdk) -> Any:
    parameters = sdk.beam.DoFn

    def call(element, at=parameters.TimestampParam, window=parameters.WindowParam):
        return json.dumps([*element, seconds(at), str(window)])

    return sdk.beam.Map(call).with_output_types(str)


def append(line: str, path: str, number: int) -> None:
    with open(path, "a") as out:
        out.write(json.dumps([number, line]) + "\n")


def run_on_beam(path: str) -> None:
    """Writes what each program gives to a file.

    Each is a pipeline by itself: now and then Beam decodes the timer of one step as that of another one, and fails.
    """
    sdk = Sdk("apache_beam")
    for number in range(PROGRAMS):
        with sdk.beam.Pipeline(runner="FnApiRunner") as pipeline:
            build(sdk, pipeline, number) | f"{number} out" >> sdk.beam.Map(append, path, number)


@cache
def given_by_beam() -> dict[int, list[str]]:
    """What each program gives on Beam's own runner."""
    found: dict[int, list[str]] = {number: [] for number in range(PROGRAMS)}
    for line in GIVEN_BY_BEAM.read_text(encoding="utf-8").splitlines():
        number, text = json.loads(line)
        found[number].append(text)
    return found


@pytest.mark.soak
def test_beam_still_gives_what_is_written(tmp_path: Path) -> None:
    """Beam runs in a process that no other test has been in."""
    pytest.importorskip("apache_beam")
    path = tmp_path / "seen"
    command = [sys.executable, "-m", "tests.runner.test_state_against_beam", str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written, now = (sorted(each.read_text("utf-8").splitlines()) for each in (GIVEN_BY_BEAM, path))
    assert now == written, f"{' '.join(command[:-1])} {GIVEN_BY_BEAM}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_dofn_with_state_gives_what_beam_gives(number: int) -> None:
    sdk = Sdk("penstock")
    pipeline = sdk.beam.Pipeline()
    found = collect(build(sdk, pipeline, number))
    run_plain(pipeline, Settings(2, 1000))
    assert Counter(found) == Counter(given_by_beam()[number])


@pytest.mark.filterwarnings("ignore")
def test_every_dofn_has_programs_that_give_something() -> None:
    by_dofn: Counter[Any] = Counter()
    for number in range(PROGRAMS):
        by_dofn[program(number)[0]] += len(given_by_beam()[number])
    assert by_dofn.keys() == set(DOFNS)
    assert min(by_dofn.values()) > 10


if __name__ == "__main__":
    run_on_beam(sys.argv[1])
