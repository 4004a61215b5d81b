"""Where generators stand in a plan, so that a stream keeps as little as it can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.scalars.types import BIGINT, STRING, TIMESTAMP, array_of
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution.lowering import remove_windows
from penstock.sql.plan.pruning import prune
from penstock.sql.plan.relations import (
    Aggregate,
    ColumnDef,
    Filter,
    Generate,
    Join,
    Relation,
    Scan,
    walk_plan,
)

COLUMNS = {
    "posts": (
        ColumnDef("id", BIGINT),
        ColumnDef("text", STRING),
        ColumnDef("tags", array_of(STRING)),
        ColumnDef("at", TIMESTAMP),
    ),
    "words": (ColumnDef("word", STRING), ColumnDef("points", BIGINT)),
}


def _pruned(query: str) -> Relation:
    return prune(bind(query, Tables(COLUMNS, {}, {})).relation)


def _all(query: str, kind: type) -> Iterator[Relation]:
    return (each for each in walk_plan(_pruned(query)) if isinstance(each, kind))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM posts AS p WHERE EXISTS (SELECT 1 FROM UNNEST(p.tags) AS x(tag) WHERE tag = p.text)",
        "SELECT id FROM posts AS p WHERE NOT EXISTS (SELECT 1 FROM UNNEST(p.tags) AS x(tag) WHERE tag = 'a')",
        "SELECT id FROM posts AS p WHERE p.text IN (SELECT UPPER(tag) FROM UNNEST(p.tags) AS x(tag))",
        "SELECT p.id, y.* FROM posts AS p, LATERAL (SELECT 1 + n AS m FROM EXPLODE(ARRAY(p.id)) AS x(n)) AS y",
        "SELECT p.id, y.n FROM posts AS p LEFT JOIN LATERAL (SELECT n FROM EXPLODE(ARRAY(p.id)) AS x(n)) AS y ON n > 3",
        "SELECT p.id, x.tag FROM posts AS p LEFT JOIN UNNEST(p.tags) AS x(tag) ON tag > p.text",
    ],
)
def test_rows_of_the_row_around_need_no_join(query: str) -> None:
    kinds = {type(each) for each in walk_plan(_pruned(query))}
    assert Generate in kinds
    assert not kinds & {Join, Aggregate}


def test_a_grouping_by_windows_finds_them_above_a_generator() -> None:
    windows = "TUMBLE(TABLE posts, DESCRIPTOR(at), INTERVAL '1' MINUTE)"
    of_windows = f"(SELECT tags, window_start, window_end FROM {windows} WHERE id > 3) AS w"
    for source in (windows, of_windows):
        [grouping] = _all(
            f"SELECT tag, COUNT(*) AS n FROM {source} LATERAL VIEW EXPLODE(tags) x AS tag "
            "GROUP BY window_start, window_end, tag",
            Aggregate,
        )
        assert isinstance(grouping, Aggregate)
        assert remove_windows(grouping) is not None


def test_a_generator_that_reads_windows_stays_above_them() -> None:
    windows = "TUMBLE(TABLE posts, DESCRIPTOR(at), INTERVAL '1' MINUTE)"
    [made] = _all(f"SELECT id, t FROM {windows} LATERAL VIEW EXPLODE(ARRAY(window_end, at)) x AS t", Generate)
    assert [each.name for each in made.columns][-2:] == ["window_end", "col"]


def test_what_does_not_read_generated_rows_acts_before() -> None:
    query = """
        SELECT p.id, x.tag FROM posts AS p, words AS w, UNNEST(p.tags) AS x(tag)
        WHERE p.text = w.word AND w.points > 3 AND x.tag <> 'a'
    """
    [made] = _all(query, Generate)
    [join] = _all(query, Join)
    assert isinstance(made, Generate)
    assert isinstance(join, Join)
    assert made.input == join
    assert [str(each) for each in join.left_keys] == ["text"]
    [above] = (each for each in _all(query, Filter) if each.input == made)
    assert str(getattr(above, "condition", None)) == "(tag <> 'a')"


def test_a_generator_reads_only_the_columns_that_it_needs() -> None:
    query = "SELECT x.tag FROM posts LATERAL VIEW EXPLODE(tags) x AS tag"
    [scan] = _all(query, Scan)
    assert [each.name for each in scan.columns] == ["tags"]
    query = (
        "SELECT x.tag, w.points FROM posts, LATERAL EXPLODE(tags) AS x(tag) JOIN words AS w ON x.tag = w.word"
    )
    [join] = _all(query, Join)
    assert isinstance(join, Join)
    assert [each.name for each in join.left.columns] == ["col"]
