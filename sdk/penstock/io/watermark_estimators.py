"""Estimators of a splittable DoFn's watermark (Beam's ``apache_beam.io.watermark_estimators``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.coders import typecoders
from penstock.error import refusal
from penstock.functions.dofn_parameters import WatermarkEstimatorProvider
from penstock.io.custom.restrictions import WatermarkEstimator
from penstock.utils.timestamp import Timestamp, TimestampTypes

__all__ = ["ManualWatermarkEstimator", "MonotonicWatermarkEstimator", "WalltimeWatermarkEstimator"]


@dataclass(frozen=True)
class _Provider(WatermarkEstimatorProvider):
    """Makes estimators of one class; a splittable DoFn has it as a default argument."""

    estimator: Any

    def initial_estimator_state(self, element: object, restriction: object) -> Any:
        return None

    def create_watermark_estimator(self, estimator_state: Any) -> object:
        return self.estimator(estimator_state)

    def estimator_state_coder(self) -> object:
        return typecoders.registry.get_coder(object)


class MonotonicWatermarkEstimator(WatermarkEstimator):
    """The watermark is the latest observed timestamp (Beam's name).

    The state is the watermark of the last call: later timestamps have not been reported yet.

    >>> estimator = MonotonicWatermarkEstimator(Timestamp(1))
    >>> estimator.observe_timestamp(Timestamp(5)); estimator.observe_timestamp(Timestamp(3))
    >>> estimator.current_watermark()
    Timestamp(5)
    """

    def __init__(self, timestamp: Timestamp) -> None:
        self._watermark = self._latest = timestamp

    def observe_timestamp(self, timestamp: Timestamp) -> None:
        if self._latest is None or timestamp > self._latest:
            self._latest = timestamp

    def current_watermark(self) -> Timestamp:
        self._watermark = self._latest
        return self._watermark

    def get_estimator_state(self) -> Timestamp:
        return self._watermark

    @staticmethod
    def default_provider() -> _Provider:
        """Returns the provider for a DoFn's default argument; it starts without a watermark."""
        return _Provider(MonotonicWatermarkEstimator)


class WalltimeWatermarkEstimator(WatermarkEstimator):
    """The watermark is the clock (Beam's name)."""

    def __init__(self, timestamp: TimestampTypes | None = None) -> None:
        self._timestamp = timestamp or Timestamp.now()

    def observe_timestamp(self, timestamp: Timestamp) -> None:
        """Ignores the timestamp: the clock alone counts."""

    def current_watermark(self) -> Any:
        self._timestamp = max(self._timestamp, Timestamp.now())
        return self._timestamp

    def get_estimator_state(self) -> object:
        return self._timestamp

    @staticmethod
    def default_provider() -> Any:
        """Returns the provider for a DoFn's default argument."""
        return _Provider(WalltimeWatermarkEstimator)


class ManualWatermarkEstimator(WatermarkEstimator):
    """The DoFn sets the watermark (Beam's name).

    >>> estimator = ManualWatermarkEstimator(None)
    >>> estimator.set_watermark(Timestamp(5))
    >>> estimator.set_watermark(Timestamp(3))
    Traceback (most recent call last):
        ...
    ValueError: Watermark must be monotonically increasing. Provided watermark Timestamp(3) ...
    """

    def __init__(self, watermark: Timestamp) -> None:
        self._watermark = watermark

    def observe_timestamp(self, timestamp: Timestamp) -> None:
        """Ignores the timestamp: only `set_watermark` counts."""

    def current_watermark(self) -> Any:
        return self._watermark

    def get_estimator_state(self) -> object:
        return self._watermark

    def set_watermark(self, timestamp: Timestamp) -> None:
        """Sets the watermark, which must be a ``Timestamp`` and must not go back."""
        if not isinstance(timestamp, Timestamp):
            what = f"set_watermark expects a Timestamp as input, not {timestamp!r}"
            raise refusal(ValueError, what, hint="convert it with Timestamp.of")
        if self._watermark and self._watermark > timestamp:
            what = (
                f"Watermark must be monotonically increasing. Provided watermark {timestamp!r} is "
                f"less than current watermark {self._watermark!r}"
            )
            raise refusal(ValueError, what, hint="pass the later of the two")
        self._watermark = timestamp

    @staticmethod
    def default_provider() -> _Provider:
        """Returns the provider for a DoFn's default argument; it starts without a watermark."""
        return _Provider(ManualWatermarkEstimator)
