"""The default arguments by which a DoFn's methods ask the runner for values, and the small classes around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.coders.typecoders import registry
from penstock.error import refusal
from penstock.functions.userstate import StateSpec, TimerSpec
from penstock.typehints.annotations import signature_as_written


class DoFnContext:
    """The base of the contexts of DoFn methods (Beam's ``DoFnContext``)."""


class DoFnProcessContext(DoFnContext):
    """One element with its timestamp and windows, as an object (Beam's ``DoFnProcessContext``)."""

    def __init__(self, label: str, element: object = None, state: Any = None) -> None:
        self.label = label
        self.state = state
        self.element: Any = None
        self.timestamp: Any = None
        self.windows: Any = None
        if element is not None:
            self.set_element(element)

    def set_element(self, windowed_value: Any) -> None:
        """Points the context at another windowed value, or at none."""
        if windowed_value is None:
            self.element = self.timestamp = self.windows = None
        else:
            self.element = windowed_value.value
            self.timestamp = windowed_value.timestamp
            self.windows = windowed_value.windows


class ProcessContinuation:
    """Yielded last by a splittable ``process``: there is more to do for this element (Beam's name).

    Args:
        resume_delay: The minimum number of seconds before work on the element resumes.
    """

    def __init__(self, resume_delay: float = 0) -> None:
        self.resume_delay = resume_delay

    @staticmethod
    def resume(resume_delay: float = 0) -> ProcessContinuation:
        """Returns a continuation; `resume_delay` is in seconds."""
        return ProcessContinuation(resume_delay)


class RestrictionProvider:
    """Divides the work on one element into restrictions (Beam's ``RestrictionProvider``).

    A DoFn whose ``process`` has a parameter with default ``DoFn.RestrictionParam(provider)`` is splittable. A
    subclass overrides `create_tracker`, `initial_restriction` and `restriction_size`.
    """

    def create_tracker(self, restriction: Any) -> Any:
        """Returns a ``RestrictionTracker`` for the restriction."""
        raise NotImplementedError

    def initial_restriction(self, element: Any) -> object:
        """Returns the restriction that represents all the work on the element."""
        raise NotImplementedError

    def split(self, element: Any, restriction: Any) -> Iterator[Any]:
        """Returns restrictions that together are `restriction`; only itself, unless overridden."""
        yield restriction

    def restriction_coder(self) -> object:
        """Returns the coder of restrictions."""
        return registry.get_coder(object)

    def restriction_size(self, element: Any, restriction: Any) -> float:
        """Returns the amount of work in the restriction, 0 or more, in a unit that the provider chooses."""
        raise NotImplementedError

    def split_and_size(self, element: Any, restriction: Any) -> Iterator[tuple[Any, float]]:
        """Yields the parts that `split` makes, each with its size."""
        for part in self.split(element, restriction):
            yield part, self.restriction_size(element, part)

    def truncate(self, element: Any, restriction: Any) -> Any:
        """Returns the rest of the restriction when the pipeline drains: all of it if bounded, else None."""
        return restriction if self.create_tracker(restriction).is_bounded() else None


class WatermarkEstimatorProvider:
    """Makes the watermark estimator of a splittable DoFn (Beam's ``WatermarkEstimatorProvider``)."""

    def initial_estimator_state(self, element: Any, restriction: Any) -> Any:
        """Returns the state an estimator starts from."""
        raise NotImplementedError

    def create_watermark_estimator(self, estimator_state: Any) -> Any:
        """Returns an estimator that continues from the state."""
        raise NotImplementedError

    def estimator_state_coder(self) -> object:
        """Returns the coder of the state."""
        return registry.get_coder(object)


@dataclass(frozen=True)
class DoFnParam:
    """A default argument that asks the runner for a value; equal to its pickled copies.

    No two parameters of one method may have the same `param_id`.
    """

    param_id: str

    def __repr__(self) -> str:
        return self.param_id


class RestrictionDoFnParam(DoFnParam):
    """Asks for a restriction tracker (Beam's ``DoFn.RestrictionParam``)."""

    restriction_provider: RestrictionProvider | None

    def __init__(self, restriction_provider: RestrictionProvider | None = None) -> None:
        _expect(restriction_provider, RestrictionProvider, "RestrictionParam", optional=True)
        super().__init__(f"RestrictionParam({type(restriction_provider).__name__})")
        object.__setattr__(self, "restriction_provider", restriction_provider)


class StateDoFnParam(DoFnParam):
    """Asks for a cell of per-key state (Beam's ``DoFn.StateParam``)."""

    state_spec: object

    def __init__(self, state_spec: StateSpec) -> None:
        _expect(state_spec, StateSpec, "StateParam")
        super().__init__(f"StateParam({state_spec.name})")
        object.__setattr__(self, "state_spec", state_spec)


class TimerDoFnParam(DoFnParam):
    """Asks for a timer (Beam's ``DoFn.TimerParam``)."""

    timer_spec: object

    def __init__(self, timer_spec: TimerSpec) -> None:
        _expect(timer_spec, TimerSpec, "TimerParam")
        super().__init__(f"TimerParam({timer_spec.name})")
        object.__setattr__(self, "timer_spec", timer_spec)


class BundleFinalizerDoFnParam(DoFnParam):
    """Asks for an object whose `register` takes callbacks for when a bundle is committed (Beam's name).

    The class itself is the default argument; the runner passes an instance.
    """

    callbacks: list[Callable[[], Any]]

    def __init__(self) -> None:
        super().__init__("BundleFinalizerParam")
        object.__setattr__(self, "callbacks", [])

    def register(self, callback: Callable[[], Any]) -> None:
        """Adds a callback."""
        self.callbacks.append(callback)


class WatermarkEstimatorDoFnParam(DoFnParam):
    """Asks for a watermark estimator (Beam's ``DoFn.WatermarkEstimatorParam``)."""

    watermark_estimator_provider: WatermarkEstimatorProvider | None

    def __init__(self, watermark_estimator_provider: WatermarkEstimatorProvider | None = None) -> None:
        _expect(
            watermark_estimator_provider, WatermarkEstimatorProvider, "WatermarkEstimatorParam", optional=True
        )
        super().__init__("WatermarkEstimatorProvider")
        object.__setattr__(self, "watermark_estimator_provider", watermark_estimator_provider)


class ContextDoFnParam(DoFnParam):
    """Asks for the value that a context manager returns on entry.

    Args:
        context_manager_constructor: Called with `args` and `kwargs` on the worker to make the context
            manager.
        name: Distinguishes two such parameters of one method.
    """

    context_manager_constructor: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __init__(
        self,
        context_manager_constructor: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__.replace("DoFn", "")
        enter = getattr(context_manager_constructor, "__enter__", None)
        # A class has an unbound `__enter__`, which takes `self`; a manager that is already made has a bound one.
        if not callable(context_manager_constructor) or (
            enter and not signature_as_written(enter).parameters
        ):
            what = f"{kind} takes the constructor of a context manager, not a context manager"
            hint = f"write {kind}(tempfile.TemporaryDirectory, args=(...)), without calling it"
            raise refusal(TypeError, what, hint=hint)
        super().__init__(f"{kind}_{name or id(self)}")
        object.__setattr__(self, "context_manager_constructor", context_manager_constructor)
        object.__setattr__(self, "args", tuple(args))
        object.__setattr__(self, "kwargs", dict(kwargs or {}))

    def create_and_enter(self) -> tuple[Any, Any]:
        """Makes the context manager and enters it."""
        manager = self.context_manager_constructor(*self.args, **self.kwargs)
        return manager, manager.__enter__()


class BundleContextDoFnParam(ContextDoFnParam):
    """A context entered before each bundle and left after it (Beam's ``DoFn.BundleContextParam``)."""


class SetupContextDoFnParam(ContextDoFnParam):
    """A context entered before a DoFn is used and left at its end (Beam's ``DoFn.SetupContextParam``)."""


def kind_of(default: object) -> str | None:
    """Returns the name of the parameter for which a default argument stands; None for an ordinary value.

    >>> kind_of(DoFnParam("WindowParam")), kind_of(3)
    ('WindowParam', None)
    """
    if default is BundleFinalizerDoFnParam:
        return "BundleFinalizerParam"
    if not isinstance(default, DoFnParam):
        return None
    return _KINDS.get(type(default), default.param_id)


_KINDS: dict[type, str] = {
    RestrictionDoFnParam: "RestrictionParam",
    StateDoFnParam: "StateParam",
    TimerDoFnParam: "TimerParam",
    BundleFinalizerDoFnParam: "BundleFinalizerParam",
    WatermarkEstimatorDoFnParam: "WatermarkEstimatorParam",
    BundleContextDoFnParam: "BundleContextParam",
    SetupContextDoFnParam: "SetupContextParam",
}


def _expect(given: object, expected: type, param: str, optional: bool = False) -> None:
    if isinstance(given, expected) or (optional and given is None):
        return
    what = f"DoFn.{param} expected {expected.__name__} object, not {given!r}"
    raise refusal(ValueError, what, hint=f"make one {expected.__name__} as a class attribute and pass it")
