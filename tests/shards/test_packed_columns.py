"""Columns of machine numbers give back exactly the values that were put in, and the names beside them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock_spark.stream.state.packed_columns import (
    PackedNames,
    column_of,
    pack_column,
    pack_names,
    replace_values,
)

EDGES = 7, 15, 31, 63

KINDS: dict[str, Callable[[Random], Any]] = {
    "small": lambda random: random.randint(-3, 3),
    "of all sizes": lambda random: (
        random.choice((1, -1)) * random.getrandbits(random.choice((3, 7, 8, 31, 63, 64, 80)))
    ),
    "at the edges": lambda random: (
        random.choice((1, -1)) * (1 << random.choice((7, 15, 31, 63))) - random.randint(0, 1)
    ),
    "floats": lambda random: random.choice((0.0, -0.0, 0.5, float("inf"), 1e300)),
    "numbers": lambda random: random.choice((1, 1.0, True, 0, False, 0.0)),
    "nothing": lambda random: None,
    "something or nothing": lambda random: random.choice((None, 5)),
    "objects": lambda random: random.choice(("a", [1], (2,), None, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_a_column_gives_back_what_was_put_in(kind: str, seed: int) -> None:
    random = Random(seed)
    draw = KINDS[kind]
    values = [draw(random) for _ in range(random.randint(1, 9))]
    # Numbers that Python finds equal are one only where all are of one type.
    may_be_one = kind not in ("numbers", "floats") and random.random() < 0.5
    column = pickle.loads(pickle.dumps(pack_column([*values], may_be_one)))
    assert repr([*column_of(column, len(values))]) == repr(values)
    for _ in range(3):
        rows = random.sample(range(len(values)), random.randint(0, len(values)))
        other = KINDS[kind if random.random() < 0.7 or may_be_one else "numbers"]
        renewed = [other(random) for _ in rows]
        for row, value in zip(rows, renewed, strict=True):
            values[row] = value
        column = replace_values(column, len(values), rows, renewed, may_be_one)
        assert repr([*column_of(column, len(values))]) == repr(values)


@pytest.mark.parametrize("seed", range(40))
def test_names_are_found_where_they_are(seed: int) -> None:
    random = Random(seed)
    names = sorted({random.randbytes(random.randint(0, 3)) for _ in range(random.randint(1, 300))})
    kept = PackedNames(*pack_names(names))
    assert [*kept.all()] == names
    asked = [*random.sample(names, len(names) // 2), *(random.randbytes(2) for _ in range(20))]
    assert kept.rows_of(asked) == {name: names.index(name) for name in asked if name in names}
