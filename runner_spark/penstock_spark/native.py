"""Which combines Spark's own hash aggregate can do, and for those that it cannot, why not.

Each condition is a question with its reason above it; `explain` prints the first that fails.
"""

from __future__ import annotations

from typing import Any

from penstock.graph import CombinePerKey, Graph, GroupByKey, InlineValues, Read, Step
from penstock.transforms.window import TimestampCombiner
from penstock_spark.operators.tables import known
from penstock_spark.passes.fuse import Unit
from penstock_spark.windowing import windowing_of

_KEY_TYPES = (str, int, bytes, bool, float, type(None))
_SUMS = ("sum", "count")


def hosted_groupings(graph: Graph, units: tuple[Unit, ...]) -> dict[str, str]:
    """The groupings that Python does, by label, with the reason; Spark's own aggregate does all others.

    Args:
        graph: The graph.
        units: What `fuse` made of it.
    """
    groupings = {unit.number: unit.root for unit in units if _is_grouping(unit)}
    reasons = {step.label: why_hosted(graph, step) for step in groupings.values() if isinstance(step, Step)}
    readers: dict[object, set[object]] = {}
    sides = {side.edge for step in graph.steps for side in step.side_inputs}
    for unit in units:
        native = unit.number in groupings and reasons[_label(unit)] is None
        target = ("native", unit.level) if native else _frame(unit)
        for number in unit.after:
            readers.setdefault(_frame(units[number]), set()).add(target)
        if sides & unit.edges:
            readers.setdefault(_frame(unit), set()).add("view")
    for number in groupings:
        feeding = [units[before] for before in sorted(units[number].after)]
        # An aggregate has an exchange of its own. A stage that feeds it beside others would have to be kept, and a few
        # values of the program are not worth another operator.
        if any(len(readers[_frame(unit)]) > 1 for unit in feeding):
            reasons[_label(units[number])] = (
                reasons[_label(units[number])] or "its input is read by other steps too"
            )
        elif all(_is_inline(unit) for unit in feeding):
            reasons[_label(units[number])] = reasons[_label(units[number])] or "its input is a few values"
    return {label: reason for label, reason in reasons.items() if reason is not None}


def _label(unit: Unit) -> str:
    assert isinstance(unit.root, Step)
    return unit.root.label


def _is_grouping(unit: Unit) -> bool:
    return isinstance(unit.root, Step) and isinstance(unit.root.primitive, GroupByKey | CombinePerKey)


def _is_inline(unit: Unit) -> bool:
    return (
        isinstance(unit.root, Step)
        and isinstance(unit.root.primitive, Read)
        and isinstance(unit.root.primitive.source, InlineValues)
    )


def _frame(unit: Unit) -> object:
    """What stands for the frame that a unit may share with others of its level."""
    if _is_grouping(unit):
        return "grouping", unit.level
    return ("inline", unit.level) if _is_inline(unit) else unit.number


def why_hosted(graph: Graph, step: Step) -> str | None:
    """Why a grouping has to be done by Python; None if Spark can do it.

    Args:
        graph: The graph.
        step: A GroupByKey or a CombinePerKey.
    """
    if not isinstance(step.primitive, CombinePerKey):
        return "its values are wanted, not a sum"
    windowing = windowing_of(graph, step.inputs[0])
    key, value = _pair_types(graph.edge(step.inputs[0]).element_type)
    kind = known(step.primitive.fn)
    # Sums of integers are exact in two 64-bit columns. Other combiners have accumulators that Spark cannot merge.
    if kind not in _SUMS:
        return "the combiner is neither a sum nor a count"
    # A float may lose digits where Python's sum would not, and Spark knows no sum of other types.
    if kind == "sum" and value is not int:
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
