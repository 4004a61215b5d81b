"""DueTimes in heaps that are made when they are needed: the same answers as from a plain list."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from penstock_spark.stream.shards.due_times import DueTimes, Entry
from penstock_spark.stream.state.key_pages import KeyPage, StoredKey
from penstock_spark.stream.state.page_index import NOTHING

STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("add"), some.lists(some.integers(-50, 50), max_size=40)),
        some.tuples(some.just("take"), some.integers(-50, 50)),
        some.tuples(some.just("earliest"), some.none()),
    ),
    max_size=20,
)


def is_current(micros: int, name: bytes) -> bool:
    return micros % 3 > 0


@given(STEPS)
def test_moments_give_the_answers_of_a_plain_list(steps: list[tuple[str, Any]]) -> None:
    moments, plain = DueTimes(), list[Entry]()
    for name, argument in steps:
        if name == "add":
            added = [(micros, b"%d" % number) for number, micros in enumerate(argument)]
            for entry in added:
                moments.add(*entry)
            plain += [entry for entry in added if is_current(*entry)]
        elif name == "take":
            taken = sorted(entry for entry in moments.take(argument) if is_current(*entry))
            assert taken == sorted(entry for entry in plain if entry[0] <= argument)
            plain = [entry for entry in plain if entry[0] > argument]
        else:
            assert moments.earliest(is_current) == min(plain, default=(None,))[0]
            assert moments.first() == min(plain, default=(None,))[0]


def test_a_page_keeps_what_each_key_has_and_what_it_has_not() -> None:
    page = KeyPage()
    kept = {
        b"a": StoredKey(b"1", {}, None, None, {}),
        b"b": StoredKey(b"2", {"clock": 5}, 7, b"key", {-1: 70_000}),
        b"c": StoredKey(b"3", {1.0: 1 << 70, "clock": 9}, None, None, {}),
    }
    for name, own in kept.items():
        page.change({name: own})
    page.change({b"gone": None})
    encoded, earliest, hold_micros = page.encoded()
    assert (earliest, hold_micros) == ({"clock": 5, 1.0: NOTHING - 1}, 7)
    again = KeyPage.decoded(encoded)
    assert again.states == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert again.alarms["clock"] == {b"a": NOTHING, b"b": 5, b"c": 9}
    assert again.hold_micros == {b"a": NOTHING, b"b": 7, b"c": NOTHING}
    moved = again.move([b"b"])
    assert (moved.pickled_keys, again.pickled_keys, list(again.states)) == ({b"b": b"key"}, {}, [b"a", b"c"])
