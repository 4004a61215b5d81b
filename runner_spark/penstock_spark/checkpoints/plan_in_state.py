"""The plan of a query that the program starts itself, which its shards keep: Spark's checkpoint has no other place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from functools import partial

from penstock.error import refusal
from penstock_spark.checkpoints.contract.compare import Signature, compare
from penstock_spark.checkpoints.contract.operators import levels_of_operators
from penstock_spark.checkpoints.resharding import slots_of
from penstock_spark.stream.program import PlanInState


def plan_in_state(signature: Signature, drop_state: Collection[str] = ()) -> PlanInState:
    """Returns a plan as shards keep it; `drop_state` has the labels of groupings whose state may be given up."""
    text = json.dumps({**signature, "dropped": []}, sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return PlanInState(text, digest, partial(succeed, drop_state=tuple(drop_state)))


def succeed(kept: str, new: str, drop_state: Collection[str] = ()) -> str:
    """Returns the text of the plan that continues from another one.

    Raises:
        ValueError: The state does not fit, or only a run could rewrite it.
    """
    before, after = json.loads(kept), json.loads(new)
    comparison = compare(before, after, drop_state)
    refusals = [*comparison.refusals, *_needs_rewriting(before, after)]
    if refusals:
        lines = [line for sentence in refusals for line in sentence.splitlines()]
        what = "\n  ".join(["the pipeline does not fit the state of its query; nothing was changed", *lines])
        hint = "undo the change of the pipeline, or start the query with another checkpointLocation"
        raise refusal(ValueError, what, where="in the checkpoint of a streaming DataFrame", hint=hint)
    dropped = sorted({*before["dropped"], *comparison.dropped})
    return json.dumps({**after, "dropped": dropped}, sort_keys=True)


def _needs_rewriting(before: Signature, after: Signature) -> Iterator[str]:
    """Yields the differences for which a run rewrites Spark's part of a checkpoint, which a query cannot."""
    if before["shards"] != after["shards"]:
        what = f"its state is in {before['shards']} shards, and the pipeline has {after['shards']}"
        yield f"{what}: set spark.sql.shuffle.partitions to {before['shards']} before you make the DataFrame"
    elif levels_of_operators(before) != levels_of_operators(after):
        yield "the groupings are in different operators of Spark, such as when their longest chain has another length"
    if slots_of(before) != slots_of(after):
        yield "the pipeline has different sources or another order of them, and Spark knows them by their numbers"
