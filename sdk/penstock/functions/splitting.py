"""Splittable DoFns as an engine sees them: the restrictions of an element, and one call of ``process`` at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import (
    BundleFinalizerDoFnParam,
    ProcessContinuation,
    RestrictionProvider,
    kind_of,
)
from penstock.functions.signature import signature_of
from penstock.utils.timestamp import Duration, Timestamp, TimestampTypes
from penstock.utils.windowed_value import WindowedValue

MOST_RESTRICTIONS: Final = 100_000
"""The number of restrictions into which one element may be split."""

_PATIENCE: Final = 10
"""A call whose claim was refused may use this many times its limits."""

_PATIENCE_WITHOUT_CLAIMS: Final = 1000
"""Likewise, while none was: all outputs may belong to the last position that was claimed, such as a long listing."""


class CallLimits(NamedTuple):
    """The limits after which an engine makes a checkpoint of a call, so that the rest is processed in a later one.

    Attributes:
        outputs: The number of outputs.
        seconds: The time since the call began.
    """

    outputs: int = 10_000
    seconds: float = 1.0


class Residual(NamedTuple):
    """The part of a restriction that a call has left for a later one.

    Attributes:
        restriction: The restriction that remains.
        delay_seconds: The minimum time until it is resumed.
        resume_micros: The time before which it is not resumed; None if the delay decides.
    """

    restriction: Any
    delay_seconds: float = 0.0
    resume_micros: int | None = None


class SplitRules:
    """A DoFn's rules for dividing the work on an element: its providers of restrictions and of watermark estimators."""

    def __init__(self, provider: RestrictionProvider, estimators: Any, is_unbounded: bool) -> None:
        self.provider = provider
        self.estimators = estimators  # None if the DoFn asks for no estimator.
        self.is_unbounded = is_unbounded  # Whether the work on one element may never end.

    @property
    def coder(self) -> Any:
        """The provider's own coder of restrictions; None if restrictions are pickled."""
        if not _is_own(self.provider, "restriction_coder"):
            return None
        return self.provider.restriction_coder()

    def restrictions(self, element: object) -> Iterator[Any]:
        """Yields, as stored, the restrictions into which an element is split first."""
        provider = self.provider
        parts = iter(provider.split(element, provider.initial_restriction(element)))
        for part in islice(parts, MOST_RESTRICTIONS):
            yield self.stored(part)
        for _ in parts:
            what = f"{type(provider).__name__}.split returns more than {MOST_RESTRICTIONS:,} restrictions per element"
            raise refusal(
                ValueError, what, hint="split into fewer, larger restrictions, and only a bounded one"
            )

    def stored(self, restriction: object) -> Any:
        """Returns a restriction in the form in which it is kept: encoded if the provider has a coder of its own."""
        coder = self.coder
        return restriction if coder is None else coder.encode(restriction)

    def restored(self, stored: object) -> Any:
        """Returns a restriction from the form in which it is kept."""
        coder = self.coder
        return stored if coder is None else coder.decode(stored)

    def truncated(self, element: object, restriction: object) -> Any:
        """Returns the rest of a restriction in a drain; None if nothing remains."""
        return self.provider.truncate(element, restriction)

    def estimator_state(self, element: object, restriction: object) -> Any:
        """Returns the first state of the watermark estimator; None without one."""
        return (
            None if self.estimators is None else self.estimators.initial_estimator_state(element, restriction)
        )

    def estimator(self, state: object) -> Any:
        """Returns a watermark estimator that continues from a state; None without one."""
        return None if self.estimators is None else self.estimators.create_watermark_estimator(state)

    def view(self, part: RestrictionCall) -> Any:
        """Returns the restriction tracker that ``process`` receives."""
        return TrackerView(part)

    def own(self, output: object) -> Any:
        """Converts an output, or a ``ProcessContinuation``, to penstock's type."""
        return output

    def kept_callback(self, callback: Callable[[], Any]) -> Callable[[], Any]:
        """Returns a callback of a bundle finalizer in a form that can be pickled."""
        return callback

    def observe(self, estimator: Any, time: Timestamp) -> None:
        """Passes the time of an output to an estimator."""
        estimator.observe_timestamp(time)


def _is_own(provider: RestrictionProvider, name: str) -> bool:
    """True if a provider's class overrides a method of the base class of providers."""
    kinds = [kind for kind in type(provider).__mro__ if name in vars(kind)]
    return bool(kinds) and kinds[0].__name__ != "RestrictionProvider"


def splits_of(dofn: DoFn) -> SplitRules:
    """Returns the rules by which a splittable DoFn divides its work.

    Raises:
        ValueError: If it names no provider, and is not a provider itself.
    """
    own: SplitRules | None = dofn.own_splits()
    if own is not None:
        return own
    owner, process = dofn.timer_owner(), signature_of(dofn).process
    [asked] = process.asking_for("RestrictionParam")
    provider = asked.default.restriction_provider or owner
    if not callable(getattr(provider, "create_tracker", None)):
        what = f"{type(owner).__name__}.process asks for a restriction, but does not define the restrictions"
        hint = "pass a RestrictionProvider to DoFn.RestrictionParam, or derive the DoFn from RestrictionProvider, too"
        raise refusal(ValueError, what, hint=hint)
    estimators = None
    for parameter in process.asking_for("WatermarkEstimatorParam"):
        # The class itself, without a provider, asks for the DoFn's own.
        estimators = getattr(parameter.default, "watermark_estimator_provider", None) or owner
    is_unbounded = bool(getattr(owner.process, "unbounded_per_element", False))
    return SplitRules(provider, estimators, is_unbounded)


class PairWithRestriction(DoFn):
    """Emits each element once for each restriction that its work is first split into."""

    def __init__(self, dofn: Any) -> None:
        super().__init__()
        self.dofn = dofn

    def describe(self) -> str:
        """Names the DoFn whose restrictions these are, for messages."""
        return f"restrictions of {type(self.dofn).__name__}"

    def process(self, element: Any) -> Iterator[tuple[Any, Any]]:
        """Yields the pairs of an element and a restriction."""
        for restriction in splits_of(self.dofn).restrictions(element):
            yield element, restriction


class PairWithRestrictionByWindow(PairWithRestriction):
    """The pairing for a DoFn that sees the window: each window of an element has its own restrictions."""

    def process(self, element: object, window: object = DoFn.WindowParam) -> Iterator[tuple[Any, Any]]:
        """Returns the pairs of an element and a restriction, for one of its windows."""
        return super().process(element)


class RestrictionCall:
    """One call of a splittable ``process`` for a restriction: its tracker, its outputs, and its rest.

    Args:
        splits: How the DoFn divides its work.
        restriction: The restriction.
        estimator_state: The state of the watermark estimator.
        seconds: The time of the machine at which the call runs, in seconds since 1970.
        limits: When to make a checkpoint; None for never.
        time: The time of outputs without a time; None if they are not observed.
    """

    def __init__(
        self,
        splits: SplitRules,
        restriction: object,
        estimator_state: Any,
        seconds: Callable[[], float],
        limits: CallLimits | None = None,
        time: Timestamp | None = None,
    ) -> None:
        self.splits = splits
        self.tracker = splits.provider.create_tracker(restriction)
        self.estimator = splits.estimator(estimator_state)
        self.finalizer = BundleFinalizerDoFnParam()  # Takes callbacks for when the outputs are committed.
        self.rest: Residual | None = None
        self.view = splits.view(self)
        self._seconds = seconds
        self._limits = limits
        self._time = time
        self._began_seconds = seconds()
        self._claims = 0
        self._count = 0
        self._is_split = False  # By the engine.
        self._is_refused = False  # A claim beyond that split.

    def outputs(self, results: Iterable[Any] | None) -> Iterator[Any]:
        """Yields the outputs of the call from the results of ``process``; afterwards `rest` is set if work remains."""
        # If no output is inspected, none of them costs a call.
        is_watched = self._limits is not None or self.estimator is not None
        own = None if type(self.splits).own is SplitRules.own else self.splits.own
        for output in results or ():
            if own is not None:
                output = own(output)
            if type(output) is ProcessContinuation:
                self.defer(output.resume_delay)
                break
            if not is_watched:
                yield output
                continue
            self._observe(output)
            yield output
            self._count += 1
            self._check_limits()
        if isinstance(results, Iterator):
            # A generator must not continue after it has yielded a continuation.
            getattr(results, "close", lambda: None)()
        if self.rest is None:
            self.tracker.check_done()

    def try_claim(self, position: object) -> bool:
        """Claims a position, unless the call has reached its limits."""
        if self._claims:
            self._check_limits()
        if not self.tracker.try_claim(position):
            self._is_refused = self._is_split
            return False
        if self._is_split:
            what = f"{type(self.tracker).__name__}.try_claim is true after the rest was split off"
            raise refusal(
                ValueError, what, hint="after try_split, let try_claim return False beyond the primary"
            )
        self._claims += 1
        return True

    def defer(self, delay_seconds: float = 0.0, resume_micros: int | None = None) -> None:
        """Leaves the rest of the restriction for a later call."""
        if self.rest is None:
            split = self.tracker.try_split(0)
            if not split:
                return
            self.rest = Residual(split[1])
        self.rest = self.rest._replace(delay_seconds=delay_seconds, resume_micros=resume_micros)

    def wait_seconds(self) -> float:
        """Returns the seconds to wait before the rest is resumed."""
        assert self.rest is not None, "nothing is left"
        if self.rest.resume_micros is None:
            return max(0.0, self.rest.delay_seconds)
        return max(0.0, self.rest.resume_micros / 1_000_000 - self._seconds())

    def watermark_micros(self) -> int | None:
        """Returns the watermark that the estimator reports now; None if it knows none."""
        watermark = None if self.estimator is None else self.estimator.current_watermark()
        return None if watermark is None else int(watermark.micros)

    def estimator_state(self) -> Any:
        """Returns the state from which another estimator can continue; ask for the watermark first."""
        return None if self.estimator is None else self.estimator.get_estimator_state()

    def now(self) -> Timestamp:
        """Returns the time of the machine."""
        return Timestamp(self._seconds())

    def _observe(self, output: TimestampedValue[Any]) -> None:
        if self.estimator is None:
            return
        inner = output.value if isinstance(output, TaggedOutput) else output
        own = inner.timestamp if isinstance(inner, (TimestampedValue, WindowedValue)) else self._time
        if own is not None:
            self.splits.observe(self.estimator, own)

    def _check_limits(self) -> None:
        if self._limits is None:
            return
        outputs, seconds = self._limits
        spent_seconds = self._seconds() - self._began_seconds
        if self._count < outputs and spent_seconds < seconds:
            return
        if self._is_split:
            if self._count >= (_PATIENCE if self._is_refused else _PATIENCE_WITHOUT_CLAIMS) * outputs:
                what = "process continues after the rest of its restriction was split off"
                raise refusal(
                    ValueError, what, hint="claim each position, and return when try_claim is False"
                )
        elif self.rest is None and self._claims and (split := self.tracker.try_split(0)):
            self.rest, self._is_split = Residual(split[1]), True


class TrackerView:
    """The restriction tracker as ``process`` sees it (Beam's ``RestrictionTrackerView``)."""

    def __init__(self, part: RestrictionCall) -> None:
        self._part = part

    def current_restriction(self) -> Any:
        """Returns the restriction of this call."""
        return self._part.tracker.current_restriction()

    def try_claim(self, position: object) -> bool:
        """Claims a position; False means: return."""
        return self._part.try_claim(position)

    def defer_remainder(self, deferred_time: TimestampTypes | None = None) -> None:
        """Leaves the rest for later; return after it.

        Args:
            deferred_time: A ``Duration`` or a number of seconds to wait, or the ``Timestamp`` at which to resume;
                at once without one.
        """
        if isinstance(deferred_time, Timestamp):
            self._part.defer(resume_micros=deferred_time.micros)
        else:
            self._part.defer(Duration.of(deferred_time or 0).micros / 1_000_000)

    def is_bounded(self) -> bool:
        """True if the work ends."""
        return bool(self._part.tracker.is_bounded())


def asks_for_window(dofn: DoFn, has_side_inputs: bool) -> bool:
    """True if ``process`` sees the window, so that the windows of an element are processed one by one."""
    kinds = {kind_of(parameter.default) for parameter in signature_of(dofn).process.parameters}
    return has_side_inputs or not kinds.isdisjoint({"WindowParam", "WindowedValueParam"})
