"""The first rows of each window, given when the watermark passes: whatever comes late or is taken back."""

from __future__ import annotations

from functools import reduce
from random import Random
from typing import Any

import pytest

from penstock.sql.execution import first_rows
from tests.sql.law import Broken, _nets, first_broken
from tests.sql.random_queries import random_windowed_query
from tests.sql.relations import Advance, Input, changes, expected_with_lateness, random_input


def check_ranked(seed: int) -> None:
    """Checks the first rows of the windows of a seed.

    Raises:
        Broken: They are others.
    """
    random, rows = Random(seed), random_windowed_query(seed, "on time").rows
    number = "t1.v" if "TABLE a" in rows.own else "t1.w"
    keys = random.choice(["", ", t1.k"])
    order = f"{number} {random.choice(['DESC', 'ASC'])}, t1.s, t1.ts DESC, t1.k"
    select = (
        f"SELECT t1.window_end, t1.k, {number}, "
        f"ROW_NUMBER() OVER (PARTITION BY t1.window_start, t1.window_end{keys} ORDER BY {order}) AS place"
    )
    bound = f"QUALIFY place {random.choice(['= 1', '<= 2', '= 2'])}"
    given = random_input(seed, retracts=False)
    given = Input((*given.events, Advance(None, 1_000)), retracts=False)
    found = list(
        changes(
            f"{select} FROM {rows.own} {bound} EMIT AFTER WATERMARK",
            given,
            random.choice(["streaming", "micro_batch"]),
            random.choice([1, 2]),
        )
    )
    *_, net = _nets(found, "CHANGES")
    wanted = expected_with_lateness(f"{select} FROM {rows.other} {bound}", given)
    if net != wanted:
        raise Broken(f"seed {seed}: {dict(net - wanted)} surplus, {dict(wanted - net)} missing")


def test_the_first_rows_of_windows_are_those_of_the_rows_in_time() -> None:
    for seed in range(25):
        check_ranked(seed)


def _last_of_equals(self: first_rows.FirstRowsFn, held: list[Any], row: Any) -> list[Any]:
    """Leaves out all rows whose first value of the order is that of the border."""
    rank, most = self._ranking.rank.function, self._most or 0
    if len(held) >= most and rank(held[-1])[0] == rank(row)[0]:
        return held
    return self._first([*held, row])


def _none_taken_in(self: first_rows.FirstRowsFn, held: list[Any], row: Any) -> list[Any]:
    """Leaves out all rows once there are enough."""
    return held if self._most is not None and len(held) >= self._most else self._first([*held, row])


BREAKS: dict[str, tuple[Any, str, Any]] = {
    "rows with the border's first value are left out": (
        first_rows.FirstRowsFn,
        "add_input",
        _last_of_equals,
    ),
    "rows before the border are left out": (first_rows.FirstRowsFn, "add_input", _none_taken_in),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_law_of_ranked_windows_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken = BREAKS[name]
    monkeypatch.setattr(owner, attribute, broken)
    # Many rows at once do not meet the border one by one.
    monkeypatch.setattr(
        first_rows.FirstRowsFn,
        "add_inputs",
        lambda self, held, rows: reduce(self.add_input, rows, held),
    )
    assert first_broken(range(25), check_ranked) is not None
