"""ParDo on Spark: the life of a DoFn, all it can ask for, and all it can give."""

import resource
import sys
import traceback

import pytest

import penstock as beam
from penstock import pvalue
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindow,
    IntervalWindow,
    SlidingWindows,
    TimestampedValue,
)
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import WindowedValue

pytestmark = pytest.mark.spark


def note(path, event):
    with open(path, "a") as log:
        log.write(event + "\n")


class Lively(beam.DoFn):
    """Writes down what is called, and fails where it is told to."""

    def __init__(self, log, fails=()):
        super().__init__()
        self.log = str(log)
        self.fails = fails

    def _called(self, name):
        note(self.log, name)
        if name in self.fails:
            raise ArithmeticError(f"{name} broke")

    def setup(self):
        self._called("setup")
        self.ready = True

    def start_bundle(self):
        self._called("start_bundle")
        self.seen = []

    def process(self, element):
        self._called("process")
        assert self.ready
        self.seen.append(element)
        yield element

    def finish_bundle(self):
        self._called("finish_bundle")
        yield WindowedValue(sum(self.seen), 7, [GlobalWindow()])
        yield pvalue.TaggedOutput("count", WindowedValue(len(self.seen), MIN_TIMESTAMP, [GlobalWindow()]))

    def teardown(self):
        self._called("teardown")


def with_time(element, timestamp=beam.DoFn.TimestampParam):
    return element, timestamp.micros


def with_window(element, window=beam.DoFn.WindowParam):
    return element, window


def test_a_dofn_lives_from_setup_over_its_bundles_to_teardown(tmp_path):
    log = tmp_path / "log"
    with TestPipeline() as p:
        once = p | beam.Create([[1, 2, 3]]) | beam.FlatMap()
        outputs = once | beam.ParDo(Lively(log)).with_outputs("count", main="main")
        timed = outputs.main | beam.Map(with_time)
        start = MIN_TIMESTAMP.micros
        assert_that(timed, equal_to([(1, start), (2, start), (3, start), (6, 7_000_000)]), label="main")
        assert_that(outputs.count, equal_to([3]), label="count")
    events = log.read_text().split()
    assert events == ["setup", "start_bundle", "process", "process", "process", "finish_bundle", "teardown"]


@pytest.mark.parametrize("method", ["setup", "start_bundle", "process", "finish_bundle", "teardown"])
def test_an_exception_in_any_method_is_raised_as_it_is_and_the_dofn_is_torn_down(method, tmp_path):
    log = tmp_path / "log"
    p = TestPipeline()
    _ = p | beam.Create([1]) | "The lively step" >> beam.ParDo(Lively(log, [method]))
    with pytest.raises(ArithmeticError, match=rf"^{method} broke") as caught:
        p.run()
    text = "".join(traceback.format_exception(caught.value))
    assert "The lively step" in text
    assert "test_pardo.py:" in text
    assert log.read_text().split()[-1] == "teardown"


def test_an_exception_in_teardown_does_not_hide_the_one_that_came_before(tmp_path):
    log = tmp_path / "log"
    for method in ("setup", "process"):
        p = TestPipeline()
        _ = p | beam.Create([1]) | beam.ParDo(Lively(log, [method, "teardown"]))
        with pytest.raises(ArithmeticError, match=rf"^{method} broke"):
            p.run()


def test_every_step_of_a_stage_is_torn_down_although_one_fails(tmp_path):
    p = TestPipeline()
    first = p | beam.Create([1]) | "First" >> beam.ParDo(Lively(tmp_path / "first", ["teardown"]))
    _ = first | "Second" >> beam.ParDo(Lively(tmp_path / "second"))
    with pytest.raises(ArithmeticError):
        p.run()
    assert "teardown" in (tmp_path / "second").read_text()


def test_only_windowed_values_may_leave_finish_bundle():
    class Plain(beam.DoFn):
        def process(self, element):
            return None

        def finish_bundle(self):
            return [1]

    p = TestPipeline()
    _ = p | beam.Create([1]) | beam.ParDo(Plain())
    with pytest.raises(TypeError, match="finish_bundle yielded a value of type int"):
        p.run()


class Asks(beam.DoFn):
    """Asks for everything that batch has."""

    def __init__(self, log):
        super().__init__()
        self.log = str(log)

    def process(
        self,
        element,
        factor,
        timestamp=beam.DoFn.TimestampParam,
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
        key=beam.DoFn.KeyParam,
        finalizer=beam.DoFn.BundleFinalizerParam,
        *,
        offset=5,
    ):
        finalizer.register(lambda: note(self.log, "finalized"))
        yield key, element[1] * factor + offset, timestamp, window, pane.is_first and pane.is_last


def test_process_can_ask_for_time_window_pane_key_side_inputs_and_finalizers(tmp_path):
    log = tmp_path / "log"
    with TestPipeline() as p:
        factor = p | "Factor" >> beam.Create([10])
        pairs = p | beam.Create([TimestampedValue(("k", 1), 12)]) | beam.WindowInto(FixedWindows(10))
        asked = pairs | beam.ParDo(Asks(log), beam.pvalue.AsSingleton(factor), offset=2)
        window = IntervalWindow(10, 20)
        assert_that(asked, equal_to([("k", 12, Timestamp(12), window, True)]))
    assert log.read_text().split() == ["finalized"]


class Contexts(beam.DoFn):
    def process(
        self,
        element,
        life=beam.DoFn.SetupContextParam(lambda: Managed("life")),
        bundle=beam.DoFn.BundleContextParam(lambda: Managed("bundle")),
    ):
        return [(life.name, life.is_open, bundle.name, bundle.is_open)]


class Managed:
    is_open = False

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *_):
        self.is_open = False


def test_contexts_are_open_while_elements_are_processed():
    with TestPipeline() as p:
        contexts = p | beam.Create([1]) | beam.ParDo(Contexts())
        assert_that(contexts, equal_to([("life", True, "bundle", True)]))


def test_a_dofn_that_asks_for_its_window_sees_each_window_of_an_element():
    with TestPipeline() as p:
        element = p | beam.Create([TimestampedValue("x", 12)]) | beam.WindowInto(SlidingWindows(10, 5))
        windows = [("x", IntervalWindow(5, 15)), ("x", IntervalWindow(10, 20))]
        assert_that(element | beam.Map(with_window), equal_to(windows))


def sort_out(number):
    if number % 2:
        yield pvalue.TaggedOutput("odd", number)
    if number % 5 == 0:
        yield pvalue.TaggedOutput("nobody asked for it", number)
    if number % 4 == 0:
        yield number


def test_tagged_values_go_to_the_output_of_their_tag_and_undeclared_ones_nowhere():
    with TestPipeline() as p:
        numbers = p | beam.Create(range(10))
        declared = numbers | "Declared" >> beam.FlatMap(sort_out).with_outputs("odd", "never", main="rest")
        assert_that(declared.odd, equal_to([1, 3, 5, 7, 9]), label="odd")
        assert_that(declared.rest, equal_to([0, 4, 8]), label="rest")
        assert_that(declared["never"], equal_to([]), label="never")
        rest, odd, never = numbers | "Unpacked" >> beam.FlatMap(sort_out).with_outputs(
            "odd", "never", main="rest"
        )
        together = (rest, odd, never) | beam.Flatten()
        assert_that(together, equal_to([0, 4, 8, 1, 3, 5, 7, 9]), label="together")
        asked = numbers | "Asked" >> beam.FlatMap(sort_out).with_outputs()
        assert_that(asked.odd, equal_to([1, 3, 5, 7, 9]), label="asked odd")
        assert_that(asked[None], equal_to([0, 4, 8]), label="asked main")
        undeclared = numbers | "Undeclared" >> beam.FlatMap(sort_out)
        assert_that(undeclared, equal_to([0, 4, 8]), label="undeclared")


def test_tagged_values_may_carry_timestamps_and_windows():
    def tag(number):
        yield pvalue.TaggedOutput("timed", TimestampedValue(number, 13))
        yield pvalue.TaggedOutput("windowed", WindowedValue(number, 4, [IntervalWindow(5, 10)]))
        yield WindowedValue(number, 2, [IntervalWindow(0, 5)])

    with TestPipeline() as p:
        one = p | beam.Create([TimestampedValue(1, 1)]) | beam.WindowInto(FixedWindows(5))
        outputs = one | beam.FlatMap(tag).with_outputs("timed", "windowed", main="main")
        for name, seconds, window in (
            ("timed", 13, IntervalWindow(10, 15)),
            ("windowed", 4, IntervalWindow(5, 10)),
            ("main", 2, IntervalWindow(0, 5)),
        ):
            reified = outputs[name] | name >> beam.Map(
                lambda x, t=beam.DoFn.TimestampParam, w=beam.DoFn.WindowParam: (x, t, w)
            )
            assert_that(reified, equal_to([(1, Timestamp(seconds), window)]), label=f"{name} is right")


def test_a_new_timestamp_moves_an_element_to_the_windows_of_that_time_as_in_beam():
    def move(x):
        return TimestampedValue(x, 25)

    def sometimes(x):
        return TimestampedValue(x, 25) if x == 2 else x

    with TestPipeline() as p:
        old = p | beam.Create([TimestampedValue(1, 1), TimestampedValue(2, 2)])
        old |= beam.WindowInto(FixedWindows(10))
        new, before = IntervalWindow(20, 30), IntervalWindow(0, 10)
        all_moved = old | "All" >> beam.Map(move) | "Window of all" >> beam.Map(with_window)
        assert_that(all_moved, equal_to([(1, new), (2, new)]), label="all")
        one_moved = old | "One" >> beam.Map(sometimes) | "Window of one" >> beam.Map(with_window)
        assert_that(one_moved, equal_to([(1, before), (2, new)]), label="one")


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (
        1024 if sys.platform == "linux" else 1024**2
    )


class Many(beam.DoFn):
    """A million elements of a kilobyte each from one element; tells how far the process grew."""

    def process(self, element):
        before = peak_megabytes()
        for number in range(element):
            yield number, b"x" * 1000
        yield pvalue.TaggedOutput("grown", peak_megabytes() - before)


def test_a_million_elements_from_one_element_take_bounded_memory():
    with TestPipeline() as p:
        outputs = p | beam.Create([1_000_000]) | beam.ParDo(Many()).with_outputs("grown", main="many")
        sizes = outputs.many | beam.MapTuple(lambda _, text: len(text))
        assert_that(sizes | beam.CombineGlobally(sum), equal_to([1_000_000_000]), label="all of them")
        assert_that(outputs.grown | beam.Map(lambda grown: grown < 200), equal_to([True]), label="grown")


def stop_at_two(x):
    if x == 2:
        raise StopIteration
    return x


@pytest.mark.parametrize(
    "make",
    [
        lambda: beam.Map(stop_at_two),
        lambda: beam.Filter(stop_at_two),
        lambda: beam.FlatMap(lambda x: [stop_at_two(x)]),
        lambda: beam.MapTuple(lambda *x: stop_at_two(x[0])),
        lambda: beam.Map(lambda x, t=beam.DoFn.TimestampParam: stop_at_two(x)),
    ],
)
def test_stop_iteration_from_user_code_is_an_error_and_never_the_end_of_the_data(make):
    p = TestPipeline()
    transform = make()
    wrapped = p | beam.Create([1, 2, 3, 4], reshuffle=False)
    if "MapTuple" in transform.label:
        wrapped |= "Tuple" >> beam.Map(lambda x: (x,))
    _ = wrapped | "It stops" >> transform
    with pytest.raises((RuntimeError, StopIteration), match="stops"):
        p.run()


def test_the_short_forms_take_further_arguments():
    with TestPipeline() as p:
        pairs = p | beam.Create([("a", 1), ("b", 2)])
        three = p | "Three" >> beam.Create([3])
        side = beam.pvalue.AsSingleton(three)
        tupled = pairs | beam.MapTuple(lambda k, v, times=1, more=0: k * v * times + str(more), 2, more=side)
        assert_that(tupled, equal_to(["aa3", "bbbb3"]), label="map tuple")
        flat = pairs | beam.FlatMapTuple(lambda k, v, end="": [k] * v + [end], end="!")
        assert_that(flat, equal_to(["a", "!", "b", "b", "!"]), label="flat map tuple")
        kept = pairs | beam.Filter(lambda kv, least: kv[1] * 2 > least, least=side)
        assert_that(kept, equal_to([("b", 2)]), label="filter")
        truthy = (
            p | "Truthy" >> beam.Create([0, 1, "", "x", None, [0]]) | "Itself" >> beam.Filter(lambda x: x)
        )
        assert_that(truthy, equal_to([1, "x", [0]]), label="truthy")


class ByLength(beam.PartitionFn):
    def partition_for(self, element, num_partitions, offset):
        return (len(element) + offset) % num_partitions


def test_partition_divides_and_refuses_numbers_out_of_range():
    with TestPipeline() as p:
        words = p | beam.Create(["", "a", "bb", "ccc", "dddd"])
        zero, one, two = words | beam.Partition(ByLength(), 3, 1)
        assert_that(zero, equal_to(["bb"]), label="zero")
        assert_that(one, equal_to(["", "ccc"]), label="one")
        assert_that(two, equal_to(["a", "dddd"]), label="two")
    for bad in (2, -1, "0", 0.0):
        p = TestPipeline()
        _ = p | beam.Create([1]) | beam.Partition(lambda x, n: bad, 2)
        with pytest.raises(ValueError, match="PartitionFn"):
            p.run()


def test_a_chain_of_a_thousand_steps_runs_as_one_stage():
    with TestPipeline() as p:
        number = p | beam.Create([0])
        for step in range(1000):
            number |= f"Step {step}" >> beam.FlatMap(lambda x, t=beam.DoFn.TimestampParam: [x + 1])
        assert_that(number, equal_to([1000]))


def test_one_dofn_object_in_two_steps_is_two_instances(tmp_path):
    class Counts(beam.DoFn):
        def setup(self):
            self.count = 0

        def process(self, element):
            self.count += 1
            yield self.count

    dofn = Counts()
    with TestPipeline() as p:
        once = p | beam.Create(["x"])
        first = once | "First" >> beam.ParDo(dofn)
        second = once | "Second" >> beam.ParDo(dofn)
        assert_that(first, equal_to([1]), label="first")
        assert_that(second, equal_to([1]), label="second")
