"""Which plans may continue with the state of a query that the program starts itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock_spark.checkpoints.plan_in_state import plan_in_state, succeed

_SUMS = {
    "windows": "FixedWindows(60)",
    "trigger": "DefaultTrigger()",
    "accumulation": "DISCARDING",
    "lateness": "Duration(0)",
    "timestamp": "OUTPUT_AT_EOW",
    "on_time": "always",
    "closing": "if new",
    "combine": "sum",
    "held": "sum",
    "fields": {},
    "feeds": ["Read"],
    "key_coders": {},
}
_READ = {
    "label": "Read",
    "kind": "stream of DataFrameSource",
    "watermark": "BoundedDisorder",
    "partition": None,
    "tick": None,
    "policy": "BoundedDisorder(60)",
    "description": "dataframe [a]",
}
_PLAN: dict[str, Any] = {
    "format": 1,
    "penstock": "1",
    "mode": "streaming",
    "clock": "live",
    "shards": 2,
    "is_one_operator": False,
    "parallelism": 1,
    "heartbeat": "none",
    "sources": [_READ],
    "levels": [{"Sums": _SUMS}],
    "native": {},
    "steps": ["Map"],
    "sinks": ["to_streaming_dataframe"],
    "spark": "4.3.0",
}


def _text(**changed: Any) -> str:
    return plan_in_state({**_PLAN, **changed}).text


def test_steps_without_state_may_change_and_the_later_plan_is_kept():
    later = _text(steps=["Map", "Filter"])
    assert succeed(_text(), later) == later
    assert plan_in_state(_PLAN).digest == plan_in_state(dict(reversed(_PLAN.items()))).digest
    assert plan_in_state(_PLAN).digest != plan_in_state({**_PLAN, "steps": []}).digest


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param(
            {"levels": [{"Sums": {**_SUMS, "windows": "Sessions(9)"}}]},
            "'Sums' has other windows",
            id="windows",
        ),
        pytest.param({"levels": [{}]}, "'Sums' is missing", id="missing"),
        pytest.param({"shards": 3}, "set spark.sql.shuffle.partitions to 2", id="shards"),
        pytest.param(
            {"levels": [{"Sums": _SUMS}, {"Maxima": {**_SUMS, "feeds": ["Sums"]}}]},
            "the groupings are in different operators of Spark",
            id="levels",
        ),
        pytest.param({"heartbeat": "seconds"}, "different sources or another order", id="sources"),
    ],
)
def test_state_that_does_not_fit_is_refused_in_three_parts(changed, said):
    with pytest.raises(ValueError, match="the pipeline does not fit the state of its query") as refused:
        succeed(_text(), _text(**changed))
    assert said in str(refused.value)
    assert "\n  in the checkpoint of a streaming DataFrame\n  hint: " in str(refused.value)


def test_state_that_is_given_up_stays_given_up():
    others = {"Others": {**_SUMS, "feeds": ["Read"]}}
    without = succeed(_text(levels=[{"Sums": _SUMS, **others}]), _text(levels=[others]), ["Sums"])
    assert json.loads(without)["dropped"] == ["Sums"]
    with pytest.raises(ValueError, match="the state of an earlier 'Sums' was discarded"):
        succeed(without, _text(levels=[{"Sums": _SUMS, **others}]))
