"""Window functions with OVER: always what they mean of the rows so far, whatever a change has touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from penstock.scalars.row_functions import Projection
from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution import over, over_results, sorted_rows
from penstock.sql.execution.lowering import argument_of
from penstock.sql.execution.over import change_partition
from penstock.sql.execution.over_results import OverResults
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.sql.plan.pruning import prune
from penstock.sql.plan.relations import ColumnDef, Over, Relation, inputs_of
from penstock.typehints import row_type
from tests.sql.law import check, check_text, first_broken
from tests.sql.random_over import FAMILIES, random_over, random_over_query
from tests.sql.random_queries import TABLES, Text, Value
from tests.sql.relations import KINDS, as_rows, expected, random_input

ALWAYS, ALL, BLOCK = 10, 2_000, 10
_VALUES = [Value(Text(name, name), kind) for name, kind in TABLES["a"]]


def check_over(seed: int, has_forms: bool = False, weights: Any = FAMILIES) -> None:
    """Checks a query of window functions over the input of a seed."""
    check(seed, has_forms=has_forms, query=random_over_query(seed, weights))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=[pytest.mark.soak] if start >= ALWAYS else [])
        for start in range(0, ALL, BLOCK)
    ],
)
def test_a_query_with_over_always_gives_what_it_means_of_the_rows_so_far(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check_over(seed, has_forms=seed % 5 == 4)


# Without streams


def _plan(query: str) -> Relation:
    row = row_type.RowTypeConstraint.from_user_type(KINDS["a"])
    assert row is not None
    columns = tuple(ColumnDef(field, from_hint(hint)) for field, hint in row.fields)
    return bind(query, Tables({"a": columns}, {}, {})).relation


def _overs_in(relation: Relation) -> list[Over]:
    own = [relation] if isinstance(relation, Over) else []
    return [*own, *(over for each in inputs_of(relation) for over in _overs_in(each))]


def overs(query: str) -> list[Over]:
    """The relations of window functions in the plan of a query."""
    return _overs_in(_plan(query))


def check_meaning(seed: int, weights: Any = FAMILIES) -> None:
    """Checks that a window function has the results that DuckDB computes."""
    random, given = Random(seed), random_input(seed, retracts=False)
    call = random_over(random, _VALUES, weights).text
    [relation] = overs(f"SELECT {call.own} AS c0 FROM a")
    keys = Projection(relation.keys).function
    partitions: dict[str, list[Any]] = {}
    for row in given.rows("a", len(given.happenings)):
        partitions.setdefault(repr(keys(row)), []).append(row)
    results = OverResults(relation, argument_of)
    found = as_rows(row for rows in partitions.values() for row in results.compute_all(rows))
    query = f"SELECT *, {call.other} FROM a"
    [wanted] = expected(Text(query, query), given, [len(given.happenings)])
    assert found == wanted, f"seed {seed}: {call.own}"


@pytest.mark.parametrize(
    "start",
    [pytest.param(start, marks=[pytest.mark.soak] if start else []) for start in range(0, 10_000, 100)],
)
def test_window_functions_have_the_results_that_duckdb_computes(start: int) -> None:
    for seed in range(start, start + 100):
        check_meaning(seed)


def test_a_partition_keeps_only_the_columns_and_results_that_something_reads() -> None:
    over = "SELECT ts, RANK() OVER w AS r, LAG(s) OVER w AS l FROM a WINDOW w AS (PARTITION BY k ORDER BY v)"
    [found] = _overs_in(prune(_plan(f"SELECT r FROM ({over}) AS x")))
    assert [call.name for call in found.calls] == ["rank"]
    assert [each.name for each in found.input.columns] == ["k", "v"]
    [found] = _overs_in(prune(_plan(f"SELECT l, ts FROM ({over}) AS x")))
    assert [call.name for call in found.calls] == ["lag"]
    assert [each.name for each in found.input.columns] == ["k", "s", "v", "ts"]


@pytest.mark.parametrize("frame", ["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"])
def test_an_array_has_the_order_of_the_rows(frame: str) -> None:
    call = f"ARRAY_AGG(v) OVER (PARTITION BY k ORDER BY ts DESC, v, s{frame})"
    for seed in range(3):
        check_text(f"SELECT k, {call} AS c FROM a WHERE v IS NOT NULL", seed)


def check_changes(seed: int, weights: Any = FAMILIES) -> None:
    """Checks that the net of the changes of a partition is always the result over all of its rows."""
    random = Random(seed)
    calls = [random_over(random, _VALUES, weights).text.own for _ in range(3)]
    for relation in overs(f"SELECT {', '.join(f'{call} AS c{at}' for at, call in enumerate(calls))} FROM a"):
        # Rows of the table, without what another OVER below has added.
        results = OverResults(relation, argument_of)
        blocks: dict[int, Any] = {}
        index: Any = []
        there: list[Any] = []
        net: Counter[str] = Counter()
        width = len(relation.input.columns) - len(TABLES["a"])
        pool = [(*row, *([None] * width)) for row in _rows_of(seed)]
        for _ in range(16):
            gone = [
                there.pop(random.randrange(len(there))) for _ in range(random.choice([0, 0, 1, 2])) if there
            ]
            come = [random.choice(pool) for _ in range(random.choice([0, 1, 1, 1, 2, 9]))]
            come = [row for row in come if row not in gone]
            there += come
            rows = SortedRows(results.order, index, _Stored(blocks))
            retracted, inserted = change_partition(results, rows, (gone, come), None)
            index = rows.save()
            net.subtract(map(repr, retracted))
            net.update(map(repr, inserted))
            wanted = Counter(map(repr, results.compute_all(there)))
            assert not wanted - net, f"seed {seed}: {relation.calls}"
            assert not net - wanted, f"seed {seed}: {relation.calls}"
            assert sum(each[1] for each in index) == len(there)


def _rows_of(seed: int) -> list[Any]:
    given = random_input(seed, retracts=False)
    rows = [row for at in range(40) for row in given.rows("a", at)]
    return list(dict.fromkeys(rows)) or [(1, "x", 1, None)]


class _Stored:
    """Blocks as they are stored: what is read is not what was put."""

    def __init__(self, blocks: dict[int, Any]) -> None:
        self._blocks = blocks

    def get(self, key: int, default: Any = None) -> Any:
        return [list(entry) for entry in self._blocks[key]]

    def put(self, key: int, value: Any) -> None:
        self._blocks[key] = [list(entry) for entry in value]

    def remove(self, key: int) -> None:
        self._blocks.pop(key, None)


@pytest.mark.parametrize(
    "start",
    [pytest.param(start, marks=[pytest.mark.soak] if start else []) for start in range(0, 3_000, 60)],
)
def test_the_net_of_changes_is_the_result_over_all_rows(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 2)
    for seed in range(start, start + 60):
        check_changes(seed)


# Mutants: each breaks one rule of a family.

Patch = Callable[[pytest.MonkeyPatch], None]


def _results(owner: Any, changed: Callable[[list[Any]], list[Any]]) -> Patch:
    was = owner.results

    def results(self: Any, stretch: Any, span: Any, before: Any) -> list[Any]:
        return changed(was(self, stretch, span, before))

    return lambda patch: patch.setattr(owner, "results", results)


def _from_the_start(owner: Any) -> Patch:
    was = owner.results

    def results(self: Any, stretch: Any, span: Any, before: Any) -> list[Any]:
        return was(self, stretch, span, None if before is None else 0)

    return lambda patch: patch.setattr(owner, "results", results)


def _reaches_itself(owner: Any) -> Patch:
    return lambda patch: patch.setattr(owner, "reach", lambda self, rows, place, row: (place, place + 1))


def _made(owner: Any, **changed: Any) -> Patch:
    was = owner.__init__

    def init(self: Any, *given: Any) -> None:
        was(self, *given)
        for name, value in changed.items():
            setattr(self, name, value(getattr(self, name)))

    return lambda patch: patch.setattr(owner, "__init__", init)


def _as_rows(patch: pytest.MonkeyPatch) -> None:
    was = over_results.Stretch.group
    patch.setattr(over_results.Stretch, "group", lambda self, place: (was(self, place)[0], place + 1))


def _frames(changed: Callable[[Any], Any]) -> Patch:
    was = over_results.Stretch.frames

    def frames(self: Any, frame: Any, span: Any) -> Any:
        return was(self, changed(frame), span)

    return lambda patch: patch.setattr(over_results.Stretch, "frames", frames)


def _nothing_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(over_results.SqlAggregates, "subtract_input", lambda self, held, element: held)


def _nothing_is_retracted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(over, "compute_net", lambda signed, form: ([], [row for _, row in signed]))


def _one_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SortedRows, "copies_of", lambda self, row: (self.place_of(self.order.key(row)),) * 2)


def _first_sums_stay(patch: pytest.MonkeyPatch) -> None:
    was = SortedRows.keep_sums

    def keep(self: SortedRows, sums: Any) -> None:
        was(self, {at: held for at, held in sums.items() if self.sums_before(at + 1)[0] != at})

    patch.setattr(SortedRows, "keep_sums", keep)


def _sums_change_in_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(over_results.copy, "deepcopy", lambda held: held)


def _only(family: str) -> dict[str, float]:
    return {each: float(each == family) for each in FAMILIES}


_RANK, _NUMBER = over_results._Rank, over_results._RowNumber
_LAG, _VALUE, _SUM = over_results._Neighbour, over_results._ValueAt, over_results._Aggregate
OF_MEANING: dict[str, tuple[Patch, str]] = {
    "numbers begin at zero": (_results(_NUMBER, lambda found: [each - 1 for each in found]), "ranks"),
    "RANK is ROW_NUMBER": (lambda patch: patch.setattr(_RANK, "results", _NUMBER.results), "ranks"),
    "PERCENT_RANK is too small": (
        _results(over_results._PercentRank, lambda found: [each / 2 for each in found]),
        "ranks",
    ),
    "CUME_DIST counts its row, and not its equals": (_as_rows, "ranks"),
    "NTILE makes a tile more": (_made(over_results._Ntile, _tiles=lambda tiles: tiles + 1), "ntile"),
    "LEAD is LAG": (_made(_LAG, _distance=abs), "neighbours"),
    "LAG forgets its default": (_made(_LAG, _default=lambda _: None), "neighbours"),
    "LAG does not ignore NULLs": (_made(_LAG, _ignores_nulls=lambda _: False), "neighbours"),
    "LAST_VALUE is FIRST_VALUE": (_made(_VALUE, _at=lambda at: max(at, 0)), "values"),
    "FIRST_VALUE does not ignore NULLs": (_made(_VALUE, _ignores_nulls=lambda _: False), "values"),
    "what leaves a frame is not subtracted": (_nothing_leaves, "aggregates"),
    "RANGE ends with its row": (_as_rows, "aggregates"),
    "a frame has no end": (_frames(lambda frame: replace(frame, end=None)), "aggregates"),
    "a frame has no start": (_frames(lambda frame: replace(frame, start=None)), "aggregates"),
}
"""Mutants that compute other results, and their family."""
OF_CHANGES: dict[str, tuple[Patch, str]] = {
    "later rows keep their numbers": (_reaches_itself(_NUMBER), "ranks"),
    "later rows keep their ranks": (_reaches_itself(_RANK), "ranks"),
    "DENSE_RANK begins anew": (_from_the_start(over_results._DenseRank), "ranks"),
    "other tiles stay": (_reaches_itself(over_results._OfAll), "ntile"),
    "rows that look at a new row keep their results": (_reaches_itself(_LAG), "neighbours"),
    "rows whose frames have a new row keep their values": (_reaches_itself(_VALUE), "values"),
    "FIRST_VALUE goes on from nothing": (_from_the_start(_VALUE), "values"),
    "rows whose frames have a new row keep their sums": (_reaches_itself(_SUM), "aggregates"),
    "a running sum begins anew": (_from_the_start(_SUM), "aggregates"),
    "sums before a block stay": (_first_sums_stay, "aggregates"),
    "sums change in place": (_sums_change_in_place, "aggregates"),
    "one copy of a row is enough": (
        lambda patch: patch.setattr(
            SortedRows, "copies_of", lambda self, row: (self.place_of(self.order.key(row)),) * 2
        ),
        "values",
    ),
}
"""Mutants that leave results as they were, and their family."""
OF_STREAMS: dict[str, tuple[Patch, str, int]] = {
    "numbers begin at zero": (*OF_MEANING["numbers begin at zero"], 0),
    "NTILE makes a tile more": (*OF_MEANING["NTILE makes a tile more"], 0),
    "LEAD is LAG": (*OF_MEANING["LEAD is LAG"], 5),
    "FIRST_VALUE does not ignore NULLs": (*OF_MEANING["FIRST_VALUE does not ignore NULLs"], 0),
    "what leaves a frame is not subtracted": (*OF_MEANING["what leaves a frame is not subtracted"], 0),
    "a retracted row stays": (_nothing_is_retracted, "aggregates", 0),
}
"""Mutants that the law of streams finds, their family, and where the seeds begin that find them."""


@pytest.mark.parametrize("name", OF_MEANING)
def test_the_comparison_with_duckdb_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, family = OF_MEANING[name]
    patch(monkeypatch)
    assert _found(check_meaning, family)


@pytest.mark.parametrize("name", OF_CHANGES)
def test_the_net_of_changes_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, family = OF_CHANGES[name]
    patch(monkeypatch)
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 2)
    assert _found(check_changes, family)


def _found(check_seed: Callable[..., None], family: str) -> bool:
    """Whether one of the first seeds fails."""
    for seed in range(60):
        try:
            check_seed(seed, _only(family))
        except (AssertionError, ValueError, TypeError, IndexError):
            return True
    return False


@pytest.mark.parametrize("name", OF_STREAMS)
def test_the_law_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, family, start = OF_STREAMS[name]
    patch(monkeypatch)
    seeds = range(start, start + 40)
    assert first_broken(seeds, lambda seed: check_over(seed, weights=_only(family))) is not None
