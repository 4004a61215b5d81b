"""Which collections may hold retractions, and which steps cannot take them.

A grouping in the mode ``ACCUMULATING_AND_RETRACTING`` emits retractions, and so does a DoFn that declares
``gives_retractions = True``, such as a join of rows. They pass through all other steps, up to the next grouping, which
removes the retracted elements. A discarding grouping passes on retractions of elements that it has fired.

A grouping whose windows fire once emits retractions only in the mode ``micro_batch``. Nothing here knows the mode, so
behind such a grouping a step is accepted that cannot take retractions; the runner refuses it in that mode.
"""

from __future__ import annotations

from typing import Any

from penstock import graph
from penstock.construction import pvalue
from penstock.construction.nodes import Producer
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.windows.triggers import AccumulationMode


def may_retract(pcoll: pvalue.PCollection[Any]) -> bool:
    """True if elements of a PCollection may retract earlier ones, in any mode of a run."""
    return _retracting_step(pcoll, in_rounds=True) is not None


def check_dofn(dofn: DoFn, pcoll: pvalue.PCollection[Any], where: str | None) -> None:
    """Raises ValueError if retractions may come to a stateful DoFn that does not declare that it takes them."""
    if not dofn.takes_retractions:
        name = type(dofn.timer_owner()).__name__
        why = f"{name} has state or timers, and does not say that it takes retractions"
        hint = (
            "take them as DoFn.PaneInfoParam's kind tells, and declare takes_retractions = True in the class; "
            "or group in the mode ACCUMULATING or DISCARDING"
        )
        _refuse_retractions(pcoll, why, where, hint)


def check_combine_fn(fn: CombineFn, pcoll: pvalue.PCollection[Any], where: str | None) -> None:
    """Raises ValueError if retractions may come to a CombineFn that declares ``takes_retractions = False``."""
    if not fn.takes_retractions:
        why = f"the CombineFn {fn.default_label()} takes no retractions"
        _refuse_retractions(pcoll, why, where, "group in the mode ACCUMULATING or DISCARDING before")


def _refuse_retractions(pcoll: pvalue.PCollection[Any], why: str, where: str | None, hint: str) -> None:
    step = _retracting_step(pcoll, in_rounds=False)
    if step is not None:
        retracts = "takes earlier results back" if _is_dofn(step) else "accumulates and retracts"
        what = f"{why}, but its input may hold some: {step.full_label!r} {retracts}"
        raise refusal(ValueError, what, where=where, hint=hint)


def _is_dofn(step: Any) -> bool:
    return isinstance(step.transform.to_primitive(), graph.ParDo)


def _retracting_step(pcoll: pvalue.PCollection[Any], in_rounds: bool) -> Producer | None:
    """Returns a step upstream whose retractions no grouping has undone before `pcoll`; None if there is none.

    Args:
        pcoll: What the elements are read from.
        in_rounds: Whether each round of a run may fire windows that else fire once.
    """
    waiting: list[Any] = [pcoll]
    seen = set()
    while waiting:
        read = waiting.pop()
        step = read.producer
        if step is None or read in seen:
            continue
        seen.add(read)
        inputs = [value for value in step.inputs if isinstance(value, pvalue.PCollection)]
        match step.transform.to_primitive():
            # Its other output has the elements that come too late, as they come.
            case graph.GroupByKey() | graph.CombinePerKey() if read.tag is None:
                windowings = [value.windowing for value in inputs]
                modes = {each.accumulation_mode for each in windowings if in_rounds or not each.fires_once}
                if AccumulationMode.ACCUMULATING_AND_RETRACTING in modes:
                    return step  # type: ignore[no-any-return]
                if AccumulationMode.DISCARDING in modes:
                    # A retraction after the pane has fired can only be passed on.
                    waiting += inputs
            case graph.ParDo(dofn) if dofn.gives_retractions:
                return step  # type: ignore[no-any-return]
            case graph.ParDo(dofn) if dofn.gives_insertions_only:
                pass
            case _:
                waiting += inputs
    return None
