"""A few pipelines of integers in which each pair of features meets, and the pairs that meet in a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any, NamedTuple

import penstock as beam
from penstock import graph
from penstock.io.sink_transforms import SinkTransform
from penstock.testing.test_stream import TestStream
from penstock.transforms.window import TimestampedValue
from tests.runner.graph_meanings import meaning_in_time
from tests.runner.random_pipelines import OPERATIONS, SOURCES, VIEWS, WINDOWS, Making, Numbers

SIZE = 30
"""The number of features of a pipeline."""

STREAMS = 3
"""The largest number of unbounded sources."""

TAG = "tag"
"""The producer of outputs with tags, whichever feature has them."""

PRODUCERS = (*SOURCES, *(name for name in OPERATIONS if name != "write"), *VIEWS, TAG)
DIRECTLY = ("iter", "list")
"""The views that read a side input unchanged."""
READERS = (
    *OPERATIONS,
    *VIEWS,
    *("iter view", "list view", "singleton of", "dict of", "multimap of"),
)
"""The readers of a PCollection: operations, and views by their main inputs or by their side inputs."""


class Pair(NamedTuple):
    """Two features that meet.

    Attributes:
        how: ``feeds``, from what makes a PCollection to what reads it; ``beside``, two readers of one PCollection;
            ``in``, the windows or the boundedness of a PCollection and a reader of it.
        one: The one.
        other: The other.
    """

    how: str
    one: str
    other: str


CANNOT = {
    Pair(how, "sessions", f"{view} view"): "a side input has windows that do not merge"
    for how, view in product(("feeds", "in"), DIRECTLY)
}
"""The pairs that cannot meet, with the reasons; a test sees that they are refused."""


def wanted() -> set[Pair]:
    """All pairs that can meet."""
    pairs = {
        *(Pair("feeds", *pair) for pair in product(PRODUCERS, READERS)),
        *(Pair("beside", *sorted(pair)) for pair in combinations_with_replacement(READERS, 2)),
        *(Pair("in", *pair) for pair in product((*WINDOWS, "bounded", "unbounded"), READERS)),
    }
    return pairs - CANNOT.keys()


# The pairs that meet in a graph.


def pairs_of(found: graph.Graph) -> set[Pair]:
    makers = {
        output.edge: _feature(step) if output.tag is None or _is_stream(step) else TAG
        for step in found.steps
        for output in step.outputs
    }
    roots = {output.edge: _top(step) for step in found.steps for output in step.outputs}
    readers: dict[int, list[str]] = {}
    for step in found.steps:
        sides = [side.edge for side in step.side_inputs]
        for edge in dict.fromkeys((*step.inputs, *sides)):
            if roots[edge] != _top(step) and _feature(step) in (*OPERATIONS, *VIEWS):
                readers.setdefault(edge, []).append(_reader(step, edge in sides))
    pairs = set()
    for edge, names in readers.items():
        own = found.edge(edge)
        places = [name for name, windowfn in WINDOWS.items() if own.windowing.windowfn == windowfn]
        places.append("bounded" if own.is_bounded else "unbounded")
        pairs |= {Pair("feeds", makers[edge], name) for name in names}
        pairs |= {Pair("in", place, name) for place in places for name in names}
        pairs |= {
            Pair("beside", *sorted((one, other)))
            for number, one in enumerate(names)
            for other in names[number + 1 :]
        }
    return pairs


def _top(step: graph.Step) -> str:
    return step.label.split("/")[0]


def _is_stream(step: graph.Step) -> bool:
    return isinstance(step.primitive, graph.Read)


def _feature(step: graph.Step) -> str:
    """The feature that a step belongs to: labels begin with a number and the feature's name."""
    return _top(step).partition(" ")[2]


def _reader(step: graph.Step, as_side: bool) -> str:
    name, parts = _feature(step), step.label.split("/")
    if name in VIEWS and "Of" in parts[1:2]:
        return f"{name} of"
    return f"{name} view" if as_side and name in DIRECTLY else name


# Programs.


class Choice(NamedTuple):
    """A feature, and the numbers of the PCollections that it is applied to; -1 for none."""

    feature: str
    of: int = -1
    main: int = -1

    @property
    def reader(self) -> str:
        """The reader of `of`."""
        if self.main < 0:
            return self.feature
        return f"{self.feature} {'view' if self.feature in DIRECTLY else 'of'}"


@dataclass(frozen=True)
class Program:
    """A pipeline that can be built again, with streams or with bounded sources of the same elements."""

    seed: int
    choices: tuple[Choice, ...]

    def build(self, streams: bool, folder: str | None = None, **options: Any) -> Making:
        making = _begun(self.seed, streams, folder, **options)
        for choice in self.choices:
            _apply(making, choice)
        return making


def _begun(seed: int, streams: bool, folder: str | None = None, **options: Any) -> Making:
    # Streams in the global window group at their end.
    pipeline = beam.Pipeline(allow_unsafe_triggers=True, **options)
    return Making(pipeline, Random(seed), _streams(pipeline, Random(seed), streams), folder=folder)


def _streams(pipeline: beam.Pipeline, at: Random, unbounded: bool) -> list[Numbers]:
    """Elements in some disorder, but never behind the watermark."""
    tags = [f"stream{number}" for number in range(STREAMS)]
    stream: Any = TestStream()
    events: dict[str, list[Any]] = {tag: [] for tag in tags}
    for second in range(0, 18, 3):
        for tag in tags:
            times = [second + at.randrange(6) for _ in range(at.randrange(3))]
            some = [TimestampedValue(at.randrange(40), time) for time in times]
            events[tag] += some
            stream = stream.add_elements(some, tag=tag) if some else stream
            stream = stream.advance_watermark_to(second + 3, tag=tag)
    for tag in tags:
        stream = stream.advance_watermark_to_infinity(tag=tag)
    if unbounded:
        outputs = pipeline | "0 stream" >> stream
        return [outputs[tag] for tag in tags]
    return [pipeline | f"{tag} stream" >> beam.Create(events[tag]).with_output_types(int) for tag in tags]


def _apply(making: Making, choice: Choice) -> None:
    label = f"{len(making.pipeline.applied_labels)} {choice.feature}"
    if choice.of < 0:
        making.made.append(SOURCES[choice.feature](making, label))
        return
    x = making.made[choice.of]
    if choice.main < 0:
        making.made += OPERATIONS[choice.feature](making, label, x)
    else:
        making.made += VIEWS[choice.feature](
            making, label, making.made[choice.main], making.viewable(f"{label}/Of", x)
        )


class _Drawing:
    """A program while its features are chosen, so that many missing pairs meet."""

    def __init__(self, seed: int, missing: set[Pair]) -> None:
        self.making = _begun(seed, True)
        self.choices: list[Choice] = []
        self._missing = set(missing)
        self._at = Random(f"choices {seed}")
        self._makers: list[str] = []
        self._readers: list[list[str]] = []
        # The number of missing pairs that each reader of each PCollection would add; it may have fallen meanwhile.
        self._worth: dict[tuple[int, str], int] = {}

    def take(self, choice: Choice) -> None:
        before = len(self.making.made)
        _apply(self.making, choice)
        self.choices.append(choice)
        for of, reader in ((choice.of, choice.reader), (choice.main, choice.feature)):
            if of >= 0:
                self._missing -= self._pairs(of, reader)
                self._readers[of].append(reader)
                self._look_again(of)
        for number, made in enumerate(self.making.made[before:], before):
            is_tag = made.tag not in (None, "all") and choice.feature not in SOURCES
            self._makers.append(TAG if is_tag else choice.feature)
            self._readers.append([])
            self._look_again(number)

    def _look_again(self, of: int) -> None:
        self._worth |= {(of, reader): len(READERS) for reader in READERS}

    def _pairs(self, of: int, reader: str) -> set[Pair]:
        own = self.making.made[of]
        windows = [name for name, windowfn in WINDOWS.items() if own.windowing.windowfn == windowfn]
        places = [*windows, "bounded" if own.is_bounded else "unbounded"]
        return {
            Pair("feeds", self._makers[of], reader),
            *(Pair("in", place, reader) for place in places),
            *(Pair("beside", *sorted((reader, other))) for other in self._readers[of]),
        }

    def best(self) -> Choice:
        """The feature and the PCollection that add the most missing pairs, or one whose output others still miss."""
        of, reader = self._best(READERS)
        if not self._worth[of, reader]:
            absent = ["outputs" if pair.one == TAG else pair.one for pair in sorted(self._missing)]
            reader = max((name for name in absent if name in READERS), key=absent.count, default=reader)
        name, _, role = reader.partition(" ")
        if name in VIEWS and role:
            return Choice(name, of, self._best([name])[0])
        # The view that reads it as its main input has some side input.
        return (
            Choice(name, self._at.randrange(len(self._makers)), of) if name in VIEWS else Choice(reader, of)
        )

    def _best(self, readers: Iterable[str]) -> tuple[int, str]:
        places = [(of, reader) for reader in readers for of in range(len(self._makers))]
        self._at.shuffle(places)
        places.sort(key=self._worth.__getitem__, reverse=True)
        best, most = places[0], -1
        for place in places:
            if self._worth[place] <= most:
                break
            self._worth[place] = len(self._pairs(*place) & self._missing)
            if self._worth[place] > most:
                best, most = place, self._worth[place]
        return best


def covering_programs(size: int = SIZE) -> Iterator[Program]:
    """Programs, until each pair has met."""
    missing, seed = wanted(), 0
    while missing:
        drawing = _Drawing(seed, missing)
        for name in (*SOURCES, "stream"):
            drawing.take(Choice(name))
        while len(drawing.choices) < size:
            drawing.take(drawing.best())
        program = Program(seed, tuple(drawing.choices))
        met = pairs_of(drawing.making.pipeline.to_graph()) & missing
        if not met:
            raise AssertionError(f"{len(missing)} pairs never meet, such as {sorted(missing)[:9]}")
        missing -= met
        seed += 1
        yield program


# The outputs of programs.


class _See(beam.DoFn):
    def process(
        self, element: Any, at: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
    ) -> Any:
        yield element, at.micros, window


def observed(program: Program, making: Making) -> dict[str, list[Any]]:
    """The lists that get the elements of PCollections, with their times and windows, by the labels of their sinks.

    They are those that no feature reads, and a third of the others: a sink also is a reader.
    """
    read = {number for choice in program.choices for number in (choice.of, choice.main)}
    found: dict[str, list[Any]] = {}
    for number, made in enumerate(making.made):
        if number not in read or number % 3 == program.seed % 3:
            label = f"Out{number}"
            shown = made | f"{label} seen" >> beam.ParDo(_See()).with_output_types(Any)
            _ = shown | label >> SinkTransform(graph.DriverList(found.setdefault(label, [])))
    return found


def differing(found: graph.Graph, given: dict[str, list[Any]]) -> list[str]:
    """The labels of the observed PCollections whose elements are others than the graph means."""
    meant = meaning_in_time(found)
    return [
        label
        for label, elements in given.items()
        for step in found.steps
        if step.label == f"{label} seen"
        and Counter(map(repr, elements))
        != Counter(repr((each.value, each.at.micros, each.window)) for each in meant[step.inputs[0]])
    ]
