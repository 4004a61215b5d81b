"""Checks the algebra of changes: the promises of `compute_net`, `compute_difference` and bags of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from penstock.coders.deterministic import encode_key
from penstock.relations import bags, changes
from penstock.relations.bags import Copies
from penstock.relations.changes import Change
from penstock.utils.windowed_value import ValueKind

ROWS = st.sampled_from(
    ["a", "b", 1, True, 0.0, -0.0, float("nan"), ("a", None), Decimal("1.5"), Decimal("1.50")]
)
SIGNED = st.lists(st.tuples(st.sampled_from([1, -1]), ROWS), max_size=8)
TEXTS = st.lists(st.tuples(st.sampled_from([1, -1]), st.sampled_from(["a", "A", "b", "B"])), max_size=8)


def bag(rows: Iterable[Any]) -> Counter[bytes]:
    return Counter(map(encode_key, rows))


def signs(change: Change) -> list[tuple[int, Any]]:
    retracted, inserted = change
    return [*((-1, row) for row in retracted), *((1, row) for row in inserted)]


def total(
    signed: Iterable[tuple[int, Any]], form: Callable[[Any], Any] = lambda row: row
) -> dict[bytes, int]:
    """Returns the number of copies of each form of a row that some changes add."""
    found = Counter[bytes]()
    for sign, row in signed:
        found[encode_key(form(row))] += sign
    return {name: count for name, count in found.items() if count}


def net_has_the_same_total(one: Any, other: Any, third: Any) -> None:
    assert total(signs(changes.compute_net(one))) == total(one)


def net_holds_no_row_and_its_retraction(one: Any, other: Any, third: Any) -> None:
    retracted, inserted = changes.compute_net(one)
    assert not bag(retracted) & bag(inserted)


def net_of_a_concatenation_is_the_net_of_the_nets(one: Any, other: Any, third: Any) -> None:
    nets = [*signs(changes.compute_net(one)), *signs(changes.compute_net(other))]
    whole, parts = changes.compute_net([*one, *other]), changes.compute_net(nets)
    assert [*map(bag, whole)] == [*map(bag, parts)]


def net_commutes(one: Any, other: Any, third: Any) -> None:
    assert [*map(bag, changes.compute_net([*one, *other]))] == [
        *map(bag, changes.compute_net([*other, *one]))
    ]


def a_change_and_its_inverse_are_none(one: Any, other: Any, third: Any) -> None:
    change = changes.compute_net(one)
    assert changes.compute_net([*signs(change), *signs(change[::-1])]) == ([], [])


def rows_of(signed: Any) -> list[Any]:
    return [row for _, row in signed]


def difference_leads_from_one_bag_to_the_other(one: Any, other: Any, third: Any) -> None:
    before, after = rows_of(one), rows_of(other)
    retracted, inserted = map(bag, changes.compute_difference(before, after))
    assert retracted <= bag(before)
    assert bag(before) - retracted + inserted == bag(after)


def difference_is_the_smallest(one: Any, other: Any, third: Any) -> None:
    retracted, inserted = map(bag, changes.compute_difference(rows_of(one), rows_of(other)))
    assert not retracted & inserted


def difference_of_a_bag_and_itself_is_none(one: Any, other: Any, third: Any) -> None:
    assert not any(changes.compute_difference(rows_of(one), rows_of(one)[::-1]))


def difference_of_unions_is_the_net_of_differences(one: Any, other: Any, third: Any) -> None:
    before, after, more = map(rows_of, (one, other, third))
    both = changes.compute_difference([*before, *more], [*after, *after])
    parts = [
        *signs(changes.compute_difference(before, after)),
        *signs(changes.compute_difference(more, after)),
    ]
    assert total(signs(both)) == total(parts)


def differences_follow_each_other(one: Any, other: Any, third: Any) -> None:
    before, between, after = map(rows_of, (one, other, third))
    steps = [
        *signs(changes.compute_difference(before, between)),
        *signs(changes.compute_difference(between, after)),
    ]
    assert [*map(bag, changes.compute_net(steps))] == [*map(bag, changes.compute_difference(before, after))]


def elements_retract_before_they_insert(one: Any, other: Any, third: Any) -> None:
    retracted, inserted = ([(row, 0) for row in rows] for rows in changes.compute_net(one))
    emitted = [*changes.emit_pairs("key", (retracted, inserted), None)]
    kinds = [each.pane_info.kind for each in emitted]
    assert kinds == sorted(kinds, key=lambda kind: kind.sign)
    assert total((each.pane_info.kind.sign, each.value[1]) for each in emitted) == total(one)
    updates = {ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER}
    assert updates.issuperset(kinds) or updates.isdisjoint(kinds)
    assert updates.isdisjoint(kinds) == (len({kind.sign for kind in kinds}) < 2)


LAWS = {
    law.__name__: law
    for law in (
        net_has_the_same_total,
        net_holds_no_row_and_its_retraction,
        net_of_a_concatenation_is_the_net_of_the_nets,
        net_commutes,
        a_change_and_its_inverse_are_none,
        difference_leads_from_one_bag_to_the_other,
        difference_is_the_smallest,
        difference_of_a_bag_and_itself_is_none,
        difference_of_unions_is_the_net_of_differences,
        differences_follow_each_other,
        elements_retract_before_they_insert,
    )
}


@pytest.mark.parametrize("name", LAWS)
def test_changes_of_rows_keep_the_law(name: str) -> None:
    settings(max_examples=150)(given(SIGNED, SIGNED, SIGNED)(LAWS[name]))()


def net_of_forms(signed: list[tuple[int, str]]) -> None:
    """Rows in one form cancel each other, and the very same rows first."""
    change = changes.compute_net(signed, str.lower)
    assert total(signs(change), str.lower) == total(signed, str.lower)
    retracted, inserted = change
    assert not bag(map(str.lower, retracted)) & bag(map(str.lower, inserted))


def test_rows_in_one_form_cancel_each_other() -> None:
    settings(max_examples=150)(given(TEXTS)(net_of_forms))()


def test_the_very_same_row_cancels_first() -> None:
    assert changes.compute_net([(1, "a"), (1, "A"), (-1, "a")], str.lower) == ([], ["A"])
    assert changes.compute_net([(-1, "a"), (-1, "A"), (1, "A")], str.lower) == (["a"], [])
    assert changes.compute_net([(1, "a"), (1, "a"), (-1, "A")], str.lower) == ([], ["a"])


def held_is_the_net(signed: list[tuple[int, str]]) -> None:
    """A bag holds the net of its changes if they retract only rows that it holds, in their own form."""
    copies, held, there = Copies(str.lower), Counter[Any](), list[str]()
    for sign, row in signed:
        place = bags.place_of_copy(row, there, str.lower)
        if sign > 0:
            there.append(row)
        elif place is None:
            continue
        else:
            assert (there[place] == row) == (row in there)
            del there[place]
        copies.change(held, row, sign)
    assert Counter(map(str.lower, copies.elements(held))) == Counter(map(str.lower, there))
    assert {row.lower() for row in there} == {row.lower() for row in copies.distinct(held)}
    assert len(copies.distinct(held)) == len({row.lower() for row in there})


def test_a_bag_holds_what_is_left() -> None:
    settings(max_examples=150)(given(TEXTS)(held_is_the_net))()


def test_rows_without_an_encoding_are_compared_by_python() -> None:
    assert changes.compute_difference([frozenset("a")], [frozenset("a")]) == ((), ())
    assert changes.compute_difference([frozenset("a")], [frozenset("b")]) == (
        [frozenset("a")],
        [frozenset("b")],
    )


real_net, real_difference, real_pairs = changes.compute_net, changes.compute_difference, changes.emit_pairs


def as_they_come(signed: Any, form: Any = None) -> Change:
    signed = list(signed)
    return [row for sign, row in signed if sign < 0], [row for sign, row in signed if sign > 0]


def each_once(signed: Any, form: Any = None) -> Change:
    retracted, inserted = ([*{encode_key(row): row for row in rows}.values()] for rows in real_net(signed))
    return retracted, inserted


def only_retractions_that_follow(signed: Any, form: Any = None) -> Change:
    """A retraction cancels only what has come before it."""
    there: list[Any] = []
    retracted = []
    for sign, row in signed:
        place = bags.place_of_copy(row, there)
        if sign > 0:
            there.append(row)
        elif place is None:
            retracted.append(row)
        else:
            del there[place]
    return retracted, there


def by_pythons_equality(before: Any, after: Any) -> Change:
    return [row for row in before if row not in after], [row for row in after if row not in before]


def insertions_first(key: Any, change: Change, window: Any) -> Any:
    return reversed([*real_pairs(key, change, window)])


def always_updates(change: Change) -> Any:
    return ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "net_has_the_same_total": (changes, "compute_net", each_once),
    "net_holds_no_row_and_its_retraction": (changes, "compute_net", as_they_come),
    "net_of_a_concatenation_is_the_net_of_the_nets": (changes, "compute_net", each_once),
    "net_commutes": (changes, "compute_net", only_retractions_that_follow),
    "a_change_and_its_inverse_are_none": (changes, "compute_net", as_they_come),
    "difference_leads_from_one_bag_to_the_other": (changes, "compute_difference", by_pythons_equality),
    "difference_is_the_smallest": (changes, "compute_difference", lambda before, after: (before, after)),
    "difference_of_a_bag_and_itself_is_none": (
        changes,
        "compute_difference",
        lambda before, after: (before, after),
    ),
    "difference_of_unions_is_the_net_of_differences": (changes, "compute_difference", by_pythons_equality),
    "differences_follow_each_other": (changes, "compute_difference", by_pythons_equality),
    "elements_retract_before_they_insert": (changes, "emit_pairs", insertions_first),
}


def refuted(law: Callable[..., None], *strategies: Any) -> bool:
    """True if an example is found that does not keep a law."""

    def breaks(example: Any) -> bool:
        try:
            law(*example)
        except AssertionError:
            return True
        return False

    try:
        find(
            st.tuples(*strategies),
            breaks,
            settings=settings(max_examples=400, database=None, phases=[Phase.generate]),
        )
    except NoSuchExample:
        return False
    return True


def test_every_law_has_a_break() -> None:
    assert set(MUTANTS) == set(LAWS)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_law_finds_its_break(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[name])
    assert refuted(LAWS[name], SIGNED, SIGNED, SIGNED)


def test_a_wrong_kind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "kinds_of", always_updates)
    assert refuted(elements_retract_before_they_insert, SIGNED, SIGNED, SIGNED)


def test_a_bag_that_looks_for_the_form_first_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_form(row: Any, rows: Any, form: Any = None) -> int | None:
        return next((place for place, each in enumerate(rows) if form(each) == form(row)), None)

    monkeypatch.setattr(bags, "place_of_copy", by_form)
    assert refuted(held_is_the_net, TEXTS)


def test_a_net_without_forms_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "compute_net", lambda signed, form: real_net(signed))
    assert refuted(net_of_forms, TEXTS)
