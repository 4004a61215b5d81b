"""Whatever features meet in a pipeline, its plans mean what its graph means, in each mode; on the toy engines.

The programs are few, and each pair of features meets in one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.pvalue import AsIter, AsList
from penstock_spark.lowering import query, stage
from penstock_spark.passes import side_views
from penstock_spark.stages import stage as worker
from penstock_spark.stream.shards.shard import Shard
from tests.runner.covering_pipelines import (
    CANNOT,
    Choice,
    Pair,
    Program,
    covering_programs,
    differing,
    observed,
    pairs_of,
    wanted,
)
from tests.runner.plain_runner import Settings, run_plain
from tests.runner.random_pipelines import COUNTER, WINDOWS, AtTheEnd
from tests.runner.wild_pipelines import wild_pipeline
from tests.shards.toy_query import ToyQuery


@cache
def programs() -> tuple[Program, ...]:
    return tuple(covering_programs())


@dataclass(frozen=True)
class Way:
    """A way to run a program."""

    mode: str
    events_per_batch: int | None = None

    def __str__(self) -> str:
        return f"{self.mode}-{self.events_per_batch}"


WAYS = (Way("batch"), Way("streaming"), Way("micro_batch"), Way("streaming", 3))
"""The modes, and a stream that is cut. In `micro_batch` each cut emits panes of its own."""


def faults_of(program: Program, way: Way) -> list[str]:
    """The PCollections whose elements are others than the graph means."""
    making = program.build(streams=way.mode != "batch")
    found = observed(program, making)
    graph = making.pipeline.to_graph()
    if way.mode == "batch":
        run_plain(making.pipeline, Settings(partitions=2))
    else:
        toy = ToyQuery(making.pipeline, way.mode, events_per_batch=way.events_per_batch)
        for _ in range(toy.timeline.batches):
            for label, elements in toy.batch().items():
                found.setdefault(label, []).extend(elements)
    return differing(graph, found)


SHARE = 10
"""The number of programs that a test runs."""


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
    """The explanation in each mode."""
    return [program.build(mode != "batch", mode=mode).pipeline.explain() for mode in MODES]


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


MODES = ("batch", "micro_batch", "streaming")


def bare_errors(seeds: Iterable[int]) -> list[str]:
    """The errors of wild pipelines that do not say what is wrong, where, and what to do."""
    found: list[str] = []

    def refused(error: Exception) -> None:
        if "\n  hint: " not in str(error):
            found.append(repr(error))

    for seed, mode in product(seeds, MODES):
        # Every other one may group streams in the global window.
        pipeline = wild_pipeline(seed, 10, refused, mode=mode, allow_unsafe_triggers=seed % 2 == 0)
        try:
            pipeline.explain()
        except Exception as error:
            refused(error)
    return found


def test_whatever_is_not_explained_is_refused_in_three_parts() -> None:
    assert bare_errors(range(30)) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(30, 2030, 200))
def test_whatever_is_not_explained_is_refused_in_three_parts_at_length(first: int) -> None:
    assert bare_errors(range(first, first + 200)) == []


# Mutants.


def swapped(step: Any, graph: Any, without: Any, left: Any, make: Any = stage.step_spec) -> Any:
    """The first two outputs of a step have each other's tags."""
    spec = make(step, graph, without, left)
    if len(spec.outputs) < 2:
        return spec
    (one, first), (other, second), *rest = spec.outputs
    return replace(spec, outputs=((one, second), (other, first), *rest))


def first_only(self: Any, edge: int) -> Any:
    """A second reader of an edge gets nothing."""
    return worker.Tee(self._consumers.get(edge, [])[:1])


def flattened_once(step: Any, graph: Any, without: Any, left: Any, make: Any = stage.step_spec) -> Any:
    """A Flatten takes each PCollection once."""
    spec = make(step, graph, without, left)
    return replace(spec, inputs=tuple(dict.fromkeys(spec.inputs)))


def marks_at_once(self: Any, *arguments: Any, at: Any = Shard._at) -> Any:
    """The watermark of a round goes before its panes."""
    yield from at(self, *arguments)
    self._find_common()
    self._send_marks(arguments[0])


def same_numbers(graph: Any, numbers: Any = side_views._numbers) -> Any:
    """A bounded side input has the number of the edge that the query makes."""
    return {edge: edge for edge in numbers(graph)}


MUTANTS: dict[str, tuple[Any, str, Any, Way, int]] = {
    "a second reader gets nothing": (worker.Stage, "tee", first_only, Way("batch"), 0),
    "tags are swapped": (stage, "step_spec", swapped, Way("batch"), 0),
    "a PCollection is flattened once": (stage, "step_spec", flattened_once, Way("batch"), 0),
    "the watermark of a round goes first": (Shard, "_at", marks_at_once, Way("micro_batch"), 18),
}
"""The breaks, each with the way that shows it, and the first program to try."""


def test_a_side_input_that_is_taken_for_an_input_is_found_when_it_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_views, "_numbers", same_numbers)
    assert any("KeyError" in error for error in bare_errors(range(5)))
    with pytest.raises(KeyError):
        faults_of(programs()[0], Way("streaming"))


def test_elements_that_count_twice_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "forget_steps", lambda *arguments: None)
    with pytest.raises(AssertionError, match="'2 metric': 14"):
        test_a_step_that_leads_to_a_side_input_and_to_the_query_counts_its_elements_once()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken, way, first = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, broken)
    assert any(faults_of(program, way) for program in programs()[first : first + 10])
