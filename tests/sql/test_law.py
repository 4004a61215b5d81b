"""Whatever a query is, and however its input comes, its result is always what DuckDB makes of the rows so far."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pytest

import penstock as beam
from penstock.relations import bags, validity
from penstock.relations.joins import JoinRows
from penstock.scalars import functions
from penstock.scalars.tree import Literal
from penstock.scalars.types import from_hint
from penstock.sql.aggregates import exact, extremes, percentiles, sums
from penstock.sql.aggregates import functions as functions_of_aggregates
from penstock.sql.binding import grouping_sets as key_sets
from penstock.sql.binding import groupings, queries, selections, sources
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.execution import aggregating, equality, grouping_sets, lowering, rendering, steps
from penstock.sql.generators import functions as generator_functions
from penstock.sql.plan import lineage, numbering_limits, pruning
from penstock.sql.plan.relations import Aggregate, ColumnDef, Filter, Generate, Over, Top, Valid
from penstock.typehints import row_type
from penstock.utils.timestamp import Duration
from tests.sql.law import check, check_emitted, check_late, check_text, first_broken
from tests.sql.nested_windows import FORMS, SHOWN, nested_windows
from tests.sql.nested_windows import KINDS as WINDOWS
from tests.sql.random_queries import MORE_AGGREGATES, random_query
from tests.sql.relations import KINDS

ALWAYS, ALL, BLOCK = 50, 2_000, 50
EMITTED_ALWAYS, EMITTED = 20, 500
VALID_ALWAYS, VALID = 12, 432
NESTED_ALWAYS, NESTED = 12, 900
WITH_FORMS_ALWAYS, WITH_FORMS = 15, 900
COMPARING = {"set operation": 4, "join": 6, "DISTINCT": 0.25, "QUALIFY": 0.25, "validity": 0.15}
"""The weights of queries that compare many values."""
MORE = {"more aggregates": 0.8, "grouping sets": 0.4, "grouped": 40, "FILTER": 0}
"""The weights of queries with aggregates and groupings that few queries have."""
VARIANCE, PERCENTILE = (
    next(form.own for form in MORE_AGGREGATES if name in form.own) for name in ("VAR_POP", "PERCENTILE_DISC")
)
MORE_ALWAYS, MORE_ALL = 15, 1_995
GENERATORS = {
    "generators": 0.8,
    "windows": 3,
    "table": 12,
    "plain": 6,
    "join": 2,
    "set operation": 1,
    "WHERE": 0.2,
    "condition with a subquery": 0.05,
    "LIMIT": 0.05,
    "DISTINCT": 0.05,
    "QUALIFY": 0.05,
}
"""The weights of small queries with generators."""
GENERATED_ALWAYS, GENERATED = 25, 1_000
VALIDITY = {"validity": 0.5, "GROUP BY validity": 0.3}
"""The weights of queries of which four in five have validity; all others have none."""


def starts(end: int, step: int, always: int) -> list[Any]:
    """Where blocks of seeds start; those from `always` on run with the mark ``soak`` only."""
    return [
        pytest.param(start, marks=[pytest.mark.soak] if start >= always else [])
        for start in range(0, end, step)
    ]


@pytest.mark.parametrize("start", starts(ALL, BLOCK, ALWAYS))
def test_a_query_always_gives_what_it_means_of_the_rows_so_far(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed)


@pytest.mark.parametrize("start", starts(EMITTED, 20, EMITTED_ALWAYS))
def test_an_emit_clause_changes_when_rows_are_given_and_not_which(start: int) -> None:
    for seed in range(start, start + 20):
        check_emitted(seed)


@pytest.mark.parametrize("start", starts(VALID, VALID_ALWAYS, VALID_ALWAYS))
def test_a_query_with_validity_always_gives_what_it_means_of_the_rows_so_far(start: int) -> None:
    for seed in range(start, start + VALID_ALWAYS):
        check(seed, VALIDITY)


def check_generated(seed: int) -> None:
    """Checks a query with generators; DuckDB does not plan all of them."""
    with contextlib.suppress(duckdb.BinderException, duckdb.NotImplementedException):
        check(seed, GENERATORS)


@pytest.mark.parametrize("start", starts(GENERATED, GENERATED_ALWAYS, GENERATED_ALWAYS))
def test_a_query_with_generators_always_gives_what_it_means_of_the_rows_so_far(start: int) -> None:
    for seed in range(start, start + GENERATED_ALWAYS):
        check_generated(seed)


@pytest.mark.parametrize("start", starts(MORE_ALL, MORE_ALWAYS, MORE_ALWAYS))
def test_a_query_with_more_aggregates_always_gives_what_it_means_of_the_rows_so_far(start: int) -> None:
    for seed in range(start, start + MORE_ALWAYS):
        # DuckDB does not find all keys of grouping sets again.
        with contextlib.suppress(duckdb.BinderException):
            check(seed, MORE)


def check_forms(seed: int, weights: Any = COMPARING) -> None:
    """Checks a query over values that are equal and look different."""
    # DuckDB refuses a few of the queries: it casts a key of GROUP BY where it is named again, and finds no key.
    with contextlib.suppress(duckdb.BinderException):
        check(seed, weights, has_forms=True)


@pytest.mark.parametrize("start", starts(WITH_FORMS, WITH_FORMS_ALWAYS, WITH_FORMS_ALWAYS))
def test_a_query_takes_equal_values_for_one_whatever_they_look_like(start: int) -> None:
    for seed in range(start, start + WITH_FORMS_ALWAYS):
        check_forms(seed)


def check_nested(seed: int) -> None:
    """Checks a query with windows over windows."""
    query, _ = nested_windows(Random(seed))
    check_text(query.own, seed, query.other)


@pytest.mark.parametrize("start", starts(NESTED, NESTED_ALWAYS, NESTED_ALWAYS))
def test_windows_over_windows_are_those_that_the_query_itself_names(start: int) -> None:
    for seed in range(start, start + NESTED_ALWAYS):
        check_nested(seed)


def test_the_queries_with_windows_over_windows_have_all_kinds_and_forms() -> None:
    outer = {nested_windows(Random(seed))[1][-1] for seed in range(NESTED_ALWAYS)}
    for place, all_of_them in enumerate((WINDOWS, FORMS, SHOWN)):
        assert {each[place] for each in outer} == {*all_of_them}


def test_a_thousand_queries_are_parsed_and_planned_in_ten_seconds() -> None:
    columns = {}
    for name, kind in KINDS.items():
        row = row_type.RowTypeConstraint.from_user_type(kind)
        assert row is not None
        columns[name] = tuple(ColumnDef(field, from_hint(hint)) for field, hint in row.fields)
    tables = Tables(columns, {}, {})
    queries = [random_query(seed).text.own for seed in range(200)]
    bind(queries[0], tables)
    start = time.process_time()
    for query in queries:
        bind(query, tables)
    # Ten seconds for a thousand; these are far longer than what people write.
    assert time.process_time() - start < 2


# Mutants: each breaks one rule.

Patch = Callable[[pytest.MonkeyPatch], None]


def _as_all(patch: pytest.MonkeyPatch) -> None:
    was = steps.SetOperationRows.__init__
    patch.setattr(steps.SetOperationRows, "__init__", lambda self, kind, is_all: was(self, kind, True))


def _never(patch: pytest.MonkeyPatch, owner: Any, name: str, value: Any) -> None:
    patch.setattr(owner, name, lambda *args, **kwargs: value)


def _joins(changed: Callable[..., Any]) -> Patch:
    """A break of joins, by what takes the place of `JoinRows`."""
    return lambda patch: patch.setattr(lowering, "JoinRows", changed)


def _lowered(changed: Callable[[Any, Any, Any], Any]) -> Patch:
    """A break of a relation, by what takes the place of its lowering; None leaves it."""
    was = lowering.Lowering._lower

    def lower(self: Any, relation: Any) -> Any:
        found = changed(self, relation, was)
        return was(self, relation) if found is None else found

    return lambda patch: patch.setattr(lowering.Lowering, "_lower", lower)


def _no_having(self: Any, relation: Any, was: Any) -> Any:
    is_having = isinstance(relation, Filter) and isinstance(relation.input, Aggregate)
    return self.lower(relation.input) if is_having else None


def _no_where(self: Any, relation: Any, was: Any) -> Any:
    is_where = isinstance(relation, Filter) and not isinstance(relation.input, Aggregate | Over | Top)
    return self.lower(relation.input) if is_where else None


def _first_of_union(self: Any, relation: Any, was: Any) -> Any:
    return self.lower(relation.inputs[0]) if isinstance(relation, lowering.Union_) else None


def _kind_as(kind: str, other: str, shown: Any = None) -> Callable[[str, Any, Any], Any]:
    def join(own: str, *others: Any) -> Any:
        made = JoinRows(other if own == kind else own, *others)
        return made if shown is None or own != kind else made | "Broken" >> beam.Map(shown)

    return join


def _no_residual(kind: str, unjoined: Any, matching: Any, forms: Any) -> Any:
    return JoinRows(kind, unjoined, None, forms)


def _nulls_match(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lowering, "_not_null", lambda scalars: None)


def _nothing_taken_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregating.SqlAggregates, "subtract_input", lambda self, accumulator, element: accumulator)


def _sides_not_taken_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregating.SideCounts, "subtract_input", lambda self, accumulator, element: accumulator)


def _first_rows(changed: Callable[..., tuple[Any, ...]]) -> Patch:
    """A break of first rows, by other arguments than the order."""
    was = lowering.first_rows
    return lambda patch: patch.setattr(
        lowering, "first_rows", lambda orders, *others: was(orders, *changed(*others))
    )


def _one_row_too_many(limit: Any, *others: Any) -> tuple[Any, ...]:
    return None if limit is None else limit + 1, *others


def _no_offset(limit: Any, offset: int, *others: Any) -> tuple[Any, ...]:
    return limit, 0, *others


def _nulls_always_first(patch: pytest.MonkeyPatch) -> None:
    was = selections.order_of

    def order(node: Any, scalar: Any) -> Any:
        made = was(node, scalar)
        return type(made)(made.scalar, made.descending, True)

    for module in (selections, queries):
        patch.setattr(module, "order_of", order)


def _no_partitions(patch: pytest.MonkeyPatch) -> None:
    was = numbering_limits.Top

    class Top(was):  # type: ignore[misc, valid-type]
        def __init__(self, input: Any, keys: Any, *others: Any, **named: Any) -> None:
            super().__init__(input, (), *others, **named)

    patch.setattr(numbering_limits, "Top", Top)


def _windows(changed: Callable[[list[Any]], list[Any]], kind: str) -> Patch:
    was = steps.windows_of

    def windows_of(own: str, *others: Any) -> Iterator[Any]:
        found = list(was(own, *others))
        return iter(changed(found) if own == kind else found)

    return lambda patch: patch.setattr(steps, "windows_of", windows_of)


def _window_ends_late(patch: pytest.MonkeyPatch) -> None:
    was = steps.GroupRows.__call__
    patch.setattr(
        steps.GroupRows,
        "__call__",
        lambda self, element, start, end: was(self, element, start, end + 1),
    )


def _no_old_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "compute_difference", lambda before, after: ([], after))


def _no_filter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        lowering,
        "argument_of",
        lambda call: Literal(1, from_hint(int)) if call.argument is None else call.argument,
    )


def _distinct_as_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bags.Copies, "distinct", lambda self, held: list(self.elements(held)))


def _no_empty_group(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        lowering.Lowering,
        "_seed",
        lambda self, hint: self._pipeline | self._label("Nothing") >> beam.Create([]).with_output_types(hint),
    )


def _undo_unseen(patch: pytest.MonkeyPatch) -> None:
    was = rendering.ShowChanges._values
    patch.setattr(
        rendering.ShowChanges,
        "_values",
        lambda self, row, pane, *others: tuple(
            "" if each == "undo" else each for each in was(self, row, pane, *others)
        ),
    )


def _sessions_apart(patch: pytest.MonkeyPatch) -> None:
    was = lowering.Sessions
    patch.setattr(lowering, "Sessions", lambda gap, merge_touching: was(gap))


def _whole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exact.ExactPowers, "total", lambda self, held: float(held[5] >> held[4]))
    patch.setattr(sums, "_any_sum", lambda count, total: float(int(total)) if count else None)


def _sets_changed(changed: Callable[[list[Any]], list[Any]]) -> Patch:
    """A break of grouping sets: what becomes of the pairs of kept keys and tails."""
    was = grouping_sets.InSets.__init__

    def init(self: Any, relation: Any) -> None:
        was(self, relation)
        self._sets = changed(self._sets)

    return lambda patch: patch.setattr(grouping_sets.InSets, "__init__", init)


def _grouping_upside_down(patch: pytest.MonkeyPatch) -> None:
    was = key_sets._bit
    patch.setattr(
        key_sets, "_bit", lambda number, place: functions.call("-", [key_sets._whole(1), was(number, place)])
    )


def _kept_in_sums(patch: pytest.MonkeyPatch) -> None:
    was = exact.ExactPowers.change
    patch.setattr(
        exact.ExactPowers, "change", lambda self, held, value, sign: was(self, held, value, abs(sign))
    )


def _last_value(shares: Any, descending: bool, as_double: bool, values: list[Any]) -> Any:
    found = sorted(values)[-1:]
    return float(found[0]) if found else None


def _null_counts(patch: pytest.MonkeyPatch) -> None:
    was = functions_of_aggregates.record_of

    def record_of(call: Any) -> Any:
        return replace(was(call), needs=lambda call: ())

    patch.setattr(aggregating, "record_of", record_of)


def _valid_too_long(patch: pytest.MonkeyPatch) -> None:
    was = lowering._bounds

    def bounds(valid: Any, has_zone: bool) -> tuple[Any, Any]:
        return was(valid._replace(end=valid.end + Duration(1)), has_zone)

    patch.setattr(lowering, "_bounds", bounds)


def _one_timeline(self: Any, relation: Any, was: Any) -> Any:
    return was(self, replace(relation, keys=())) if isinstance(relation, Valid) else None


def _valid_too_late(patch: pytest.MonkeyPatch) -> None:
    was = validity.match_rows

    def matched(kind: str, with_validity: bool, rows: list[Any], valid: list[Any]) -> list[Any]:
        early = [(at - Duration(micros=1), row) for at, row in rows]
        return was(kind, with_validity, early, valid)

    patch.setattr(validity, "match_rows", matched)


def _unmatched_lost(patch: pytest.MonkeyPatch) -> None:
    was = lowering.JoinByValidity
    patch.setattr(
        lowering,
        "JoinByValidity",
        lambda kind, **named: was("inner" if kind == "left" else kind, **named),
    )


def _joined_without(place: int, value: Any) -> Patch:
    """A break of joins with the valid row, by a value in place of what says that they are ones."""
    was = sources.make_join

    def joined(*given: Any) -> Any:
        return was(*given[:place], value, *given[place + 1 :])

    return lambda patch: patch.setattr(sources, "make_join", joined)


def _null_is_valid(patch: pytest.MonkeyPatch) -> None:
    _never(patch, lowering, "_not_null", None)


def _never_late(patch: pytest.MonkeyPatch) -> None:
    was = lowering.Lowering._triggered

    def triggered(self: Any, rows: Any, windowfn: Any, emit: Any) -> Any:
        return was(self, rows, windowfn, replace(emit, after=lowering.Delay(0)) if emit.watermark else emit)

    patch.setattr(lowering.Lowering, "_triggered", triggered)


def _closed_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lowering, "_FOREVER", 0)


MUTANTS: dict[str, tuple[Patch, dict[str, float]]] = {
    "a grouping does not take its old row back": (_no_old_rows, {"grouped": 20}),
    "nothing is taken out of aggregates": (
        _nothing_taken_out,
        # A subquery that seems to have two rows would fail, which is not what is to be found.
        {"grouped": 20, "condition with a subquery": 0, "value of a subquery": 0},
    ),
    "MIN is MAX": (
        lambda patch: patch.setattr(extremes, "least", extremes.greatest),
        {"grouped": 20},
    ),
    "aggregates take copies although they are DISTINCT": (_distinct_as_all, {"grouped": 20}),
    "FILTER is ignored": (_no_filter, {"grouped": 20, "FILTER": 0.9}),
    "HAVING is ignored": (_lowered(_no_having), {"grouped": 20, "HAVING": 0.9}),
    "WHERE is ignored": (_lowered(_no_where), {"WHERE": 0.9}),
    "there is no group without rows": (_no_empty_group, {"grouped": 20, "no keys": 0.9}),
    "DISTINCT is ignored": (
        lambda patch: patch.setattr(groupings, "distinct", lambda relation: relation),
        {"DISTINCT": 0.9},
    ),
    "UNION forgets the second query": (_lowered(_first_of_union), {"set operation": 20, "UNION ALL": 9}),
    "EXCEPT keeps copies": (_as_all, {"set operation": 20, "EXCEPT": 20}),
    "rows are not taken out of EXCEPT": (_sides_not_taken_out, {"set operation": 20, "EXCEPT ALL": 20}),
    "INTERSECT is EXCEPT": (
        lambda patch: patch.setattr(
            steps.SetOperationRows,
            "__call__",
            lambda self, element, start, end: [element[0]] * max(0, element[1][0] - element[1][1]),
        ),
        {"set operation": 20, "INTERSECT": 20, "INTERSECT ALL": 20},
    ),
    "a left join forgets the unmatched": (_joins(_kind_as("left", "inner")), {"join": 20, "LEFT JOIN": 20}),
    "a right join forgets the unmatched": (
        _joins(_kind_as("right", "inner")),
        {"join": 20, "RIGHT JOIN": 20},
    ),
    "a full join forgets the right unmatched": (
        _joins(_kind_as("full", "left")),
        {"join": 20, "FULL JOIN": 20},
    ),
    "a semi join repeats rows": (
        _joins(_kind_as("semi", "inner", lambda pair: (pair[0], pair[1][0]))),
        {"join": 20, "LEFT SEMI JOIN": 20},
    ),
    "an anti join is a semi join": (
        _joins(_kind_as("left_anti", "semi")),
        {"join": 20, "LEFT ANTI JOIN": 20},
    ),
    "NULL equals NULL in joins": (_nulls_match, {"join": 20, "JOIN": 20}),
    "rows with NULL in their keys are lost": (
        lambda patch: _never(patch, lowering, "_preserved", (False, False)),
        {"join": 20, "LEFT JOIN": 20, "FULL JOIN": 20},
    ),
    "other conditions of joins are ignored": (
        _joins(_no_residual),
        {"join": 20, "LEFT JOIN": 20, "residual": 1},
    ),
    "LIMIT gives a row too many": (_first_rows(_one_row_too_many), {"LIMIT": 0.9}),
    "OFFSET is ignored": (_first_rows(_no_offset), {"LIMIT": 0.9}),
    "NULL is always first": (_nulls_always_first, {"LIMIT": 0.9}),
    "PARTITION BY is ignored": (_no_partitions, {"QUALIFY": 0.9, "plain": 20}),
    "all conditions count as conditions that all numbers satisfy": (
        lambda patch: _never(patch, pruning, "_is_always_true", True),
        {"WHERE": 0.9},
    ),
    "a window is missing": (_windows(lambda found: found[1:], "hop"), {"windows": 30, "HOP": 30}),
    "the largest window is missing": (
        _windows(lambda found: found[:-1] or found, "cumulate"),
        {"windows": 30, "CUMULATE": 30},
    ),
    "grouped windows end too late": (_window_ends_late, {"windows": 30, "grouped": 30}),
    "windows end too late": (
        _windows(lambda found: [(start, end + 1) for start, end in found], "tumble"),
        {"windows": 30, "TUMBLE": 30, "plain": 20},
    ),
    "undone rows are not marked": (_undo_unseen, {"grouped": 20}),
    "sessions that touch are two": (_sessions_apart, {"grouped": 20, "sessions": 1}),
    "a sum of DOUBLE is whole": (_whole, {"grouped": 20, "DOUBLE": 1}),
    "a grouping set is missing": (_sets_changed(lambda sets: sets[1:]), MORE),
    "a grouping set has all keys": (
        _sets_changed(lambda sets: [((True,) * len(own), tail) for own, tail in sets]),
        {**MORE, "grouping sets": 0.9},
    ),
    "GROUPING is upside down": (_grouping_upside_down, {**MORE, "grouping sets": 0.9}),
    "exact sums keep what is taken out": (_kept_in_sums, {**MORE, VARIANCE: 200}),
    "a percentile is the last value": (
        lambda patch: patch.setattr(percentiles, "_discrete", _last_value),
        {**MORE, PERCENTILE: 200},
    ),
    "COUNT of several counts NULL": (_null_counts, {**MORE, "COUNT({n}, {s})": 200}),
    "validity ends too late": (_valid_too_long, {"validity": 1, "VALIDITY_WINDOW": 20}),
    "groups are valid too long": (_valid_too_long, {"GROUP BY validity": 1, "grouped": 20}),
    "a row is valid until any row comes": (_lowered(_one_timeline), {"validity": 1, "VALIDITY_WINDOW": 20}),
    "ASOF JOIN takes the row before the valid one": (_valid_too_late, {"validity": 1, "ASOF JOIN": 20}),
    "ASOF JOIN takes all rows before": (_joined_without(5, False), {"validity": 1, "ASOF JOIN": 20}),
    "FOR SYSTEM_TIME AS OF takes the row before the valid one": (
        _valid_too_late,
        {"validity": 1, "FOR SYSTEM_TIME AS OF": 20},
    ),
    "FOR SYSTEM_TIME AS OF is ignored": (
        _joined_without(4, None),
        {"validity": 1, "FOR SYSTEM_TIME AS OF": 20},
    ),
    "a left join by validity forgets the unmatched": (
        _unmatched_lost,
        {"validity": 1, "JOIN VALIDITY_WINDOW": 20},
    ),
    "NULL equals NULL in joins by validity": (_null_is_valid, {"validity": 1, "VALIDITY_WINDOW": 0}),
}


SEEDS = {
    "nothing is taken out of aggregates": 47,
    "MIN is MAX": 11,
    "aggregates take copies although they are DISTINCT": 48,
    "DISTINCT is ignored": 15,
    "EXCEPT keeps copies": 6,
    "rows are not taken out of EXCEPT": 8,
    "INTERSECT is EXCEPT": 5,
    "a semi join repeats rows": 19,
    "NULL equals NULL in joins": 19,
    "other conditions of joins are ignored": 29,
    "PARTITION BY is ignored": 11,
    "grouped windows end too late": 12,
    "windows end too late": 4,
    "a sum of DOUBLE is whole": 41,
    "exact sums keep what is taken out": 22,
    "a percentile is the last value": 22,
    "validity ends too late": 7,
    "a left join by validity forgets the unmatched": 4,
    "a full join forgets the right unmatched": 3,
    "groups are valid too long": 3,
    "ASOF JOIN takes the row before the valid one": 2,
    "ASOF JOIN takes all rows before": 1,
    "FOR SYSTEM_TIME AS OF takes the row before the valid one": 2,
    "FOR SYSTEM_TIME AS OF is ignored": 1,
    "NULL equals NULL in joins by validity": 2,
}
"""Where the queries that find some of them begin; without it, many that do not would run before them."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, weights = MUTANTS[name]
    patch(monkeypatch)
    weights = {"sessions": 0, "DOUBLE": 0, **weights}
    seeds = sorted(range(60), key=lambda seed: seed < SEEDS.get(name, 0))
    assert first_broken(seeds, lambda seed: check(seed, weights)) is not None


class _WithoutRetractions(beam.DoFn):
    """Lets rows through that are inserted, and drops retractions."""

    accepts_retractions = True

    def process(self, row: Any, pane: Any = beam.DoFn.PaneInfoParam) -> Iterator[Any]:
        if pane.kind.sign > 0:
            yield row


def _generator(**changed: Any) -> Patch:
    """A break of generators, by other attributes of the relation."""

    def change(self: Any, relation: Any, was: Any) -> Any:
        is_other = isinstance(relation, Generate) and any(
            getattr(relation, name) not in (value, None) for name, value in changed.items()
        )
        return was(self, replace(relation, **changed)) if is_other else None

    return _lowered(change)


def _generates_insertions_only(self: Any, relation: Any, was: Any) -> Any:
    if not isinstance(relation, Generate):
        return None
    rows = was(self, relation)
    keep = beam.ParDo(_WithoutRetractions()).with_output_types(rows.element_type)
    return rows | self._label("Without retractions") >> keep


def _rows_of(name: str, changed: Callable[[list[Any]], Iterator[Any]]) -> Patch:
    """A break of the rows that a generator makes."""
    record = generator_functions.RECORDS[name]

    def rows(values: Any, width: int) -> Iterator[Any]:
        return changed(list(record.rows(values, width)))

    return lambda patch: patch.setitem(generator_functions.RECORDS, name, replace(record, rows=rows))


GENERATOR_MUTANTS: dict[str, tuple[int, Patch]] = {
    "OUTER is ignored": (0, _generator(outer=False)),
    "a LEFT JOIN forgets rows without a match": (0, _generator(kind="inner")),
    "a condition is ignored": (20, _generator(condition=None)),
    "retractions are ignored": (0, _lowered(_generates_insertions_only)),
    "a position is one too high": (
        0,
        _rows_of("POSEXPLODE", lambda rows: ((at + 1, *row) for at, *row in rows)),
    ),
    "an ordinality is one too low": (
        10,
        _rows_of("UNNEST WITH ORDINALITY", lambda rows: ((*row, at - 1) for *row, at in rows)),
    ),
    "NULL is not an element": (
        20,
        _rows_of("EXPLODE", lambda rows: (row for row in rows if row[-1] is not None)),
    ),
    "equal elements are one": (44, _rows_of("UNNEST", lambda rows: iter(dict.fromkeys(rows)))),
}
"""Breaks, each with the seed from which queries are tried."""


@pytest.mark.parametrize("name", GENERATOR_MUTANTS)
def test_the_law_of_generators_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, patch = GENERATOR_MUTANTS[name]
    patch(monkeypatch)
    assert first_broken(range(start, start + 30), check_generated) is not None


FORM_MUTANTS: dict[str, tuple[Patch, dict[str, float]]] = {
    "bytes are compared": (lambda patch: patch.setattr(equality, "_CANONICAL", {}), {}),
    "keys are compared by their bytes": (
        lambda patch: patch.setattr(lowering, "canonicalize_keys", tuple),
        {"join": 20, "grouped": 9},
    ),
    "a row that is taken back must look as it came": (
        lambda patch: patch.setattr(lowering, "form_of", lambda columns: None),
        {"join": 20, "validity": 0.5, "QUALIFY": 0.9},
    ),
}


@pytest.mark.parametrize("name", FORM_MUTANTS)
def test_the_law_of_equal_values_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, weights = FORM_MUTANTS[name]
    patch(monkeypatch)
    assert first_broken(range(40), lambda seed: check_forms(seed, {**COMPARING, **weights})) is not None


LATE_MUTANTS = {
    "rows count that come after their windows are closed": (_never_late, "AFTER WATERMARK"),
    "windows that stay open are closed": (_closed_at_once, "AFTER WATERMARK AND THEN AFTER 0 SECONDS"),
}


@pytest.mark.parametrize("name", LATE_MUTANTS)
def test_the_law_of_late_rows_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, clause = LATE_MUTANTS[name]
    patch(monkeypatch)
    assert first_broken(range(40), lambda seed: check_late(seed, clause)) is not None


def test_the_law_of_windows_over_windows_finds_that_a_query_takes_those_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    was = lineage.origin_of

    def origin_of(relation: Any, at: int) -> Any:
        origin = was(relation, at)
        return None if origin is None else origin._replace(windows=relation, is_below=False)

    monkeypatch.setattr(lineage, "origin_of", origin_of)

    def check_bound(seed: int) -> None:
        with contextlib.suppress(SqlError):
            check_nested(seed)

    assert first_broken(range(NESTED_ALWAYS), check_bound) is not None
