"""Pairs of key and value, as groupings take them."""

from __future__ import annotations

from typing import Any

from penstock.elements.pairs import NEVER_PAIRS, make_pair_error
from penstock.error import refusal
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch


def split_pairs(batch: Batch, where: str) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a batch of pairs; a text, dict or set of two is not a pair."""
    kinds = set(map(type, batch.values))
    if kinds != {tuple} and any(issubclass(kind, NEVER_PAIRS) for kind in kinds):
        fail_step(make_pair_error(batch.values), where)
    try:
        return [key for key, _ in batch.values], [value for _, value in batch.values]
    except (TypeError, ValueError):
        fail_step(make_pair_error(batch.values), where)


def make_retraction_error() -> ValueError:
    return refusal(
        ValueError,
        "an earlier step emits elements that retract others, in panes that it makes itself",
        hint="only groupings in the mode ACCUMULATING_AND_RETRACTING emit retractions",
    )
