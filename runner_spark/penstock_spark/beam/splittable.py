"""Beam's splittable DoFns: their trackers, estimators and outputs as penstock's engine sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from apache_beam.io import unbounded_source as beam_unbounded_source
from apache_beam.runners.common import DoFnSignature
from apache_beam.runners.sdf_utils import (
    RestrictionTrackerView,
    ThreadsafeRestrictionTracker,
    ThreadsafeWatermarkEstimator,
)
from apache_beam.transforms import core as beam_core
from apache_beam.utils import timestamp as beam_timestamp

from penstock.functions import dofn_parameters
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import ProcessContinuation
from penstock.functions.splitting import RestrictionCall, SplitRules
from penstock.utils.timestamp import Timestamp
from penstock_spark.beam.dofns import DoFnAdapter
from penstock_spark.beam.values import beam_time_of, output_of

if TYPE_CHECKING:
    from apache_beam.io.iobase import WatermarkEstimator


def is_splittable(dofn: DoFn) -> bool:
    """True if a Beam DoFn asks for a restriction."""
    return DoFnSignature(dofn).get_restriction_provider() is not None


class SplittableDoFn(DoFnAdapter):
    """A Beam splittable DoFn as penstock's."""

    def own_splits(self) -> SplitRules:
        described = DoFnSignature(self.dofn)
        return BeamSplits(
            described.get_restriction_provider(),
            described.get_watermark_estimator_provider(),
            bool(described.is_unbounded_per_element()),
        )

    def _asked(self, default: object) -> object:
        if isinstance(default, beam_core._RestrictionDoFnParam):
            return dofn_parameters.RestrictionDoFnParam()
        if isinstance(default, beam_core._WatermarkEstimatorParam):
            return dofn_parameters.WatermarkEstimatorDoFnParam()
        return super()._asked(default)


class BeamSplits(SplitRules):
    """The rules by which a Beam DoFn divides its work."""

    def estimator(self, state: object) -> WatermarkEstimator:
        made = super().estimator(state)
        return None if made is None else ThreadsafeWatermarkEstimator(made)

    def observe(self, estimator: WatermarkEstimator, time: Timestamp) -> None:
        estimator.observe_timestamp(beam_time_of(time))

    def view(self, part: RestrictionCall) -> object:
        # Beam's DoFns ask for the class of their arguments, and some look inside.
        return RestrictionTrackerView(_Tracker(part))

    def own(self, output: object) -> object:
        if isinstance(output, beam_core.ProcessContinuation):
            return ProcessContinuation(output.resume_delay)
        return output_of(output)

    def kept_callback(self, callback: Callable[[], Any]) -> Callable[[], Any]:
        if isinstance(callback, beam_unbounded_source._FinalizeCheckpointOnce):
            # It has a lock, and a callback that waits in the state of a stream is called by one thread.
            return callback._checkpoint_mark.finalize_checkpoint  # type: ignore[no-any-return]
        return callback


class _Tracker(ThreadsafeRestrictionTracker):  # type: ignore[misc]
    """The tracker of a call, which ends at the limits of the call."""

    def __init__(self, part: RestrictionCall) -> None:
        super().__init__(part.tracker)
        self._part = part

    def try_claim(self, position: object) -> bool:
        return self._part.try_claim(position)

    def defer_remainder(self, deferred_time: object = None) -> None:
        if isinstance(deferred_time, beam_timestamp.Timestamp):
            self._part.defer(resume_micros=deferred_time.micros)
        else:
            self._part.defer(beam_timestamp.Duration.of(deferred_time or 0).micros / 1_000_000)
