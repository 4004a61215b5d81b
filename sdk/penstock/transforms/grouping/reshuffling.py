"""Spreading elements evenly over the machines: `Reshuffle` and `ReshufflePerKey`."""

from __future__ import annotations

from typing import Any

from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.transforms.grouping.group_by_key import SpreadElements
from penstock.typehints import Tuple, with_input_types, with_output_types


@with_input_types(T)
@with_output_types(T)
class Reshuffle(PTransform[Any, Any]):
    """Redistributes its input evenly; the steps before and after it are not fused (Beam's ``Reshuffle``).

    Elements keep their windows, timestamps and panes.

    Args:
        num_buckets: The number of partitions to spread over; None lets the runner decide.

    Example: ``file_names | Reshuffle() | FlatMap(read_lines)`` reads files in parallel.
    """

    def __init__(self, num_buckets: int | None = None) -> None:
        super().__init__()
        if num_buckets is not None and not (isinstance(num_buckets, int) and num_buckets > 0):
            what = f"If `num_buckets` is set, it has to be an integer greater than 0, got {num_buckets}"
            hint = "leave it out to let the runner decide"
            raise refusal(ValueError, what, hint=hint)
        self.num_buckets = num_buckets

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        _refuse_older(pcoll)
        return pcoll | SpreadElements(self.num_buckets)


@with_input_types(Tuple[K, V])
@with_output_types(Tuple[K, V])
class ReshufflePerKey(PTransform[Any, Any]):
    """`Reshuffle` for KVs, which stay together by key (Beam's ``ReshufflePerKey``)."""

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        _refuse_older(pcoll)
        return pcoll | SpreadElements(by_key=True)


def _refuse_older(pcoll: PCollection[Any]) -> None:
    """Raises RuntimeError where the pipeline asks for Beam's older Reshuffle, which knew no types and lost panes."""
    pipeline = pcoll.pipeline
    if pipeline.options.is_compat_version_prior_to("2.65.0"):
        what = "update_compatibility_version asks for a Reshuffle of before Beam 2.65.0, which loses panes and coders"
        hint = "leave the option out, or name a later version"
        raise refusal(RuntimeError, what, where=pipeline.current_transform().where, hint=hint)
