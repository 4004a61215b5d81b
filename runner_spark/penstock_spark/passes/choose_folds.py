"""Chooses the host and the loop of each grouping, with a reason: lowering and the workers obey.

Each condition is a question with its reason above it; `explain` prints the first that fails. In a stream,
`passes/native_streams.py` asks before whether Spark computes the grouping whole, and passes its reasons on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from penstock.functions.combinefn import CombineFn, without_marker
from penstock.functions.folds import Fold, fold_of
from penstock.graph import AssignWindows, CombinePerKey, Graph, Grouping, ParDo, StatefulParDo, Step
from penstock.machines.program import program_of
from penstock.machines.window_rules import window_rule
from penstock.transforms.combining.ready_combiners import PairWithNone
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.window_fn import FixedWindows, Sessions
from penstock.windows.windowing import Windowing
from penstock_spark.passes.fuse import Unit, is_inline
from penstock_spark.plan.hosts import ByMachine, BySpark, Host, InPython, InShards, Loop, Rows, State
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.stream_plan import Clock, Level, StreamPlan, WaitingParDo
from penstock_spark.plan.windowing import why_early, windowing_of

_KEY_TYPES = (str, int, bytes, bool, float, type(None))


def choose_folds(graph: Graph, units: tuple[Unit, ...], without: Set[str] = frozenset()) -> dict[str, Host]:
    """The host of each grouping of a batch, by label."""
    retracting = retracting_edges(graph)
    groupings = {
        unit.number: unit.root for unit in units if isinstance(unit.root, Step) and _is_grouping(unit)
    }
    hosts = {number: _host_of(graph, step, retracting, without) for number, step in groupings.items()}
    readers = _readers(graph, units, {number for number, host in hosts.items() if isinstance(host, BySpark)})
    found: dict[str, Host] = {}
    for number, step in groupings.items():
        host, reason = hosts[number], None
        if isinstance(host, BySpark):
            reason = _why_not_worth_it([units[before] for before in units[number].after], readers)
            if reason is None and "native_sums" in without:
                reason = "native sums are switched off"
        found[step.label] = host if reason is None else _in_python(graph, step, reason, without)
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


def _why_not_worth_it(feeding: list[Unit], readers: dict[object, set[object]]) -> str | None:
    """Why Python does a sum that Spark could do, from the units that feed it.

    An aggregate has its own exchange. If its stage fed other groupings too, Spark would have to persist the
    stage, and a few values of the program are not worth another operator.
    """
    if any(len(readers[_frame(unit)]) > 1 for unit in feeding):
        return "the frame that holds its input has other readers too"
    return "its input is a few values" if all(is_inline(unit.root) for unit in feeding) else None


def _is_grouping(unit: Unit) -> bool:
    return isinstance(unit.root, Step) and isinstance(unit.root.primitive, Grouping)


def _frame(unit: Unit) -> object:
    """The frame that a unit may share with others of its level."""
    if _is_grouping(unit):
        return "grouping", unit.level
    return ("inline", unit.level) if is_inline(unit.root) else unit.number


def _host_of(graph: Graph, step: Step, retracting: Set[int], without: Set[str]) -> Host:
    if isinstance(step.primitive, StatefulParDo):
        return ByMachine("it has state or timers", not retracting.isdisjoint(step.inputs))
    # Values are only added up in parts, or kept in chunks, where none is retracted.
    if not retracting.isdisjoint(step.inputs):
        return ByMachine("its input may retract elements", True)
    if (reason := why_early(windowing_of(graph, step.inputs[0]))) is not None:
        return ByMachine(reason, False)
    # Every other grouping fires once in each window, with all its elements, whatever the accumulation mode.
    reason = why_not_native(graph, step)
    return BySpark(loop_of_parts(without)) if reason is None else _in_python(graph, step, reason, without)


def why_not_native(graph: Graph, step: Step) -> str | None:
    """Why Spark cannot do a grouping whose windows fire once; None if it can."""
    if not isinstance(step.primitive, CombinePerKey):
        return "it needs its values, not a sum"
    windowing = windowing_of(graph, step.inputs[0])
    key, value = _pair_types(graph.edge(step.inputs[0]).element_type)
    fold = _fold_in_batch(step.primitive.fn)
    # Sums of integers are exact in two 64-bit columns. Spark cannot merge what other combiners hold.
    if not fold.is_whole_number:
        return "the combiner is neither a sum nor a count"
    # A float may lose digits where Python's sum would not, and Spark knows no sum of other types.
    if fold.name != "count" and value is not int:
        return f"the values to sum are {_name(value)}, not int"
    # Spark groups by the encoded key; the readers of the sums must be able to decode it without the user's classes.
    if not _is_plain(key):
        return f"the keys are {_name(key)}, not of plain types"
    # Windows merge one key at a time, in order.
    if windowing.windowfn.is_merging():
        return "its windows merge"
    # The earliest or latest input time would be one more column to combine.
    if windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW:
        return "its output time is not the end of the window"
    return None


def loop_of_parts(without: Set[str]) -> Loop:
    """Returns the loop before Spark's own aggregate; its windows do not merge, and outputs have their ends as times."""
    return Loop.VALUES if "shortcuts" in without else Loop.PAIRS


def _fold_in_batch(combine: CombineFn) -> Fold:
    """Returns the fold of a CombineFn without the marker that stands for an empty input."""
    return fold_of(without_marker(combine))


def _in_python(graph: Graph, step: Step, reason: str, without: Set[str]) -> InPython:
    windowing, combine = windowing_of(graph, step.inputs[0]), step.combine_fn
    if combine is None or "shortcuts" in without:
        return InPython(reason)
    fold = _fold_in_batch(combine)
    # A CombineFn of tuples takes them column by column, which is faster where few keys have many of them.
    if fold.source is None or fold.name == "tuple":
        return InPython(reason)
    # If an input's time decides the output's, there is more to note of each pair.
    if windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW:
        return InPython(reason, Loop.VALUES)
    if windowing.windowfn.is_merging() and type(windowing.windowfn) is not Sessions:
        return InPython(reason, Loop.VALUES)
    loop = Loop.SESSIONS if windowing.windowfn.is_merging() else Loop.PAIRS
    return InPython(reason, loop, Rows.NUMBERS if fold.is_whole_number else Rows.PICKLES)


def _pair_types(element_type: object) -> tuple[Any, Any]:
    parts = getattr(element_type, "tuple_types", None)
    return (parts[0], parts[1]) if parts is not None and len(parts) == 2 else (Any, Any)


def _is_plain(hint: object) -> bool:
    if hint in _KEY_TYPES:
        return True
    parts = getattr(hint, "tuple_types", None) or getattr(hint, "union_types", None) or ()
    return bool(parts) and all(map(_is_plain, parts))


def _name(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


def choose_shards(
    plan: StreamPlan, reasons: Mapping[str, str], without: Set[str] = frozenset()
) -> StreamPlan:
    """The plan of a stream with the host of each grouping, and with the steps that groupings do themselves.

    `reasons` says why Python does each grouping, by label. Spark could do the others, if that were not switched off.
    """
    hosts = _shards(plan, reasons, without)

    def with_left(level: Level) -> Level:
        readers: dict[int, list[InShards | None]] = {}
        for edge, step in level.writes:
            readers.setdefault(edge, []).append(hosts.get(step.label))
        for edge in (*(edge for edge, _ in level.sinks), *(edge for edge, *_ in level.views)):
            readers.setdefault(edge, []).append(None)
        return replace(level, left=find_steps_done_by_readers(level.steps, plan.graph, readers))

    return replace(
        plan,
        hosts=hosts,
        played=plan.played and with_left(plan.played),
        readings=tuple(map(with_left, plan.readings)),
        levels=tuple(map(with_left, plan.levels)),
    )


def _shards(plan: StreamPlan, reasons: Mapping[str, str], without: Set[str]) -> dict[str, InShards]:
    """The host of each grouping of a stream, by label; DoFns with state have none."""
    retracting = retracting_edges(plan.graph, is_streaming=True)
    could = "native streams are switched off" if "native_streams" in without else "its elements are recorded"
    found = {}
    for level in plan.levels:
        for step in level.roots:
            if isinstance(step.primitive, StatefulParDo | WaitingParDo):
                continue
            windowing = windowing_of(plan.graph, step.inputs[0])
            input_retracts = not retracting.isdisjoint(step.inputs)
            # Recorded input is never combined before it arrives, nor may a window take some of it and drop the rest.
            may_combine = (
                "early_combining" not in without
                and plan.clock is not Clock.RECORDED
                and len(step.outputs) == 1
                and program_of(windowing, step.combine_fn, input_retracts).takes_arrivals
            )
            may_be_by_window = "window_columns" not in without and plan.mode != "micro_batch"
            found[step.label] = InShards(
                state_of_shards(windowing, step.combine_fn, input_retracts, may_be_by_window),
                loop_of_arrivals(windowing, step.combine_fn) if may_combine else None,
                reasons.get(step.label, could),
            )
    return found


def state_of_shards(
    windowing: Windowing, combine: CombineFn | None, input_retracts: bool, may_be_by_window: bool = True
) -> State:
    """The form in which shards keep a grouping: by window wherever that is possible and not switched off.

    >>> from penstock.windows.windowing import Windowing
    >>> from penstock.transforms.window import FixedWindows, Sessions
    >>> [state_of_shards(Windowing(fn), None, False).name for fn in (FixedWindows(9), Sessions(9))]
    ['BY_WINDOW', 'BY_KEY']
    """
    is_simple = may_be_by_window and window_rule(windowing, combine, input_retracts) is not None
    return State.BY_WINDOW if is_simple else State.BY_KEY


def loop_of_arrivals(windowing: Windowing, combine: CombineFn | None) -> Loop:
    """The loop that combines what arrives at one logical time."""
    if isinstance(windowing.windowfn, Sessions):
        return Loop.SESSIONS
    # The marker of an empty input is not a value to add up; such a fold has no expressions.
    if combine is None or fold_of(combine).source is None:
        return Loop.CALLS
    # Only what is held of each key and window, and a count, are needed.
    is_at_end = windowing.timestamp_combiner == TimestampCombiner.OUTPUT_AT_EOW
    return Loop.PAIRS if is_at_end else Loop.VALUES


Reader = Host | InShards | None
"""The host of a grouping; None for all other readers of elements."""


def find_steps_done_by_readers(
    steps: Iterable[Step], graph: Graph, readers: Mapping[int, Iterable[Reader]]
) -> frozenset[str]:
    """The labels of the steps whose work their readers do themselves, and faster.

    Args:
        steps: The steps of a stage, or of a level.
        graph: The graph.
        readers: What reads the elements of an edge outside of the stage.
    """
    steps = tuple(steps)
    read = {edge for step in steps for edge in step.inputs}
    return frozenset(
        step.label
        for step in steps
        if (outside := tuple(readers.get(step.outputs[0].edge, ())))
        and not read.intersection(output.edge for output in step.outputs)
        and all(_takes(graph, step, reader) for reader in outside)
    )


def _takes(graph: Graph, step: Step, reader: Reader) -> bool:
    """True if a reader takes the elements in front of a step and does the step's work."""
    loop = None
    if isinstance(reader, BySpark | InPython):
        loop = reader.loop
    elif isinstance(reader, InShards):
        loop = reader.arriving
    match step.primitive:
        case ParDo(PairWithNone()):
            # It would take the pairs apart again.
            return isinstance(reader, BySpark | InPython)
        case AssignWindows():
            windowfn = windowing_of(graph, step.outputs[0].edge).windowfn
            if type(windowfn) is Sessions:
                return loop is Loop.SESSIONS and isinstance(reader, InPython)
            return type(windowfn) is FixedWindows and loop is Loop.PAIRS
    return False
