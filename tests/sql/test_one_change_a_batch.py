"""A result changes once for all that comes in one micro-batch, from however many tasks."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.sql.execution import lowering
from penstock.transforms.sql import SqlTransform
from penstock.windows.triggers import AfterCount
from tests.shards.toy_query import ToyQuery


class Goal(NamedTuple):
    """A row of the input."""

    team: str
    points: int


def _goal(line: str) -> Goal:
    team, points = line.split()
    return Goal(team, int(points))


def _batches(query: str) -> list[list[tuple[str, object]]]:
    """The kind and the row of each change, micro-batch by micro-batch."""
    pipeline = beam.Pipeline()
    source = beam.io.ReadFromText("goals/*.txt", validate=False).as_stream(
        event_time=lambda line: 0, watermark=BoundedDisorder(1), ends=True
    )
    goals = pipeline | "Read" >> source | beam.Map(_goal).with_output_types(Goal)
    _ = {"goals": goals} | SqlTransform(query) | beam.Changelog() | WriteToMemory([])
    toy = ToyQuery(pipeline)
    [label] = toy._readings
    tasks = [[["red 3", "blue 1"], ["red 4"]], [["red 1"], ["red 2", "blue 0"]]]
    found = []
    for number, lines in enumerate(tasks):
        [changes] = toy.batch({label: lines}, clock_micros=(number + 1) * 1_000_000).values()
        found.append(sorted((kind.name, tuple(row)) for kind, row in changes))
    return found


QUERIES = {
    "a sum": "SELECT team, SUM(points) AS total FROM goals GROUP BY team",
    "a sum of first rows": """
        SELECT team, SUM(points) AS total FROM (
            SELECT * FROM goals QUALIFY ROW_NUMBER() OVER (PARTITION BY team ORDER BY points DESC) <= 9
        ) GROUP BY team
    """,
}


@pytest.mark.parametrize("name", QUERIES)
def test_all_of_a_micro_batch_is_one_change_of_a_key(name: str) -> None:
    first, second = _batches(QUERIES[name])
    assert first == [("INSERT", ("blue", 1)), ("INSERT", ("red", 7))]
    # A sum that stays is not touched.
    assert second == [("UPDATE_AFTER", ("red", 10)), ("UPDATE_BEFORE", ("red", 7))]


def test_a_trigger_of_each_element_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "AfterArrival", lambda: AfterCount(1))
    assert _batches(QUERIES["a sum"])[0] != [("INSERT", ("blue", 1)), ("INSERT", ("red", 7))]
