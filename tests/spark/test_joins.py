"""CoGroupByKey on Spark: shapes of inputs and outputs, and what is missing on one side."""

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue

pytestmark = pytest.mark.spark


def plain(kv):
    """The joined KV with sorted lists in place of its iterables."""
    key, values = kv
    if isinstance(values, dict):
        return key, {tag: sorted(each) for tag, each in values.items()}
    return key, tuple(sorted(each) for each in values)


def test_a_join_gives_the_values_of_each_input_by_tag_or_by_position():
    with TestPipeline() as p:
        mails = p | "Mails" >> beam.Create([("amy", "a@x"), ("carl", "c@x"), ("amy", "a@y")])
        phones = p | "Phones" >> beam.Create([("amy", 111), ("james", 222)])
        nobody = p | "Nobody" >> beam.Create([])
        named = {"mails": mails, "phones": phones} | "Named" >> beam.CoGroupByKey() | "N" >> beam.Map(plain)
        expected = [
            ("amy", {"mails": ["a@x", "a@y"], "phones": [111]}),
            ("carl", {"mails": ["c@x"], "phones": []}),
            ("james", {"mails": [], "phones": [222]}),
        ]
        assert_that(named, equal_to(expected), label="named")
        by_number = {1: phones, "a tag that is long": mails} | "Odd tags" >> beam.CoGroupByKey()
        by_number |= "O" >> beam.Map(plain)
        odd = [(key, {1: tags["phones"], "a tag that is long": tags["mails"]}) for key, tags in expected]
        assert_that(by_number, equal_to(odd), label="odd tags")
        placed = (mails, phones, nobody) | "Placed" >> beam.CoGroupByKey() | "P" >> beam.Map(plain)
        places = [(key, (tags["mails"], tags["phones"], [])) for key, tags in expected]
        assert_that(placed, equal_to(places), label="tuple")
        alone = [phones] | "Alone" >> beam.CoGroupByKey() | "A" >> beam.Map(plain)
        assert_that(alone, equal_to([("amy", ([111],)), ("james", ([222],))]), label="list")
        itself = {"x": phones, "y": phones} | "Itself" >> beam.CoGroupByKey() | "I" >> beam.Map(plain)
        twice = [("amy", {"x": [111], "y": [111]}), ("james", {"x": [222], "y": [222]})]
        assert_that(itself, equal_to(twice), label="itself")
        empty = [] | "Empty" >> beam.CoGroupByKey(pipeline=p)
        assert_that(empty, equal_to([]), label="empty")
        empty_dict = {} | "Empty dict" >> beam.CoGroupByKey(pipeline=p)
        assert_that(empty_dict, equal_to([]), label="empty dict")


def test_a_join_meets_only_within_a_window_and_can_be_joined_again():
    with TestPipeline() as p:

        def timed(name, trios):
            made = p | name >> beam.Create(trios)
            made |= f"{name} times" >> beam.MapTuple(
                lambda key, value, at: TimestampedValue((key, value), at)
            )
            return made | f"{name} windows" >> beam.WindowInto(FixedWindows(10))

        left = timed("Left", [("k", 1, 0), ("k", 2, 11)])
        right = timed("Right", [("k", 10, 5), ("j", 30, 12)])
        joined = (left, right) | "Once" >> beam.CoGroupByKey() | beam.Map(plain)
        assert_that(joined, equal_to([("k", ([1], [10])), ("k", ([2], [])), ("j", ([], [30]))]), label="once")
        sums = joined | beam.MapTuple(lambda key, sides: (key, sum(map(sum, sides))))
        again = (sums, right) | "Again" >> beam.CoGroupByKey() | "A" >> beam.Map(plain)
        expected = [("k", ([11], [10])), ("k", ([2], [])), ("j", ([30], [30]))]
        assert_that(again, equal_to(expected), label="again")
