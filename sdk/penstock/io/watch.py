"""`Watch`: polls a function about each input, and yields new outputs (Beam's ``apache_beam.io.watch``).

The loop of one input is a splittable DoFn: a restriction holds what the input has yielded so far, and each call of
``process`` is one poll, which leaves the rest of the restriction for the next one.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import struct
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from penstock.coders import coders
from penstock.coders.typecoders import registry
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import RestrictionProvider
from penstock.io.custom.restrictions import RestrictionProgress, RestrictionTracker
from penstock.io.watermark_estimators import ManualWatermarkEstimator
from penstock.transforms.elements.pardo import ParDo
from penstock.typehints import Tuple
from penstock.typehints.annotations import annotations_of
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.utils import clock
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration, DurationTypes, Timestamp, TimestampTypes

__all__ = ["PollFn", "PollResult", "TerminationCondition", "Watch", "after_total_of", "never"]

_LOGGER = logging.getLogger(__name__)

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class PollResult(Generic[OutputT]):
    """Holds the outputs that one poll has found (Beam's ``PollResult``); `incomplete` and `complete` make one.

    ``PollResult[str]`` as the return annotation of a poll function declares the type of the outputs.

    Args:
        outputs: All outputs that exist now; `Watch` drops those that it has yielded before.
        watermark: No later poll finds an output with an earlier time; None lets `Watch` take the earliest new output.

    >>> PollResult.incomplete(["a", "b"], timestamp=5).with_watermark(3)
    PollResult(outputs=(TimestampedValue('a', Timestamp(5)), ...), watermark=Timestamp(3))
    """

    outputs: tuple[TimestampedValue[OutputT], ...]
    watermark: Timestamp | None = None

    def __post_init__(self) -> None:
        for output in self.outputs:
            if not isinstance(output, TimestampedValue):
                what = f"an output of a PollResult has no time: it is {noun_for(output)}"
                raise refusal(
                    TypeError, what, hint="make the result with PollResult.incomplete or PollResult.complete"
                )

    @property
    def is_complete(self) -> bool:
        """True if these are the last outputs of the input."""
        return self.watermark == MAX_TIMESTAMP

    @staticmethod
    def incomplete(outputs: Iterable[Any], timestamp: TimestampTypes | None = None) -> PollResult[Any]:
        """Returns the outputs that exist now; more may follow.

        The watermark becomes the time of the earliest new output. That is right only if outputs appear in the order
        of their times: if they do not, add `with_watermark`.

        Args:
            outputs: Values, or ``TimestampedValue`` objects with their own times.
            timestamp: The time of values without one; by default the time of the machine's clock.
        """
        return PollResult(_with_times(outputs, timestamp))

    @staticmethod
    def complete(outputs: Iterable[Any], timestamp: TimestampTypes | None = None) -> PollResult[Any]:
        """Returns all outputs of the input: it is not polled again, and its watermark goes to the end of time.

        The arguments are those of `incomplete`.
        """
        return PollResult(_with_times(outputs, timestamp), MAX_TIMESTAMP)

    def with_watermark(self, watermark: TimestampTypes) -> PollResult[OutputT]:
        """Adds a promise to the result: no later poll of this input finds an output before `watermark`."""
        return replace(self, watermark=Timestamp.of(watermark))


def _with_times(
    outputs: Iterable[Any], timestamp: TimestampTypes | None
) -> tuple[TimestampedValue[Any], ...]:
    time = Timestamp.now() if timestamp is None else Timestamp.of(timestamp)
    return tuple(
        output if isinstance(output, TimestampedValue) else TimestampedValue(output, time)
        for output in outputs
    )


class PollFn:
    """A poll function with a coder of its outputs (Beam's ``PollFn``); `Watch` takes any other callable as well.

    >>> class Letters(PollFn):
    ...     def __call__(self, element):
    ...         return PollResult.complete(element)
    ...     def default_output_coder(self):
    ...         return coders.StrUtf8Coder()
    """

    def __call__(self, element: object) -> PollResult[Any]:
        """Returns what exists now for an input."""
        raise NotImplementedError

    def default_output_coder(self) -> coders.Coder | None:
        """Returns the coder of the outputs, which also says their type; None to infer it."""
        return None


class TerminationCondition:
    """Decides when an input is no longer polled (Beam's ``TerminationCondition``).

    The condition of an input has a state, which is never changed in place: each method takes one and returns the next.

    Example: a condition that waits a minute for new outputs.

    >>> class AfterAQuietMinute(TerminationCondition):
    ...     def for_new_input(self, now, element):
    ...         return now
    ...     def on_seen_new_output(self, now, state):
    ...         return now
    ...     def can_stop_polling(self, now, state):
    ...         return now - state > 60
    """

    def for_new_input(self, now: Timestamp, element: object) -> Any:
        """Returns the first state, just before the first poll of an input."""
        raise NotImplementedError

    def on_seen_new_output(self, now: Timestamp, state: object) -> Any:
        """Returns the state after a poll that found something new."""
        return state

    def on_poll_complete(self, state: object) -> Any:
        """Returns the state after each poll."""
        return state

    def can_stop_polling(self, now: Timestamp, state: Any) -> bool:
        """True if the last poll was the last one of this input."""
        raise NotImplementedError

    def state_coder(self) -> coders.Coder:
        """Returns the coder of states; they are pickled, unless overridden."""
        return registry.get_coder(object)


class _Never(TerminationCondition):
    def for_new_input(self, now: Timestamp, element: object) -> int:
        return 0

    def can_stop_polling(self, now: Timestamp, state: int) -> bool:
        return False

    def state_coder(self) -> coders.Coder:
        return coders.VarIntCoder()


@dataclass(frozen=True)
class _AfterTotalOf(TerminationCondition):
    """The state is the time of the first poll, in microseconds."""

    duration: Duration

    def for_new_input(self, now: Timestamp, element: object) -> int:
        return now.micros

    def can_stop_polling(self, now: Timestamp, state: int) -> bool:
        return now.micros - state > self.duration.micros

    def state_coder(self) -> coders.Coder:
        return coders.VarIntCoder()


def never() -> TerminationCondition:
    """Polls each input until its result is `PollResult.complete` (Beam's name)."""
    return _Never()


def after_total_of(duration: DurationTypes) -> TerminationCondition:
    """Stops polling an input after some time since its first poll (Beam's name).

    Args:
        duration: A `Duration`, or a number of seconds.

    >>> condition = after_total_of(60)
    >>> began = condition.for_new_input(Timestamp(100), "input")
    >>> condition.can_stop_polling(Timestamp(160), began), condition.can_stop_polling(Timestamp(161), began)
    (False, True)
    """
    return _AfterTotalOf(Duration.of(duration))


@dataclass(frozen=True)
class _Growth:
    """The restriction of an input after a poll; before the first one, None stands for it.

    Attributes:
        seen: The times of earlier outputs in microseconds, by the hashes of their keys, in the order of the outputs.
        condition: The state of the termination condition.
        cursor_micros: The latest time of an output, if the keys before it are forgotten.
    """

    seen: Mapping[bytes, int]
    condition: object
    cursor_micros: int | None = None


_HASH_BYTES: Final = 16
_OUTPUT: Final = struct.Struct(f">{_HASH_BYTES}sq")


class _GrowthCoder(coders.Coder):
    """Writes 24 bytes for each key; equal growths in the same order have the same bytes."""

    def __init__(self, condition: TerminationCondition) -> None:
        self._parts = coders.TupleCoder(
            (condition.state_coder(), coders.NullableCoder(coders.VarIntCoder()), coders.BytesCoder())
        )

    def encode(self, value: _Growth | None) -> bytes:
        if value is None:
            return b""
        seen = b"".join([_OUTPUT.pack(*output) for output in value.seen.items()])
        return self._parts.encode((value.condition, value.cursor_micros, seen))

    def decode(self, encoded: bytes) -> _Growth | None:
        if not encoded:
            return None
        condition, cursor_micros, seen = self._parts.decode(encoded)
        return _Growth(dict(_OUTPUT.iter_unpack(seen)), condition, cursor_micros)


class _PollTracker(RestrictionTracker):
    """Tracks one poll; what is claimed is the growth that remains after it, or None if it was the last one."""

    def __init__(self, growth: _Growth | None) -> None:
        self._growth = growth
        self._rest: _Growth | None = growth
        self._is_over = self._is_last = False

    def current_restriction(self) -> _Growth | None:
        return self._growth

    def try_claim(self, position: _Growth | None) -> bool:
        if self._is_over:
            return False
        self._is_over, self._is_last, self._rest = True, position is None, position
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[Any, Any] | None:
        """Returns the poll that was claimed, and the polls after it; a poll is never split."""
        if self._is_last:
            return None
        self._is_over = True
        return self._growth, self._rest

    def check_done(self) -> None:
        if not self._is_over:
            raise refusal(ValueError, "a poll was neither claimed nor left for later", hint="claim it")

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(completed=float(self._is_over), remaining=float(not self._is_over))

    def is_bounded(self) -> bool:
        return False


class _Poll(DoFn, RestrictionProvider):
    """Polls an input once in each call, and yields pairs of the input and what is new."""

    def __init__(
        self,
        poll_fn: Callable[[Any], PollResult[Any]],
        poll_interval: Duration,
        condition: TerminationCondition,
        key_of: Callable[[Any], Any] | None,
        key_coder: coders.Coder,
        lateness_micros: int | None,
        now_fn: Callable[[], float] | None,
    ) -> None:
        super().__init__()
        self._poll_fn = poll_fn
        self._poll_interval = poll_interval
        self._condition = condition
        self._key_of = key_of
        self._key_coder = key_coder
        self._lateness_micros = lateness_micros
        self._now_fn = now_fn

    def initial_restriction(self, element: object) -> _Growth | None:
        return None

    def create_tracker(self, restriction: _Growth | None) -> _PollTracker:
        return _PollTracker(restriction)

    def restriction_coder(self) -> coders.Coder:
        return _GrowthCoder(self._condition)

    def restriction_size(self, element: object, restriction: _Growth | None) -> float:
        return 1.0

    @DoFn.unbounded_per_element()
    def process(
        self,
        element: object,
        timestamp: Timestamp = DoFn.TimestampParam,
        tracker: Any = DoFn.RestrictionParam(),
        estimator: Any = DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider()),
    ) -> list[TimestampedValue[Any]]:
        # The outputs are a list: a poll has them all at once, and the caller must not divide it.
        growth = tracker.current_restriction()
        if growth is None:
            growth = _Growth({}, self._condition.for_new_input(self._now(), element))
        if estimator.current_watermark() is None:
            estimator.set_watermark(timestamp)
        result = self._polled(element)
        new = self._never_seen(growth, result.outputs)
        # A poll that takes long counts as time.
        now = self._now()
        condition = growth.condition
        if new:
            condition = self._condition.on_seen_new_output(now, condition)
        growth = self._grown(growth, new, self._condition.on_poll_complete(condition))
        watermark = result.watermark
        if watermark is None and new:
            watermark = next(iter(new.values())).timestamp
        is_last = (
            (watermark is not None and watermark >= MAX_TIMESTAMP)
            or (growth.cursor_micros is not None and growth.cursor_micros >= MAX_TIMESTAMP.micros)
            or self._condition.can_stop_polling(now, growth.condition)
        )
        if not tracker.try_claim(None if is_last else growth):
            return []
        _warn_of_late(new.values(), estimator.current_watermark(), timestamp)
        if not is_last:
            if watermark is not None and watermark > estimator.current_watermark():
                estimator.set_watermark(watermark)
            tracker.defer_remainder(self._poll_interval)
        return [TimestampedValue((element, output.value), output.timestamp) for output in new.values()]

    def _now(self) -> Timestamp:
        return Timestamp((self._now_fn or clock.seconds)())

    def _polled(self, element: object) -> PollResult[Any]:
        result = self._poll_fn(element)
        if not isinstance(result, PollResult):
            what = f"a poll function returns a PollResult, not {noun_for(result)}"
            hint = "return PollResult.incomplete(outputs), or PollResult.complete(outputs) with the last ones"
            raise refusal(TypeError, what, where="", hint=hint)
        return result

    def _never_seen(
        self, growth: _Growth, outputs: Iterable[TimestampedValue[Any]]
    ) -> dict[bytes, TimestampedValue[Any]]:
        """The first output of each new key by the key's hash, in the order of their times."""
        new: dict[bytes, TimestampedValue[Any]] = {}
        earliest_micros = self._earliest_micros(growth.cursor_micros)
        for output in outputs:
            if earliest_micros is not None and output.timestamp_micros < earliest_micros:
                continue
            key = output.value if self._key_of is None else self._key_of(output.value)
            hashed = hashlib.blake2b(self._key_coder.encode(key), digest_size=_HASH_BYTES).digest()
            if hashed not in growth.seen:
                new.setdefault(hashed, output)
        return dict(sorted(new.items(), key=lambda item: item[1].timestamp_micros))

    def _grown(
        self, growth: _Growth, new: Mapping[bytes, TimestampedValue[Any]], condition: object
    ) -> _Growth:
        seen = {**growth.seen, **{hashed: output.timestamp_micros for hashed, output in new.items()}}
        if self._lateness_micros is None:
            return _Growth(seen, condition)
        times = [output.timestamp_micros for output in new.values()]
        if growth.cursor_micros is not None:
            times.append(growth.cursor_micros)
        cursor_micros = max(times, default=None)
        earliest_micros = self._earliest_micros(cursor_micros)
        if earliest_micros is not None:
            seen = {hashed: micros for hashed, micros in seen.items() if micros >= earliest_micros}
        return _Growth(seen, condition, cursor_micros)

    def _earliest_micros(self, cursor_micros: int | None) -> int | None:
        """The time before which an output counts as seen; None if none does."""
        if cursor_micros is None or self._lateness_micros is None:
            return None
        return cursor_micros - self._lateness_micros


def _warn_of_late(outputs: Iterable[TimestampedValue[Any]], watermark: Timestamp, began: Timestamp) -> None:
    """Logs that outputs are behind the watermark, if a poll has moved it."""
    late = [output.timestamp for output in outputs if output.timestamp < watermark]
    if late and watermark > began:
        _LOGGER.warning(
            "a poll has found %d new outputs behind the watermark %s, the earliest at %s: windows may drop them as "
            "late; promise an earlier time with PollResult.with_watermark",
            len(late),
            watermark,
            min(late),
        )


class Watch(PTransform[PCollection[InputT], PCollection[tuple[InputT, OutputT]]], Generic[InputT, OutputT]):
    """Polls a function about each input, and emits pairs of the input and a new output (Beam's ``Watch``).

    The polls of an input continue until its result is `PollResult.complete`, or until `termination` stops them. Outputs
    have the times that the function sets. The watermark of an input is the one that its results promise.

    As in Beam, the result is unbounded: the pipeline is a stream, and a grouping needs windows or a trigger. Each
    output is emitted once, even if the program is killed and continues from its checkpoint.

    The state of an input has 24 bytes for each key that it has yielded, is written at each poll, and is dropped after
    the last one. `timestamp_cursor` bounds it.

    Args:
        poll_fn: Called with an input; returns a `PollResult` with all outputs that exist now. A ``PollFn`` is one.
        poll_interval: The time between two polls of an input: a `Duration`, or a number of seconds.
        termination: When to stop: `never`, which is the default, `after_total_of`, or a `TerminationCondition`.
        output_coder: The coder of the outputs; by default the one of the `PollFn`, or of the type ``V`` if the poll
            function's return annotation is ``PollResult[V]``.
        output_key_fn: An output is new if its key is: called with an output, returns the key. By default, the output.
        output_key_coder: The coder of the keys, which are compared by their encodings; by default, the one for the
            return annotation of `output_key_fn`.
        timestamp_cursor: Whether to forget the keys of outputs that are earlier than the latest output so far. An
            earlier output then counts as seen, even if it is new; a key that returns at a later time counts as new.
            This suits outputs that appear in the order of their times.
        allowed_lateness: With `timestamp_cursor`, how much earlier than the latest output an output may be: a
            `Duration`, or a number of seconds.
        now_fn: The clock that the termination condition sees, in seconds since 1970.

    Raises:
        ValueError: `poll_interval` is missing, a duration is negative, or keys have no deterministic coder.
        TypeError: `poll_fn` or `termination` is something else.

    >>> def letters_of(word) -> PollResult[str]:
    ...     return PollResult.complete(word, timestamp=0)
    >>> import penstock as beam
    >>> letters = beam.Pipeline() | beam.Create(["noon"]) | Watch(letters_of, poll_interval=60)
    >>> letters.is_bounded
    False
    """

    def __init__(
        self,
        poll_fn: Callable[[InputT], PollResult[OutputT]],
        poll_interval: DurationTypes,
        termination: TerminationCondition | None = None,
        output_coder: coders.Coder | None = None,
        output_key_fn: Callable[[Any], Any] | None = None,
        output_key_coder: coders.Coder | None = None,
        timestamp_cursor: bool = False,
        allowed_lateness: DurationTypes = 0,
        now_fn: Callable[[], float] | None = None,
    ) -> None:
        super().__init__()
        if not callable(poll_fn):
            what = f"Watch needs a poll function, but got {noun_for(poll_fn)}"
            raise refusal(
                TypeError, what, hint="pass a function that takes an input and returns a PollResult"
            )
        if poll_interval is None:
            raise refusal(ValueError, "Watch requires a poll_interval", hint="pass a number of seconds")
        if not isinstance(termination, TerminationCondition | None):
            what = f"termination={termination!r} is not a TerminationCondition"
            raise refusal(TypeError, what, hint="pass after_total_of(seconds), or never()")
        self._poll_fn = poll_fn
        self._poll_interval = _not_negative("poll_interval", poll_interval)
        self._condition = termination or never()
        self._output_coder = output_coder
        self._key_of = output_key_fn
        self._key_coder = output_key_coder
        lateness = _not_negative("allowed_lateness", allowed_lateness)
        self._lateness_micros = lateness.micros if timestamp_cursor else None
        self._now_fn = now_fn

    def expand(self, pcoll: PCollection[InputT]) -> PCollection[tuple[InputT, OutputT]]:
        output_coder = self._output_coder
        if output_coder is None and isinstance(self._poll_fn, PollFn):
            output_coder = self._poll_fn.default_output_coder()
        if output_coder is None:
            output_coder = _coder_of(_polled_type(self._poll_fn))
        key_coder = self._key_coder
        if key_coder is None:
            key_coder = output_coder if self._key_of is None else _coder_of(_returned_type(self._key_of))
        poll = _Poll(
            self._poll_fn,
            self._poll_interval,
            self._condition,
            self._key_of,
            self._deterministic(key_coder),
            self._lateness_micros,
            self._now_fn,
        )
        try:
            output_type = output_coder.to_type_hint()
        except NotImplementedError:
            output_type = Any
        pairs = Tuple[convert_to_beam_type(pcoll.element_type or Any), convert_to_beam_type(output_type)]
        result: PCollection[tuple[InputT, OutputT]] = pcoll | "Poll" >> ParDo(poll).with_output_types(pairs)
        return result

    def _deterministic(self, key_coder: coders.Coder) -> coders.Coder:
        what = f"Watch compares keys by their encodings, and {type(key_coder).__name__} is not deterministic"
        hint = "pass a deterministic output_key_coder, or a deterministic output_coder"
        return key_coder.as_deterministic_coder(self.label, str(refusal(ValueError, what, hint=hint)))


def _not_negative(name: str, seconds: DurationTypes) -> Duration:
    duration = Duration.of(seconds)
    if duration.micros < 0:
        raise refusal(
            ValueError, f"Watch {name} must not be negative: {seconds!r}", hint="pass 0 or more seconds"
        )
    return duration


def _returned_type(function: Callable[..., Any]) -> object:
    """The return annotation of a function or of an object's ``__call__``; Any without one."""
    annotated = function if inspect.isroutine(function) else type(function).__call__
    return annotations_of(annotated).get("return", Any)


def _polled_type(poll_fn: Callable[..., Any]) -> object:
    """``V`` if a poll function returns ``PollResult[V]`` by its annotation, else Any."""
    returned = _returned_type(poll_fn)
    return typing.get_args(returned)[0] if typing.get_origin(returned) is PollResult else Any


def _coder_of(hint: object) -> coders.Coder:
    return registry.get_coder(convert_to_beam_type(hint))
