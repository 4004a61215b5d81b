"""Which loop adds up the values of a combine before an exchange, and which steps leave their work to it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

from penstock.functions.combinefn import DefaultingCombineFn
from penstock.graph import AssignWindows, ParDo
from penstock.transforms.ready_combiners import PairWithNothing
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.window_fn import FixedWindows, Sessions
from penstock_spark.aggregates.kernels import Kernel, early_kernel_of, kernel_of
from penstock_spark.stream.program import LevelWriter, MessageWriterSpec
from penstock_spark.worker.keys import merges_in_one_pass, rank_of
from penstock_spark.worker.program import GroupWriterSpec, StepSpec, WriterSpec

Writer = WriterSpec | LevelWriter


def adding_up(spec: GroupWriterSpec, without: Set[str]) -> GroupWriterSpec:
    """The writer of a grouping that adds values up as fast as its kernel and its windows allow."""
    has_shortcuts = "shortcuts" not in without
    kernel = kernel_of(spec.combine) if has_shortcuts or spec.as_numbers else None
    if kernel is None or kernel.adding is None:
        return spec
    # Where an input's time decides the output's, there is more to note of each pair.
    is_plain, windowfn = has_shortcuts and rank_of(spec.windowing) is None, spec.windowing.windowfn
    return replace(
        spec,
        kernel=kernel,
        takes_pairs=is_plain and not windowfn.is_merging(),
        takes_sessions=is_plain and merges_in_one_pass(windowfn),
        in_columns=number_kernel(spec.windowing, spec.combine, without) is not None,
        plain_keys=(str, int, type(None)) if has_shortcuts else (str,),
    )


def combining_early(spec: MessageWriterSpec) -> MessageWriterSpec:
    """The writer of a stream that combines the pairs of one logical time as fast as kernel and windows allow."""
    # The marker of an empty input is not a value to add up.
    kernel = None if type(spec.combine) is DefaultingCombineFn else early_kernel_of(spec.combine)
    # Only a total and a count of each key and window are needed.
    takes_pairs = (
        kernel is not None
        and kernel.adding is not None
        and not isinstance(spec.windowing.windowfn, Sessions)
        and spec.windowing.timestamp_combiner == TimestampCombiner.OUTPUT_AT_EOW
    )
    return replace(spec, combines_early=True, kernel=kernel, takes_pairs=takes_pairs)


def number_kernel(windowing: Any, combine: Any, without: Set[str]) -> Kernel | None:
    """The kernel of a combine whose rows in an exchange may hold a number; None if all hold accumulators."""
    kernel = kernel_of(combine)
    if kernel is None or kernel.adding is None or not kernel.adding.is_number or "shortcuts" in without:
        return None
    windowfn = windowing.windowfn
    # Nothing else may have to be known of a group than what its rows come to.
    is_simple = not windowfn.is_merging() or merges_in_one_pass(windowfn)
    return kernel if is_simple and rank_of(windowing) is None else None


def writing_directly(steps: tuple[StepSpec, ...], writers: tuple[Writer, ...]) -> tuple[StepSpec, ...]:
    """The steps of a stage, with a mark on each step whose work its groupings do themselves."""
    read = {edge for step in steps for edge in step.inputs}
    return tuple(
        replace(step, writes_directly=True)
        if not read.intersection(edge for _, edge in step.outputs) and _is_left_to(step, writers)
        else step
        for step in steps
    )


def _is_left_to(step: StepSpec, writers: tuple[Writer, ...]) -> bool:
    """Whether a step's only readers are groupings that do its work themselves, and faster."""
    readers = [writer for writer in writers if writer.edge == step.outputs[0][1]]
    return bool(readers) and all(_takes(step, writer) for writer in readers)


def _takes(step: StepSpec, writer: Writer) -> bool:
    match step.primitive, writer:
        case ParDo(PairWithNothing()), GroupWriterSpec():
            # It would take the pairs apart again.
            return True
        case AssignWindows(), GroupWriterSpec() if type(step.windowing.windowfn) is Sessions:
            return writer.takes_sessions
        case AssignWindows(), GroupWriterSpec() | MessageWriterSpec() if (
            type(step.windowing.windowfn) is FixedWindows
        ):
            return writer.takes_pairs
    return False
