"""Describes the part of a streaming plan that its state depends on, as plain data that is kept in the checkpoint."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MethodType
from typing import Any

import penstock
from penstock.coders.base import Coder
from penstock.functions.combinefn import CombineFn
from penstock.functions.described_combinefn import DescribedCombineFn
from penstock.functions.signature import signature_of as dofn_signature_of
from penstock.functions.userstate import StateSpec
from penstock.graph import CombinePerKey, GroupByKey, Read, Source, StatefulParDo, Step, Write
from penstock.io.sparkio import SparkSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.machines.program import program_of
from penstock.scalars.row_functions import Predicate
from penstock.scalars.tree import spell
from penstock.typehints.constraints import Any as AnyHint
from penstock.typehints.constraints import normalize
from penstock.utils.timestamp import Duration, Timestamp
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.triggers import AccumulationMode, ClosingBehavior, OnTimeBehavior, TriggerFn
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.contract.classes import find_classes
from penstock_spark.checkpoints.contract.field_orders import FieldOrders, field_orders_of
from penstock_spark.checkpoints.contract.kept_cells import keep_cells
from penstock_spark.checkpoints.contract.key_coders import KeyCoders, key_coders_of, key_type
from penstock_spark.plan.column_plan import ColumnStream, Grouped
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.plan.splitting import keeps_restrictions
from penstock_spark.plan.stream_plan import StreamPlan, WaitingParDo
from penstock_spark.plan.summed_stream import SummedStream, Sums
from penstock_spark.plan.windowing import windowing_of
from penstock_spark.process.written_formats import PLAN

ALWAYS = "always"
IF_NEW = "if something is new"
WAITS = "none, but elements that wait for side inputs, with their places in the source"

_PLAIN = (bool, int, float, str, bytes, Duration, Timestamp, datetime.date, datetime.time, datetime.timedelta)


def signature_of(plan: StreamPlan, shards: int, heartbeat: str = "", parallelism: int = 1) -> dict[str, Any]:
    """A plan as JSON: what its state depends on, and the labels of everything else, for people.

    To Spark, the heartbeat is a source like the others.
    """
    retracting = retracting_edges(plan.graph, is_streaming=True)
    sources: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = [{} for _ in range(max(plan.level_of.values(), default=0))]
    steps: list[str] = []
    passed: dict[str, str] = {}
    sinks: list[str] = []
    for step in plan.graph.steps:
        match step.primitive:
            case Read(ColumnStream(columns=columns) as source):
                sources.append({"label": step.label, **_source(source)})
                steps += [each.label for each in columns.steps]
            case Read(SummedStream(sums=sums) as source):
                sources.append({"label": step.label, **_source(source)})
                steps += [each.label for each in sums.before]
            case Read(source):
                sources.append({"label": step.label, **_source(source)})
            case GroupByKey() | CombinePerKey():
                input_retracts = not retracting.isdisjoint(step.inputs)
                levels[plan.level_of[step.label] - 1][step.label] = _grouping(plan, step, input_retracts)
            case WaitingParDo():
                levels[plan.level_of[step.label] - 1][step.label] = _waiting(plan, step)
            case StatefulParDo() if keeps_restrictions(step.primitive):
                stored = _describe_state(plan, step, "none, but restrictions", "restrictions")
                levels[plan.level_of[step.label] - 1][step.label] = stored
            case StatefulParDo():
                levels[plan.level_of[step.label] - 1][step.label] = _stateful(plan, step)
            case Write():
                sinks.append(step.label)
            case _:
                steps.append(step.label)
                if not retracting.isdisjoint(step.inputs):
                    passed[step.label] = _condition(step)
    return {
        "format": PLAN.number,
        "penstock": penstock.__version__,
        "mode": plan.mode,
        "clock": plan.clock.name.lower(),
        "shards": shards,
        "is_one_operator": plan.is_one_operator,
        "parallelism": parallelism,
        "heartbeat": heartbeat,
        "sources": sources,
        "levels": levels,
        "native": _native(plan),
        "steps": steps,
        "passed_by_retractions": passed,
        "sinks": sinks,
    }


def _condition(step: Step) -> str:
    """The condition of a step of SQL; empty for other steps, whose functions cannot be compared."""
    condition = getattr(getattr(step.primitive, "dofn", None), "fn", None)
    return spell(condition.scalar) if isinstance(condition, Predicate) else ""


def _native(plan: StreamPlan) -> dict[str, Any]:
    """Returns the groupings that Spark aggregates, by their labels, with everything that Spark's state depends on."""
    match plan.by_spark:
        case None:
            return {}
        case Grouped():
            assert plan.columns is not None
            columns = plan.columns
            layouts: dict[Grouped | Sums, dict[str, Any]] = {
                each: dict(columns.layout(each)) for each in columns.groupings
            }
        case Sums() as sums:
            assert sums.step.combine_fn is not None
            combine, key_coders = describe_combine(sums.step.combine_fn), _key_coders(plan, sums.step)
            layouts = {sums: {"keys": "encoded", "combine": combine, "key_coders": key_coders}}
    waits_for_end = plan.native_grouping is not None
    return {
        each.step.label: {**describe_windowing(each.windowing), **layout, "waits_for_end": waits_for_end}
        for each, layout in layouts.items()
    }


def _source(source: Source) -> dict[str, Any]:
    """A source: first what its state depends on, then what only people read."""
    described = {"kind": _kind(source), "watermark": None, "partition": None, "tick": None, "policy": None}
    if isinstance(source, StreamSource):
        policy, partition = source.watermark, source.partition
        described |= {
            "watermark": _policy(policy),
            "partition": None if partition is None else as_text(partition),
            "tick": None if source.arrival_time is None else as_text(Duration(micros=source.tick_micros)),
            "policy": as_text(policy),
        }
    return {**described, "description": source.describe()}


def _kind(source: Source) -> str:
    """The name of the kind of source that Spark's offsets refer to."""
    match source:
        case StreamSource():
            return f"stream of {_kind(source.source)}"
        case SparkSource():
            return f"Spark's {source.format}"
    return type(source).__name__


def _policy(policy: WatermarkPolicy) -> str:
    """The contents of the state of a policy's estimator; mostly, the policy's delay is not part of it."""
    own = policy.innermost
    arguments = [f"{name}={as_text(vars(own)[name])}" for name in own.state_depends_on]
    return name_of(type(own)) + (_join("()", arguments) if arguments else "")


def _describe_state(
    plan: StreamPlan, step: Step, combine: str, held: str, fields: FieldOrders | None = None
) -> dict[str, Any]:
    """The properties that the state of a step depends on; without `fields`, it may have whole elements."""
    if fields is None:
        fields = field_orders_of([_element_type(plan, step)], (), name_of)
    return {
        **describe_windowing(windowing_of(plan.graph, step.inputs[0])),
        "combine": combine,
        "held": held,
        "fields": fields,
        "feeds": [watermark_input.label for watermark_input in plan.watermark_inputs[step.label]],
    }


def _grouping(plan: StreamPlan, step: Step, input_retracts: bool) -> dict[str, Any]:
    combine = step.combine_fn
    fold = program_of(windowing_of(plan.graph, step.inputs[0]), combine, input_retracts).fold
    text = "none, but a group" if combine is None else describe_combine(combine)
    fields = None
    if fold.name == "count":
        fields = field_orders_of([key_type(_element_type(plan, step))], (), name_of)
    return {**_describe_state(plan, step, text, fold.form, fields), "key_coders": _key_coders(plan, step)}


def _element_type(plan: StreamPlan, step: Step) -> object:
    return plan.graph.edge(step.inputs[0]).element_type


def _key_coders(plan: StreamPlan, step: Step) -> KeyCoders:
    return key_coders_of(_element_type(plan, step), name_of)


def _stateful(plan: StreamPlan, step: Step) -> dict[str, Any]:
    asked = dofn_signature_of(step.primitive.dofn)  # type: ignore[union-attr]
    specs = asked.state_specs
    cells = {spec.name: f"{name_of(type(spec))} of {name_of(type(spec.coder))}" for spec in specs}
    timers = {timer.name: timer.time_domain for timer, _ in asked.timers}
    kinds = sorted([*cells.items(), *timers.items(), *_sides(plan, step).items()])
    held = ", ".join(f"{name}: {kind}" for name, kind in kinds)
    fields = _fields_of_cells(plan, step, specs)
    return {
        **_describe_state(plan, step, "none, but state", held, fields),
        "key_coders": _key_coders(plan, step),
        "cells": keep_cells(specs),
    }


def _fields_of_cells(plan: StreamPlan, step: Step, specs: Iterable[StateSpec]) -> FieldOrders:
    """A coder that does not say what it writes may write elements."""
    hints = [
        _hint_of(coder) for spec in specs for coder in (getattr(spec, "key_coder", None), spec.coder) if coder
    ]
    elements = _element_type(plan, step)
    pickled = elements if AnyHint in find_classes(*hints) else key_type(elements)
    return field_orders_of([pickled], hints, name_of)


def _hint_of(coder: Coder) -> object:
    try:
        return normalize(coder.to_type_hint())
    except NotImplementedError:
        return AnyHint


def _waiting(plan: StreamPlan, step: Step) -> dict[str, Any]:
    sides = _sides(plan, step).items()
    return _describe_state(plan, step, WAITS, ", ".join(f"{label}: {windows}" for label, windows in sides))


def _sides(plan: StreamPlan, step: Step) -> dict[str, str]:
    """The windows of the side inputs that a step waits for, by the groupings that make them."""
    return {
        side.label: as_text(windowing_of(plan.graph, step.side_inputs[place].edge).windowfn)
        for place, side in plan.side_watermark_inputs.get(step.label, {}).items()
    }


def describe_windowing(windowing: Windowing) -> dict[str, str]:
    """The parts of a windowing by name.

    >>> from penstock.transforms.window import FixedWindows
    >>> describe_windowing(Windowing(FixedWindows(60)))["windows"]
    'FixedWindows(offset=Duration(0), size=Duration(60))'
    """
    has_pane_at_end = windowing.on_time_behavior is OnTimeBehavior.FIRE_ALWAYS
    has_last_pane = windowing.closing_behavior is ClosingBehavior.FIRE_ALWAYS
    timestamps = {value: name for name, value in vars(TimestampCombiner).items() if name.startswith("OUTPUT")}
    return {
        "windows": as_text(windowing.windowfn),
        "trigger": as_text(windowing.triggerfn),
        "accumulation": AccumulationMode(windowing.accumulation_mode).name,
        "lateness": as_text(windowing.allowed_lateness),
        "timestamp": timestamps[windowing.timestamp_combiner],
        # If the trigger has no such pane, the behavior has no meaning.
        "on_time": ALWAYS if has_pane_at_end and windowing.triggerfn.has_ontime_pane() else IF_NEW,
        "closing": ALWAYS if has_last_pane else IF_NEW,
    }


def describe_combine(fn: CombineFn) -> str:
    """The name of a CombineFn, with the names of the functions and CombineFns that it contains, or what it keeps."""
    if isinstance(fn, DescribedCombineFn) and fn.keeps:
        return fn.keeps
    parts = [part for _, value in sorted(vars(fn).items()) for part in _parts(value)]
    return name_of(type(fn)) + (f"({', '.join(parts)})" if parts else "")


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, CombineFn):
        yield describe_combine(value)
    elif hasattr(value, "__qualname__") and not isinstance(value, MethodType):
        yield name_of(value)
    elif type(value) in (list, tuple):
        for each in value:
            yield from _parts(each)


def as_text(value: Any) -> str:
    """A description such as a WindowFn or a trigger as text: the same in every process, and equal for equal values.

    A function becomes its name, and an object of an unknown class the name of its class.

    >>> from penstock.transforms.trigger import AfterAny, AfterCount, AfterProcessingTime
    >>> as_text(AfterAny(AfterCount(100), AfterProcessingTime(1.0)))
    'AfterAny(triggers=[AfterCount(count=100), AfterProcessingTime(delay_micros=1000000)])'
    """
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None:
            return "None"
        case _ if isinstance(value, _PLAIN):
            return repr(value)
        case list() | tuple():
            return _join("[]", map(as_text, value))
        case set() | frozenset():
            return _join("{}", sorted(map(as_text, value)))
        case dict():
            return _join("{}", sorted(f"{as_text(key)}: {as_text(each)}" for key, each in value.items()))
        case _ if hasattr(value, "__qualname__"):
            return name_of(value)
        case WindowFn() | TriggerFn() | WatermarkPolicy():
            return _describe(value)
        case _ if is_dataclass(value):
            return _describe(value)
    return name_of(type(value))


def _describe(value: object) -> str:
    own = fields(value) if is_dataclass(value) else ()
    hidden = {field.name for field in own if not (field.compare and field.repr)}
    arguments = (
        f"{name.lstrip('_')}={as_text(each)}"
        for name, each in sorted(getattr(value, "__dict__", {}).items())
        if name not in hidden
    )
    return name_of(type(value)) + _join("()", arguments)


def _join(brackets: str, parts: Iterable[str]) -> str:
    return brackets[0] + ", ".join(parts) + brackets[1]


def name_of(thing: type | Callable[..., Any]) -> str:
    """The name of a class or function, with its module unless it is Python's or ours, because ours may move.

    >>> name_of(str.upper), name_of(Windowing), name_of(datetime.date)
    ('str.upper', 'Windowing', 'datetime.date')
    """
    module, name = getattr(thing, "__module__", None) or "builtins", thing.__qualname__
    return name.lstrip("_") if module.partition(".")[0] in ("builtins", "penstock") else f"{module}.{name}"
