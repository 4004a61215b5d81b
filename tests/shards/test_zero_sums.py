"""Transfers between accounts: money only moves, so at each moment all balances come to nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.machines import firing
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows
from penstock.utils.windowed_value import ValueKind
from tests.shards.row_streams import net_of
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING

EACH_MOMENT = Repeatedly(AfterProcessingTime(0))
EACH_CHANGE = Repeatedly(AfterCount(1))

TRIGGERS = {
    "each entry": AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
    "every fifth second": AfterWatermark(
        early=Repeatedly(AfterProcessingTime.aligned_to(5)), late=AfterCount(1)
    ),
    "the end": AfterWatermark(late=AfterCount(1)),
}


def entries(transfer):
    """The two sides of a transfer: what one account has less, the other has more."""
    giver, taker, amount, _ = transfer
    return [(giver, -amount), (taker, amount)]


def totals(balances_at: Any, total_at: Any) -> Any:
    """The changes of the sum of all balances in windows of ten seconds.

    Args:
        balances_at: The trigger of the balances of accounts.
        total_at: That of their sum.
    """
    pipeline = beam.Pipeline()
    read = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
        event_time=lambda transfer: transfer[3], watermark=BoundedDisorder(2)
    )
    balances = (
        pipeline
        | "Read" >> read
        | beam.FlatMap(entries).with_output_types(beam.typehints.KV[str, int])
        | beam.WindowInto(
            FixedWindows(10), trigger=balances_at, accumulation_mode=RETRACTING, allowed_lateness=6
        )
        | "Balances" >> beam.CombinePerKey(sum)
    )
    return (
        balances
        | beam.MapTuple(lambda _, balance: ("all", balance))
        | beam.SetTrigger(total_at, RETRACTING)
        | "Total" >> beam.CombinePerKey(sum)
        | beam.Changelog()
    )


def transfers(random: Random, count: int) -> list[tuple[str, str, int, int]]:
    """Random transfers whose event times are up to 25 seconds out of order: some are late, and some too late."""
    return [
        (*random.sample("abcde", 2), random.randint(1, 100), max(0, number // 4 - random.randint(0, 25)))  # type: ignore[misc]
        for number in range(count)
    ]


def played(changes: Any, seed: int, mode: str, shards: int) -> tuple[list[list[Any]], int]:
    """The changes in each micro-batch, and how many entries came too late; two tasks read some each, of any number."""
    _ = changes | WriteToMemory([])
    query = ToyQuery(changes.pipeline, mode, shards)
    random = Random(seed)
    rest = transfers(random, 150)
    found = []
    seconds = 0
    while rest:
        size = random.choice((0, 1, 2, 5, 20))
        some, rest = rest[:size], rest[size:]
        seconds += random.randint(1, 4)
        found.append(the_only(query.batch({"Read": [some[::2], some[1::2]]}, clock_micros=seconds * SECOND)))
    found.append(the_only(query.batch(clock_micros=(seconds + 1) * SECOND, commands=[("drain", "")])))
    return found, query.counted("elements_dropped_as_late")


def the_only(given: dict[str, list[Any]]) -> list[Any]:
    [values] = given.values()
    return values


def values_of(batches: list[list[Any]]) -> set[Any]:
    return {value for changes in batches for _, value in changes}


@pytest.mark.parametrize(
    ("shards", "seed"),
    [(1, 0), (3, 1), *(pytest.param(*each, marks=pytest.mark.soak) for each in ((1, 1), (3, 0)))],
)
@pytest.mark.parametrize("name", TRIGGERS)
@pytest.mark.parametrize(
    ("mode", "total_at"),
    [
        ("streaming", EACH_MOMENT),
        ("streaming", AfterWatermark(late=AfterProcessingTime(0))),
        ("micro_batch", EACH_MOMENT),
    ],
)
def test_all_balances_are_zero_together_at_each_moment(mode, total_at, name, shards, seed):
    batches, dropped = played(totals(TRIGGERS[name], total_at), seed, mode, shards)
    assert values_of(batches) == {("all", 0)}
    # Late elements are late for both accounts.
    assert dropped > 0
    assert dropped % 2 == 0


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_between_the_changes_of_one_moment_money_is_on_its_way(mode):
    batches, _ = played(totals(TRIGGERS["each entry"], EACH_CHANGE), 0, mode, 2)
    assert values_of(batches) > {("all", 0)}
    so_far: list[Any] = []
    for changes in batches:
        so_far += changes
        assert set(net_of(so_far)) <= {("all", 0)}


def test_where_each_account_has_a_time_of_its_own_no_moment_has_all():
    balances_at = AfterWatermark(early=Repeatedly(AfterCount(3)), late=AfterCount(1))
    batches, _ = played(totals(balances_at, EACH_MOMENT), 0, "streaming", 2)
    assert values_of(batches) > {("all", 0)}


def test_a_single_balance_that_is_not_taken_back_is_found(monkeypatch):
    real = firing._refined
    forgotten: list[Any] = []

    def forgetful(*args: Any) -> list[Any]:
        panes = real(*args)
        if not forgotten and panes and panes[0].kind is ValueKind.UPDATE_BEFORE and panes[0].value:
            forgotten.append(panes.pop(0))
        return panes

    monkeypatch.setattr(firing, "_refined", forgetful)
    batches, _ = played(totals(TRIGGERS["each entry"], EACH_MOMENT), 0, "streaming", 2)
    assert len(forgotten) == 1
    assert values_of(batches) > {("all", 0)}
