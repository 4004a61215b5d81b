"""The recipes of the cookbook, on their own data and on more difficult data."""

import importlib
import math

import pytest

import penstock as beam
from penstock.metrics import MetricsFilter
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to


def test_filters_compares_with_the_average_of_all_months():
    filters = importlib.import_module("filters")
    cold, hot = filters.Day("a", 7, 1.0), filters.Day("b", 7, 30.0)
    with TestPipeline() as p:
        july = filters.cold_days(p | beam.Create([cold, hot, filters.Day("c", 1, 20.0)]), month=7)
        assert_that(july, equal_to([cold]))


def test_batches_have_what_single_elements_have():
    batches = importlib.import_module("batches")
    made = [batches.Reading(str(number), float(number)) for number in range(-40, 200, 7)]
    with TestPipeline() as p:
        readings = p | beam.Create(made).with_output_types(batches.Reading)
        expected = [round((each.fahrenheit - 32) / 1.8, 1) for each in made]
        assert_that(batches.in_celsius(readings), equal_to(expected), label="celsius")
        cold = [each for each in made if each.fahrenheit < 32]
        assert_that(batches.frosty(readings), equal_to(cold), label="frosty")


def test_distinct_counts_no_repetition():
    distinct = importlib.import_module("distinct")
    with TestPipeline() as p:
        visits = p | beam.Create([*distinct.VISITS, ("ben", "/home")])
        assert_that(
            distinct.distinct_visits(visits),
            equal_to([("ann", "/home"), ("ann", "/prices"), ("ben", "/home")]),
            label="visits",
        )
        assert_that(
            distinct.visited_pages(visits),
            equal_to([("ann", ["/home", "/prices"]), ("ben", ["/home"])]),
            label="pages",
        )


def test_join_keeps_the_unmatched_only_in_the_outer_join():
    join = importlib.import_module("join")
    with TestPipeline() as p:
        emails = p | "E" >> beam.Create([("amy", "a@x"), ("carl", "c@x")])
        phones = p | "P" >> beam.Create([("amy", "1"), ("amy", "2"), ("james", "3")])
        assert_that(
            join.address_book(emails, phones),
            equal_to(["amy: a@x, 1, 2", "carl: c@x", "james: 3"]),
            label="outer",
        )
        assert_that(
            join.with_both(emails, phones),
            equal_to([("amy", ("a@x", "1")), ("amy", ("a@x", "2"))]),
            label="inner",
        )


def test_side_inputs_reach_every_element():
    side_inputs = importlib.import_module("side_inputs")
    with TestPipeline() as p:
        created = [
            p | name >> beam.Create(values)
            for name, values in (
                ("orders", [("tea", 3), ("cup", 1), ("pen", 2)]),
                ("prices", [("tea", 5), ("cup", 8)]),
                ("gifts", ["cup"]),
                ("rate", [1.25]),
            )
        ]
        assert_that(side_inputs.charges(*created), equal_to([("tea", 1875), ("cup", 0), ("pen", 0)]))


def test_side_outputs_each_have_their_own_elements():
    side_outputs = importlib.import_module("side_outputs")
    with TestPipeline() as p:
        outputs = side_outputs.split(p | beam.Create(["four", "fives", ""]))
        assert_that(outputs.short, equal_to(["four", ""]), label="short")
        assert_that(outputs.long, equal_to(["fives"]), label="long")
        assert_that(outputs.lengths, equal_to([4, 5, 0]), label="lengths")


def test_custom_combiner_gives_the_same_in_any_grouping():
    fn = importlib.import_module("custom_combiner").MeanAndSpread()
    numbers = [1e9 + value for value in (4, 7, 13, 16)]
    parts = [fn.create_accumulator() for _ in range(3)]
    for index, number in enumerate(numbers):
        parts[index % 2] = fn.add_input(parts[index % 2], number)
    assert fn.extract_output(fn.merge_accumulators(parts)) == pytest.approx(
        (1e9 + 10, math.sqrt(22.5)), rel=1e-12
    )
    assert all(map(math.isnan, fn.extract_output(fn.create_accumulator())))
    with TestPipeline() as p:
        spread = p | beam.Create([("a", 1.0), ("b", 9.0), ("a", 3.0)]) | beam.CombinePerKey(fn)
        assert_that(spread, equal_to([("a", (2.0, 1.0)), ("b", (9.0, 0.0))]))


def test_dead_letters_are_kept_and_counted():
    dead_letters = importlib.import_module("dead_letters")
    p = TestPipeline()
    people, failures = dead_letters.parsed_and_failed(p | beam.Create(dead_letters.LINES))
    assert_that(people, equal_to([("ann", 41), ("mei", 7)]), label="people")
    expected = [('{"name": "ben"}', "KeyError"), ("not JSON at all", "JSONDecodeError")]
    assert_that(failures, equal_to(expected), label="failures")
    (counter,) = p.run().metrics().query(MetricsFilter().with_name("failed"))["counters"]
    assert counter.committed == 2
