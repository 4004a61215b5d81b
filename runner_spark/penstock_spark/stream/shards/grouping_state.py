"""The state of a grouping in a shard: by window or by key, as the plan says."""

from __future__ import annotations

from penstock.machines.grouping import GroupingMachine
from penstock.machines.window_machine import WindowMachine
from penstock.machines.window_rules import window_rule
from penstock.windows.windowing import Windowing
from penstock_spark.plan.hosts import State
from penstock_spark.stream.shards.keys import KeyTable, Machine
from penstock_spark.stream.shards.window_table import WindowTable
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import Store
from penstock_spark.stream.state.window_pages import WindowPages


def machine_for(
    windowing: Windowing, combine: object, input_retracts: bool, state: State
) -> GroupingMachine | WindowMachine:
    """The machine of a grouping whose state is kept by key, or by window."""
    if state is State.BY_KEY:
        return GroupingMachine(windowing, combine, input_retracts)
    rule = window_rule(windowing, combine, input_retracts)
    assert rule is not None, "a pass chooses windows only for groupings that have a rule"
    return WindowMachine(rule)


def keys_of(
    machine: Machine | WindowMachine, store: Store, notes: PageNotes, shards: int
) -> KeyTable | WindowTable:
    if isinstance(machine, WindowMachine):
        return WindowTable(machine, WindowPages(store, notes, shards))
    return KeyTable(machine, KeyPages(store, notes, shards))
