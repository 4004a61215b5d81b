"""Refuses groupings, when they are applied, that would wait forever, lose data, or fail at the first pane."""

from __future__ import annotations

import logging
from typing import Any

from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform, check_pcollection, where_of
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.machines.merging import InventedWindowError, Merging
from penstock.typehints import typehints
from penstock.windows.custom_trigger import CustomTrigger
from penstock.windows.triggers import (
    AfterDelta,
    AfterWatermark,
    DataLossReason,
    DefaultTrigger,
    can_fire_early,
    walk_parts,
)
from penstock.windows.window_fn import GlobalWindows, WindowFn
from penstock.windows.windowing import Windowing

_LOGGER = logging.getLogger(__name__)


def check_grouping(
    transform: PTransform[Any, Any], pcoll: PCollection[Any], gives_lists: bool = False
) -> None:
    """Refuses groupings that would wait forever, or lose data, or fail.

    `gives_lists` says that results are lists of values, not combined ones. The option ``allow_unsafe_triggers`` allows
    to wait and to lose data.
    """
    check_pcollection(transform, pcoll)
    misfit = _misfit(pcoll.windowing, gives_lists)
    if misfit:
        raise refusal(ValueError, misfit[0], where=where_of(transform), hint=misfit[1])
    danger = _wait(pcoll) or _loss(pcoll.windowing)
    if not danger:
        return
    what, hint = danger
    if not pcoll.pipeline.allow_unsafe_triggers:
        raise refusal(ValueError, what, where=where_of(transform), hint=hint)
    _LOGGER.warning("%s: %s; allowed because of --allow_unsafe_triggers", transform.label, what)


def check_keyed(transform: PTransform[Any, Any], pcoll: PCollection[Any]) -> None:
    """Refuses elements that are not pairs for a stateful DoFn, with a ValueError."""
    try:
        typehints.coerce_to_kv_type(pcoll.element_type or typehints.Any, transform.label)
    except ValueError as error:
        raise refusal(
            ValueError,
            f"Input elements to the transform {transform.label!r} with stateful DoFn must be "
            f"key-value pairs, not {typehints.show_type(pcoll.element_type)}",
            where=where_of(transform),
            hint="make pairs first, e.g. with Map(lambda x: (key_of(x), x)) or WithKeys",
        ) from error


def _wait(pcoll: pvalue.PCollection[Any]) -> tuple[str, str] | None:
    """Returns why a grouping emits nothing before the end of all time, and a hint; None if it does."""
    trigger = pcoll.windowing.triggerfn
    is_global = isinstance(pcoll.windowing.windowfn, GlobalWindows)
    if pcoll.is_bounded or not is_global or can_fire_early(trigger):
        return None
    what = "GroupByKey cannot be applied to an unbounded PCollection with global windowing and "
    is_default = isinstance(trigger, DefaultTrigger)
    what += "a default trigger" if is_default else f"{trigger}, which never fires before the end of all time"
    return what, "window the input first, e.g. WindowInto(FixedWindows(60)), or give it another trigger"


def _loss(windowing: Windowing) -> tuple[str, str] | None:
    """Returns why a grouping may lose data, and a hint; None if it cannot."""
    reason = windowing.triggerfn.may_lose_data(windowing)
    if reason == DataLossReason.NO_POTENTIAL_LOSS:
        return None
    name = str(reason).replace("DataLossReason.", "")
    what = f"Unsafe trigger: `{windowing.triggerfn}` may lose data. Reason: {name}"
    if isinstance(windowing.triggerfn, AfterWatermark):
        return what, "add late=AfterCount(1) to the trigger, or leave allowed_lateness out"
    return what, "wrap the trigger in Repeatedly, or set the option allow_unsafe_triggers"


def _misfit(windowing: Windowing, gives_lists: bool) -> tuple[str, str] | None:
    """Returns why windows or a trigger would fail at run time, and a hint; None if they would not."""
    if windowing.windowfn.is_merging() and _invents_windows(windowing.windowfn):
        what = f"{type(windowing.windowfn).__name__}.merge merges windows that no element is in"
        return what, "merge only windows of the context's `windows`"
    for part in walk_parts(windowing.triggerfn):
        match part:
            case CustomTrigger() if _cannot_merge(part) and windowing.windowfn.is_merging():
                what = f"the trigger {part} does not say what happens when windows merge, and these may"
                return what, f"define on_merge(self, states, context) in {type(part).__name__}"
            case AfterDelta(distance=None) if gives_lists:
                what = f"{part} subtracts results, but those of GroupByKey are lists"
                return what, "combine instead, e.g. with CombinePerKey(sum), or give AfterDelta a distance"
    return None


def _invents_windows(windowfn: WindowFn) -> bool:
    """True if a WindowFn, asked about windows that it has assigned itself, merges others; as far as one can know.

    Elements are known at run time only, and the user's function may need them.
    """
    try:
        contexts = [windowfn.AssignContext(second, element=(None, None)) for second in range(2)]
        Merging(windowfn, [window for context in contexts for window in windowfn.assign(context)])
    except InventedWindowError:
        return True
    except Exception:
        return False
    return False


def _cannot_merge(trigger: CustomTrigger) -> bool:
    return type(trigger).on_merge is CustomTrigger.on_merge
