"""The parameters of a DoFn's methods, read once, when the transform is made.

A runner reads `signature_of` to know which methods to call, and `bind` to know with which arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from penstock.error import refusal
from penstock.functions.batches import check_batch_parameters
from penstock.functions.coroutines import is_asynchronous
from penstock.functions.dofn_parameters import DoFnParam, kind_of
from penstock.functions.userstate import StateSpec, TimerSpec, expiration_method
from penstock.typehints.annotations import signature_as_written
from penstock.typehints.decorators import TypeCheckError


class ArgumentsError(TypeCheckError, TypeError):
    """The arguments do not fit the function: both Beam's type of error and Python's own."""


def make_arguments_error(what: str, problem: str, hint: str, where: str | None = None) -> ArgumentsError:
    """Returns the error about `what`, a function and its purpose, at the user's line if no other place is given."""
    return ArgumentsError(f"{what} {problem}", where=where, hint=hint)


ELEMENT = DoFnParam("ElementParam")
_REQUIRED = inspect.Parameter.empty
_PASSED_BY = {
    inspect.Parameter.POSITIONAL_ONLY: "position",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}
_LIFE_CYCLE = ("setup", "start_bundle", "finish_bundle", "teardown")
_SAY_OTHERWISE = ("__func__", "__wrapped__", "__signature__")
_ALLOWED_OUTSIDE_PROCESS = ("BundleContextParam", "SetupContextParam", None)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method."""

    name: str
    default: Any = _REQUIRED
    kind: str | None = None
    """The value that it asks the runner for, such as ``WindowParam``; None for an ordinary argument."""

    passed_by: str = "either"
    """``position``, ``keyword``, or ``either``."""


@dataclass(frozen=True)
class MethodSignature:
    """The parameters of a method, without ``self``; two flags stand for ``*args`` and ``**kwargs``."""

    name: str
    parameters: tuple[Parameter, ...]
    more_positional: bool = False
    more_keywords: bool = False
    misfit_hint: str = "check the names and the number of its parameters"

    def asking_for(self, kind: str) -> tuple[Parameter, ...]:
        """Returns the parameters that ask for values of one kind, e.g. ``StateParam``."""
        return tuple(parameter for parameter in self.parameters if parameter.kind == kind)


@dataclass(frozen=True)
class Call:
    """Describes a call of a method: the runner replaces each `DoFnParam` with the value that it asks for."""

    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class DoFnSignature:
    """All methods of a DoFn that a runner has to call; None for methods that are not overridden."""

    process: MethodSignature
    process_batch: MethodSignature | None
    setup: MethodSignature | None
    start_bundle: MethodSignature | None
    finish_bundle: MethodSignature | None
    teardown: MethodSignature | None
    state_specs: tuple[Any, ...]
    """The state cells that any method asks for."""

    timers: tuple[tuple[Any, MethodSignature], ...]
    """Each timer's spec, and the method to call when it fires."""

    window_expiration: MethodSignature | None = None
    """The method to call before the state of a window is dropped."""

    @property
    def is_stateful(self) -> bool:
        """True if it uses state or timers, and so needs keyed input."""
        return bool(self.state_specs or self.timers)

    @property
    def is_splittable(self) -> bool:
        """True if ``process`` asks for a restriction tracker."""
        return bool(self.process.asking_for("RestrictionParam"))

    @property
    def kinds(self) -> frozenset[str]:
        """Everything that ``process`` asks the runner for."""
        return frozenset(parameter.kind for parameter in self.process.parameters if parameter.kind)

    def contexts(self, kind: str) -> tuple[Any, ...]:
        """Returns the distinct ``BundleContextParam`` or ``SetupContextParam`` default arguments of all methods."""
        methods = (self.setup, self.start_bundle, self.process, self.finish_bundle, self.teardown)
        parameters = [parameter for method in methods if method for parameter in method.parameters]
        found = [parameter.default for parameter in parameters if parameter.kind == kind]
        return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=4096)
def _parameters(function: Callable[..., Any], is_bound: bool) -> tuple[tuple[Parameter, ...], bool, bool]:
    """The parameters of a callable, whether it has ``*args``, and whether it has ``**kwargs``."""
    if type(function) is FunctionType and not function.__dict__:
        # Workers get new functions with each task. This one has no attribute that says how it is called.
        return _parameters_of_code(function, is_bound)
    try:
        signature = signature_as_written(function)
    except ValueError:
        # Some builtins do not show their parameters, so anything may fit.
        return (), True, True
    found: list[Parameter] = []
    more_positional = more_keywords = False
    for parameter in list(signature.parameters.values())[1 if is_bound else 0 :]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            more_positional = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            more_keywords = True
        else:
            found.append(
                Parameter(
                    parameter.name,
                    parameter.default,
                    kind_of(parameter.default),
                    _PASSED_BY[parameter.kind],
                )
            )
    return tuple(found), more_positional, more_keywords


def _parameters_of_code(function: FunctionType, is_bound: bool) -> tuple[tuple[Parameter, ...], bool, bool]:
    """Returns the same of a plain function as `inspect.signature`, in a small part of the time."""
    code, flags = function.__code__, function.__code__.co_flags
    positional = code.co_varnames[: code.co_argcount]
    by_keyword = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    own = function.__defaults__ or ()
    defaults = [_REQUIRED] * (len(positional) - len(own)) + [*own]
    ways = ["position"] * code.co_posonlyargcount + ["either"] * (len(positional) - code.co_posonlyargcount)
    given = [*zip(positional, defaults, ways, strict=True)][1 if is_bound else 0 :]
    keyword_defaults = function.__kwdefaults__ or {}
    given += [(name, keyword_defaults.get(name, _REQUIRED), "keyword") for name in by_keyword]
    found = tuple(Parameter(name, default, kind_of(default), way) for name, default, way in given)
    # A method that takes its object as one of ``*args`` has no more of them.
    has_args = bool(flags & inspect.CO_VARARGS) and not (is_bound and not positional)
    return found, has_args, bool(flags & inspect.CO_VARKEYWORDS)


def read_method_signature(name: str, function: Callable[..., Any]) -> MethodSignature:
    """Returns the signature of a function or a bound method.

    >>> [parameter.name for parameter in read_method_signature("process", lambda x, y=3: x).parameters]
    ['x', 'y']
    """
    inner = getattr(function, "__func__", function)
    is_bound = inner is not function
    if _has_parameters_of_class(function):
        # Workers get new objects with each task, and their class stays.
        inner, is_bound = type(function).__call__, True
    try:
        found = _parameters(inner, is_bound)
    except TypeError:
        # A callable object may be unhashable; its class's `__call__` is not.
        found = _parameters(type(function).__call__, True)
    return MethodSignature(name, *found)


def _has_parameters_of_class(function: object) -> bool:
    """True if it is an object whose class alone says how it is called."""
    call = getattr(type(function), "__call__", None)  # noqa: B004
    if not isinstance(call, FunctionType) or isinstance(function, type):
        return False
    return call.__code__.co_argcount > 0 and not any(hasattr(function, name) for name in _SAY_OTHERWISE)


def signature_of(dofn: Any) -> DoFnSignature:
    """Returns the parameters of a DoFn's methods.

    Raises:
        ValueError: If two parameters ask for the same value, if one asks for a value that its method does not have, or
            if states or timers are declared wrongly.
        NotImplementedError: If ``process_batch`` asks for a value that belongs to one element or one key.
    """
    signature = read_checked_signature(dofn)
    if dofn.own_signature() is None:
        _validate(dofn, signature)
    return signature


def read_checked_signature(dofn: Any) -> DoFnSignature:
    """Returns the signature of a DoFn that was checked when its step was built: each task of a worker asks again."""
    own: DoFnSignature | None = dofn.own_signature()
    if own is not None:
        return own
    process = dofn.process_signature()
    batch = read_method_signature("process_batch", dofn.process_batch) if dofn.defines_process_batch else None
    life_cycle = {name: _overridden(dofn, name) for name in _LIFE_CYCLE}
    asks = any(parameter.kind for parameter in process.parameters)
    timers = _timers(dofn, process) if asks else []
    found = expiration_method(dofn.timer_owner())
    expiration = None if found is None else read_method_signature(found.__name__, found)
    methods = [process, *(method for _, method in timers)] if asks else []
    methods += filter(None, [expiration])
    asked = [parameter for method in methods for parameter in method.asking_for("StateParam")]
    states = dict.fromkeys(parameter.default.state_spec for parameter in asked)
    return DoFnSignature(
        process=process,
        process_batch=batch,
        state_specs=tuple(states),
        timers=tuple(timers),
        window_expiration=expiration,
        **life_cycle,
    )


def _validate(dofn: object, signature: DoFnSignature) -> None:
    process, batch = signature.process, signature.process_batch
    life_cycle = {name: getattr(signature, name) for name in _LIFE_CYCLE}
    for method in filter(None, life_cycle.values()):
        _validate_outside_process(dofn, method)
    _validate_distinct(dofn, process)
    if batch is not None:
        check_batch_parameters(dofn, batch)
        _validate_distinct(dofn, batch)
    callbacks = [method for _, method in signature.timers]
    for callback in callbacks:
        _validate_distinct(dofn, callback)
    _validate_asynchronous(
        dofn, process, [*filter(None, [batch, *callbacks, signature.window_expiration])], life_cycle
    )
    if signature.window_expiration and not (signature.state_specs or signature.timers):
        name, method = type(dofn).__name__, signature.window_expiration.name
        what = (
            f"{name} has a method for the end of its windows, {method}, and neither state nor timers to end"
        )
        hint = "write a value into a state for each key that the method is to be called for"
        raise refusal(ValueError, what, hint=hint)
    _validate_names(dofn, "StateSpec", signature.state_specs)
    _validate_names(dofn, "TimerSpec", [spec for spec, _ in signature.timers])


def _overridden(dofn: object, name: str) -> MethodSignature | None:
    method = getattr(dofn, name)
    is_default = getattr(getattr(method, "__func__", method), "does_nothing", False)
    return None if is_default else read_method_signature(name, method)


def _timers(dofn: object, process: MethodSignature) -> list[tuple[Any, MethodSignature]]:
    """Each timer that a method asks for, with its callback; callbacks may ask for further timers."""
    found: dict[Any, MethodSignature] = {}
    waiting = [process]
    while waiting:
        for parameter in waiting.pop().asking_for("TimerParam"):
            spec = parameter.default.timer_spec
            if spec not in found:
                found[spec] = _callback(dofn, spec)
                waiting.append(found[spec])
    return list(found.items())


def _callback(dofn: Any, spec: TimerSpec) -> MethodSignature:
    callback = spec.callback
    if not callback:
        what = (
            f"DoFn {type(dofn).__name__} has a TimerSpec without an associated on_timer callback: {spec!r}."
        )
        raise refusal(ValueError, what, hint="decorate a method with @on_timer(spec)")
    owner, name = dofn.timer_owner(), callback.__name__
    method: Any = getattr(owner, name, None)
    if getattr(method, "__func__", None) is not callback:
        raise refusal(
            ValueError,
            f"The on_timer callback for {spec!r} is not the specified .{name} method "
            f"for DoFn {type(owner).__name__} (perhaps it was overwritten?).",
            hint="give each method its own name, also in subclasses",
        )
    return read_method_signature(name, method)


def _validate_distinct(dofn: object, method: MethodSignature) -> None:
    ids = [
        getattr(parameter.default, "param_id", parameter.kind)
        for parameter in method.parameters
        if parameter.kind
    ]
    if len(ids) != len(set(ids)):
        what = f"DoFn {type(dofn).__name__} has duplicate {method.name} method parameters: {ids}"
        raise refusal(ValueError, what, hint="ask for each once, and give each cell of state its own name")


def _validate_outside_process(dofn: object, method: MethodSignature) -> None:
    for parameter in method.parameters:
        if parameter.kind not in _ALLOWED_OUTSIDE_PROCESS:
            raise refusal(
                ValueError,
                f"DoFn.process() method-only parameter {parameter.default!r} cannot be used in "
                f"{type(dofn).__name__}.{method.name}",
                hint="only process handles one element, so only there it has a value",
            )


_ONE_AFTER_ANOTHER = {
    "StateParam": "state",
    "TimerParam": "timers",
    "RestrictionParam": "a restriction",
}
"""Names of values that a ``process`` can ask for only if its calls are made one after another."""


def _validate_asynchronous(
    dofn: Any,
    process: MethodSignature,
    others: Sequence[MethodSignature],
    life_cycle: Mapping[str, MethodSignature | None],
) -> None:
    """Refuses asynchronous methods that are never awaited, and what does not go with an asynchronous process."""
    name = type(dofn).__name__
    for other in others:
        if is_asynchronous(getattr(dofn.timer_owner(), other.name)):
            what = f"{name}.{other.name} is asynchronous"
            raise refusal(ValueError, what, hint="only process and the life cycle may be; use def")
    if not dofn.calls_asynchronously:
        defined = [method for method, found in life_cycle.items() if found is not None]
        asynchronous = [method for method in defined if is_asynchronous(getattr(dofn, method))]
        if asynchronous:
            what = f"{name}.{asynchronous[0]} is asynchronous, and its process is not"
            raise refusal(ValueError, what, hint="also define process with async def")
        return
    kinds = [word for kind, word in _ONE_AFTER_ANOTHER.items() if process.asking_for(kind)]
    if kinds:
        what = f"{name}.process is asynchronous and uses {' and '.join(kinds)}"
        hint = "make the calls in a separate step, and use its outputs in a step with a plain process"
        raise refusal(ValueError, what, hint=hint)
    if dofn.defines_process_batch or dofn.process_yields_batches:
        what = f"{name}.process is asynchronous, and the DoFn takes or yields batches"
        hint = "let a step before or after it make batches, as BatchElements does"
        raise refusal(ValueError, what, hint=hint)


def _validate_names(dofn: object, kind: str, specs: Sequence[Any]) -> None:
    names = [spec.name for spec in specs]
    if len(names) != len(set(names)):
        what = f"DoFn {type(dofn).__name__} has multiple {kind}s with the same name: {names}"
        raise refusal(ValueError, what, hint="give each its own name")


def bind(
    method: MethodSignature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    what: str = "the function",
    where: str | None = None,
) -> Call:
    """Works out with which arguments to call ``process``.

    The element goes to the first parameter, or to the one with default ``DoFn.ElementParam``. Parameters that
    ask for something get their own default argument as a placeholder. The further arguments of the transform fill
    the others in order (Beam's rule). `what` is the function's name in errors, which are TypeErrors, and `where` its
    place, which is by default the user's line.

    >>> bind(read_method_signature("process", lambda x, w=DoFnParam("WindowParam"), y=1: x), (5,), {})
    Call(args=(ElementParam, WindowParam, 5), kwargs=())
    """
    binding = _Binding(list(args), dict(kwargs))
    takers = iter(method.parameters)
    if not method.asking_for("ElementParam"):
        first = next(takers, None)
        if first is not None and first.passed_by == "keyword":
            # A function like `print` has parameters by name only, and takes the element among its `*args`.
            first, takers = None, iter(method.parameters)
        if (first is None and not method.more_positional) or (first and first.kind):
            raise make_arguments_error(what, "takes no element", "its first parameter is the element", where)
        binding.positional.append(ELEMENT)
    for parameter in takers:
        binding.fill(parameter)
    if binding.missing:
        names = ", ".join(map(repr, binding.missing))
        hint = (
            "pass it as a further argument of the transform,"
            " or use MapTuple or FlatMapTuple if the elements are tuples"
        )
        raise make_arguments_error(what, f"is missing a required argument: {names}", hint, where)
    if binding.args and not method.more_positional:
        count = len(binding.args)
        plural = "s" if count > 1 else ""
        raise make_arguments_error(
            what, f"is given {count} argument{plural} too many", method.misfit_hint, where
        )
    known = {parameter.name for parameter in method.parameters}
    for name in binding.kwargs:
        if name in known or not method.more_keywords:
            raise make_arguments_error(
                what, f"cannot be given an argument {name!r}", method.misfit_hint, where
            )
    return Call(
        (*binding.positional, *binding.args), (*binding.named.items(), *sorted(binding.kwargs.items()))
    )


class _Binding:
    """Arguments on their way to their parameters."""

    def __init__(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.positional: list[Any] = []
        self.named: dict[str, Any] = {}
        self.missing: list[str] = []
        self.skipped = False

    def fill(self, parameter: Parameter) -> None:
        for value in self._values(parameter):
            # After a parameter is left to its own default, the later ones can only be reached by name.
            by_name = parameter.passed_by == "keyword" or (self.named or self.skipped)
            if by_name and parameter.passed_by != "position":
                self.named[parameter.name] = value
            else:
                self.positional.append(value)

    def _values(self, parameter: Parameter) -> Iterator[Any]:
        if parameter.kind and parameter.kind != "SideInputParam":
            yield parameter.default
        elif self.args and parameter.passed_by != "keyword":
            yield self.args.pop(0)
        elif parameter.name in self.kwargs and parameter.passed_by != "position":
            self.named[parameter.name] = self.kwargs.pop(parameter.name)
        elif parameter.default is _REQUIRED or parameter.kind:
            self.missing.append(parameter.name)
        else:
            self.skipped = True


def get_dofn_specs(dofn: object) -> tuple[set[StateSpec], set[TimerSpec]]:
    """Returns the states and timers that a DoFn asks for (Beam's name)."""
    signature = signature_of(dofn)
    return set(signature.state_specs), {spec for spec, _ in signature.timers}


def is_stateful_dofn(dofn: object) -> bool:
    """True if a DoFn asks for states or timers (Beam's name)."""
    return any(get_dofn_specs(dofn))


def validate_stateful_dofn(dofn: object) -> None:
    """Raises ValueError if a DoFn's states or timers are declared wrongly (Beam's name)."""
    get_dofn_specs(dofn)
