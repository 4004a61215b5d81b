"""The data of TPC-H and TPC-DS, and what DuckDB answers."""

from __future__ import annotations

from decimal import Decimal

import duckdb

from tests.sql.tpc import differences, extension_of, tpc_ds, tpc_h


def test_tpc_h_has_its_tables_and_the_answers_that_its_authors_give() -> None:
    bench = tpc_h(0.01)
    assert len(bench.queries) == 22
    assert len(bench.rows("lineitem")) == 60175
    assert bench.columns["region"][1] == ("r_name", "VARCHAR")
    with duckdb.connect() as database:
        database.execute(f"LOAD '{extension_of('tpch')}'")
        asked = "SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = 0.01"
        published = dict(database.execute(asked).fetchall())
    for number in (6, 18):
        _, *lines = published[number].splitlines()
        assert ["|".join(map(_shown, row)) for row in bench.answer(number)] == lines


def _shown(value: object) -> str:
    return format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)


def test_an_answer_over_the_rows_so_far_is_another_one() -> None:
    bench = tpc_h(0.01)
    [(some,)] = bench.answer("SELECT COUNT(*) FROM orders", orders="o_orderkey <= 1000")
    [(all_of_them,)] = bench.answer("SELECT COUNT(*) FROM orders")
    assert 0 < some < all_of_them == 15_000


def test_tpc_ds_has_its_tables_and_queries() -> None:
    bench = tpc_ds(0.01)
    assert len(bench.queries) == 99
    assert len(bench.paths) == 24
    assert bench.answer("SELECT COUNT(*) > 0 FROM store_sales") == [(True,)]


def test_a_difference_of_results_is_found() -> None:
    rows = [(1, "a", Decimal("1.50"), 0.5), (2, None, None, 2 / 3)]
    assert differences(rows, [(2, None, None, Decimal("0.667")), (1, "a", Decimal("1.5"), 0.5)]) == []
    for other in (
        rows[:1],
        [rows[0], rows[0]],
        [rows[0], (2, None, None, Decimal("0.666"))],
        [rows[0], (2, None, Decimal(0), 2 / 3)],
        [rows[0], (2, "", None, 2 / 3)],
        [(1, "a", Decimal("1.51"), 0.5), rows[1]],
        [(1, "a", Decimal("1.50"), 0.5001), rows[1]],
    ):
        assert differences(rows, other) != []
