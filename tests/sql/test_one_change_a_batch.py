"""A result changes once for all that comes in one micro-batch, from however many tasks."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.sql.execution import lowering, steps
from penstock.transforms.sql import SqlTransform
from penstock.windows.triggers import AfterCount
from tests.shards.toy_query import ToyQuery
from tests.sql.relations import as_rows, changes, random_input


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
        event_time=lambda line: 0, watermark=BoundedDisorder(1), existing_only=True
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


JOINS = {
    "a left join of a left join": """
        SELECT a.k, a.v, t.w, u.n FROM a LEFT JOIN (SELECT k, MAX(w) AS w FROM b GROUP BY k) AS t ON a.k = t.k
        LEFT JOIN (SELECT s, COUNT(*) AS n FROM b GROUP BY s) AS u ON a.s = u.s""",
    "a full join of groups": """
        SELECT t.k, t.v, u.k AS k2, u.w FROM (SELECT k, SUM(v) AS v FROM a GROUP BY k) AS t
        FULL JOIN (SELECT k, MIN(w) AS w FROM b GROUP BY k) AS u ON t.k = u.k""",
    "values of subqueries": """
        SELECT a.k, a.s, a.v, a.ts, (SELECT MAX(b.w) FROM b WHERE b.k = a.k) AS w,
               (SELECT COUNT(*) FROM b WHERE b.s = a.s AND b.w < a.v) AS n
        FROM a""",
    "conditions with subqueries": """
        SELECT a.k, a.s, a.v, a.ts FROM a WHERE a.v <= ANY (SELECT b.w FROM b WHERE b.k = a.k)
        AND NOT EXISTS (SELECT 1 FROM a AS c WHERE c.k = a.k AND c.v > a.v)""",
}


def _is_seen_and_undone(query: str) -> bool:
    """True if a row of a query comes and goes in one micro-batch, over some random inputs."""
    for seed in range(3):
        for batch in changes(query, random_input(seed)):
            come, gone = (as_rows(row for sign, row in batch.changes if sign == wanted) for wanted in (1, -1))
            if come.keys() & gone.keys():
                return True
    return False


@pytest.mark.parametrize("name", JOINS)
def test_a_row_of_a_join_that_comes_and_goes_in_a_micro_batch_is_not_seen(name: str) -> None:
    assert not _is_seen_and_undone(JOINS[name])


# One step computes these, with one key, which holds no answers between.
_CHAINS = ("a left join of a left join", "conditions with subqueries")


@pytest.mark.parametrize("name", [name for name in JOINS if name not in _CHAINS])
def test_a_join_that_shows_each_of_its_answers_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "NetChanges", _NoNet)
    assert _is_seen_and_undone(JOINS[name])


class _NoNet(beam.DoFn):
    """Shows each change."""

    def __init__(self, form: object) -> None:
        pass

    def process(self, row: object) -> list[object]:
        return [row]
