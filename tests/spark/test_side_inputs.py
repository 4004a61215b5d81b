"""Side inputs on Spark: every view, how windows match, and PCollections that look at themselves."""

import traceback

import pytest

import penstock as beam
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton, EmptySideInput
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, GlobalWindows, SlidingWindows, TimestampedValue

pytestmark = pytest.mark.spark


def timed(p, label, pairs):
    return p | label >> beam.Create([TimestampedValue(value, at) for value, at in pairs])


@pytest.mark.every_spark
def test_each_view_gives_the_elements_in_its_own_way():
    with TestPipeline() as p:
        one = p | "One" >> beam.Create(["x"])
        pairs = p | "Pairs" >> beam.Create([("a", 1), ("b", 2), ("b", 3)])
        unique = p | "Unique" >> beam.Create([("a", 1), (None, 2), ((1, "t"), None)])
        single = one | "Single" >> beam.Map(lambda x, side: (x, side), AsSingleton(p | beam.Create([7])))
        assert_that(single, equal_to([("x", 7)]), label="single")
        listed = one | "List" >> beam.Map(lambda x, s: (len(s), sorted(s), s[0] in s), AsList(pairs))
        assert_that(listed, equal_to([(3, [("a", 1), ("b", 2), ("b", 3)], True)]), label="list")
        twice = one | "Iter" >> beam.Map(lambda x, s: sorted(s) == sorted(s) and len(list(s)), AsIter(pairs))
        assert_that(twice, equal_to([3]), label="an iterable can be read twice")
        table = one | "Dict" >> beam.Map(lambda x, s: s == {"a": 1, None: 2, (1, "t"): None}, AsDict(unique))
        assert_that(table, equal_to([True]), label="dict")
        many = one | "Multi" >> beam.Map(
            lambda x, s: (sorted(s["b"]), list(s["a"]), list(s["not there"])), AsMultiMap(pairs)
        )
        assert_that(many, equal_to([([2, 3], [1], [])]), label="multimap")


def test_an_empty_side_input_is_empty_in_every_view_and_a_singleton_has_its_default():
    with TestPipeline() as p:
        one = p | "One" >> beam.Create(["x"])
        empty = p | "Empty" >> beam.Create([])
        flat = () | beam.Flatten(pipeline=p)
        for name, view, expected in (
            ("default", AsSingleton(empty, 5), 5),
            ("default none", AsSingleton(empty, None), None),
            ("list", AsList(empty), []),
            ("flat", AsList(flat), []),
            ("dict", AsDict(empty), {}),
        ):
            assert_that(
                one | name >> beam.Map(lambda x, s: s, view), equal_to([expected]), label=f"{name} is"
            )
        kinds = one | "Kind" >> beam.Map(lambda x, s: type(s).__name__, AsSingleton(empty))
        assert_that(kinds, equal_to([EmptySideInput.__name__]), label="no default")
        sizes = one | "Sizes" >> beam.Map(
            lambda x, i, m: (len(list(i)), list(m["k"])), AsIter(empty), AsMultiMap(empty)
        )
        assert_that(sizes, equal_to([(0, [])]), label="sizes")


def test_a_singleton_of_several_elements_is_refused_with_the_step_and_without_the_elements():
    p = TestPipeline()
    several = p | "Several" >> beam.Create(["secret one", "secret two"])
    _ = p | beam.Create([1]) | "Reads a singleton" >> beam.Map(lambda x, s: s, AsSingleton(several))
    with pytest.raises(ValueError, match="2 elements is read as a singleton") as caught:
        p.run()
    text = "".join(traceback.format_exception(caught.value))
    assert "Reads a singleton" in text
    assert "test_side_inputs.py:" in text
    assert "secret one" not in text


def test_a_step_without_elements_does_not_mind_a_bad_singleton():
    with TestPipeline() as p:
        several = p | "Several" >> beam.Create([1, 2])
        nothing = p | beam.Create([]) | beam.Map(lambda x, s: s, AsSingleton(several))
        assert_that(nothing, equal_to([]))


def test_a_windowed_side_input_is_matched_by_the_window_of_the_element():
    with TestPipeline() as p:
        main = timed(p, "Main", [("a", 1), ("b", 12), ("c", 25)])
        side = timed(p, "Side", [(1, 2), (2, 3), (10, 13)])
        fixed = FixedWindows(10)
        windowed = side | "Side windows" >> beam.WindowInto(fixed)
        same = main | "Main windows" >> beam.WindowInto(fixed)
        matched = same | beam.Map(lambda x, s: (x, sorted(s)), AsList(windowed))
        assert_that(matched, equal_to([("a", [1, 2]), ("b", [10]), ("c", [])]), label="same windows")
        smaller = main | "Small" >> beam.WindowInto(FixedWindows(5))
        looked_up = smaller | "Up" >> beam.Map(lambda x, s: (x, sorted(s)), AsIter(windowed))
        assert_that(looked_up, equal_to([("a", [1, 2]), ("b", [10]), ("c", [])]), label="smaller windows")
        sliding = main | "Slide" >> beam.WindowInto(SlidingWindows(20, 10))
        each = sliding | "Each" >> beam.Map(lambda x, s: (x, sorted(s)), AsIter(windowed))
        expected = [("a", []), ("a", [10]), ("b", [10]), ("b", []), ("c", []), ("c", [])]
        expected[0] = ("a", [1, 2])
        assert_that(each, equal_to(expected), label="an element in two windows is processed in both")
        whole = same | "Whole" >> beam.Map(lambda x, s: (x, sorted(s)), AsList(side))
        assert_that(whole, equal_to([(x, [1, 2, 10]) for x in "abc"]), label="global side input")
        default = same | "Default" >> beam.Map(
            lambda x, s: (x, s), windowed | beam.CombineGlobally(sum).as_singleton_view()
        )
        assert_that(default, equal_to([("a", 3), ("b", 10), ("c", 0)]), label="combined, with a default")
        ends = main | "Global" >> beam.WindowInto(GlobalWindows())
        last = ends | "Last" >> beam.Map(lambda x, s: (x, list(s)), AsIter(windowed))
        assert_that(last, equal_to([(x, []) for x in "abc"]), label="global main input")


def test_a_sliding_side_input_is_read_in_the_latest_window_that_holds_the_end():
    with TestPipeline() as p:
        main = timed(p, "Main", [("a", 1)]) | "Main windows" >> beam.WindowInto(FixedWindows(10))
        side = timed(p, "Side", [(1, 2), (2, 7), (3, 12)])
        side |= "Side windows" >> beam.WindowInto(SlidingWindows(10, 5))
        seen = main | beam.Map(lambda x, s: sorted(s), AsList(side))
        # The end of [0, 10) lies in [0, 10) and [5, 15); Beam's mapping takes the last of the list: [0, 10).
        assert_that(seen, equal_to([[1, 2]]))


def test_a_pcollection_can_be_its_own_side_input_and_side_inputs_can_be_chained():
    with TestPipeline() as p:
        numbers = p | beam.Create([1, 2, 3])
        total = numbers | beam.CombineGlobally(sum)
        share = numbers | "Share" >> beam.Map(lambda x, t: (x, t), AsSingleton(total))
        assert_that(share, equal_to([(1, 6), (2, 6), (3, 6)]), label="derived")
        itself = numbers | "Itself" >> beam.Map(lambda x, s: (x, sorted(s)), AsList(numbers))
        assert_that(itself, equal_to([(x, [1, 2, 3]) for x in (1, 2, 3)]), label="itself")
        fused = numbers | "Above" >> beam.Filter(lambda x: x > 1)
        kept = numbers | "Kept" >> beam.Filter(lambda x, s: x in list(s), AsIter(fused))
        assert_that(kept, equal_to([2, 3]), label="from the same stage")
        deeper = kept | "Deeper" >> beam.Map(lambda x, k, t: x * len(k) + t, AsList(kept), AsSingleton(total))
        assert_that(deeper, equal_to([10, 12]), label="a chain")
        again = deeper | "Again" >> beam.Map(lambda x, d: x - min(d), AsList(deeper))
        assert_that(again, equal_to([0, 2]), label="a longer chain")
        both = numbers | "Both" >> beam.Map(
            lambda x, a, b: (x, len(a), len(b)), AsList(again), AsList(numbers)
        )
        assert_that(both, equal_to([(1, 2, 3), (2, 2, 3), (3, 2, 3)]), label="back to the first")
        joined = (numbers, deeper) | beam.Flatten()
        flat = joined | "Flat" >> beam.Map(lambda x, s: x + len(s), AsList(again))
        assert_that(flat, equal_to([3, 4, 5, 12, 14]), label="below a Flatten of early and late")
        grouped = numbers | beam.Map(lambda x, t: (t % 2, x), AsSingleton(total)) | beam.GroupByKey()
        sizes = grouped | "Sizes" >> beam.MapTuple(lambda k, v: (k, sorted(v)))
        assert_that(sizes, equal_to([(0, [1, 2, 3])]), label="a grouping below")


class Between(beam.CombineFn):
    """The sum of the inputs between two bounds that come as arguments."""

    def create_accumulator(self, low, high):
        return 0

    def add_input(self, accumulator, element, low, high):
        return accumulator + element * (low <= element <= high)

    def merge_accumulators(self, accumulators, low, high):
        return sum(accumulators)

    def extract_output(self, accumulator, low, high):
        return low, accumulator, high


def test_side_inputs_are_arguments_of_filter_flat_map_and_combiners():
    with TestPipeline() as p:
        pairs = p | beam.Create([("a", 1), ("a", 5), ("b", 3), ("b", 9)])
        low = p | "Low" >> beam.Create([2])
        high = p | "High" >> beam.Create([6])
        bounds = AsSingleton(low), AsSingleton(high)
        kept = pairs | beam.Filter(lambda kv, low, high: low <= kv[1] <= high, *bounds)
        assert_that(kept, equal_to([("a", 5), ("b", 3)]), label="filter")
        flat = pairs | beam.FlatMap(lambda kv, low: [kv[0]] * low, low=bounds[0])
        assert_that(flat, equal_to(list("aabb" * 2)), label="flat map")
        per_key = pairs | beam.CombinePerKey(Between(), *bounds)
        assert_that(per_key, equal_to([("a", (2, 5, 6)), ("b", (2, 3, 6))]), label="combine per key")
        mixed = pairs | "Mixed" >> beam.CombinePerKey(Between(), 0, high=bounds[1])
        assert_that(mixed, equal_to([("a", (0, 6, 6)), ("b", (0, 3, 6))]), label="constant and side input")
        groups = pairs | beam.GroupByKey() | beam.CombineValues(Between(), *bounds)
        assert_that(groups, equal_to([("a", (2, 5, 6)), ("b", (2, 3, 6))]), label="combine values")
        parts = pairs | beam.Partition(lambda kv, n, low: int(kv[1] > low), 2, bounds[0])
        assert_that(parts[1], equal_to([("a", 5), ("b", 3), ("b", 9)]), label="partition")


def test_a_side_input_larger_than_a_page_arrives_whole():
    with TestPipeline() as p:
        many = p | "Many" >> beam.Create([0]) | beam.FlatMap(lambda _: range(100_000))
        table = many | beam.Map(lambda x: (x, -x))
        looked_up = (
            p | beam.Create([1, 99_999]) | "Look" >> beam.Map(lambda x, t: (t[x], len(t)), AsDict(table))
        )
        assert_that(looked_up, equal_to([(-1, 100_000), (-99_999, 100_000)]))


@pytest.mark.parametrize(
    ("view", "elements", "error"),
    [(AsDict, [1, 2], TypeError), (AsMultiMap, [(1, 2, 3)], TypeError), (AsDict, [([], 1)], TypeError)],
)
def test_elements_that_do_not_fit_a_view_are_an_error_that_names_the_reading_step(view, elements, error):
    p = TestPipeline()
    side = p | "Side" >> beam.Create(elements).with_output_types(beam.typehints.Any)
    _ = p | beam.Create([1]) | "Reading step" >> beam.Map(lambda x, s: len(s), view(side))
    with pytest.raises(error) as caught:
        p.run()
    assert "Reading step" in "".join(traceback.format_exception(caught.value))
