"""The class of a result's rows, and queries over tables of a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.sql.errors import SqlError
from penstock.sql.output_classes import MakeInstance
from penstock.transforms.sql import Catalog, SqlTransform

GOALS = [beam.Row(team="red", points=3), beam.Row(team="blue", points=5), beam.Row(team="red", points=4)]
TOTALS = "SELECT team, SUM(points) AS total FROM goals GROUP BY team ORDER BY total DESC LIMIT 5"


class Total(NamedTuple):
    team: str
    total: int | None


@dataclass(frozen=True)
class Best:
    total: int
    team: str | None


def applied(query: str, output: Any) -> Any:
    pipeline = beam.Pipeline()
    return {"goals": pipeline | beam.Create(GOALS)} | SqlTransform(query, output=output)


@pytest.mark.parametrize("output", [Total, Best])
def test_the_result_has_the_class(output: Any) -> None:
    assert applied(TOTALS, output).element_type is output


class Wrong(NamedTuple):
    team: str
    total: str


class Less(NamedTuple):
    team: str


class More(NamedTuple):
    team: str
    total: int
    at: datetime


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (Wrong, "the column 'total' of the query is a BIGINT, and the field of Wrong a STRING"),
        (Less, "the query has the column 'total', and Less has no such field"),
        (More, "More has the field 'at', and the query has no such column"),
        (dict, "output must be a NamedTuple or a dataclass, but is the class dict"),
        ("Total", "output must be a NamedTuple or a dataclass, but is a str"),
    ],
    ids=["another type", "a column without a field", "a field without a column", "no fields", "no class"],
)
def test_a_class_that_differs_is_refused_by_the_name_of_the_column(output: Any, error: str) -> None:
    with pytest.raises(TypeError) as raised:
        applied(TOTALS, output)
    assert str(raised.value).splitlines()[0] == error
    assert "hint: " in str(raised.value)


def test_snapshots_have_no_class() -> None:
    with pytest.raises(TypeError, match="SELECT TVR makes snapshots"):
        applied("SELECT TVR team, points AS total FROM goals", Total)


def test_a_null_in_a_field_that_takes_none_is_an_error_that_names_it() -> None:
    make = MakeInstance(Best, ("team", "total"))
    assert make(beam.Row(team=None, total=3)) == Best(3, None)
    with pytest.raises(
        ValueError, match="the column 'total' is NULL, and the field of Best does not accept None"
    ):
        make(beam.Row(team="red", total=None))


def test_a_catalog_has_each_name_once() -> None:
    catalog = Catalog()
    catalog.create_table("goals", GOALS)
    with pytest.raises(ValueError, match="a table or a view 'Goals' already exists"):
        catalog.create_table("Goals", GOALS)


def test_only_tables_that_a_query_names_are_read(tmp_path: Path) -> None:
    catalog = Catalog()
    catalog.create_table("goals", GOALS)
    catalog.create_table("absent", str(tmp_path / "absent.csv"))
    catalog.create_view("red", "SELECT points FROM goals WHERE team = 'red'")
    pipeline = beam.Pipeline()
    _ = pipeline | "Points" >> SqlTransform("SELECT points FROM red", catalog)
    assert pipeline.root_transform().parts[0].parts[0].full_label == "Points/Table goals"
    with pytest.raises(SqlError, match="there is no table 'gaols'"):
        _ = pipeline | "Wrong" >> SqlTransform("SELECT points FROM gaols", catalog)


@pytest.mark.parametrize("source", [[], {"red": 3}, "goals.txt"], ids=["nothing", "a dict", "no format"])
def test_what_cannot_be_read_is_refused(source: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="the table 'goals' is"):
        beam.query("SELECT 1 AS one FROM goals", goals=source)


def test_an_order_that_the_rows_do_not_tell_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"ordered by something that is not among their columns\n.*\n?.*select what"
    ):
        beam.query("SELECT team FROM goals ORDER BY points", goals=GOALS)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_query_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "goals.csv").write_text("team,points\nred,3\nblue,5\nred,4\n")
    catalog = Catalog()
    catalog.create_table("names", [{"team": "red", "name": "The Reds"}])
    totals = beam.query(TOTALS, goals=tmp_path / "goals.csv", output=Total)
    assert totals == [Total("red", 7), Total("blue", 5)]
    joined = (
        "SELECT name, points FROM goals JOIN names ON goals.team = names.team ORDER BY points DESC LIMIT 9"
    )
    rows = beam.query(joined, catalog, goals=GOALS)
    assert rows == [beam.Row(name="The Reds", points=4), beam.Row(name="The Reds", points=3)]
