"""Which collections may hold retractions, and which steps cannot take them.

A grouping in the mode ``ACCUMULATING_AND_RETRACTING`` emits retractions, and so does a DoFn that declares
``emits_retractions = True``, such as a join of rows. They pass through all other steps, up to the next grouping, which
removes the retracted elements. A discarding grouping passes on retractions of elements that it has fired.

A grouping whose windows fire once emits retractions only in the mode ``micro_batch``. Nothing here knows the mode, so a
step after such a grouping is accepted even if it cannot take retractions; the runner refuses it in that mode.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.nodes import Producer
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.windows.triggers import AccumulationMode
from penstock.windows.windowing import Windowing


class Retractions(Enum):
    """Which retractions an output of a step may hold."""

    OWN = "its own"
    OF_INPUTS = "its inputs have them"
    NONE = "none"


def retractions_of(
    primitive: graph.Primitive,
    tag: str | None,
    windowing: Callable[[], Windowing],
    fires_again: Callable[[Windowing], bool],
) -> Retractions:
    """Returns which retractions an output of a step may hold.

    Args:
        primitive: What the step does.
        tag: The tag of the output.
        windowing: Returns the windows of the step's first input; only groupings ask.
        fires_again: Whether windows may fire more than once.
    """
    match primitive:
        # Its other output has the elements that come too late, as they come.
        case graph.GroupByKey() | graph.CombinePerKey() if tag is None:
            grouped = windowing()
            mode = grouped.accumulation_mode
            if mode == AccumulationMode.ACCUMULATING or not fires_again(grouped):
                return Retractions.NONE
            # A discarding window that has fired holds nothing from which it could retract a value.
            return Retractions.OF_INPUTS if mode == AccumulationMode.DISCARDING else Retractions.OWN
        case graph.ParDo(dofn) if dofn.emits_retractions:
            return Retractions.OWN
        case graph.ParDo(dofn) if dofn.emits_insertions_only:
            return Retractions.NONE
        case graph.Write():
            return Retractions.NONE
    return Retractions.OF_INPUTS


def may_retract(pcoll: pvalue.PCollection[Any], *, in_rounds: bool = True) -> bool:
    """True if elements of a PCollection may retract earlier ones, in any mode of a run.

    Args:
        pcoll: The PCollection.
        in_rounds: Whether the run may be in the mode ``micro_batch``, where windows that otherwise fire once fire
            again.
    """
    return _retracting_step(pcoll, in_rounds=in_rounds) is not None


def check_dofn(dofn: DoFn, pcoll: pvalue.PCollection[Any], where: str | None) -> None:
    """Raises ValueError if a stateful DoFn may receive retractions, but does not declare that it takes them."""
    if not dofn.accepts_retractions:
        name = type(dofn.timer_owner()).__name__
        why = f"{name} has state or timers, and does not declare that it takes retractions"
        hint = (
            "handle them by the kind of DoFn.PaneInfoParam, and declare accepts_retractions = True in the class; "
            "or group in the mode ACCUMULATING or DISCARDING"
        )
        _refuse_retractions(pcoll, why, where, hint)


def check_combine_fn(fn: CombineFn, pcoll: pvalue.PCollection[Any], where: str | None) -> None:
    """Raises ValueError if a CombineFn may receive retractions, but declares ``accepts_retractions = False``."""
    if not fn.accepts_retractions:
        why = f"the CombineFn {fn.default_label()} does not accept retractions"
        _refuse_retractions(pcoll, why, where, "group in the mode ACCUMULATING or DISCARDING first")


def _refuse_retractions(pcoll: pvalue.PCollection[Any], why: str, where: str | None, hint: str) -> None:
    step = _retracting_step(pcoll, in_rounds=False)
    if step is not None:
        retracts = "retracts earlier results" if _is_dofn(step) else "accumulates and retracts"
        what = f"{why}, but its input may contain some: {step.full_label!r} {retracts}"
        raise refusal(ValueError, what, where=where, hint=hint)


def _is_dofn(step: Any) -> bool:
    return isinstance(step.transform.to_primitive(), graph.ParDo)


def _retracting_step(pcoll: pvalue.PCollection[Any], in_rounds: bool) -> Producer | None:
    """Returns a step upstream whose retractions no grouping has undone before `pcoll`; None if there is none.

    Args:
        pcoll: What the elements are read from.
        in_rounds: Whether each round of a run may fire windows that else fire once.
    """

    def fires_again(windowing: Windowing) -> bool:
        return in_rounds or not windowing.fires_once

    waiting: list[Any] = [pcoll]
    seen = set()
    while waiting:
        read = waiting.pop()
        step = read.producer
        if step is None or read in seen:
            continue
        seen.add(read)
        inputs = [value for value in step.inputs if isinstance(value, pvalue.PCollection)]
        windowing = partial(_first_windowing, inputs)
        match retractions_of(step.transform.to_primitive(), read.tag, windowing, fires_again):
            case Retractions.OWN:
                return step  # type: ignore[no-any-return]
            case Retractions.OF_INPUTS:
                waiting += inputs
    return None


def _first_windowing(inputs: list[pvalue.PCollection[Any]]) -> Windowing:
    return inputs[0].windowing
