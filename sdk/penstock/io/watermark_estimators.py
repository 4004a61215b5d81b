"""Estimators of a splittable DoFn's watermark (Beam's ``apache_beam.io.watermark_estimators``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.coders import typecoders
from penstock.error import three_parts
from penstock.io.restrictions import WatermarkEstimator
from penstock.utils.timestamp import Timestamp

__all__ = ["ManualWatermarkEstimator", "MonotonicWatermarkEstimator", "WalltimeWatermarkEstimator"]


@dataclass(frozen=True)
class _Provider:
    """Makes estimators of one class; a splittable DoFn names it as a default argument."""

    estimator: Any

    def initial_estimator_state(self, element: Any, restriction: Any) -> Any:
        """There is none yet."""
        return None

    def create_watermark_estimator(self, estimator_state: Any) -> Any:
        """An estimator that goes on from a state."""
        return self.estimator(estimator_state)

    def estimator_state_coder(self) -> Any:
        """The coder for values of any type."""
        return typecoders.registry.get_coder(object)


class MonotonicWatermarkEstimator(WatermarkEstimator):
    """The watermark is the latest timestamp that was observed (Beam's name).

    The state is the watermark that was last asked for: what was only observed is not told to anybody yet.

    >>> estimator = MonotonicWatermarkEstimator(Timestamp(1))
    >>> estimator.observe_timestamp(Timestamp(5)); estimator.observe_timestamp(Timestamp(3))
    >>> estimator.current_watermark()
    Timestamp(5)
    """

    def __init__(self, timestamp: Any) -> None:
        self._watermark = self._latest = timestamp

    def observe_timestamp(self, timestamp: Any) -> None:
        """Notes the timestamp of an output."""
        if self._latest is None or timestamp > self._latest:
            self._latest = timestamp

    def current_watermark(self) -> Any:
        """The watermark."""
        self._watermark = self._latest
        return self._watermark

    def get_estimator_state(self) -> Any:
        """The watermark as it was last asked for."""
        return self._watermark

    @staticmethod
    def default_provider() -> Any:
        """Makes these, without a watermark to begin with."""
        return _Provider(MonotonicWatermarkEstimator)


class WalltimeWatermarkEstimator(WatermarkEstimator):
    """The watermark is the clock (Beam's name)."""

    def __init__(self, timestamp: Any = None) -> None:
        self._timestamp = timestamp or Timestamp.now()

    def observe_timestamp(self, timestamp: Any) -> None:
        """The clock alone counts."""

    def current_watermark(self) -> Any:
        """The watermark."""
        self._timestamp = max(self._timestamp, Timestamp.now())
        return self._timestamp

    def get_estimator_state(self) -> Any:
        """The watermark."""
        return self._timestamp

    @staticmethod
    def default_provider() -> Any:
        """Makes these."""
        return _Provider(WalltimeWatermarkEstimator)


class ManualWatermarkEstimator(WatermarkEstimator):
    """The watermark is what the DoFn sets (Beam's name).

    >>> estimator = ManualWatermarkEstimator(None)
    >>> estimator.set_watermark(Timestamp(5))
    >>> estimator.set_watermark(Timestamp(3))
    Traceback (most recent call last):
        ...
    ValueError: Watermark must be monotonically increasing. Provided watermark Timestamp(3) ...
    """

    def __init__(self, watermark: Any) -> None:
        self._watermark = watermark

    def observe_timestamp(self, timestamp: Any) -> None:
        """Only `set_watermark` counts."""

    def current_watermark(self) -> Any:
        """The watermark."""
        return self._watermark

    def get_estimator_state(self) -> Any:
        """The watermark."""
        return self._watermark

    def set_watermark(self, timestamp: Timestamp) -> None:
        """Sets the watermark.

        Raises:
            ValueError: It is no ``Timestamp``, or it goes back.
        """
        if not isinstance(timestamp, Timestamp):
            raise ValueError(
                three_parts("set_watermark expects a Timestamp as input", hint=f"got {timestamp!r}")
            )
        if self._watermark and self._watermark > timestamp:
            raise ValueError(
                three_parts(
                    f"Watermark must be monotonically increasing. Provided watermark {timestamp!r} is "
                    f"less than current watermark {self._watermark!r}",
                    hint="keep the greater of the two",
                )
            )
        self._watermark = timestamp

    @staticmethod
    def default_provider() -> Any:
        """Makes these, without a watermark to begin with."""
        return _Provider(ManualWatermarkEstimator)
