"""The matchers of assert_that, and the steps that assert_that is made of."""

import pickle
from typing import NamedTuple

import pytest

from penstock import graph
from penstock.pipeline import Pipeline
from penstock.pvalue import Row
from penstock.testing import util
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import (
    AssertThat,
    BeamAssertException,
    TestWindowedValue,
    assert_that,
    contains_in_any_order,
    equal_to,
    equal_to_approx,
    equal_to_per_window,
    has_at_least_one,
    is_empty,
    is_not_empty,
    matches_all,
    row_namedtuple_equals_fn,
)
from penstock.transforms.core import Create, WindowInto
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow


class Point(NamedTuple):
    x: int
    y: int


class Bag:
    """Neither hashable nor sortable."""

    __hash__ = None

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Bag) and self.number == other.number

    def __repr__(self):
        return f"Bag({self.number})"


class Even:
    def matches(self, element):
        return element % 2 == 0


@pytest.mark.parametrize(
    ("matcher", "actual"),
    [
        (equal_to([1, 2, 2]), [2, 1, 2]),
        (equal_to([]), []),
        (equal_to(iter([1])), [1]),
        (equal_to([1, "a", None, (1,)]), [None, (1,), "a", 1]),
        (equal_to([Bag(1), Bag(2)]), [Bag(2), Bag(1)]),
        (equal_to([{"a": [1]}, {"b": 2}]), [{"b": 2}, {"a": [1]}]),
        (equal_to([{1}, {2}, {1, 2}]), [{1, 2}, {2}, {1}]),
        (equal_to([Row(x=1, y=2)]), [Point(1, 2)]),
        (equal_to([("k", contains_in_any_order([1, 2]))]), [("k", [2, 1])]),
        (equal_to(["1", "2"], equals_fn=lambda e, a: int(e) == a), [2, 1]),
        (equal_to_approx([1.0, 2, ("a", [3.0])]), [("a", [3.0000000001]), 2.0, 1]),
        (equal_to_approx([0.0, 5], abs_tol=0.1), [0.05, 5]),
        (equal_to_approx(["a"]), ["a"]),
        (matches_all([Even(), 3]), [3, 4]),
        (is_empty(), []),
        (is_not_empty(), [None]),
    ],
)
def test_a_matcher_takes_elements_in_any_order_and_can_be_pickled(matcher, actual):
    assert matcher(actual) is None
    if getattr(matcher, "equals_fn", None) is None:
        pickle.loads(pickle.dumps(matcher))(actual)


@pytest.mark.parametrize(
    ("matcher", "actual", "text"),
    [
        (
            equal_to(["a", "b", "d"]),
            ["a", "b", "c"],
            r"unexpected elements \['c'\], missing elements \['d'\]$",
        ),
        (equal_to([1]), [1, 1], r"== \[1, 1\], unexpected elements \[1\]$"),
        (equal_to([[1, 2]]), [[2, 1]], r"unexpected elements \[\[2, 1\]\]"),
        (equal_to([Bag(1), 2]), [2], r"missing elements \[Bag\(1\)\]$"),
        (equal_to(range(100)), [], r"19, \.\.\. and 80 more, 100 in all\]$"),
        (equal_to([]), ["x" * 1000], r"\(1002 characters\)\]$"),
        (equal_to([Row(x=1)]), [Point(1, 2)], "missing elements"),
        (equal_to_approx([1.0]), [1.1], "missing elements"),
        (equal_to_approx([(1.0,)]), [[1.0]], "missing elements"),
        (matches_all([Even()]), [3], r"unexpected elements \[3\]"),
        (is_empty(), [1], r"Failed assert: \[\] == \[1\]"),
        (is_not_empty(), [], "pcol is empty"),
    ],
)
def test_a_failed_match_shows_what_is_missing_and_unexpected(matcher, actual, text):
    with pytest.raises(BeamAssertException, match=text):
        matcher(actual)


def windowed(value, start):
    return TestWindowedValue(value, start, [IntervalWindow(start, start + 10)])


def test_elements_match_by_window_as_often_as_wanted():
    matcher = equal_to_per_window({IntervalWindow(0, 10): [("k", [1]), 2], IntervalWindow(10, 20): [3]})
    for _ in range(2):
        matcher([windowed(3, 10), windowed(2, 0), windowed(("k", [1]), 0)])


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        ([windowed(1, 50)], "not found in any expected windows"),
        ([windowed(2, 0)], "element 2 not found in window"),
        ([], r"unmatched elements \[1\] in window"),
        ([1], "reify_windows=True"),
    ],
)
def test_a_failed_match_by_window_says_which_window(actual, text):
    with pytest.raises(BeamAssertException, match=text):
        equal_to_per_window({IntervalWindow(0, 10): [1]})(actual)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (Row(x=1, y=2), Point(1, 2), True),
        (Point(1, 2), Row(y=2, x=1), True),
        (Row(a=Row(x=1, y=2)), Row(a=Point(1, 2)), True),
        (Row(x=1, y=2, z=3), Point(1, 2), False),
        (Row(x=1), "x", False),
        ("x", "x", True),
    ],
)
def test_rows_and_named_tuples_of_the_same_fields_are_equal(first, second, equal):
    assert row_namedtuple_equals_fn(first, second) is equal


def test_any_order_compares_as_bags_and_is_not_equal_to_what_has_no_elements():
    assert contains_in_any_order([1, [2]]) == contains_in_any_order([[2], 1])
    assert contains_in_any_order([1, 1]) != [1]
    assert contains_in_any_order([1]) != 1


def steps_of(pipeline, label):
    steps = [step for step in pipeline.to_graph().steps if step.label.split("/")[0] == label]
    return [type(step.primitive).__name__ for step in steps]


def test_assert_that_is_few_steps():
    pipeline = Pipeline()
    numbers = pipeline | Create([1])
    assert_that(numbers, equal_to([1]), label="plain")
    assert_that(numbers | WindowInto(FixedWindows(5)), equal_to([1]), label="windowed")
    assert_that(numbers, is_not_empty(), label="each", use_global_window=False)
    few = ["AssignWindows", "AssignWindows", "Flatten", "GroupByKey", "ParDo", "ParDo", "Read"]
    assert sorted(steps_of(pipeline, "plain")) == sorted(steps_of(pipeline, "windowed")) == few
    assert steps_of(pipeline, "each").count("ParDo") == 3


def test_labels_that_are_used_already_get_a_number_also_inside_of_composites():
    pipeline = Pipeline()
    numbers = pipeline | Create([1])
    for _ in range(3):
        assert_that(numbers, equal_to([1]))
    numbers | AssertThat(equal_to([1]))
    has_at_least_one(numbers, lambda element, time, window, pane: True)
    labels = {step.label.split("/")[0] for step in pipeline.to_graph().steps}
    numbered = {f"assert_that_{number}" for number in (2, 3, 4)}
    assert labels == {"Create", "AssertThat", "has_at_least_one", "assert_that", *numbered}


def test_a_stream_can_be_asserted_on():
    pipeline = Pipeline()
    stream = pipeline | TestStream().add_elements([1]).advance_watermark_to_infinity()
    assert_that(stream, equal_to([1]))
    assert steps_of(pipeline, "assert_that").count("GroupByKey") == 1


def match_step(matcher):
    pipeline = Pipeline()
    assert_that(pipeline | Create([1]), matcher, label="check")
    [step] = [step for step in pipeline.to_graph().steps if step.label == "check/Match"]
    assert isinstance(step.primitive, graph.ParDo)
    return step.primitive.dofn.match


def test_a_failure_names_the_step_and_the_users_line():
    match = match_step(equal_to([1, 2]))
    match((None, [(), (2,), (1,)]))
    with pytest.raises(
        BeamAssertException, match=r"(?s)missing elements \[2\].*'check' \(test_assert_.*py:\d+\)"
    ):
        match((None, [(1,), ()]))
    with pytest.raises(BeamAssertException, match="missing elements"):
        match((None, [()]))


def test_an_error_of_the_users_own_matcher_keeps_its_type_and_gets_a_note():
    def own(actual):
        raise AssertionError("mine")

    with pytest.raises(AssertionError, match=r"^mine\n") as caught:
        match_step(own)((None, [(1,)]))
    assert "at step 'check'" in caught.value.__notes__[0]


def test_a_predicate_that_is_false_fails_the_test():
    with pytest.raises(
        BeamAssertException, match=r"the matcher returned False\n  at step 'check' \(.*\n  hint: let"
    ):
        match_step(lambda actual: actual == [2])((None, [(1,)]))
    assert match_step(lambda actual: actual == [1])((None, [(1,)]))


def test_assert_that_refuses_what_is_no_pcollection_and_pipelines_that_have_run():
    with pytest.raises(AssertionError, match="list is not a supported type"):
        assert_that([1], equal_to([1]))
    pipeline = Pipeline()
    numbers = pipeline | Create([1])
    pipeline.result = object()
    with pytest.raises(RuntimeError, match="within a Pipeline context"):
        assert_that(numbers, equal_to([1]))


def test_shards_open_as_one_file_in_the_order_of_their_names(tmp_path):
    (tmp_path / "out-1").write_text("b\n")
    (tmp_path / "out-0").write_text("a\n")
    with util.open_shards(str(tmp_path / "out-*")) as together:
        assert together.read() == "a\nb\n"
    with util.open_shards(str(tmp_path / "out-*"), "rb") as together:
        assert together.read() == b"a\nb\n"


def test_sort_lists_sorts_inside_of_tuples_and_dicts():
    assert util._sorted_lists(("k", [2, 1], {"a": {3, 1}}, 5)) == ("k", [1, 2], {"a": [1, 3]}, 5)


def test_reified_values_compare_with_all_their_parts():
    one = TestWindowedValue(1, 0, [GlobalWindow()])
    assert one == TestWindowedValue(1, 0, [GlobalWindow()], util.PANE_INFO_UNKNOWN)
    assert one != TestWindowedValue(1, 1, [GlobalWindow()])


class Run:
    def __init__(self, state):
        self.state = state
        self.durations = []

    def wait_until_finish(self, duration=None):
        self.durations.append(duration)
        return self.state


class FakeRunner:
    def __init__(self, state):
        self.run = Run(state)

    def run_pipeline(self, pipeline, options):
        return self.run


def test_a_test_pipeline_waits_and_fails_unless_the_run_succeeded():
    runner = FakeRunner("DONE")
    with TestPipeline(runner, timeout=5) as pipeline:
        assert pipeline.get_pipeline_options() is pipeline.options
    assert runner.run.durations[0] == 5
    with pytest.raises(AssertionError, match="Pipeline execution failed: the run ended as FAILED"):
        TestPipeline(FakeRunner("FAILED")).run()
    with pytest.raises(AssertionError, match="the timeout has passed"):
        TestPipeline(FakeRunner(None)).run()
    assert TestPipeline(FakeRunner("RUNNING"), blocking=False).run().durations == []


def test_a_test_pipeline_takes_options_from_its_command_line_argument():
    argv = ["--test-pipeline-options=--streaming --runner=Fake --model_path=x"]
    pipeline = TestPipeline(argv=argv, additional_pipeline_args=["--mode=batch"])
    assert pipeline.options.get_all_options()["streaming"] is True
    assert pipeline.get_option("--runner") == "Fake"
    assert pipeline.get_option("streaming", bool_option=True) is True
    assert pipeline.get_option("model") is None
    flags = pipeline.get_full_options_as_args(a=True, b=None, c=3)
    assert flags == ["--streaming", "--runner=Fake", "--model_path=x", "--mode=batch", "--a", "--c=3"]


def test_an_integration_test_without_options_is_skipped():
    from unittest import SkipTest

    with pytest.raises(SkipTest, match="test-pipeline-options"):
        TestPipeline(argv=[], is_integration_test=True)
