"""Groupings behind groupings that take results back, in a batch: what stands at the end is of all that has come."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.relations.joins import JoinRows
from penstock.transforms.combiners import Count
from penstock.transforms.trigger import AccumulationMode, AfterCount, DefaultTrigger, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions
from tests.runner.changes import timed
from tests.runner.plain_runner import Settings, collect, run_plain

SECOND = 1_000_000
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
EACH = Repeatedly(AfterCount(1))
AT_ONCE = beam.WindowInto(GlobalWindows(), trigger=EACH, accumulation_mode=RETRACTING)
SETTINGS = pytest.mark.parametrize("settings", [Settings(1, 1), Settings(3, 2), Settings(2, 1000)])


def net(changes: list[Any]) -> Counter[Any]:
    left: Counter[Any] = Counter()
    for kind, value in changes:
        left[value] += -1 if kind.is_retraction else 1
    assert min(left.values()) >= 0
    return +left


def sessions_of(pipeline: Any, visits: list[tuple[str, int]]) -> Any:
    """A session's length in seconds and its user, emitted again and retracted with each visit."""
    elements = timed(pipeline, [(user, 1, seconds * SECOND) for user, seconds in visits])
    window = beam.WindowInto(Sessions(10), trigger=EACH, accumulation_mode=RETRACTING)
    sessions = elements | window | "Sessions" >> beam.GroupByKey()
    return sessions | beam.Map(
        lambda pair, window=beam.DoFn.WindowParam: (int(window.end - window.start), pair[0])
    )


VISITS = [("a", 0), ("b", 3), ("a", 20), ("b", 40), ("a", 9), ("c", 5), ("a", 14), ("b", 49), ("c", 90)]


@SETTINGS
def test_counts_of_sessions_are_those_of_the_sessions(settings):
    pipeline = beam.Pipeline()
    by_length = sessions_of(pipeline, VISITS) | "At once" >> AT_ONCE | "Per length" >> Count.PerKey()
    total = by_length | beam.MapTuple(lambda _, count: ("all", count)) | beam.CombinePerKey(sum)
    changed, totals = (
        collect(each | f"{name} changes" >> beam.Changelog(), name)
        for name, each in (("Lengths", by_length), ("Totals", total))
    )
    run_plain(pipeline, settings)
    assert net(changed) == Counter({(30, 1): 1, (10, 3): 1, (19, 1): 1})
    assert net(totals) == Counter({("all", 5): 1})
    assert len(totals) > 5


@SETTINGS
def test_groups_and_joins_of_sessions_hold_what_stands(settings):
    pipeline = beam.Pipeline()
    lengths = sessions_of(pipeline, VISITS) | "At once" >> AT_ONCE
    names = pipeline | "Names" >> beam.Create([(10, "short"), (99, "long")]) | "Names at once" >> AT_ONCE
    groups = {"users": lengths, "names": names} | beam.CoGroupByKey()
    shown = groups | beam.MapTuple(lambda key, group: (key, (*sorted(group["users"]),), (*group["names"],)))
    grouped = collect(shown | "Changes of groups" >> beam.Changelog(), "Groups")
    rows = (lengths, names) | JoinRows("full")
    joined = collect(rows | "Changes of rows" >> beam.Changelog(), "Rows")
    run_plain(pipeline, settings)
    expected = {10: ("b", "c", "c"), 19: ("b",), 30: ("a",), 99: ()}
    words = {10: "short", 99: "long"}
    assert net(grouped) == Counter(
        (length, users, (words[length],) if length in words else ()) for length, users in expected.items()
    )
    assert net(joined) == Counter(
        (length, (user, words.get(length))) for length, users in expected.items() for user in users or (None,)
    )


@SETTINGS
@pytest.mark.parametrize("trigger", [DefaultTrigger(), EACH])
def test_all_balances_are_zero_together(trigger, settings):
    random = Random(1)
    transfers = [
        (*random.sample("abcde", 2), random.randint(1, 99), random.randint(0, 50)) for _ in range(60)
    ]
    entries = [
        (account, change, seconds * SECOND)
        for giver, taker, amount, seconds in transfers
        for account, change in ((giver, -amount), (taker, amount))
    ]
    pipeline = beam.Pipeline()
    window = beam.WindowInto(FixedWindows(10), trigger=EACH, accumulation_mode=RETRACTING)
    balances = timed(pipeline, entries) | window | "Balances" >> beam.CombinePerKey(sum)
    total = (
        balances
        | beam.MapTuple(lambda _, balance: ("all", balance))
        | beam.SetTrigger(trigger, RETRACTING)
        | "Total" >> beam.CombinePerKey(sum)
        | beam.Changelog()
    )
    changes = collect(total)
    run_plain(pipeline, settings)
    # In each of six windows; a trigger that looks at each element also sees money on its way.
    assert net(changes) == Counter({("all", 0): 6})
    assert len(changes) == 6 or trigger is EACH
