"""No transform keeps anything when all windows have ended, and a shard remembers no more than it did before."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock
from penstock.construction.applied import PipelineVisitor
from penstock.construction.ptransform import PTransform
from penstock.machines import merging
from penstock.machines.cells import MapCell, OrderedListCell, _Cell
from penstock.machines.records import MAX_MICROS
from penstock.machines.side_inputs import SideInputMachine
from penstock.machines.splittable import SplittableMachine
from penstock.machines.stateful import StatefulMachine
from penstock.machines.timers import END_OF_WINDOW, HOLDS_NOTHING
from penstock.sql.transform import SqlTransform
from penstock_spark.stream.shards.waiting import WaitingOperator
from penstock_spark.stream.shards.window_table import WindowTable
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.pages import Pages
from penstock_spark.stream.state.segments import Segments
from tests.shards.expiring_rounds import Rounds, case_of, pipeline_of
from tests.shards.states import CASES, KEPT_FOR_EVER, MODES, STATELESS, WINDOWS_AND_TRIGGERS
from tests.shards.toy_query import ToyQuery

NO_STATE = {
    "GroupIntoBatches that are full in the global window",
    "Reshuffle",
    "ReshufflePerKey",
    "SQL, union",
    "SQL, arrival",
}
"""Cases in which nothing is kept from one micro-batch to the next; other cases must have kept something."""

SMALL = {
    name: case
    for place, (name, case) in enumerate(CASES.items())
    if name not in WINDOWS_AND_TRIGGERS or place % len(MODES) == place // len(MODES) % len(MODES)
}
"""All cases, but each trigger and each kind of windows in only one mode of accumulation."""


def leaks(cases: Any, mode: str = "streaming", shards: int = 1, rounds: int = 1) -> set[str]:
    """The cases that keep something when all windows have ended; ``a shard`` if its header has grown meanwhile."""
    played = Rounds(cases, mode, shards)
    played.play(rounds)
    kept, residue_bytes = played.kept(), played.residue_bytes()
    played.play(rounds)
    kept |= played.kept()
    found = set(map(case_of, kept))
    if not found:
        assert played.have_given == set(cases)
        not_kept = set(cases) - played.have_kept
        assert not_kept <= NO_STATE | ({"WaitOn"} if mode == "micro_batch" else set())
    if not found and played.residue_bytes() != residue_bytes:
        found.add("a shard")
    return found


@pytest.mark.parametrize(("mode", "first"), [("streaming", 0), ("micro_batch", 1)])
def test_when_all_windows_have_ended_nothing_is_kept(mode: str, first: int) -> None:
    """Each case in one mode; the long form has all in both."""
    assert leaks(dict([*SMALL.items()][first::2]), mode) == set()


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
@pytest.mark.parametrize("shards", [1, 3])
def test_after_many_rounds_nothing_is_kept(mode: str, shards: int) -> None:
    assert leaks(CASES, mode, shards, rounds=4) == set()


def test_what_the_documents_say_is_kept_for_ever_is_kept() -> None:
    assert leaks(KEPT_FOR_EVER) == set(KEPT_FOR_EVER)


def test_a_query_that_keeps_something_for_ever_says_so() -> None:
    for cases, is_kept in ((CASES, False), (KEPT_FOR_EVER, True)):
        queries = {
            name: case
            for name, case in cases.items()
            if name.startswith("SQL") and name != "SQL of rows that go"
        }
        told = Explained(pipeline_of(queries)).told
        assert {name: "kept forever" in text for name, text in told.items()} == dict.fromkeys(
            queries, is_kept
        )


class Explained(PipelineVisitor):
    """Gathers the explanation of each query, by case."""

    def __init__(self, pipeline: Any) -> None:
        self.told: dict[str, str] = {}
        pipeline.visit(self)

    def enter_composite_transform(self, node: Any) -> None:
        if isinstance(node.transform, SqlTransform):
            self.told[case_of(node.full_label)] = node.transform.explained


EXCUSED = {
    "penstock.construction.": "a base of others",
    "penstock.io.": "reads, finds or writes; the case 'files of windows' stands for all writes by windows",
    "penstock.testing.": "of tests",
    "penstock.transforms.applying.": "applied to plain values",
    "penstock.transforms.elements.create.": "a source",
    "penstock.transforms.combining.combine.CombineValues": "an element at a time, behind a grouping",
    "penstock.transforms.grouping.group_by_key.Grouping": "a base of others",
    "penstock.transforms.combining.ready_combiners.CombinerWithoutDefaults": "a base of others",
    "penstock.transforms.combining.ready_combiners.Sample.Any": "FixedSizeGlobally",
    "penstock.relations.joins.JoinOfKind": "a base of others",
    "penstock.transforms.stats.ApproximateQuantiles.Globally": "a CombineGlobally",
    "penstock.transforms.stats.ApproximateUnique.Globally": "a CombineGlobally",
    "penstock.ml.": "an element at a time",
    "penstock.sql.execution.as_written.": "of a batch",
    "penstock.sql.tables.": "reads, writes, or makes an element of an element",
}
"""Public transforms without a case, by the beginning of their names, and why they have none."""


class Applied(PipelineVisitor):
    """The names of all transforms of a pipeline."""

    def __init__(self, pipeline: Any) -> None:
        self.names: set[str] = set()
        pipeline.visit(self)

    def visit_transform(self, node: Any) -> None:
        self.names.update(map(full_name, type(node.transform).__mro__))

    enter_composite_transform = visit_transform


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def kinds_of(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds_of(kind)


def test_each_public_transform_has_a_case_or_an_excuse() -> None:
    for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
        importlib.import_module(module.name)
    names = {full_name(kind) for kind in kinds_of(PTransform)}
    public = {name for name in names if name.startswith("penstock.") and "._" not in name}
    applied = Applied(pipeline_of(CASES)).names | Applied(pipeline_of(STATELESS)).names
    without = {name for name in public - applied if not name.startswith(tuple(EXCUSED))}
    assert without == set()
    assert {excuse for excuse in EXCUSED if not any(name.startswith(excuse) for name in public)} == set()


def test_a_transform_that_keeps_nothing_makes_no_shards() -> None:
    assert ToyQuery(pipeline_of(STATELESS)).plan.levels == ()


Patch = Callable[[pytest.MonkeyPatch], None]


def never_clears(name: str) -> Patch:
    """Cells of a name are not cleared, in whatever way."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for kind, method in ((_Cell, "clear"), (MapCell, "remove"), (OrderedListCell, "clear_range")):
            clear = getattr(kind, method)

            def not_this(cell: Any, *arguments: Any, clear: Any = clear) -> None:
                if cell._name != name:
                    clear(cell, *arguments)

            monkeypatch.setattr(kind, method, not_this)

    return patch


def keeps_windows_with_a_method_for_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = StatefulMachine._keep_if_used

    def kept(machine: Any, state: Any, plain: Any, expiry_micros: int) -> None:
        if not machine._code.has_expiration:
            keep(machine, state, plain, expiry_micros)
        elif (end := (plain, END_OF_WINDOW, "")) not in state.timers.settings:
            state.timers.set(end, (True, expiry_micros, HOLDS_NOTHING))

    monkeypatch.setattr(StatefulMachine, "_keep_if_used", kept)


def ends_no_windows_of_dofns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatefulMachine, "_end", lambda *_: None)


def removes_no_windows_of_groupings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "remove", lambda *_: None)


def removes_no_windows_that_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = merging.remove
    monkeypatch.setattr(
        merging, "remove", lambda program, key, state: state.is_closed or remove(program, key, state)
    )


def saves_no_end_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    save = WindowTable.save

    def saved(columns: Any) -> None:
        columns._gone.clear()
        save(columns)

    monkeypatch.setattr(WindowTable, "save", saved)


def removes_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    change = KeyPages.change

    def changed(pages: Any, changes: Any, *rest: Any) -> None:
        kept = {
            number: {name: row for name, row in rows.items() if row is not None}
            for number, rows in changes.items()
        }
        change(pages, kept, *rest)

    monkeypatch.setattr(KeyPages, "change", changed)


def keeps_restrictions_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = SplittableMachine.advance_clock

    def advanced(machine: Any, state: Any, times: Any) -> Any:
        windows = state.windows
        given = advance(machine, state, times)
        if not state.windows:
            state.windows, state.next_micros = windows, MAX_MICROS
        return given

    monkeypatch.setattr(SplittableMachine, "advance_clock", advanced)


def forgets_no_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SideInputMachine, "forget", lambda *_: [])


def deletes_no_waiting_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WaitingOperator, "_forget", lambda *_: None)


def replaces_no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segments, "replace", lambda *_: None)


def makes_more_pages_always(monkeypatch: pytest.MonkeyPatch) -> None:
    save = Pages.save

    def saved(pages: Any) -> None:
        save(pages)
        pages.notes.add_pages(1)

    monkeypatch.setattr(Pages, "save", saved)


def notes_each_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Header.learn

    def learned(header: Any, origin: str, state: Any) -> None:
        learn(header, origin, state)
        header.told.add((origin, state.watermark_micros))

    monkeypatch.setattr(Header, "learn", learned)


MUTANTS: dict[str, tuple[Patch, set[str]]] = {
    "windows with a method for their end": (
        keeps_windows_with_a_method_for_their_end,
        {
            "Upserts of rows that go",
            "GroupIntoBatches that wait in the global window",
            "BatchElements that wait in the global window",
            "a DoFn with an end that empties its cells by the watermark",
        },
    ),
    "windows of DoFns": (
        ends_no_windows_of_dofns,
        {"JoinRows, full", "ValidityJoin, left, final", "ValidFrom", "a DoFn whose windows end"},
    ),
    "windows of groupings": (
        removes_no_windows_of_groupings,
        {"GroupByKey, sessions, default, DISCARDING", "CombinePerKey, clock, ACCUMULATING_AND_RETRACTING"},
    ),
    "closed windows": (removes_no_windows_that_are_closed, {"CombinePerKey, count once, DISCARDING"}),
    "columns": (saves_no_end_of_columns, {"CombinePerKey, default, DISCARDING", "Top.PerKey"}),
    "keys": (removes_no_keys, {"CombinePerKey, sessions, default, DISCARDING", "a splittable DoFn"}),
    "restrictions": (keeps_restrictions_that_are_done, {"a splittable DoFn", "PeriodicSequence"}),
    "contents of side inputs": (
        forgets_no_contents,
        {"AsDict", "AsSingleton", "a DoFn with state and a side input"},
    ),
    "waiting pages": (deletes_no_waiting_pages, {"AsList", "WaitOn"}),
    "segments": (replaces_no_segments, {"a DoFn with a long list", "GroupByKey of a long list"}),
    "the order of a row": (never_clears("known"), {"Upserts by window", "Upserts by window of sessions"}),
    "arrivals of a row": (never_clears("arrivals"), {"Upserts by window"}),
    "what was seen": (never_clears("seen"), {"DeduplicatePerKey by the clock in the global window"}),
    "values of a batch": (never_clears("values"), {"GroupIntoBatches that are full in the global window"}),
    "the size of a batch": (never_clears("size"), {"BatchElements that wait in the global window"}),
    "left rows": (never_clears("lefts"), {"JoinRows, inner, of rows that go"}),
    "rows with a time": (never_clears("rows"), {"ValidityJoin, inner, of rows that go"}),
    "times of arrival": (never_clears("times"), {"SQL of rows that go"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_leak_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, cases = MUTANTS[name]
    chosen = {case: CASES[case] for case in cases}
    patch(monkeypatch)
    assert leaks(chosen) == cases


@pytest.mark.parametrize("patch", [makes_more_pages_always, notes_each_watermark])
def test_a_shard_that_remembers_more_and_more_is_found(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch)
    assert leaks({"Distinct": CASES["Distinct"]}) == {"a shard"}
