"""Grouping sets: those of windows are emitted when the watermark passes, and forgotten; how many there may be."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.execution import grouping_sets
from penstock.sql.execution.unbounded_state import list_kept_state
from penstock.sql.plan.relations import ColumnDef
from penstock.typehints.row_type import RowTypeConstraint
from tests.sql.random_queries import Text, Window
from tests.sql.relations import A, Rows, as_rows, changes, expected, random_input

SETS = ("ROLLUP (k, s)", "CUBE (k)", "GROUPING SETS ((k), (s), ())", "k, ROLLUP (s)")


def final_rows(seed: int, sets: str) -> tuple[Rows, Rows, int]:
    """The rows of windows at the end, those that must be there, and how many rows were taken back."""
    given = random_input(seed, late=False, retracts=False)
    shown = "window_start, GROUPING_ID() AS g, COUNT(*) AS n, SUM(v) AS t"
    window = Window("HOP", 2, 6)
    rows = f"HOP(TABLE a, DESCRIPTOR(ts), {window.lengths})"
    own = f"SELECT {shown} FROM {rows} GROUP BY window_start, window_end, {sets} EMIT AFTER WATERMARK"
    other = f"SELECT {shown} FROM {window.rows('a', 'ts')} GROUP BY window_start, window_end, {sets}".replace(
        "GROUPING_ID()",
        "GROUPING(window_start, window_end, k, s)"
        if "s)" in sets
        else "GROUPING(window_start, window_end, k)",
    )
    net: Rows = Counter()
    taken_back = 0
    for each in changes(own, given):
        for sign, row in each.changes:
            [(text, _)] = as_rows([row]).items()
            net[text] += sign
            taken_back += sign < 0
    [wanted] = expected(Text(own, other), given, [len(given.happenings)])
    return net, wanted, taken_back


@pytest.mark.parametrize("sets", SETS)
def test_sets_of_windows_are_emitted_once_when_the_watermark_passes(sets: str) -> None:
    for seed in range(4):
        net, wanted, taken_back = final_rows(seed, sets)
        assert (net, taken_back) == (wanted, 0)


def test_a_set_of_windows_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = grouping_sets.InSets.__call__
    monkeypatch.setattr(grouping_sets.InSets, "__call__", lambda self, row: list(was(self, row))[1:])
    assert any(net != wanted for net, wanted, _ in (final_rows(seed, SETS[0]) for seed in range(4)))


def tables() -> Tables:
    row = RowTypeConstraint.from_user_type(A)
    assert row is not None
    return Tables({"a": tuple(ColumnDef(name, from_hint(hint)) for name, hint in row.fields)}, {}, {})


@pytest.mark.parametrize(("emit", "kept"), [("EMIT AFTER WATERMARK", 0), ("", 1)])
def test_sets_of_windows_are_kept_only_while_the_windows_are_open(emit: str, kept: int) -> None:
    query = f"SELECT COUNT(*) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), ROLLUP (k) {emit}"
    assert len(list(list_kept_state(bind(query, tables()).relation, {"a"}))) == kept


def test_more_sets_than_a_row_may_become_are_refused() -> None:
    keys = ", ".join(f"k + {number}" for number in range(13))
    with pytest.raises(SqlError, match="GROUP BY has more than 4,096 grouping sets"):
        bind(f"SELECT COUNT(*) AS n FROM a GROUP BY CUBE ({keys})", tables())
