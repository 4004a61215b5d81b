"""Runs all that is run on the cluster, pipelines as users write them, and prints as JSON what it saw of each."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import helper_of_pipelines
import import_before_and_after
import transcripts
from pyspark import TaskContext

import penstock as beam
from penstock.error import RunnerError
from penstock.metrics.metric import MetricResults, Metrics, MetricsFilter
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock_spark.session.classic.standalone import is_known_to_master
from penstock_spark.session.session import SessionOptions, session_for

LINES = ["to be or not", "to be", "that is the question"] * 20


class Square(NamedTuple):
    """A key of a class that only this program has."""

    column: str
    row: int


class CountLong(beam.DoFn):
    """Passes words on, and counts the long ones."""

    long = Metrics.counter("words", "long")
    length = Metrics.distribution("words", "length")

    def process(self, word: str) -> Iterator[str]:
        self.length.update(len(word))
        if len(word) > 3:
            self.long.inc()
        yield word


class StandStill(beam.DoFn):
    """Passes numbers on; the first attempt of the second task stands still after half of them."""

    numbers = Metrics.counter("numbers", "passed")

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def process(self, number: int) -> Iterator[int]:
        task = TaskContext.get()
        assert task is not None
        self.numbers.inc()
        if task.partitionId() == 1 and number >= 500:
            mark = self.folder / f"attempt-{task.attemptNumber()}"
            if task.attemptNumber() == 0 and not mark.exists():
                mark.touch()
                time.sleep(30)
            mark.touch()
        yield number


def word_count(folder: Path) -> Any:
    """Reads and writes files; what is written is read by the program."""
    (folder / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    with beam.Pipeline() as pipeline:
        _ = (
            pipeline
            | beam.io.ReadFromText(f"{folder}/lines.txt")
            | beam.FlatMap(str.split)
            | beam.combiners.Count.PerElement()
            | beam.MapTuple(lambda word, count: f"{word}: {count}")
            | beam.io.WriteToText(f"{folder}/counts", ".txt")
        )
    return sorted(line for part in folder.glob("counts*") for line in part.read_text().splitlines())


def side_inputs(folder: Path) -> Any:
    """A number and a mapping that every worker gets."""
    with TestPipeline() as pipeline:
        names = pipeline | "Names" >> beam.Create({"a": "Anna", "b": "Bert"})
        factor = pipeline | "Factor" >> beam.Create([10])
        scores = pipeline | "Scores" >> beam.Create([("a", 1), ("b", 2), ("a", 3)])
        named = scores | beam.Map(
            lambda score, names, factor: (names[score[0]], score[1] * factor),
            names=beam.pvalue.AsDict(names),
            factor=beam.pvalue.AsSingleton(factor),
        )
        assert_that(named, equal_to([("Anna", 10), ("Bert", 20), ("Anna", 30)]))
    return "as expected"


def keys_of_the_main_program(folder: Path) -> Any:
    """Groups by keys of a class of this file, and sends them back as that class."""
    with TestPipeline() as pipeline:
        moves = pipeline | beam.Create(
            [(Square("abc"[number % 3], number % 2), number) for number in range(60)]
        )
        groups = (
            moves | beam.GroupByKey() | beam.MapTuple(lambda square, numbers: (square, len(list(numbers))))
        )
        expected = [(Square(column, row), 10) for column in "abc" for row in range(2)]
        assert_that(groups, equal_to(expected), label="groups")
        assert_that(groups | beam.Map(lambda group: group[0].column), equal_to([*"aabbcc"]), label="fields")
    return "as expected"


def module_beside_the_program(folder: Path) -> Any:
    """A function and a class of a module that the workers do not have."""
    with TestPipeline() as pipeline:
        words = pipeline | beam.Create(["b", "a", "b"])
        loud = words | beam.Map(helper_of_pipelines.shout)
        assert_that(loud | helper_of_pipelines.CountEach(), equal_to([("A", 1), ("B", 2)]))
    return "as expected"


def failing_function(folder: Path) -> Any:
    """An error of the user's own class is raised here as that class."""
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([2, 3]) | "Halve" >> beam.Map(helper_of_pipelines.half)
    try:
        pipeline.run().wait_until_finish()
    except helper_of_pipelines.NotEvenError as error:
        return str(error)
    return "no error"


def failing_assertion(folder: Path) -> Any:
    """An assertion that does not hold."""
    try:
        with TestPipeline() as pipeline:
            assert_that(pipeline | beam.Create([1, 2]), equal_to([1, 3]))
    except AssertionError as error:
        return str(error)
    return "no error"


def metrics(folder: Path) -> Any:
    """What the workers have counted."""
    pipeline = beam.Pipeline()
    words = pipeline | beam.Create(LINES) | beam.FlatMap(str.split)
    _ = words | beam.ParDo(CountLong()) | beam.combiners.Count.PerElement()
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace("words"))
    (counter,) = found[MetricResults.COUNTERS]
    (length,) = found[MetricResults.DISTRIBUTIONS]
    return [counter.committed, length.committed.count, length.committed.min, length.committed.max]


def a_task_that_runs_twice_at_once(folder: Path) -> Any:
    """The attempts of a task that takes long, the lines written, the count, and what else is where they are."""
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create(range(1000)) | beam.Reshuffle(num_buckets=2)
    passed = numbers | beam.ParDo(StandStill(folder))
    _ = passed | beam.io.WriteToText(f"{folder}/passed/numbers")
    result = pipeline.run()
    result.wait_until_finish()
    (counter,) = result.metrics().query(MetricsFilter().with_namespace("numbers"))[MetricResults.COUNTERS]
    files = list((folder / "passed").iterdir())
    lines = sorted(int(line) for file in files for line in file.read_text().splitlines())
    attempts = sorted(mark.name for mark in folder.glob("attempt-*"))
    return [attempts, lines == [*range(1000)], counter.committed, len(files)]


def shipping(folder: Path) -> Any:
    """What the workers can import before the packages are shipped and after."""
    return import_before_and_after.answers()


def transcripts_in_both_modes(folder: Path) -> Any:
    """The number of transcripts and what is wrong, by mode."""
    return transcripts.outcomes(folder)


def what_the_master_knows(folder: Path) -> Any:
    """Of this program, of one that it has forgotten, and where no master is."""
    context = session_for(SessionOptions()).sparkContext
    own = SimpleNamespace(
        _jvm=context._jvm, _jsc=context._jsc, master=context.master, applicationId=context.applicationId
    )
    forgotten = SimpleNamespace(**{**vars(own), "applicationId": "app-20260101000000-0000"})
    elsewhere = SimpleNamespace(**{**vars(own), "master": "spark://127.0.0.1:1"})
    either = SimpleNamespace(**{**vars(own), "master": f"spark://127.0.0.1:1,{own.master[8:]}"})
    return list(map(is_known_to_master, (own, forgotten, elsewhere, either)))


def checkpoint_of_the_driver_alone(folder: Path) -> Any:
    """What a stream says whose checkpoint is in the working folder of whoever looks."""
    options = ["--mode=streaming", "--checkpoint_location=/proc/self/cwd/checkpoint"]
    pipeline = beam.Pipeline(argv=options)
    _ = pipeline | beam.Create([("a", 1)]) | beam.CombinePerKey(sum)
    try:
        pipeline.run().wait_until_finish()
    except RunnerError as error:
        return str(error)
    return "no error"


PARTS: tuple[Callable[[Path], Any], ...] = (
    # It comes first, because a pipeline ships the packages.
    shipping,
    word_count,
    side_inputs,
    keys_of_the_main_program,
    module_beside_the_program,
    failing_function,
    failing_assertion,
    metrics,
    a_task_that_runs_twice_at_once,
    transcripts_in_both_modes,
    checkpoint_of_the_driver_alone,
    what_the_master_knows,
)


def main(folder: str) -> None:
    """Prints an outcome for each part, by name; the outcome of a part that fails is its traceback."""
    outcomes = {}
    for run in PARTS:
        try:
            outcomes[run.__name__] = run(Path(folder))
        except Exception:
            outcomes[run.__name__] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
