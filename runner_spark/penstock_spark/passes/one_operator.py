"""Puts all levels of a stream into one stateful operator, if there is one shard."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from penstock_spark.plan.stream_plan import StreamPlan


def one_operator(plan: StreamPlan, shards: int | None, without: Set[str]) -> StreamPlan:
    """Returns the plan for a number of shards; None if the options ask for none.

    The levels of several shards have an exchange between them. One shard has all keys of all levels, so each level can
    hand its output on to the next one.
    """
    return replace(plan, is_one_operator=shards == 1 and "one_operator" not in without)
