"""Whatever features meet in a pipeline, its plans mean what its graph means, in each mode; on the toy engines.

The programs are few, and each pair of features meets in one of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from covering_pipelines import CANNOT, Choice, Pair, Program, covering_programs, pairs_of, wanted
from graph_meanings import meaning_in_time
from plain_runner import Settings, collect, run_plain
from random_pipelines import COUNTER, WINDOWS, AtTheEnd, Making
from toy_query import ToyQuery

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.pvalue import AsIter, AsList
from penstock_spark.lowering import stage
from penstock_spark.passes import side_views
from penstock_spark.stream.shard import Shard
from penstock_spark.worker import stage as worker


@cache
def programs() -> tuple[Program, ...]:
    return tuple(covering_programs())


@dataclass(frozen=True)
class Way:
    """How a program is run."""

    mode: str
    events_per_batch: int | None = None

    def __str__(self) -> str:
        return f"{self.mode}-{self.events_per_batch}"


WAYS = (Way("batch"), Way("streaming"), Way("micro_batch"), Way("streaming", 3))
"""The modes, and a stream that is cut. In `micro_batch` each cut gives panes of its own."""


class See(beam.DoFn):
    def process(
        self, element: Any, at: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
    ) -> Any:
        yield element, at.micros, window


def seen(program: Program, making: Making) -> dict[str, list[Any]]:
    """The lists into which a batch puts the elements of PCollections, with their times and windows.

    They are those that no feature reads, and a third of the others: a sink is a reader, too.
    """
    read = {number for choice in program.choices for number in (choice.of, choice.main)}
    return {
        f"Out{number}": collect(
            made | f"Out{number} seen" >> beam.ParDo(See()).with_output_types(Any), f"Out{number}"
        )
        for number, made in enumerate(making.made)
        if number not in read or number % 3 == program.seed % 3
    }


def faults_of(program: Program, way: Way) -> list[str]:
    """The PCollections whose elements are others than the graph means."""
    making = program.build(streams=way.mode != "batch")
    found: dict[str, list[Any]] = seen(program, making)
    meant = meaning_in_time(graph := making.pipeline.to_graph())
    expected = {
        step.label.removesuffix(" seen"): [
            (each.value, each.at.micros, each.window) for each in meant[step.inputs[0]]
        ]
        for step in graph.steps
        if step.label.endswith(" seen")
    }
    if way.mode == "batch":
        run_plain(making.pipeline, Settings(partitions=2))
    else:
        toy = ToyQuery(making.pipeline, way.mode, events_per_batch=way.events_per_batch)
        for _ in range(toy.timeline.batches):
            for label, elements in toy.batch().items():
                found.setdefault(label, []).extend(elements)
    return [
        label
        for label, elements in expected.items()
        if Counter(map(repr, found[label])) != Counter(map(repr, elements))
    ]


SHARE = 10
"""How many programs a test runs."""


@pytest.mark.parametrize("first", range(0, 80, SHARE))
def test_a_program_in_which_features_meet_means_what_its_graph_means(first: int) -> None:
    """Each program runs in one way; the others are of the long form."""
    numbered = list(enumerate(programs()))[first : first + SHARE]
    assert {
        number: faults
        for number, program in numbered
        if (faults := faults_of(program, WAYS[number % len(WAYS)]))
    } == {}


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("first", range(0, 80, SHARE))
def test_every_program_means_the_same_in_every_way(first: int, way: Way) -> None:
    numbered = list(enumerate(programs()))[first : first + SHARE]
    assert {number: faults for number, program in numbered if (faults := faults_of(program, way))} == {}


def test_each_pair_of_features_meets_in_a_program() -> None:
    met: set[Pair] = set()
    for program in programs():
        met |= pairs_of(program.build(streams=True).pipeline.to_graph())
    missing = wanted() - met
    counts = Counter(pair.how for pair in wanted() & met)
    print(f"{len(programs())} programs: {dict(counts)}, and {len(CANNOT)} pairs that cannot meet")
    assert not missing
    assert not CANNOT.keys() & met


@pytest.mark.parametrize("view", [AsList, AsIter])
def test_a_pair_that_cannot_meet_is_refused(view: Any) -> None:
    numbers = beam.Pipeline() | beam.Create([1]) | beam.WindowInto(WINDOWS["sessions"])
    with pytest.raises(RuntimeError, match=r"(?s)not allowed in side inputs.*test_shapes.*hint: "):
        _ = numbers | beam.Map(lambda number, others: number, view(numbers))


def test_state_in_windows_that_merge_is_refused_and_so_goes_by_way_of_others() -> None:
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([(1, 2)]) | beam.WindowInto(WINDOWS["sessions"])
    _ = pairs | beam.ParDo(AtTheEnd())
    with pytest.raises(UnsupportedByRunner, match=r"(?s)the windows of .* merge.*test_shapes.*hint: "):
        pipeline.explain()


def explained(program: Program) -> list[str]:
    """What `explain` says in each mode."""
    return [
        program.build(mode != "batch", mode=mode).pipeline.explain()
        for mode in ("batch", "micro_batch", "streaming")
    ]


@pytest.mark.parametrize("number", range(0, 60, 12))
def test_a_program_is_explained_in_every_mode(number: int) -> None:
    assert all("# plan\n" in text for text in explained(programs()[number]))


@pytest.mark.soak
def test_every_program_is_explained_in_every_mode() -> None:
    assert all("# plan\n" in text for program in programs() for text in explained(program))


def test_a_step_that_leads_to_a_side_input_and_to_the_query_counts_its_elements_once() -> None:
    program = Program(
        0,
        (
            Choice("create"),
            Choice("metric", 0),
            Choice("itself", 1),
            Choice("metric", 2),
            Choice("list", 3, 1),
        ),
    )
    pipeline = program.build(streams=True).pipeline
    toy = ToyQuery(pipeline)
    for _ in range(toy.timeline.batches):
        toy.batch()
    counts = {step: value for (_, step, namespace, name), value in toy.snapshot.items() if name == COUNTER}
    # The second step leads to a side input only, which a batch computes.
    assert counts == {"2 metric": 7, "4 metric": 7}


# Mutants.


def swapped(step: Any, graph: Any, without: Any, make: Any = stage.step_spec) -> Any:
    """The first two outputs of a step have each other's tags."""
    spec = make(step, graph, without)
    if len(spec.outputs) < 2:
        return spec
    (one, first), (other, second), *rest = spec.outputs
    return replace(spec, outputs=((one, second), (other, first), *rest))


def first_only(self: Any, edge: int) -> Any:
    """A second reader of an edge gets nothing."""
    return worker.Tee(self._consumers.get(edge, [])[:1])


def flattened_once(step: Any, graph: Any, without: Any, make: Any = stage.step_spec) -> Any:
    """A Flatten takes each PCollection once."""
    spec = make(step, graph, without)
    return replace(spec, inputs=tuple(dict.fromkeys(spec.inputs)))


def marks_at_once(self: Any, *arguments: Any, at: Any = Shard._at) -> Any:
    """The watermark of a round goes before its panes."""
    yield from at(self, *arguments)
    self._send_marks(arguments[0])


def same_numbers(graph: Any, numbers: Any = side_views._numbers) -> Any:
    """A bounded side input has the number of the edge that the query makes."""
    return {edge: edge for edge in numbers(graph)}


MUTANTS: dict[str, tuple[Any, str, Any, Way]] = {
    "a side input is taken for an input": (side_views, "_numbers", same_numbers, Way("streaming")),
    "a second reader gets nothing": (worker.Stage, "tee", first_only, Way("batch")),
    "tags are swapped": (stage, "step_spec", swapped, Way("batch")),
    "a PCollection is flattened once": (stage, "step_spec", flattened_once, Way("batch")),
    "the watermark of a round goes first": (Shard, "_at", marks_at_once, Way("micro_batch")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken, way = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, broken)

    def is_found(program: Program) -> bool:
        try:
            return bool(faults_of(program, way))
        except Exception:
            return True

    assert any(map(is_found, programs()[:25]))
