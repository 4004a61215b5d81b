"""Pipelines of integers: made at random, or so that every pair of features occurs in one of a few.

`graph_meanings` says what their graphs mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import penstock as beam
from penstock.functions.userstate import on_timer
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.metrics import Metrics
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton, TaggedOutput
from penstock.relations.changelog import Changelog
from penstock.transforms.core import RestrictionProvider
from penstock.transforms.trigger import AccumulationMode, AfterCount, DefaultTrigger, Repeatedly
from penstock.transforms.userstate import BagStateSpec, TimerSpec
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows, TimestampedValue
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration
from penstock.windows.time_domain import TimeDomain

_COUNT = 7
MODULUS = 101
COUNTER = "elements_seen"
"""The counter of the steps that count, in their own namespace."""

NAMESPACE = "shapes"

# The functions of the steps. Each takes and returns integers below the modulus.


def spread_over(x: int, factor: int, *sides: Any) -> Iterator[Any]:
    """A step with several outputs, and with side inputs that change its outputs."""
    y = (x * factor + sum(sum(side) for side in sides)) % MODULUS
    yield y
    if y % 2:
        yield TaggedOutput("odd", y + 1)
    if y % 3 == 0:
        yield TaggedOutput("third", y + 2)


def keyed(x: int) -> tuple[int, int]:
    return x % 5, x


def summed(pair: tuple[int, Any]) -> int:
    return (pair[0] + sum(pair[1])) % MODULUS


def added(pair: tuple[int, int]) -> int:
    return sum(pair) % MODULUS


def joined(pair: tuple[int, dict[str, Any]]) -> int:
    key, sides = pair
    return (key + sum(sides["left"]) + 7 * sum(sides["right"]) + len(list(sides["left"]))) % MODULUS


def looked_up(x: int, table: Any) -> int:
    return (x + table.get(x % 5, 50)) % MODULUS


def looked_up_all(x: int, table: Any) -> int:
    return (x + sum(table[x % 5]) if x % 5 in table else x) % MODULUS


def risky(x: int) -> int:
    if x % 4 == 3:
        raise ValueError(x)
    return x + 1


def signed(change: tuple[Any, tuple[int, int]]) -> tuple[int, int]:
    """A change of a sum, as a number to add."""
    kind, (key, total) = change
    return key, -total if kind.is_retraction else total


def later(x: int, at: Any = beam.DoFn.TimestampParam) -> Any:
    """Returns the same number, some seconds later."""
    seconds = Duration(x % 3)
    return TimestampedValue(x, at + seconds if at + Duration(3) < MAX_TIMESTAMP else at)


class Total(beam.CombineFn):
    """A sum that Python has to call."""

    def create_accumulator(self) -> list[int]:
        return []

    def add_input(self, accumulator: list[int], element: int) -> list[int]:
        return [*accumulator, element]

    def merge_accumulators(self, accumulators: Any) -> list[int]:
        return [value for each in accumulators for value in each]

    def extract_output(self, accumulator: list[int]) -> int:
        return sum(accumulator)


class Seen(beam.DoFn):
    """Counts its elements."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = Metrics.counter(NAMESPACE, COUNTER)

    def process(self, element: int) -> list[int]:
        self._seen.inc()
        return [element]


class AtTheEnd(beam.DoFn):
    """Keeps the values of a key and window, and emits them with their sum at the window's end."""

    KEPT = BagStateSpec("kept", beam.coders.VarIntCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[int, int],
        window: Any = beam.DoFn.WindowParam,
        kept: Any = beam.DoFn.StateParam(KEPT),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> None:
        kept.add(element[1])
        end.set(window.max_timestamp())

    @on_timer(END)
    def give(self, kept: Any = beam.DoFn.StateParam(KEPT)) -> Iterator[int]:
        yield from self.given(list(kept.read()))
        kept.clear()

    @staticmethod
    def given(values: list[int]) -> Iterator[int]:
        yield sum(values) % MODULUS
        yield from (value for value in values if value % 2)


class _Parts(RestrictionProvider):
    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, element % 4)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: int, restriction: OffsetRange) -> Any:
        return restriction.split(2)


class CountUp(beam.DoFn):
    """A splittable DoFn: a number for each position."""

    def process(self, element: int, tracker: Any = beam.DoFn.RestrictionParam(_Parts())) -> Iterator[int]:
        position = tracker.current_restriction().start
        while tracker.try_claim(position):
            yield self.at(element, position)
            position += 1

    @staticmethod
    def at(element: int, position: int) -> int:
        return (element + 11 * position) % MODULUS

    @classmethod
    def given(cls, element: int) -> Iterator[int]:
        return (cls.at(element, position) for position in range(element % 4))


class Nested(beam.PTransform):
    """A composite in a composite, with a side input and a grouping of its own."""

    def expand(self, pcoll: Any) -> Any:
        groups = pcoll | "Inner" >> _Inner()
        return groups | "Use" >> beam.FlatMap(spread_over, 2, AsIter(groups)).with_outputs("odd", main="all")


class _Inner(beam.PTransform):
    def expand(self, pcoll: Any) -> Any:
        return pcoll | "Key" >> beam.Map(keyed) | "Group" >> beam.GroupByKey() | "Sum" >> beam.Map(summed)


# Features: from the pipeline so far, a label and a PCollection to what a feature makes of it.

Numbers = beam.PCollection[int]
Feature = Callable[["Making", str, Numbers], list[Numbers]]

WINDOWS = {
    "fixed": FixedWindows(5),
    "sliding": SlidingWindows(6, 3),
    "sessions": Sessions(3),
    "global": GlobalWindows(),
}


@dataclass
class Making:
    """A pipeline under construction."""

    pipeline: beam.Pipeline
    at: Random
    # Makes an unbounded source, with a label; None makes bounded ones of the same elements.
    streams: list[Numbers]
    made: list[Numbers] = field(default_factory=list)
    written: dict[str, list[Any]] = field(default_factory=dict)
    folder: str | None = None  # Where files are written; None writes to memory.

    def other(self) -> Numbers:
        return self.at.choice(self.made[-6:] if self.at.random() < 0.6 else self.made)

    def beside(self, label: str, x: Numbers) -> Numbers:
        """Another PCollection, in the windows of `x`."""
        y = self.other()
        return y if y.windowing == x.windowing else y | f"{label}/Windows" >> beam.WindowInto(x.windowing)

    def viewable(self, label: str, y: Numbers) -> Numbers:
        """Returns the same elements in windows that a side input may have."""
        merges = y.windowing.windowfn.is_merging()
        return y | f"{label}/Fixed" >> beam.WindowInto(FixedWindows(4)) if merges else y


def _all(outputs: Any, *tags: str) -> list[Numbers]:
    return [outputs[tag] for tag in ("all", *tags)]


def _pairs(label: str, x: Numbers) -> Any:
    return x | f"{label}/Key" >> beam.Map(keyed).with_output_types(beam.typehints.KV[int, int])


def _sums(label: str, pairs: Any, fn: Any = sum) -> Any:
    return pairs | f"{label}/Sum" >> beam.CombinePerKey(fn)


def _add(label: str, pairs: Any) -> Numbers:
    return pairs | f"{label}/Add" >> beam.Map(added)


def _total(label: str, x: Numbers, fanout: int = 0, fn: Any = sum) -> Numbers:
    combine = beam.CombineGlobally(fn)
    if not isinstance(x.windowing.windowfn, GlobalWindows):
        combine = combine.without_defaults()
    combine = combine.with_fanout(fanout) if fanout else combine
    return x | f"{label}/Total" >> combine | f"{label}/Mod" >> beam.Map(lambda total: total % MODULUS)


def _one(label: str, x: Numbers) -> Numbers:
    """A number for each window."""
    return (
        x
        | f"{label}/One" >> beam.CombineGlobally(sum).without_defaults()
        | f"{label}/Mod" >> beam.Map(lambda total: total % MODULUS)
    )


def _early(m: Making, label: str, x: Numbers, mode: AccumulationMode) -> Any:
    """Pairs whose windows fire with every element; each pane of a session would be in a session of its own."""
    x = m.viewable(label, x)
    return _pairs(label, x) | f"{label}/Early" >> beam.WindowInto(
        x.windowing.windowfn, trigger=Repeatedly(AfterCount(1)), accumulation_mode=mode
    )


def _once(label: str, pairs: Any) -> Any:
    return pairs | f"{label}/Once" >> beam.WindowInto(
        pairs.windowing.windowfn, trigger=DefaultTrigger(), accumulation_mode=AccumulationMode.DISCARDING
    )


def _parts_added_up(m: Making, label: str, x: Numbers) -> list[Numbers]:
    """Panes of new values add up to the sum."""
    parts = _sums(f"{label}/Parts", _early(m, label, x, AccumulationMode.DISCARDING))
    return [_add(label, _sums(label, _once(label, parts)))]


def _greatest_of_greatest(m: Making, label: str, x: Numbers) -> list[Numbers]:
    """The greatest of panes that accumulate is the greatest value."""
    panes = _sums(f"{label}/Panes", _early(m, label, x, AccumulationMode.ACCUMULATING), max)
    return [_add(label, _sums(label, _once(label, panes), max))]


def _changes_added_up(m: Making, label: str, x: Numbers) -> list[Numbers]:
    """Early sums, less those that are retracted, add up to the sum."""
    sums = _sums(f"{label}/Sums", _early(m, label, x, AccumulationMode.ACCUMULATING_AND_RETRACTING))
    changes = sums | f"{label}/Log" >> Changelog() | f"{label}/Signed" >> beam.Map(signed)
    return [_add(label, _sums(label, _once(label, changes)))]


def _written(m: Making, label: str, x: Numbers) -> list[Numbers]:
    if m.folder is None:
        _ = x | f"{label}/Write" >> beam.io.WriteToMemory(m.written.setdefault(label, []))
    else:
        _ = (
            x
            | f"{label}/Line" >> beam.Map(str)
            | f"{label}/Write" >> beam.io.WriteToText(f"{m.folder}/{label.replace(' ', '-')}")
        )
    return []


def _states(m: Making, label: str, x: Numbers) -> list[Numbers]:
    if x.windowing.windowfn.is_merging():
        # State does not merge.
        x = x | f"{label}/Fixed" >> beam.WindowInto(FixedWindows(5))
    return [_pairs(label, x) | f"{label}/State" >> beam.ParDo(AtTheEnd()).with_output_types(int)]


def _rejects(m: Making, label: str, x: Numbers) -> list[Numbers]:
    good, bad = x | label >> beam.Map(risky).with_exception_handling(main_tag="all")
    return [good, bad | f"{label}/Bad" >> beam.Map(lambda letter: letter[0])]


def _joined(m: Making, label: str, x: Numbers) -> list[Numbers]:
    sides = {"left": _pairs(f"{label}/L", x), "right": _pairs(f"{label}/R", m.beside(label, x))}
    return [sides | f"{label}/Join" >> beam.CoGroupByKey() | f"{label}/Line" >> beam.Map(joined)]


def _tags_beside(m: Making, label: str, x: Numbers) -> list[Numbers]:
    """A tagged output as a side input of the main one."""
    both = x | f"{label}/Split" >> beam.FlatMap(spread_over, 1).with_outputs("odd", "third", main="all")
    odd = m.viewable(label, both.odd)
    return [both.all | f"{label}/Use" >> beam.Map(lambda n, odd: (n + sum(odd)) % MODULUS, AsList(odd))]


def _lifted(m: Making, label: str, x: Numbers) -> list[Numbers]:
    groups = _pairs(label, x) | f"{label}/Group" >> beam.GroupByKey()
    return [_add(label, groups | f"{label}/Values" >> beam.CombineValues(sum))]


OPERATIONS: dict[str, Feature] = {
    "map": lambda m, label, x: [x | label >> beam.Map(lambda n, k: (n + k) % MODULUS, len(m.made))],
    "outputs": lambda m, label, x: _all(
        x | label >> beam.FlatMap(spread_over, 3).with_outputs("odd", "third", main="all"), "odd", "third"
    ),
    "flatten": lambda m, label, x: [(x, m.beside(label, x)) | label >> beam.Flatten()],
    "flatten twice": lambda m, label, x: [(x, x) | label >> beam.Flatten()],
    "group": lambda m, label, x: [
        _pairs(label, x) | f"{label}/Group" >> beam.GroupByKey() | f"{label}/Sum" >> beam.Map(summed)
    ],
    "lift": _lifted,
    "native": lambda m, label, x: [
        _add(label, _sums(label, _pairs(label, x | f"{label}/Spread" >> beam.Reshuffle())))
    ],
    "combine": lambda m, label, x: [_add(label, _sums(label, _pairs(label, x), Total()))],
    "total": lambda m, label, x: [_total(label, x)],
    "one": lambda m, label, x: [_one(label, x)],
    "fanout": lambda m, label, x: [_total(label, x, 2, Total())],
    "cogroup": _joined,
    "shuffle": lambda m, label, x: [x | label >> beam.Reshuffle()],
    "distinct": lambda m, label, x: [x | label >> beam.Distinct()],
    "later": lambda m, label, x: [x | label >> beam.Map(later)],
    **{
        name: lambda m, label, x, windowfn=windowfn: [x | label >> beam.WindowInto(windowfn)]
        for name, windowfn in WINDOWS.items()
    },
    "parts": _parts_added_up,
    "accumulating": _greatest_of_greatest,
    "retracting": _changes_added_up,
    "state": _states,
    "split": lambda m, label, x: [x | label >> beam.ParDo(CountUp()).with_output_types(int)],
    "reject": _rejects,
    "metric": lambda m, label, x: [x | label >> beam.ParDo(Seen()).with_output_types(int)],
    "nested": lambda m, label, x: _all(m.viewable(label, x) | label >> Nested(), "odd"),
    "itself": lambda m, label, x: [
        (y := m.viewable(label, x))
        | label >> beam.Map(lambda n, all: (n + sum(all) + len(all)) % MODULUS, AsList(y))
    ],
    "tags beside": _tags_beside,
    "write": _written,
}
"""Steps for numbers."""

Viewed = Callable[["Making", str, Numbers, Numbers], list[Numbers]]

VIEWS: dict[str, Viewed] = {
    "iter": lambda m, label, x, y: _all(
        x | label >> beam.FlatMap(spread_over, 1, AsIter(y)).with_outputs("odd", main="all"), "odd"
    ),
    "list": lambda m, label, x, y: [
        x | label >> beam.Map(lambda n, all: (n + sum(all) + len(all)) % MODULUS, AsList(y))
    ],
    "singleton": lambda m, label, x, y: [
        x | label >> beam.Map(lambda n, one: (n + one) % MODULUS, AsSingleton(_one(f"{label}/Of", y), 50))
    ],
    "dict": lambda m, label, x, y: [
        x | label >> beam.Map(looked_up, AsDict(_sums(f"{label}/Of", _pairs(f"{label}/Of", y))))
    ],
    "multimap": lambda m, label, x, y: [
        x | label >> beam.Map(looked_up_all, AsMultiMap(_pairs(f"{label}/Of", y)))
    ],
}
"""Steps for numbers with others as a side input."""

SOURCES: dict[str, Callable[[Making, str], Numbers]] = {
    "create": lambda m, label: m.pipeline | label >> beam.Create(range(_COUNT)),
    "empty": lambda m, label: m.pipeline | label >> beam.Create([]).with_output_types(int),
    "timed": lambda m, label: (
        m.pipeline
        | f"{label}/Numbers" >> beam.Create(range(_COUNT))
        | f"{label}/Times" >> beam.Map(lambda n: TimestampedValue(n, 2 * n))
    ),
    "stream": lambda m, label: m.streams.pop(),
}

PLAIN = (
    *("map", "map", "outputs", "flatten", "group", "lift", "native", "combine", "total", "shuffle"),
    *("flatten twice", "cogroup", "distinct", "reject", "fixed", "nested", "tags beside", "one", "later"),
)
"""Steps that leave each element in one window, and that no pass replaces: so the laws of passes can compare values."""


def random_pipeline(seed: int, size: int = 12) -> tuple[beam.Pipeline, list[Numbers]]:
    """A pipeline of integers, and its PCollections; the same for the same seed."""
    at = Random(seed)
    making = Making(beam.Pipeline(), at, [])
    making.made = [making.pipeline | "Read" >> beam.Create(range(_COUNT))]
    for number in range(size):
        x = at.choice(making.made[-4:]) if at.random() < 0.6 else at.choice(making.made)
        label, chance = f"S{number}", at.random()
        if chance < 0.08:
            making.made.append(making.pipeline | label >> beam.Create([number, number + 1]))
        elif chance < 0.35:
            # Side inputs are what makes plans hard.
            sides = [AsIter(making.other()) for _ in range(at.choice([1, 1, 2]))]
            making.made += _all(
                x | label >> beam.FlatMap(spread_over, 1, *sides).with_outputs("odd", main="all"), "odd"
            )
        else:
            making.made += OPERATIONS[at.choice(PLAIN)](making, label, x)
    return making.pipeline, making.made
