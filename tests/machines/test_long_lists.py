"""A long list is a list, wherever its values are; and adding to it reads nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from penstock.coders import VarIntCoder
from penstock.functions.userstate import BagStateSpec
from penstock.machines.cells import cell_of
from penstock.machines.folds import LIST
from penstock.machines.long_lists import AnyList, LongList, Segment, Snapshot


class DictKeeper:
    """Keeps segments in a dictionary, and counts how many were read."""

    def __init__(self) -> None:
        self.kept: dict[int, list[Any]] = {}
        self.reads = 0
        self.lent: list[Snapshot] = []

    def read(self, segments: Sequence[Segment]) -> Iterator[list[Any]]:
        self.reads += len(segments)
        return (self.kept[segment.number] for segment in segments)

    def lend(self, snapshot: Snapshot) -> None:
        self.lent.append(snapshot)

    def seal(self, values: list[Any]) -> Segment:
        number = -1 - len(self.kept)
        self.kept[number] = values
        return Segment(number, len(values), 3_000_000)


@pytest.mark.parametrize("seed", range(100))
def test_a_group_of_long_lists_is_the_group_of_plain_ones(seed: int) -> None:
    random, keeper = Random(seed), DictKeeper()
    plain: list[list[int]] = [[]]
    long: list[AnyList] = [[]]
    for number in range(60):
        place = random.randrange(len(plain))
        held = long[place]
        match random.choice(("add", "add", "add", "merge", "new", "seal", "seal", "store")):
            case "add":
                plain[place].append(number)
                long[place] = LIST.step(held, number)
            case "merge" if len(plain) > 1:
                [other, other_held] = plain.pop(place), long.pop(place)
                plain[0] += other
                long[0] = LIST.merged([long[0], other_held])
            case "new":
                plain.append([])
                long.append(LIST.empty())
            case "seal" if held:
                again = held if isinstance(held, LongList) else LongList([held], keeper)
                again.seal(keeper.seal)
                long[place] = again
            case "store" if isinstance(held, LongList):
                restored = pickle.loads(pickle.dumps(held))
                restored.keeper = keeper
                long[place] = restored
        assert [len(held) for held in long] == [len(own) for own in plain]
    assert keeper.reads == 0
    panes = [LIST.result(held, True) for held in long]
    assert panes == plain
    assert all(type(pane) is list for pane in panes)


def test_a_bag_that_was_read_is_as_it_was_after_it_is_cleared_and_its_segments_have_gone() -> None:
    keeper = DictKeeper()
    bag = BagStateSpec("bag", VarIntCoder())
    kept = LongList([[b"\x01", b"\x02"]], keeper)
    kept.seal(keeper.seal)
    cells = {"bag": kept}
    cell = cell_of(bag, cells)
    cell.add(3)  # type: ignore[attr-defined]
    read = cell.read()  # type: ignore[attr-defined]
    cell.add(4)  # type: ignore[attr-defined]
    assert (len(read), keeper.reads) == (3, 0)
    assert [*read] == [1, 2, 3]
    cell.clear()
    assert cells == {}
    for snapshot in keeper.lent:
        snapshot.read()
    keeper.kept.clear()
    assert [*read] == [1, 2, 3]


def test_what_is_read_at_once_has_few_bytes() -> None:
    keeper = DictKeeper()
    long = LongList([[]], keeper)
    for number in range(10):
        long.append(number)
        long.seal(keeper.seal)
    values = iter(long)
    assert next(values) == 0
    assert keeper.reads == 2
    assert [*values] == [*range(1, 10)]
