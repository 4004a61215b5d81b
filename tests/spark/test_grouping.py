"""Grouping on Spark: which keys are the same, groups of any size, and what is put together or spread."""

import collections
import dataclasses
import enum
import traceback
import typing

import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, GlobalWindow, TimestampedValue
from penstock.utils.windowed_value import WindowedValue

pytestmark = pytest.mark.spark


class Team(typing.NamedTuple):
    name: str
    size: int | None


@dataclasses.dataclass(frozen=True)
class Place:
    row: int
    column: float


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def sorted_group(pair):
    return pair[0], sorted(pair[1], key=repr)


def shown(pair):
    """The key as text, since 1, 1.0 and True are equal in Python."""
    return repr(pair[0]), sorted(pair[1])


def grouped(p, label, pairs, as_text=True):
    made = (
        p | label >> beam.Create(pairs).with_output_types(typing.Any) | f"{label} groups" >> beam.GroupByKey()
    )
    return made | f"{label} sorted" >> beam.Map(shown if as_text else sorted_group)


def test_keys_are_the_same_if_their_encodings_are():
    keys = [
        1,
        1.0,
        True,
        "1",
        b"1",
        None,
        0.0,
        -0.0,
        False,
        0,
        "",
        b"",
        (),
        (1,),
        (1.0,),
        (None,),
        float("nan"),
    ]
    keys += [
        2**31,
        2**63,
        2**64,
        -(2**200),
        2**4000,
        "é",
        "e\u0301",
        "\U0001f600",
        "\x00",
        "nul\x00l",
        "\ud800",
    ]
    with TestPipeline() as p:
        pairs = [(key, turn) for turn in (1, 2) for key in keys]
        expected = [(repr(key), [1, 2]) for key in keys]
        assert_that(grouped(p, "Keys", pairs), equal_to(expected), label="alone and together")
        nested = [((key, (key, [key])), turn) for turn in (1, 2) for key in keys[:12]]
        expected = [(repr((key, (key, [key]))), [1, 2]) for key in keys[:12]]
        assert_that(grouped(p, "Nested", nested), equal_to(expected), label="in tuples and lists")


@pytest.mark.every_spark
def test_classes_of_values_can_be_keys_also_when_they_are_local():
    @dataclasses.dataclass(frozen=True)
    class Local:
        x: int

        def __repr__(self):
            return f"Local({self.x})"

    class LocalTuple(typing.NamedTuple):
        x: int

    Plain = collections.namedtuple("Plain", "x")
    keys = [Team("a", 1), Team("a", None), Place(1, 2.0), Place(1, 2), Color.RED, Color.BLUE, Local(1)]
    keys += [LocalTuple(1), Plain(1), (1,), beam.Row(x=1), beam.Row(x=1, y="b"), frozenset(), Local(2)]
    keys = [key for key in keys if not isinstance(key, frozenset)]
    with TestPipeline() as p:
        pairs = [(key, turn) for turn in (1, 2) for key in keys]
        assert_that(grouped(p, "Keys", pairs), equal_to([(repr(key), [1, 2]) for key in keys]), label="keys")
        types = p | beam.Create([(key, 1) for key in keys]).with_output_types(typing.Any) | beam.GroupByKey()
        names = types | beam.Map(lambda kv: type(kv[0]).__name__)
        assert_that(names, equal_to([type(key).__name__ for key in keys]), label="types")
        fields = types | beam.Filter(lambda kv: isinstance(kv[0], Team)) | beam.Map(lambda kv: kv[0].size)
        assert_that(fields, equal_to([1, None]), label="fields")


def test_none_is_a_key_and_a_value_like_any_other():
    with TestPipeline() as p:
        pairs = [(None, None), (None, 1), ("k", None), (None, None)]
        groups = grouped(p, "Nones", pairs, as_text=False)
        assert_that(groups, equal_to([(None, [1, None, None]), ("k", [None])]), label="groups")
        counted = p | beam.Create(pairs) | beam.combiners.Count.PerKey()
        assert_that(counted, equal_to([(None, 3), ("k", 1)]), label="counts")
        distinct = p | "Again" >> beam.Create([None, None, 0, False]) | beam.Distinct() | beam.Map(repr)
        assert_that(distinct, equal_to(["None", "0", "False"]), label="distinct")


class Opaque:
    """No value: it has no deterministic encoding."""


class Changing:
    def __init__(self):
        self.secret = "do not show"


@pytest.mark.parametrize("make", [Opaque, Changing, object, lambda: (1, Opaque()), lambda: bytearray(b"x")])
@pytest.mark.parametrize("combines", [False, True])
def test_keys_without_a_deterministic_encoding_are_refused_by_the_step(make, combines):
    transform = beam.CombinePerKey(sum) if combines else beam.GroupByKey()
    p = TestPipeline()
    pairs = p | beam.Create([1]) | beam.Map(lambda x: (make(), x)).with_output_types(typing.Any)
    _ = pairs | "The grouping" >> transform | beam.Map(len)
    with pytest.raises(TypeError, match="no deterministic encoding") as caught:
        p.run()
    text = "".join(traceback.format_exception(caught.value))
    assert "The grouping" in text
    assert "test_grouping.py:" in text
    assert "hint: use a tuple" in text
    assert "do not show" not in text


@pytest.mark.parametrize("element", [1, None, "ab", b"ab", {"a": 1, "b": 2}, {1, 2}, (1,), (1, 2, 3), ()])
def test_elements_that_are_no_pairs_are_refused_by_the_step(element):
    p = TestPipeline()
    alone = p | beam.Create([0]) | beam.Map(lambda x: element).with_output_types(typing.Any)
    _ = alone | "The grouping" >> beam.GroupByKey() | beam.Map(len)
    with pytest.raises(TypeError, match="not \\(key, value\\) pairs") as caught:
        p.run()
    assert "The grouping" in "".join(traceback.format_exception(caught.value))


def test_very_many_keys_and_a_pair_of_lists_are_grouped():
    with TestPipeline() as p:
        pairs = p | beam.Create([0, 1]) | beam.FlatMap(lambda turn: ((key, turn) for key in range(100_000)))
        groups = pairs | beam.GroupByKey()
        good = groups | beam.Map(lambda kv: sorted(kv[1]) == [0, 1]) | beam.combiners.Count.PerElement()
        assert_that(good, equal_to([(True, 100_000)]), label="many")
        lists = (
            p
            | "Lists" >> beam.Create([["k", 1], ["k", 2]]).with_output_types(typing.Any)
            | "By" >> beam.GroupByKey()
            | beam.Map(sorted_group)
        )
        assert_that(lists, equal_to([("k", [1, 2])]), label="lists of two are pairs")


def large_values(key):
    """20 MB under one key: more than what a group holds in memory."""
    return ((key, (number, "x" * 1000)) for number in range(20_000))


def read_twice(pair):
    first = sum(number for number, _ in pair[1])
    return pair[0], first, sum(number for number, _ in pair[1])


def read_a_little(pair):
    values = iter(pair[1])
    return pair[0], len(next(values)[1]), next(values)[0] != next(iter(pair[1]))[0]


class KeepsGroups(beam.DoFn):
    """Reads its groups only at the end of the bundle."""

    def start_bundle(self):
        self.groups = []

    def process(self, element):
        self.groups.append(element)

    def finish_bundle(self):
        for key, values in self.groups:
            found = key, len({number for number, _ in values})
            yield WindowedValue(found, 0, [GlobalWindow()])


def test_large_groups_are_read_lazily_as_often_as_wanted_and_whenever():
    total = sum(range(20_000))
    with TestPipeline() as p:
        keys = ["a", "b", "c"]
        groups = p | beam.Create(keys) | beam.FlatMap(large_values) | beam.GroupByKey()
        twice = groups | "Twice" >> beam.Map(read_twice)
        assert_that(twice, equal_to([(key, total, total) for key in keys]), label="twice")
        little = groups | "Little" >> beam.Map(read_a_little)
        assert_that(little, equal_to([(key, 1000, True) for key in keys]), label="a little")
        unread = groups | "Unread" >> beam.Map(lambda kv: kv[0])
        assert_that(unread, equal_to(keys), label="not at all")
        kept = groups | "Kept" >> beam.ParDo(KeepsGroups())
        assert_that(kept, equal_to([(key, 20_000) for key in keys]), label="kept")
        crossed = groups | "Crossed" >> beam.MapTuple(
            lambda k, v: sum(a[0] == b[0] for a, b in zip(v, v, strict=True))
        )
        assert_that(crossed, equal_to([20_000] * 3), label="two readers at once")
        again = groups | beam.Reshuffle() | "Count" >> beam.MapTuple(lambda k, v: (k, sum(1 for _ in v)))
        assert_that(again, equal_to([(key, 20_000) for key in keys]), label="sent on")
        nested = groups | "To one" >> beam.Map(lambda kv: (None, kv)) | "All" >> beam.GroupByKey()
        sizes = nested | beam.FlatMap(lambda kv: [(k, sum(1 for _ in v)) for k, v in kv[1]])
        assert_that(sizes, equal_to([(key, 20_000) for key in keys]), label="grouped again")


def test_flatten_takes_the_same_pcollection_twice_and_nothing_at_all():
    with TestPipeline() as p:
        ones = p | "Ones" >> beam.Create([1])
        more = [p | f"Many {number}" >> beam.Create([number]) for number in range(2, 30)]
        assert_that((ones, *more) | "Many" >> beam.Flatten(), equal_to(list(range(1, 30))), label="many")
        assert_that((ones, ones, ones) | "Thrice" >> beam.Flatten(), equal_to([1, 1, 1]), label="thrice")
        counted = (ones, ones) | "Twice" >> beam.Flatten() | beam.combiners.Count.Globally()
        assert_that(counted, equal_to([2]), label="twice")
        assert_that((ones,) | "One" >> beam.Flatten(), equal_to([1]), label="one")
        nothing = () | "Nothing" >> beam.Flatten(pipeline=p)
        assert_that(nothing, equal_to([]), label="nothing")
        assert_that(nothing | "Pairs" >> beam.GroupByKey(), equal_to([]), label="nothing grouped")
        assert_that(nothing | "Mapped" >> beam.Map(lambda x: 1 / 0), equal_to([]), label="nothing mapped")
        assert_that(nothing | beam.Reshuffle(), equal_to([]), label="nothing spread")
        assert_that((nothing, ones) | "Both" >> beam.Flatten(), equal_to([1]), label="nothing and one")
        with_more = ones | beam.FlattenWith(more[0], beam.Create([9]))
        assert_that(with_more, equal_to([1, 2, 9]), label="with")
        total = nothing | beam.CombineGlobally(sum)
        assert_that(total, equal_to([0]), label="sum of nothing")


@pytest.mark.every_spark
def test_reshuffle_keeps_every_element_with_its_time_and_windows():
    def reified(x, t=beam.DoFn.TimestampParam, w=beam.DoFn.WindowParam):
        return x, int(t), int(w.start)

    with TestPipeline() as p:
        timed = p | beam.Create([TimestampedValue(x, x) for x in range(50)])
        windowed = (
            timed | beam.WindowInto(FixedWindows(10)) | beam.Reshuffle(num_buckets=3) | beam.Map(reified)
        )
        assert_that(windowed, equal_to([(x, x, x // 10 * 10) for x in range(50)]), label="windowed")
        many = (
            p
            | "Many" >> beam.Create([None])
            | beam.FlatMap(lambda _: range(20_000))
            | "Spread" >> beam.Reshuffle()
        )
        assert_that(many | beam.CombineGlobally(sum), equal_to([sum(range(20_000))]), label="many")
        pairs = p | "Pairs" >> beam.Create([("a", Opaque.__name__), (None, None)])
        assert_that(pairs | beam.ReshufflePerKey(), equal_to([("a", "Opaque"), (None, None)]), label="by key")


def test_group_by_takes_fields_and_expressions_and_combines_fields():
    teams = [Team("red", 3), Team("blue", 4), Team("red", 5)]
    with TestPipeline() as p:
        made = p | beam.Create(teams)
        by_name = made | beam.GroupBy("name") | beam.Map(sorted_group)
        expected = [("red", [Team("red", 3), Team("red", 5)]), ("blue", [Team("blue", 4)])]
        assert_that(by_name, equal_to(expected), label="by a field")
        by_two = made | beam.GroupBy("name", odd=lambda team: team.size % 2) | "S" >> beam.Map(sorted_group)
        keys = by_two | beam.Map(lambda kv: (kv[0].name, kv[0].odd, len(kv[1])))
        assert_that(keys, equal_to([("red", 1, 2), ("blue", 0, 1)]), label="by two")
        combined = (
            made
            | beam.GroupBy(first=lambda team: team.name[0])
            .aggregate_field("size", sum, "total")
            .aggregate_field(lambda team: team.size, max, "largest")
            .aggregate_field("size", beam.combiners.MeanCombineFn(), "mean")
        ) | "T" >> beam.Map(lambda row: (row.first, row.total, row.largest, row.mean))
        assert_that(combined, equal_to([("r", 8, 5, 4.0), ("b", 4, 4, 4.0)]), label="combined")


def test_distinct_keeps_one_of_each_per_window():
    with TestPipeline() as p:
        values = [("a", 1), ("a", 2), ("a", 12), ("b", 13)]
        timed = p | beam.Create([TimestampedValue(value, at) for value, at in values])
        windowed = timed | beam.WindowInto(FixedWindows(10)) | beam.Distinct()
        starts = windowed | beam.Map(lambda x, w=beam.DoFn.WindowParam: (x, int(w.start)))
        assert_that(starts, equal_to([("a", 0), ("a", 10), ("b", 10)]))


def test_keys_of_any_class_are_pickled_if_that_is_asked_for():
    options = PipelineOptions(allow_non_deterministic_key_coders=True)
    with TestPipeline(options=options) as p:
        pairs = p | beam.Create(["a", "a", "b"]) | beam.Map(lambda x: (Named(x), 1))
        sums = pairs | beam.CombinePerKey(sum) | beam.MapTuple(lambda key, total: (key.name, total))
        assert_that(sums, equal_to([("a", 2), ("b", 1)]))
    p = TestPipeline()
    _ = p | beam.Create(["a"]) | beam.Map(lambda x: (Named(x), 1)) | beam.GroupByKey() | beam.Map(len)
    with pytest.raises(TypeError, match="no deterministic encoding"):
        p.run()


class Named:
    def __init__(self, name):
        self.name = name
