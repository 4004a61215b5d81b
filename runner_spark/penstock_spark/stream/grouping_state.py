"""How a grouping's state is kept in a shard: windows in columns where that is possible, else a machine for each key."""

from __future__ import annotations

from typing import Any

from penstock.functions.combinefn import DefaultingCombineFn
from penstock.machines.column_rules import column_rule, holding_of
from penstock.machines.grouping import GroupingMachine
from penstock.machines.window_columns import ColumnMachine
from penstock_spark.aggregates.kernels import Adding, adding_of
from penstock_spark.stream.column_pages import ColumnPages
from penstock_spark.stream.columns import Columns
from penstock_spark.stream.key_pages import KeyPages
from penstock_spark.stream.keys import KeyTable, Machine
from penstock_spark.stream.page_index import PageNotes
from penstock_spark.stream.pages import Store


def machine_for(
    windowing: Any, combine: Any, input_retracts: bool, may_use_columns: bool = True
) -> GroupingMachine | ColumnMachine:
    """The machine of a grouping; it may have its windows in columns unless that is switched off.

    >>> from penstock.windows.windowing import Windowing
    >>> from penstock.transforms.window import FixedWindows, Sessions
    >>> [type(machine_for(Windowing(fn), None, False)).__name__ for fn in (FixedWindows(9), Sessions(9))]
    ['ColumnMachine', 'GroupingMachine']
    """
    rule = column_rule(windowing, combine, input_retracts) if may_use_columns else None
    if rule is None:
        return GroupingMachine(windowing, combine, input_retracts)
    adding = stream_adding(combine)
    contents, keeps = rule.program.contents, rule.program.keeps
    return ColumnMachine(rule, holding_of(contents, keeps) if adding is None else adding.holding)


def stream_adding(combine: Any) -> Adding | None:
    """How to add up a streaming grouping's values without its CombineFn; None if it must be called.

    The marker of an empty input is not a value. Only bounded inputs have it, and here they have few elements.
    """
    return None if type(combine) is DefaultingCombineFn else adding_of(combine)


def keys_of(
    machine: Machine | ColumnMachine, store: Store, notes: PageNotes, shards: int
) -> KeyTable | Columns:
    if isinstance(machine, ColumnMachine):
        return Columns(machine, ColumnPages(store, notes, shards))
    return KeyTable(machine, KeyPages(store, notes, shards))
