"""Rows and named tuples on Spark: made, selected from, grouped by, and sent on."""

import typing

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to, row_namedtuple_equals_fn

pytestmark = pytest.mark.spark


class Player(typing.NamedTuple):
    name: str
    team: str | None
    points: int
    tags: list[str] = []


PLAYERS = [Player("amy", "red", 3), Player("bo", None, 2**80), Player("al", "red", 4, ["x"])]


def test_rows_are_equal_by_their_fields_and_survive_every_step():
    row = beam.Row(a=1, b=beam.Row(c=[None, "x"]))
    with TestPipeline() as p:
        made = p | beam.Create([row, beam.Row(a=2, b=None)])
        assert_that(made | beam.Reshuffle(), equal_to([row, beam.Row(a=2, b=None)]), label="spread")
        assert_that(made | beam.Map(lambda r: r.a), equal_to([1, 2]), label="fields")
        counted = p | "Keys" >> beam.Create(
            [beam.Row(x=1), beam.Row(x=1), beam.Row(x=1, y=2), beam.Row(x="1")]
        )
        counted |= beam.combiners.Count.PerElement()
        expected = [(beam.Row(x=1), 2), (beam.Row(x=1, y=2), 1), (beam.Row(x="1"), 1)]
        assert_that(counted, equal_to(expected), label="keys")
        side = (
            p
            | "One" >> beam.Create([1])
            | "See" >> beam.Map(lambda _, rows: len(rows), beam.pvalue.AsList(made))
        )
        assert_that(side, equal_to([2]), label="side input")


def test_select_makes_rows_of_fields_and_expressions():
    with TestPipeline() as p:
        players = p | beam.Create(PLAYERS)
        selected = players | beam.Select("name", "team", initial=lambda player: player.name[0])
        rows = [beam.Row(name=p.name, team=p.team, initial=p.name[0]) for p in PLAYERS]
        assert_that(selected, equal_to(rows), label="selected")
        assert_that(
            selected | "Again" >> beam.Select(only="initial"), equal_to([beam.Row(only=x) for x in "aba"])
        )
        named = players | "Named" >> beam.Select("name", "team", "points", "tags")
        assert_that(named, equal_to(PLAYERS, equals_fn=row_namedtuple_equals_fn), label="as the named tuples")


def test_named_tuples_stay_themselves_through_groupings():
    with TestPipeline() as p:
        players = p | beam.Create(PLAYERS)
        by_team = players | beam.Map(lambda player: (player.team, player)) | beam.GroupByKey()
        names = by_team | beam.MapTuple(lambda team, group: (team, sorted(player.name for player in group)))
        assert_that(names, equal_to([("red", ["al", "amy"]), (None, ["bo"])]), label="values")
        types = by_team | "Types" >> beam.FlatMapTuple(lambda team, group: [type(player) for player in group])
        assert_that(types | beam.Map(lambda kind: kind is Player), equal_to([True] * 3), label="types")


def test_group_by_fields_combines_fields_of_rows_and_named_tuples():
    with TestPipeline() as p:
        players = p | beam.Create(PLAYERS)
        rows = players | beam.Select("team", "points")
        for label, made in (("rows", rows), ("tuples", players)):
            totals = made | label >> beam.GroupBy("team").aggregate_field("points", sum, "total")
            found = totals | f"{label} shown" >> beam.Map(lambda row: (row.team, row.total, row._fields))
            expected = [("red", 7, ("team", "total")), (None, 2**80, ("team", "total"))]
            assert_that(found, equal_to(expected), label=f"totals of {label}")
        everything = players | "All" >> beam.GroupBy().aggregate_field("points", max, "most")
        assert_that(everything | beam.Map(lambda row: row.most), equal_to([2**80]), label="no field")


def test_a_field_that_is_not_there_is_an_attribute_error_or_a_dead_letter():
    p = TestPipeline()
    rows = p | beam.Create([beam.Row(a=1)]).with_output_types(typing.Any)
    _ = rows | "Pick" >> beam.Select("b").with_output_types(typing.Any)
    with pytest.raises(AttributeError):
        p.run()
    with TestPipeline() as p:
        rows = p | beam.Create([beam.Row(a=1), beam.Row(a=0)])
        outputs = rows | beam.Select(inverse=lambda row: 1 / row.a).with_exception_handling()
        assert_that(outputs["good"], equal_to([beam.Row(inverse=1.0)]), label="good")
        assert_that(outputs["bad"] | beam.Map(lambda bad: bad[0]), equal_to([beam.Row(a=0)]), label="bad")
