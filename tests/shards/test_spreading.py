"""Elements that wait for side inputs are dealt out in the same way, however the batches of their task are cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from penstock_spark.stream.program import SpreadWriterSpec
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.stream.transport.spreading import SpreadWriter
from penstock_spark.worker.batch import Batch, loads
from penstock_spark.worker.messages import Message

MANY = 10_000


def dealt(sizes: Iterable[int], shards: int, first: int, side: int | None = None) -> list[list[int]]:
    """The numbers up to `MANY` that each shard gets in their order, from batches of these sizes."""
    outbox = Outbox((0, 0), shards)
    outbox.place = ("Read", 0)
    writer = SpreadWriter(SpreadWriterSpec(0, "See", "at step 'See'", 1, side), outbox, first)
    start = 0
    for size in sizes:
        list(writer.push(Batch(list(range(start, start + size)))))
        start += size
    assert start == MANY
    received: list[list[Message]] = [[] for _ in range(shards)]
    for _, shard, payload in outbox.take():
        received[shard].append(loads(payload))
    parts = [
        [part for message in messages for own in message.parts.values() for part in own]
        for messages in received
    ]
    assert all(own == sorted(own, key=lambda part: part.place) for own in parts)
    return [[value for part in own for value in part.batch.values] for own in parts]


@pytest.mark.parametrize("size", [1, 7, 64, 1_000, 4_095])
def test_the_cut_of_batches_does_not_matter(size: int) -> None:
    whole = dealt([MANY], 3, first=5)
    assert dealt([*[size] * (MANY // size), MANY % size], 3, first=5) == whole
    assert sorted(value for own in whole for value in own) == list(range(MANY))
    assert max(map(len, whole)) - min(map(len, whole)) <= 1_024


def test_tasks_begin_with_different_shards() -> None:
    begins = [
        next(shard for shard, own in enumerate(dealt([MANY], 4, task)) if 0 in own) for task in range(4)
    ]
    assert begins == [0, 1, 2, 3]


def test_few_elements_go_to_several_shards() -> None:
    where = {value: shard for shard, own in enumerate(dealt([MANY], 4, 0)) for value in own}
    assert {where[value] for value in range(256)} == {0, 1, 2, 3}


def test_each_shard_gets_all_elements_of_a_side_input() -> None:
    assert dealt([10, MANY - 10], 3, 1, side=0) == [list(range(MANY))] * 3
