"""Which combines Spark's own hash aggregate can do, which groupings need the machine, and why.

Each condition is a question with its reason above it; `explain` prints the first that fails.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from penstock.graph import CombinePerKey, Graph, Grouping, StatefulParDo, Step
from penstock.windows.output_times import TimestampCombiner
from penstock_spark.aggregates.kernels import kernel_of
from penstock_spark.passes.fuse import Unit, is_inline
from penstock_spark.plan.batch_plan import Strategy
from penstock_spark.plan.retractions import may_fire_early, retracting_edges
from penstock_spark.plan.windowing import windowing_of

_KEY_TYPES = (str, int, bytes, bool, float, type(None))


def grouping_strategies(
    graph: Graph, units: tuple[Unit, ...], without: Set[str] = frozenset()
) -> dict[str, Strategy]:
    """How and why Python does groupings, by label; Spark's own aggregate does all others."""
    retracting = retracting_edges(graph)
    groupings = {
        unit.number: unit.root for unit in units if isinstance(unit.root, Step) and _is_grouping(unit)
    }
    strategies = {number: strategy_of(graph, step, retracting) for number, step in groupings.items()}
    readers = _readers(graph, units, {number for number, strategy in strategies.items() if strategy is None})
    found: dict[str, Strategy] = {}
    for number, step in groupings.items():
        feeding = [units[before] for before in units[number].after]
        strategy = strategies[number] or _not_worth_it(feeding, readers)
        if strategy is None and "native_sums" in without:
            strategy = Strategy("native sums are switched off")
        if strategy is not None:
            found[step.label] = strategy
    return found


def _readers(graph: Graph, units: tuple[Unit, ...], native: Set[int]) -> dict[object, set[object]]:
    readers: dict[object, set[object]] = {}
    sides = {side.edge for step in graph.steps for side in step.side_inputs}
    for unit in units:
        target = ("native", unit.level) if unit.number in native else _frame(unit)
        for number in unit.after:
            readers.setdefault(_frame(units[number]), set()).add(target)
        if sides & unit.edges:
            readers.setdefault(_frame(unit), set()).add("view")
    return readers


def _not_worth_it(feeding: list[Unit], readers: dict[object, set[object]]) -> Strategy | None:
    """Why Python does a sum that Spark could do, from the units that feed it.

    An aggregate has its own exchange. If its stage fed other groupings too, Spark would have to persist the
    stage, and a few values of the program are not worth another operator.
    """
    if any(len(readers[_frame(unit)]) > 1 for unit in feeding):
        return Strategy("the frame that holds its input has other readers too")
    return Strategy("its input is a few values") if all(is_inline(unit.root) for unit in feeding) else None


def _is_grouping(unit: Unit) -> bool:
    return isinstance(unit.root, Step) and isinstance(unit.root.primitive, Grouping)


def _frame(unit: Unit) -> object:
    """The frame that a unit may share with others of its level."""
    if _is_grouping(unit):
        return "grouping", unit.level
    return ("inline", unit.level) if is_inline(unit.root) else unit.number


def strategy_of(graph: Graph, step: Step, retracting: Set[int]) -> Strategy | None:
    """How Python must do a grouping; None if Spark can do it."""
    if isinstance(step.primitive, StatefulParDo):
        takes_back = not retracting.isdisjoint(step.inputs)
        return Strategy("it has state or timers", by_machine=True, input_retracts=takes_back)
    # Values are only added up in parts, or kept in chunks, where none is taken back.
    if not retracting.isdisjoint(step.inputs):
        return Strategy("its input may take elements back", by_machine=True, input_retracts=True)
    if may_fire_early(graph, step):
        trigger = windowing_of(graph, step.inputs[0]).triggerfn
        return Strategy(f"the trigger {trigger} may fire before the end", by_machine=True)
    # What is left fires once in each window, with all its elements, whatever the accumulation mode.
    reason = why_not_native(graph, step)
    return None if reason is None else Strategy(reason)


def why_not_native(graph: Graph, step: Step) -> str | None:
    """Why Spark cannot do a grouping whose windows fire once; None if it can."""
    if not isinstance(step.primitive, CombinePerKey):
        return "it needs its values, not a sum"
    windowing = windowing_of(graph, step.inputs[0])
    key, value = _pair_types(graph.edge(step.inputs[0]).element_type)
    # The marker of CombineGlobally is a sum, or a count, of nothing.
    kernel = kernel_of(step.primitive.fn)
    # Sums of integers are exact in two 64-bit columns. Other combiners have accumulators that Spark cannot merge.
    if kernel is None or kernel.adding is None or not kernel.adding.is_number:
        return "the combiner is neither a sum nor a count"
    # A float may lose digits where Python's sum would not, and Spark knows no sum of other types.
    if not kernel.adding.ignores_values and value is not int:
        return f"the values to sum are {_name(value)}, not int"
    # Spark groups by the encoded key; whoever reads the sums must be able to decode it without the user's classes.
    if not _is_plain(key):
        return f"the keys are {_name(key)}, not of plain types"
    # Windows merge one key at a time, in order.
    if windowing.windowfn.is_merging():
        return "its windows merge"
    # The earliest or latest input time would be one more column to combine.
    if windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW:
        return "its output time is not the end of the window"
    return None


def _pair_types(element_type: Any) -> tuple[Any, Any]:
    parts = getattr(element_type, "tuple_types", None)
    return (parts[0], parts[1]) if parts is not None and len(parts) == 2 else (Any, Any)


def _is_plain(hint: Any) -> bool:
    if hint in _KEY_TYPES:
        return True
    parts = getattr(hint, "tuple_types", None) or getattr(hint, "union_types", None) or ()
    return bool(parts) and all(map(_is_plain, parts))


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
