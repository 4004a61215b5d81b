"""What only shows when a pipeline runs: errors of user code, things that cannot travel, and nothing at all."""

import os
import subprocess
import sys
import textwrap
import threading
import traceback

import pytest

import penstock as beam
from penstock import pvalue
from penstock.error import RunnerError
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, Sessions

pytestmark = pytest.mark.spark


def text_of(error):
    return "".join(traceback.format_exception(error))


def fails(x):
    raise ArithmeticError("it broke")


def fails_late(x):
    yield x
    raise ArithmeticError("it broke")


class FailsInCombine(beam.CombineFn):
    def create_accumulator(self):
        return 0

    def add_input(self, accumulator, element):
        return fails(element)


@pytest.mark.parametrize(
    "transform",
    [
        lambda: beam.Map(fails),
        lambda: beam.FlatMap(fails),
        lambda: beam.FlatMap(fails_late),
        lambda: beam.Filter(fails),
        lambda: beam.MapTuple(lambda x, y: fails(x)),
        lambda: beam.Map(lambda x, t=beam.DoFn.TimestampParam: fails(x)),
        lambda: beam.Partition(lambda x, n: fails(x), 2),
        lambda: beam.CombineGlobally(FailsInCombine()),
        lambda: beam.CombinePerKey(FailsInCombine()),
        lambda: beam.GroupBy(fails),
        lambda: beam.Select(x=fails),
        lambda: beam.WithKeys(fails),
        lambda: beam.combiners.Top.Largest(1, key=fails),
    ],
)
def test_an_exception_of_user_code_keeps_its_type_and_names_step_file_and_line(transform):
    p = TestPipeline()
    result = p | beam.Create([("secret", "word")]) | "The step" >> transform()
    if isinstance(result, pvalue.PCollection):
        _ = result | "Read it" >> beam.Map(str)
    with pytest.raises(ArithmeticError, match="it broke") as caught:
        p.run()
    text = text_of(caught.value)
    assert "The step" in text
    assert "test_bad_input_on_spark.py:" in text
    assert "in fails" in text
    assert "hint: " in text
    assert "secret" not in text


class TwoArguments(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: KeyError("k"), KeyError, "k"),
        (lambda: TwoArguments("one", "two"), RunnerError, "TwoArguments: one and two"),
        (lambda: ValueError("x" * 200_000), (RunnerError, ValueError), "xxx"),
        (lambda: ValueError(threading.Lock()), RunnerError, "ValueError: <unlocked"),
        (lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeDecodeError, "bad"),
        (lambda: OSError(2, "gone", "file"), FileNotFoundError, "gone"),
        (lambda: AssertionError(), AssertionError, ""),
        (lambda: StopIteration(), (RuntimeError, StopIteration), "StopIteration"),
        (lambda: SystemExit(3), RunnerError, ""),
        (lambda: type("Local", (Exception,), {})("local"), Exception, "local"),
    ],
)
def test_exceptions_of_every_kind_come_back_as_themselves_or_by_name(make, kind, text):
    def raise_it(x):
        raise make()

    p = TestPipeline()
    _ = p | beam.Create([1]) | "The step" >> beam.Map(raise_it)
    with pytest.raises(kind) as caught:
        p.run()
    assert text in text_of(caught.value)
    assert isinstance(caught.value, RunnerError) or "The step" in text_of(caught.value)


def test_the_cause_of_an_exception_of_user_code_is_in_the_text():
    def chained(x):
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("outer") from error

    p = TestPipeline()
    _ = p | beam.Create([1]) | "The step" >> beam.Map(chained)
    with pytest.raises(ValueError, match="outer") as caught:
        p.run()
    assert "in chained" in text_of(caught.value)


class Locked(beam.DoFn):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def process(self, element):
        yield element


class LockedCombine(beam.CombineFn):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


LOCK = threading.Lock()


def uses_a_lock():
    lock = LOCK
    return lambda x: lock.locked() or x


@pytest.mark.parametrize(
    "transform",
    [
        lambda: beam.ParDo(Locked()),
        lambda: beam.Map(uses_a_lock()),
        lambda: beam.Map(lambda x, lock: x, threading.Lock()),
        lambda: beam.CombinePerKey(LockedCombine()),
        lambda: beam.ParDo(Locked()).with_exception_handling(),
    ],
)
def test_what_cannot_be_sent_to_a_worker_is_refused_with_three_parts(transform):
    p = TestPipeline()
    result = p | "In" >> beam.Create([(1, 2)]) | "The step" >> transform()
    if isinstance(result, pvalue.PCollection):
        _ = result | "Read it" >> beam.Map(str)
    with pytest.raises(RuntimeError, match="Unable to pickle") as caught:
        p.run()
    text = str(caught.value)
    assert "lock" in text
    assert "at step 'The step" in text
    assert "test_bad_input_on_spark.py:" in text
    assert "hint: " in text


def test_values_of_the_program_that_cannot_be_pickled_are_refused_by_their_step():
    p = TestPipeline()
    _ = p | "In" >> beam.Create([threading.Lock()]) | beam.Map(lambda x: 1)
    with pytest.raises(RuntimeError, match="at step 'In'"):
        p.run()


def look_at(p, elements):
    one = p | "Other" >> beam.Create([1])
    return one | "The step" >> beam.Map(lambda x, s: 1, pvalue.AsList(elements))


@pytest.mark.parametrize(
    "transform",
    [
        lambda p, e: e | beam.Map(lambda x: (1, x)) | "The step" >> beam.GroupByKey() | beam.Map(len),
        lambda p, e: e | "The step" >> beam.Reshuffle() | beam.Map(lambda x: 1),
        lambda p, e: e | "The step" >> beam.combiners.ToList() | beam.Map(len),
        lambda p, e: e | "The step" >> beam.Distinct() | beam.Map(lambda x: 1),
        look_at,
    ],
)
def test_elements_that_cannot_be_pickled_are_refused_where_they_would_have_to_travel(transform):
    p = TestPipeline()
    elements = p | beam.Create([1]) | "The step before" >> beam.Map(lambda x: threading.Lock())
    _ = transform(p, elements)
    with pytest.raises(TypeError) as caught:
        p.run()
    assert "The step" in text_of(caught.value)
    assert "hint: " in text_of(caught.value)


def test_elements_that_cannot_be_pickled_may_stay_where_they_are():
    with TestPipeline() as p:
        stays = (
            p
            | beam.Create([1])
            | beam.Map(lambda x: threading.Lock())
            | "Use" >> beam.Map(lambda x: x.locked())
        )
        assert_that(stays, equal_to([False]))


def test_nothing_goes_through_every_transform():
    with TestPipeline() as p:
        empty = p | beam.Create([])
        flat = {
            "map": beam.Map(fails),
            "flat map": beam.FlatMap(fails),
            "filter": beam.Filter(fails),
            "group": beam.GroupByKey(),
            "group by": beam.GroupBy(fails),
            "sum per key": beam.CombinePerKey(sum),
            "distinct": beam.Distinct(),
            "reshuffle": beam.Reshuffle(),
            "keys": beam.Keys(),
            "count per key": beam.combiners.Count.PerKey(),
            "count per element": beam.combiners.Count.PerElement(),
            "top per key": beam.combiners.Top.LargestPerKey(2),
            "sum": beam.CombineGlobally(sum).without_defaults(),
            "batches": beam.BatchElements(),
            "group into batches": beam.GroupIntoBatches(2),
            "select": beam.Select("a"),
            "fixed": beam.WindowInto(FixedWindows(5)),
            "sessions": beam.WindowInto(Sessions(5)),
            "to string": beam.ToString.Element(),
            "regex": beam.Regex.matches("a"),
            "hot keys": beam.CombinePerKey(sum).with_hot_key_fanout(2),
            "swap": beam.KvSwap(),
        }
        for name, transform in flat.items():
            assert_that(empty | name >> transform, equal_to([]), label=f"{name} of nothing")
        for name, transform, expected in (
            ("count", beam.combiners.Count.Globally(), [0]),
            ("list", beam.combiners.ToList(), [[]]),
            ("dict", beam.combiners.ToDict(), [{}]),
            ("set", beam.combiners.ToSet(), [set()]),
            ("top", beam.combiners.Top.Largest(1), [[]]),
            ("sample", beam.combiners.Sample.FixedSizeGlobally(1), [[]]),
        ):
            assert_that(empty | name >> transform, equal_to(expected), label=f"{name} of nothing")
        for name, transform in (
            ("handled", beam.Map(fails).with_exception_handling()),
            ("parts", beam.Partition(fails, 2)),
        ):
            for number, output in enumerate(empty | name >> transform):
                assert_that(output, equal_to([]), label=f"{name} {number} of nothing")
        joined = {"a": empty, "b": empty} | beam.CoGroupByKey()
        assert_that(joined, equal_to([]), label="join of nothing")


_PRINTED_LINES = 30
PROGRAM = """
    import logging
    import sys
    import penstock as beam

    logging.basicConfig(level=logging.DEBUG if "--debug" in sys.argv else logging.INFO)

    def parse(line):
        raise ValueError("cannot parse")

    with beam.Pipeline(runner="SparkRunner", master="local[1]", fast_start=True) as p:
        lines = p | beam.Create(["top secret line"]) | beam.Map(lambda x: x)
        groups = lines | beam.Map(lambda x: (x, x)) | beam.GroupByKey() | beam.FlatMap(lambda kv: kv[1])
        groups | "Parse" >> beam.Map(parse)
"""


def test_no_element_shows_in_what_a_failing_program_prints(tmp_path):
    program = tmp_path / "main.py"
    program.write_text(textwrap.dedent(PROGRAM))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    run = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False
    )
    printed = run.stdout + run.stderr
    assert run.returncode == 1
    assert "ValueError: cannot parse" in printed
    assert "'Parse' (main.py:" in printed
    assert "line 9, in parse" in printed
    assert "secret" not in printed
    shown = [line for line in printed.splitlines() if line.startswith("  File ")]
    assert [line.rpartition(" in ")[2] for line in shown] == ["<module>", "parse"]
    assert printed.count("Traceback") == printed.count("cannot parse [") == 1
    assert printed.count("\n") < _PRINTED_LINES
