"""Splittable DoFns of Beam's over bounded work: tasks process the restrictions of each element to their ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apache_beam.runners.common import DoFnSignature
from apache_beam.runners.sdf_utils import (
    RestrictionTrackerView,
    ThreadsafeRestrictionTracker,
    ThreadsafeWatermarkEstimator,
)
from apache_beam.transforms import core as beam_core

from penstock.base import clock
from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import DoFn, FlatMapDoFn
from penstock.functions.params import DoFnParam
from penstock_spark.beam.dofns import HostedDoFn
from penstock_spark.beam.values import OUTPUT_KINDS, output_of

TRACKER = DoFnParam("HostedTracker")
ESTIMATOR = DoFnParam("HostedEstimator")


def is_splittable(dofn: Any) -> bool:
    """Whether a DoFn of Beam's asks for a restriction."""
    return DoFnSignature(dofn).get_restriction_provider() is not None


def pair_with_restrictions(dofn: Any) -> DoFn:
    """Gives each element once for each restriction that its work is first split into."""
    made = FlatMapDoFn(_Pairing(dofn))
    made.output_kinds = OUTPUT_KINDS
    return made


class _Pairing:
    """The pairs of an element and a restriction."""

    def __init__(self, dofn: Any) -> None:
        self.dofn = dofn

    def __call__(self, element: Any) -> Iterator[tuple[Any, Any]]:
        provider = DoFnSignature(self.dofn).get_restriction_provider()
        for restriction in provider.split(element, provider.initial_restriction(element)):
            yield element, restriction


class SplittableDoFn(HostedDoFn):
    """Processes pairs of an element and a restriction, each restriction to its end."""

    def _asked(self, default: Any) -> Any:
        if isinstance(default, beam_core._RestrictionDoFnParam):
            return TRACKER
        if _is_estimator(default):
            return ESTIMATOR
        return super()._asked(default)

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        element, restriction = element
        described = DoFnSignature(self.dofn)
        provider = described.get_restriction_provider()
        estimators = described.get_watermark_estimator_provider()
        state = None if estimators is None else estimators.initial_estimator_state(element, restriction)
        remaining: Any = (restriction, 0.0)
        while remaining is not None:
            restriction, delay_seconds = remaining
            clock.sleep(delay_seconds)
            tracker = ThreadsafeRestrictionTracker(provider.create_tracker(restriction))
            estimator = None if estimators is None else _estimator(estimators, state)
            given = {TRACKER: RestrictionTrackerView(tracker), ESTIMATOR: estimator}
            remaining = yield from self._part(tracker, estimator, element, _filled(args, kwargs, given))
            if remaining is None:
                tracker.check_done()
            elif estimator is not None:
                state = estimator.get_estimator_state()

    def _part(self, tracker: Any, estimator: Any, element: Any, filled: Any) -> Any:
        """Gives the outputs of one call; returns what remains, and after how many seconds to go on."""
        args, kwargs = filled
        for output in super().process(element, *args, **kwargs) or ():
            if isinstance(output, beam_core.ProcessContinuation):
                split = tracker.try_split(0)
                return None if split is None else (split[1], output.resume_delay)
            own = output_of(output)
            if estimator is not None and hasattr(own, "timestamp"):
                estimator.observe_timestamp(output.timestamp)
            yield own
        status = tracker.deferred_status()
        return None if status is None else (status[0], max(0.0, status[1].micros / 1e6))


def _is_estimator(default: Any) -> bool:
    return isinstance(default, beam_core._WatermarkEstimatorParam)


def _estimator(provider: Any, state: Any) -> Any:
    return ThreadsafeWatermarkEstimator(provider.create_watermark_estimator(state))


def _filled(args: Any, kwargs: Any, given: Any) -> tuple[list[Any], dict[str, Any]]:
    def fill(value: Any) -> Any:
        return given[value] if isinstance(value, DoFnParam) and value in given else value

    return list(map(fill, args)), {name: fill(value) for name, value in kwargs.items()}


def refuse_unbounded(dofn: Any, where: str) -> None:
    """Refuses a splittable DoFn whose work on an element may never end."""
    if DoFnSignature(dofn).is_unbounded_per_element():
        what = "the runner cannot run a splittable DoFn over unbounded work yet"
        hint = "read the source with penstock, for example ReadFromSource(RangeSource).as_stream()"
        raise UnsupportedByRunner(what, where=where, hint=hint)
