"""Dead letters on Spark: failing elements go to an output of their own, and only they."""

import os
import time

import pytest

import penstock as beam
from penstock import pvalue
from penstock.pvalue import AsSingleton
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue

pytestmark = pytest.mark.spark


def invert(x):
    return 1 / x


def brief(letter):
    element, (kind, text, lines) = letter
    names_this_file = any("test_dead_letters.py" in line for line in lines)
    return element, kind.__name__, text, names_this_file or lines


ZERO = (0, "ZeroDivisionError", "ZeroDivisionError('division by zero')", True)


def test_every_short_form_sends_failing_elements_with_their_exception_to_the_dead_letters():
    with TestPipeline() as p:
        numbers = p | beam.Create([2, 0, 4])
        pairs = numbers | "Pairs" >> beam.Map(lambda x: (x, 8))
        cases = [
            ("map", beam.Map(invert), [0.5, 0.25]),
            ("flat map", beam.FlatMap(lambda x: [invert(x)] * 2), [0.5, 0.5, 0.25, 0.25]),
            ("filter", beam.Filter(lambda x: invert(x) > 0.3), [2]),
            ("side", beam.Map(lambda x, s: s / x, AsSingleton(p | "S" >> beam.Create([1]))), [0.5, 0.25]),
        ]
        for name, transform, expected in cases:
            good, bad = numbers | name >> transform.with_exception_handling()
            assert_that(good, equal_to(expected), label=f"{name} good")
            assert_that(bad | f"{name} brief" >> beam.Map(brief), equal_to([ZERO]), label=f"{name} bad")
        good, bad = pairs | beam.MapTuple(lambda x, y: y / x).with_exception_handling(
            main_tag="a", dead_letter_tag="b"
        )
        assert_that(good, equal_to([4.0, 2.0]), label="tuples good")
        assert_that(bad | beam.Map(lambda letter: letter[0]), equal_to([(0, 8)]), label="tuples bad")


def halting(x):
    yield x
    if x == 2:
        raise ValueError("after one")
    yield pvalue.TaggedOutput("more", -x)


@pytest.mark.parametrize(("partial", "main"), [(False, [1]), (True, [1, 2])])
def test_what_came_before_a_failure_is_kept_only_if_asked_for_and_tags_stay(partial, main):
    with TestPipeline() as p:
        handled = (
            beam.FlatMap(halting).with_outputs("more", main="main").with_exception_handling(partial=partial)
        )
        outputs = p | beam.Create([1, 2]) | handled
        assert_that(outputs.main, equal_to(main), label="main")
        assert_that(outputs.more, equal_to([-1]), label="more")
        assert_that(outputs.bad | beam.Map(lambda letter: letter[0]), equal_to([2]), label="bad")


def test_only_the_exceptions_asked_for_are_caught():
    p = TestPipeline()
    _ = p | beam.Create([0]) | beam.Map(invert).with_exception_handling(exc_class=(ValueError, KeyError))
    with pytest.raises(ZeroDivisionError):
        p.run()
    with TestPipeline() as p:
        good, bad = (
            p | beam.Create([0, 1]) | beam.Map(invert).with_exception_handling(exc_class=ArithmeticError)
        )
        assert_that(good, equal_to([1.0]), label="good")
        assert_that(bad | beam.Map(brief), equal_to([ZERO]), label="bad")


@pytest.mark.parametrize(("threshold", "fails"), [(0.5, False), (0.49, True), (0, True), (1, False)])
def test_too_large_a_share_of_failing_elements_fails_the_pipeline(threshold, fails):
    p = TestPipeline()
    good, _ = p | beam.Create([0, 0, 1, 2]) | beam.Map(invert).with_exception_handling(threshold=threshold)
    assert_that(good, equal_to([1.0, 0.5]))
    if fails:
        with pytest.raises(ValueError, match="exceeded threshold"):
            p.run()
    else:
        assert p.run().state == "DONE"


def test_the_share_is_taken_per_window():
    for size, fails in ((10, True), (100, False)):
        p = TestPipeline()
        timed = p | beam.Create([TimestampedValue(x, at) for x, at in [(0, 1), (1, 12), (2, 13), (4, 14)]])
        windows = FixedWindows(size)
        _ = timed | beam.Map(invert).with_exception_handling(threshold=0.5, threshold_windowing=windows)
        if fails:
            with pytest.raises(ValueError, match="exceeded threshold"):
                p.run()
        else:
            assert p.run().state == "DONE"


def test_dead_letters_keep_time_and_window():
    with TestPipeline() as p:
        timed = p | beam.Create([TimestampedValue(0, 15)]) | beam.WindowInto(FixedWindows(10))
        _, bad = timed | beam.Map(invert).with_exception_handling()
        seen = bad | beam.Map(
            lambda _, t=beam.DoFn.TimestampParam, w=beam.DoFn.WindowParam: (int(t), int(w.start))
        )
        assert_that(seen, equal_to([(15, 10)]))


class Lively(beam.DoFn):
    """Needs its life cycle; hangs on one element."""

    def setup(self):
        self.ready = 1

    def start_bundle(self):
        self.ready += 1

    def process(self, element):
        if element == "slow":
            time.sleep(5)
        yield element, self.ready


def test_the_life_of_the_dofn_goes_on_inside_and_elements_that_take_too_long_are_dead_letters():
    with TestPipeline() as p:
        good, bad = (
            p
            | beam.Create(["quick", "slow"], reshuffle=False)
            | beam.ParDo(Lively()).with_exception_handling(timeout=0.3)
        )
        assert_that(good, equal_to([("quick", 2)]), label="good")
        kinds = bad | beam.Map(lambda letter: (letter[0], issubclass(letter[1][0], TimeoutError)))
        assert_that(kinds, equal_to([("slow", True)]), label="bad")


class Custom(Exception):
    """An exception that cannot be pickled as usual."""

    def __init__(self, a, b):
        super().__init__("custom")
        self.pair = (a, b)


def test_exceptions_that_cannot_travel_are_dead_letters_all_the_same():
    def fail(x):
        raise Custom(x, 2)

    with TestPipeline() as p:
        _, bad = p | beam.Create([1]) | beam.Map(fail).with_exception_handling()
        grouped = bad | beam.Map(lambda letter: (letter[0], letter[1][0].__name__)) | beam.GroupByKey()
        assert_that(
            grouped | beam.MapTuple(lambda k, v: (k, list(v))), equal_to([(1, ["Custom"])]), label="named"
        )
        spread = bad | beam.Reshuffle() | "Kind" >> beam.Map(lambda letter: letter[1][0] is Custom)
        assert_that(spread, equal_to([True]), label="sent on")


def ends_if_negative(x, offset):
    if x < 0:
        os._exit(3)
    return x + offset, os.getpid()


def test_what_ends_a_child_process_is_a_dead_letter_and_no_lost_worker():
    with TestPipeline() as p:
        offset = AsSingleton(p | "Offset" >> beam.Create([10]))
        numbers = p | beam.Create([1, -1, 2, -2, 3])
        handled = beam.Map(ends_if_negative, offset).with_exception_handling(use_subprocess=True)
        good, bad = numbers | handled
        worker = p | "One" >> beam.Create([0]) | "Worker" >> beam.Map(lambda _: os.getpid())
        sums = good | "Sums" >> beam.Map(lambda pair: pair[0])
        apart = good | "Apart" >> beam.Map(lambda pair, pid: pair[1] != pid, AsSingleton(worker))
        texts = bad | "Texts" >> beam.Map(lambda letter: (letter[0], "exit code 3" in letter[1][1]))
        assert_that(sums, equal_to([11, 12, 13]), label="good")
        assert_that(apart, equal_to([True] * 3), label="apart")
        assert_that(texts, equal_to([(-1, True), (-2, True)]), label="bad")
