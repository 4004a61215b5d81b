"""The machine of a splittable DoFn in a stream, one restriction at a time: when it is processed, and what it holds.

Like the other machines it knows no engine and no clock. It only stores the results of a call of ``process``. The
next advance of the clock emits them, from the state that the engine has committed meanwhile, and makes the next
call. So a step of the input that an engine repeats emits the same outputs, whatever an outside system answers the
second time: the results of a call whose state was not committed have never left the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from penstock.error import refusal
from penstock.functions.splitting import CallLimits, RestrictionCall, SplitRules
from penstock.machines.long_lists import AnyList
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Element, MethodOutput, Times
from penstock.machines.stateful_keys import plain_window, window_of
from penstock.machines.timers import NextTimers
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import ValueKind, unknown_pane

DRAIN: Final = "\0drain"
"""The signal at which the machine ends: no user's signal has this name."""

_VERSION: Final = b"\x01"
_LATEST_HOLD: Final = MAX_MICROS - 1
"""Whatever an estimator says, the watermark is not at the end of time before the restriction is done."""


class SplittableInvoker(Protocol):
    """The user's code, and the operations that the machine must not do itself."""

    splits: SplitRules

    def process(self, element: Element, part: RestrictionCall) -> Iterable[Any] | None:
        """Calls ``process`` for a restriction of an element."""
        ...

    def finalize(self, callbacks: Sequence[Callable[[], Any]]) -> None:
        """Calls the callbacks that a call has registered for the commit of its outputs; errors are only logged."""
        ...

    def seconds(self) -> float:
        """Returns the time of the machine that runs the code, in seconds since 1970."""
        ...

    def dumps(self, value: object) -> bytes:
        """Returns a value as bytes."""
        ...

    def loads(self, data: bytes) -> Any:
        """Returns a value from bytes."""
        ...


class SplittableKey:
    """A restriction and what is known about it, as plain data; the user's objects are bytes."""

    __slots__ = (
        "asked_to_end",
        "element",
        "estimator",
        "key",
        "kind",
        "latest_micros",
        "made",
        "next_micros",
        "reported_micros",
        "restriction",
        "resume_micros",
        "timestamp_micros",
        "windows",
    )

    agendas: Final = (CLOCK,)
    changed: Final[dict[int, None]] = {}

    def __init__(self, key: Any = None, plain: list[Any] | None = None) -> None:
        self.key = key
        self.windows: list[
            Any
        ] = []  # The element's windows as plain data; empty once the restriction is done.
        self.element = b""  # The element's value.
        self.timestamp_micros = MIN_MICROS
        self.kind = ValueKind.INSERT.value
        self.restriction: bytes | None = None  # What remains; None if nothing does.
        self.estimator = b""  # The state of the watermark estimator.
        self.made: bytes | None = None  # Outputs and callbacks that have not left the machine yet.
        self.latest_micros = MIN_MICROS  # The estimator's watermark after the last call.
        self.reported_micros = MIN_MICROS  # The watermark of the outputs that have left the machine.
        self.next_micros = 0  # When the machine has to look at the restriction again.
        self.resume_micros = 0  # The time before which `process` is not called.
        self.asked_to_end = False  # Whether it is the rest that a drain has left.
        if plain is not None:
            for name, value in zip(_FIELDS, plain, strict=True):
                setattr(self, name, value)

    def plain(self) -> list[Any]:
        """Returns all of it except the key."""
        return [getattr(self, name) for name in _FIELDS]


_FIELDS: Final = tuple(name for name in SplittableKey.__slots__ if name != "key")


class SplittableMachine:
    """The machine of one splittable DoFn.

    Its elements are pairs of an element and a restriction in its stored form, each with a key of its own.

    Args:
        code: The user's code.
        limits: The limits after which a call is stopped at a checkpoint.
        through_micros: The clock up to which the engine commits everything together: nothing that is made by then
            leaves the machine by then.
        is_draining: Whether the stream ends, so that new restrictions are truncated.
    """

    def __init__(
        self,
        code: SplittableInvoker,
        limits: CallLimits = CallLimits(),
        through_micros: int = MIN_MICROS,
        is_draining: bool = False,
    ) -> None:
        self._code = code
        self._limits = limits
        self._through_micros = through_micros
        self._is_draining = is_draining

    def new_key(self, key: object = None) -> SplittableKey:
        """Returns the state of a key without a restriction."""
        return SplittableKey(key)

    def renew_lists(self, state: SplittableKey, renewed: Callable[[AnyList], AnyList]) -> None:
        """Does nothing: a restriction has no list to which values are added."""

    def element(self, state: SplittableKey, element: Element, times: Times) -> list[MethodOutput]:
        """Adds an element with a restriction; makes the first call, and stores its outputs."""
        code = self._code
        if state.windows:
            raise AssertionError("two restrictions have the same key")
        (value, stored), timestamp_micros, windows, kind = element
        restriction = code.splits.restored(stored)
        state.windows = [plain_window(window) for window in windows]
        state.timestamp_micros, state.kind = timestamp_micros, kind.value
        state.element = self._dumped(value, "an element")
        state.estimator = self._dumped(
            code.splits.estimator_state(value, restriction), "the state of a watermark estimator"
        )
        if code.splits.estimators is None:
            state.latest_micros = state.reported_micros = timestamp_micros
        state.restriction = self._dumped(stored, "a restriction")
        if self._is_draining:
            self._truncate(state)
        self._call(state, times)
        return []

    def advance_watermark(self, state: SplittableKey, times: Times) -> list[MethodOutput]:
        """Ignores the watermark: work on an element continues after the end of the input."""
        return []

    def advance_clock(self, state: SplittableKey, times: Times) -> list[MethodOutput]:
        """Advances the clock to `times`: emits what is stored, and calls ``process`` for what remains."""
        if not state.windows or state.next_micros > times.clock_micros:
            return []
        reactions = self._give(state)
        if state.restriction is None:
            state.windows = []
        elif state.resume_micros <= times.clock_micros:
            self._call(state, times)
        else:
            state.next_micros = state.resume_micros
        return reactions

    def signal(self, state: SplittableKey, name: str, times: Times) -> list[MethodOutput]:
        """Truncates the restriction if the stream is drained; other signals are for triggers."""
        if name == DRAIN and state.windows and not state.asked_to_end:
            self._truncate(state)
            state.resume_micros = MIN_MICROS
            state.next_micros = min(state.next_micros, self._later(times))
        return []

    def end_micro_batch(self, state: SplittableKey, times: Times) -> list[MethodOutput]:
        """Ignores rounds: the clock says when to resume."""
        return []

    def hold_micros(self, state: SplittableKey) -> int | None:
        """Returns the event time that the output watermark must not pass; None if nothing holds it."""
        return min(state.reported_micros, _LATEST_HOLD) if state.windows else None

    def next_timers(self, state: SplittableKey) -> NextTimers:
        """Returns the time at which the clock next makes the restriction due, and `hold_micros`."""
        if not state.windows:
            return {}, None
        return {CLOCK: state.next_micros}, self.hold_micros(state)

    def alarm_micros(self, state: SplittableKey, domain: Domain = WATERMARK) -> int | None:
        """Returns a time before which nothing is due in a domain; None if nothing will ever be due."""
        return state.next_micros if domain == CLOCK and state.windows else None

    def snapshot(self, state: SplittableKey) -> bytes:
        """Returns the state of a key as bytes."""
        return _VERSION + self._code.dumps((state.key, state.plain()))

    def restore(self, data: bytes) -> SplittableKey:
        """Returns the state of a key from the bytes of `snapshot`."""
        if data[:1] != _VERSION:
            what = f"the state of a restriction has the format {data[:1]!r}, not {_VERSION!r}"
            raise refusal(ValueError, what, hint="restore it with the version of penstock that wrote it")
        return SplittableKey(*self._code.loads(data[1:]))

    def _later(self, times: Times) -> int:
        """Returns the earliest time at which what happens now has been committed."""
        return max(times.clock_micros, self._through_micros) + 1

    def _give(self, state: SplittableKey) -> list[MethodOutput]:
        """Emits the outputs of the last call."""
        state.reported_micros = max(state.reported_micros, state.latest_micros)
        if state.made is None:
            return []
        outputs, callbacks = self._code.loads(state.made)
        state.made = None
        if callbacks:
            self._code.finalize(callbacks)
        if not outputs:
            return []
        first, *others = map(window_of, state.windows)
        info = unknown_pane(ValueKind(state.kind))
        return [MethodOutput(outputs, state.timestamp_micros, first, info, tuple(others))]

    def _call(self, state: SplittableKey, times: Times) -> None:
        """Calls ``process``, and stores its results and its remainder."""
        state.next_micros = self._later(times)
        if state.restriction is None:
            return
        code = self._code
        windows = tuple(map(window_of, state.windows))
        element = Element(code.loads(state.element), state.timestamp_micros, windows, ValueKind(state.kind))
        restriction = code.splits.restored(code.loads(state.restriction))
        part = RestrictionCall(
            code.splits,
            restriction,
            code.loads(state.estimator),
            code.seconds,
            self._limits,
            Timestamp.from_micros(state.timestamp_micros),
        )
        outputs = tuple(part.outputs(code.process(element, part)))
        self._note_watermark(state, part)
        callbacks = tuple(map(code.splits.kept_callback, part.finalizer.callbacks))
        state.made = None
        if callbacks:
            self._dumped(callbacks, "a callback of a bundle finalizer")
        if outputs or callbacks:
            state.made = self._dumped((outputs, callbacks), "an output")
        if part.rest is None:
            # That nothing remains is known to others only after it has been committed.
            state.restriction = None
            return
        rest = part.rest
        state.restriction = self._dumped(code.splits.stored(rest.restriction), "a restriction")
        if rest.resume_micros is None:
            state.resume_micros = state.next_micros - 1 + round(rest.delay_seconds * 1_000_000)
        else:
            state.resume_micros = rest.resume_micros
        if state.made is None and state.latest_micros <= state.reported_micros:
            state.next_micros = max(state.next_micros, state.resume_micros)

    def _note_watermark(self, state: SplittableKey, part: RestrictionCall) -> None:
        watermark_micros = part.watermark_micros()
        if part.estimator is None:
            return
        if watermark_micros is not None:
            if watermark_micros < state.latest_micros:
                kind, before, now = type(part.estimator).__name__, state.latest_micros, watermark_micros
                what = (
                    f"the watermark of {kind} goes back from {Timestamp.from_micros(before)!r} to "
                    f"{Timestamp.from_micros(now)!r}"
                )
                hint = "keep the latest watermark in the estimator's state, and never report an earlier one"
                raise refusal(ValueError, what, hint=hint)
            state.latest_micros = watermark_micros
        state.estimator = self._dumped(part.estimator_state(), "the state of a watermark estimator")

    def _truncate(self, state: SplittableKey) -> None:
        """Cuts the restriction to the part that a drain still processes."""
        code = self._code
        state.asked_to_end = True
        if state.restriction is None:
            return
        restriction = code.splits.restored(code.loads(state.restriction))
        left = code.splits.truncated(code.loads(state.element), restriction)
        state.restriction = None if left is None else self._dumped(code.splits.stored(left), "a restriction")

    def _dumped(self, value: Any, noun: str) -> bytes:
        try:
            return self._code.dumps(value)
        except Exception:
            if noun == "an output":
                value = next((one for one in value[0] if not self._can_dump(one)), value)
            what = (
                f"{noun} of type {type(value).__name__} cannot be pickled, and a stream keeps it in its state"
            )
            hint = "give the RestrictionProvider a restriction_coder, or keep plain data"
            if noun != "a restriction":
                hint = "keep plain data, and open connections in setup"
            raise refusal(TypeError, what, hint=hint) from None

    def _can_dump(self, value: object) -> bool:
        try:
            self._code.dumps(value)
        except Exception:
            return False
        return True
