"""A stage at work: programs made by hand, run without any plan."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy
import pyarrow as pa
import pytest
from pyspark import TaskContext

import penstock as beam
from penstock.graph import ParDo
from penstock.transforms.core import Windowing
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.plan.hosts import InPython
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from penstock_spark.stages.stage import Stage, seed_random, stage_function
from penstock_spark.worker.batch import decode_page, dumps_with_code
from penstock_spark.worker.program import (
    GroupWriterSpec,
    InlineRoot,
    PageWriterSpec,
    SinkWriterSpec,
    StageProgram,
    StepSpec,
)
from penstock_spark.worker.rows import EXCHANGE

GLOBALLY = Windowing(GlobalWindows())


def step(
    label: str, dofn: Any, inputs: tuple[int, ...], *edges: int, tags: tuple[str | None, ...] = (None,)
) -> StepSpec:
    primitive = None if dofn is None else ParDo(dofn)
    outputs = tuple(zip(tags, edges, strict=True))
    return StepSpec(label, f"at step {label!r}", primitive, inputs, outputs, windowing=GLOBALLY)


def pages(edge: int, output: int = 0, **spread: Any) -> PageWriterSpec:
    return PageWriterSpec(edge, output, 0, "at step 'Out'", "Out", **spread)


def program(
    *steps: StepSpec, writers: tuple[Any, ...] = (), values: tuple[Any, ...] = (1, 2, 3)
) -> StageProgram:
    return StageProgram("run", 0, (InlineRoot(0, values),), steps, writers)


def records_of(made: StageProgram, partition: int = 0) -> list[pa.RecordBatch]:
    return list(Stage(made, partition, {}).run(iter([pa.record_batch({"id": [0]})])))


def values_of(records: list[pa.RecordBatch], output: int = 0) -> list[Any]:
    rows = [row for record in records for row in record.to_pylist() if row["output"] == output]
    assert all(record.schema == EXCHANGE for record in records)
    return [value for row in rows for value in decode_page(row["value"]).values]


def mapped(fn: Any) -> Any:
    return beam.Map(fn).dofn


class Diary(beam.DoFn):
    """Writes down what is called, and fails where it is told to."""

    def __init__(self, name, diary, fails_in=()):
        self.name, self.diary, self.fails_in = name, diary, fails_in

    def note(self, what):
        self.diary.append(f"{self.name} {what}")
        if what in self.fails_in:
            raise ValueError(f"{self.name} {what}")

    def setup(self):
        self.note("setup")

    def start_bundle(self):
        self.note("start")

    def process(self, x):
        self.note("process")
        yield x

    def finish_bundle(self):
        self.note("finish")

    def teardown(self):
        self.note("teardown")


def test_steps_and_writers_read_their_edges_and_an_edge_read_twice_counts_twice():
    made = program(
        step("Double", mapped(lambda x: 2 * x), (0,), 1),
        step(
            "Split",
            beam.FlatMap(lambda x: [x, beam.pvalue.TaggedOutput("t", -x)]).dofn,
            (1,),
            2,
            3,
            tags=(None, "t"),
        ),
        step("Join", None, (0, 2, 2), 4),
        writers=(pages(4), pages(3, output=1), pages(0, output=2)),
    )
    records = records_of(made)
    assert sorted(values_of(records)) == [1, 2, 2, 2, 3, 4, 4, 6, 6]
    assert values_of(records, 1) == [-2, -4, -6]
    assert values_of(records, 2) == [1, 2, 3]


@pytest.mark.parametrize(("shards", "by_key"), [(1, False), (4, False), (4, True)])
def test_elements_that_are_spread_all_arrive_and_those_of_a_key_together(shards, by_key):
    elements = tuple((number % 5, number) for number in range(30))
    records = records_of(
        program(writers=(pages(0, shards=shards, by_key=by_key),), values=elements), partition=9
    )
    rows = [
        (row["first"], decode_page(row["value"]).values) for record in records for row in record.to_pylist()
    ]
    assert sorted(pair for _, values in rows for pair in values) == sorted(elements)
    assert all(0 <= shard < shards for shard, _ in rows)
    where = {(key, shard) for shard, values in rows for key, _ in values}
    assert len(where) == 5 if by_key else max(len(values) for _, values in rows) <= -(-30 // shards)


def test_a_task_that_runs_again_has_the_same_random_numbers(monkeypatch):
    step_that_draws = step("Draw", mapped(lambda x: random.random()), (0,), 1)
    made = replace(program(step_that_draws, writers=(pages(1),)), seed="run")

    def drawn(made, partition=0):
        task = SimpleNamespace(partitionId=lambda: partition)
        monkeypatch.setattr(TaskContext, "get", staticmethod(lambda: task))
        run = stage_function(dumps_with_code(made), {}, None, ())
        return values_of(list(run(iter([pa.record_batch({"id": [0]})]))))

    once = drawn(made)
    assert drawn(made) == once
    others = [drawn(made, 1), drawn(replace(made, stage=1)), drawn(replace(made, seed="another run"))]
    numbers = [*once, *(number for own in others for number in own)]
    assert len({*numbers}) == len(numbers)
    left_to_chance = replace(made, seed="")
    assert drawn(left_to_chance) != drawn(left_to_chance)


def test_a_stage_calls_the_life_cycle_in_order_bundle_by_bundle(monkeypatch):
    monkeypatch.setattr("penstock_spark.stages.stage.BUNDLE_ELEMENTS", 2)
    monkeypatch.setattr("penstock_spark.worker.inline.CHUNK_ELEMENTS", 1)
    diary: list[str] = []
    records_of(program(step("A", Diary("a", diary), (0,), 1), step("B", Diary("b", diary), (1,), 2)))
    bundle = ["a start", "b start", *["a process", "b process"] * 2, "a finish", "b finish"]
    last = ["a start", "b start", "a process", "b process", "a finish", "b finish"]
    assert diary == ["a setup", "b setup", *bundle, *last, "a teardown", "b teardown"]


@pytest.mark.parametrize(
    ("fails_in", "raised", "torn_down"),
    [
        (("setup",), "b setup", ["a", "b"]),
        (("start",), "b start", ["a", "b", "c"]),
        (("process",), "b process", ["a", "b", "c"]),
        (("finish",), "b finish", ["a", "b", "c"]),
        (("teardown",), "b teardown", ["a", "b", "c"]),
        (("process", "teardown"), "b process", ["a", "b", "c"]),
    ],
)
def test_a_failed_stage_tears_down_what_it_set_up_and_raises_the_first_error(fails_in, raised, torn_down):
    diary: list[str] = []
    dofns = [Diary("a", diary), Diary("b", diary, fails_in), Diary("c", diary)]
    steps = [step(dofn.name.upper(), dofn, (edge,), edge + 1) for edge, dofn in enumerate(dofns)]
    with pytest.raises(StepFailure) as caught:
        records_of(program(*steps))
    error = to_exception(find_failure(str(caught.value)))
    assert (type(error), str(error)) == (ValueError, f"{raised} [while running 'B']")
    assert [line.split()[0] for line in diary if line.endswith("teardown")] == torn_down


def test_a_stage_that_is_read_in_part_tears_down():
    diary: list[str] = []
    made = program(step("A", Diary("a", diary), (0,), 1), writers=(pages(1),))
    records = Stage(made, 0, {}).run(iter([pa.record_batch({"id": [0]})]))
    next(records)
    records.close()
    assert diary[-1] == "a teardown"


class Lines:
    """An encoder with a header and a footer."""

    def start(self):
        return pa.record_batch({"line": ["header"]})

    def encode(self, values):
        return pa.record_batch({"line": [str(value) for value in values]})

    def finish(self):
        return pa.record_batch({"line": ["footer"]})


@pytest.mark.parametrize("values", [(), (1, 2)])
def test_a_sink_has_its_first_and_last_rows_in_every_task(values):
    records = records_of(program(writers=(SinkWriterSpec(0, Lines, "at step 'Out'"),), values=values))
    assert [line for record in records for line in record["line"].to_pylist()] == [
        "header",
        *map(str, values),
        "footer",
    ]


class OddTimes(FixedWindows):
    def get_transformed_output_time(self, window, input_timestamp):
        raise LookupError("no time")


class OddKey:
    def __setstate__(self, state):
        pass

    def __getstate__(self):
        raise LookupError("no state")


class Odd:
    def __reduce__(self):
        raise LookupError("not to be pickled")


ODD_TIMES = Windowing(
    OddTimes(5), timestamp_combiner=beam.window.TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED
)
LISTS = beam.CombineFn.from_callable(list)


@pytest.mark.parametrize(
    ("windowing", "element", "combine", "kind"),
    [
        (ODD_TIMES, ("k", 1), None, LookupError),
        (ODD_TIMES, ("k", 1), LISTS, LookupError),
        (GLOBALLY, (OddKey(), 1), None, LookupError),
        (GLOBALLY, (OddKey(), 1), LISTS, LookupError),
        (GLOBALLY, (frozenset(), 1), None, TypeError),
        (GLOBALLY, "kv", None, TypeError),
        (GLOBALLY, ("k", Odd()), None, LookupError),
    ],
)
def test_an_error_at_a_grouping_names_the_grouping(windowing, element, combine, kind):
    spec = GroupWriterSpec(0, 0, 0, "at step 'Group'", "Group", windowing, combine, InPython(""))
    with pytest.raises(StepFailure) as caught:
        records_of(program(writers=(spec,), values=(element,)))
    error = to_exception(find_failure(str(caught.value)))
    assert type(error) is kind
    assert "'Group'" in str(error)


def test_a_task_that_runs_again_draws_the_same_numbers_and_another_one_others() -> None:
    seeded = replace(program(), seed="checkpoint")

    def drawn(*task: int) -> tuple[float, float]:
        seed_random(seeded, *task)
        return random.random(), float(numpy.random.random())

    first, other = drawn(3, 0), drawn(3, 1)
    assert drawn(3, 0) == first
    assert not set(first) & set(other)
    before = random.getstate(), numpy.random.get_state()[2]
    seed_random(program(), 3, 0)
    assert (random.getstate(), numpy.random.get_state()[2]) == before, (
        "a program without a seed seeds nothing"
    )
