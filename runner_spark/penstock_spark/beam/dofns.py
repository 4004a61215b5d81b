"""Beam's DoFns as penstock's: the functions of Map and Filter run directly, everything else in Beam's code.

A hosted DoFn is called like any other. What its methods ask for arrives as Beam's objects, and what they give
with a time, a window or a tag becomes penstock's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from apache_beam import pvalue as beam_pvalue
from apache_beam.transforms import core as beam_core
from apache_beam.transforms import userstate as beam_state

from penstock.elements.tagged_output import TaggedOutput
from penstock.functions import dofn_parameters
from penstock.functions.dofn import DoFn, FilterDoFn, FlatMapDoFn, FlatMapTupleDoFn, MapDoFn, MapTupleDoFn
from penstock.functions.dofn_parameters import DoFnParam, kind_of
from penstock.functions.signature import DoFnSignature, MethodSignature, Parameter, read_method_signature
from penstock.functions.userstate import CombiningValueStateSpec, StateSpec
from penstock.machines.cells import OrderedListCell, SetCell
from penstock.machines.user_state import UserTimer
from penstock.transforms.combining.ready_combiners import PairWithNone
from penstock.typehints import typehints
from penstock_spark.beam.state import (
    OrderedListStateAdapter,
    SetStateAdapter,
    TimerAdapter,
    state_of,
    timer_of,
)
from penstock_spark.beam.values import OUTPUT_KINDS, argument_of

_CORE = "apache_beam.transforms.core"
_FUNCTIONS: Mapping[str, type[FlatMapDoFn]] = {
    "Map.<locals>.<lambda>": MapDoFn,
    "MapTuple.<locals>.<lambda>": MapTupleDoFn,
    "FlatMapTuple.<locals>.<lambda>": FlatMapTupleDoFn,
    "Filter.<locals>.<lambda>": FilterDoFn,
}
"""The functions around the user's that Beam makes for its short forms."""

_COMBINERS, _PAIR = "apache_beam.transforms.combiners", "Count.PerElement.expand.<locals>.<lambda>"
"""Beam's function that pairs each element with None to count it."""


def dofn_of(dofn: DoFn) -> DoFn:
    """Penstock's DoFn for a Beam DoFn.

    >>> dofn_of(beam_core.Map(len).dofn).fn is len, type(dofn_of(beam_core.Filter(len).dofn)).__name__
    (True, 'FilterDoFn')
    """
    found = _short_form(dofn)
    if found is None:
        return DoFnAdapter(dofn)
    found.output_kinds = OUTPUT_KINDS
    return found


def _short_form(dofn: beam_core.DoFn) -> FlatMapDoFn | None:
    """The DoFn of a Map, a Filter or their like, if its function asks for nothing of the runner's."""
    if type(dofn) is not beam_core.CallableWrapperDoFn:
        return None
    wrapper = dofn._fn
    kind = _FUNCTIONS.get(getattr(wrapper, "__qualname__", ""))
    if getattr(wrapper, "__module__", None) != _CORE:
        kind = None
    function = wrapper if kind is None else _inner(wrapper)
    if getattr(function, "__qualname__", "") == _PAIR and function.__module__ == _COMBINERS:
        return PairWithNone()
    if any(_asks(one.default) for one in read_method_signature("", function).parameters):
        return None
    return FlatMapDoFn(function) if kind is None else kind(function)


def _asks(default: object) -> bool:
    return isinstance(default, beam_core._DoFnParam) or default is beam_core.DoFn.BundleFinalizerParam


def dofn_function(dofn: DoFn) -> object:
    """The user's function that a Beam DoFn calls for each element."""
    short = _short_form(dofn)
    return dofn.process if short is None else short.fn


def _inner(wrapper: Any) -> Any:
    return wrapper.__closure__[wrapper.__code__.co_freevars.index("fn")].cell_contents


_PLAIN: Mapping[str, DoFnParam] = {
    str(getattr(beam_core.DoFn, name)): getattr(DoFn, name)
    for name in (
        "ElementParam",
        "SideInputParam",
        "TimestampParam",
        "WindowParam",
        "WindowedValueParam",
        "PaneInfoParam",
        "KeyParam",
        "DynamicTimerTagParam",
    )
}


def _translate_default(default: object) -> object:
    match default:
        case beam_core._StateDoFnParam():
            return dofn_parameters.StateDoFnParam(state_of(default.state_spec))
        case beam_core._TimerDoFnParam():
            return dofn_parameters.TimerDoFnParam(timer_of(default.timer_spec))
        case beam_core._BundleContextParam():
            return _context(dofn_parameters.BundleContextDoFnParam, default)
        case beam_core._SetupContextParam():
            return _context(dofn_parameters.SetupContextDoFnParam, default)
        case beam_core._BundleFinalizerParam():
            return dofn_parameters.BundleFinalizerDoFnParam
        case beam_core._DoFnParam():
            return _PLAIN.get(default.param_id, default)
    return (
        dofn_parameters.BundleFinalizerDoFnParam
        if default is beam_core.DoFn.BundleFinalizerParam
        else default
    )


def _context(
    kind: type[dofn_parameters.ContextDoFnParam],
    asked: Any,
) -> dofn_parameters.ContextDoFnParam:
    return kind(asked.context_manager_constructor, asked.args, asked.kwargs, name=asked.param_id)


_ARGUMENTS: Mapping[type, Callable[[Any], Any]] = {
    UserTimer: TimerAdapter,
    OrderedListCell: OrderedListStateAdapter,
    SetCell: SetStateAdapter,
}


def _argument(value: object) -> object:
    change = _ARGUMENTS.get(type(value))
    return argument_of(value) if change is None else change(value)


class DoFnAdapter(DoFn):
    """A Beam DoFn."""

    output_kinds = OUTPUT_KINDS

    def __init__(self, dofn: beam_core.DoFn) -> None:
        super().__init__()
        self.dofn = dofn
        # Beam has no such attributes, but a class that runs on penstock may declare them.
        self.accepts_retractions = getattr(dofn, "accepts_retractions", False)
        self.emits_retractions = getattr(dofn, "emits_retractions", False)
        # The parts that depend on Beam's annotations are worked out once, and travel to the workers.
        self._signature = self._described()

    def describe(self) -> str:
        """Returns the label that the Beam DoFn has by default."""
        return str(self.dofn.default_label())

    def own_signature(self) -> DoFnSignature:
        return self._signature

    def process_signature(self) -> MethodSignature:
        return self._signature.process

    def _asked(self, default: object) -> object:
        """Penstock's placeholder for a Beam placeholder; any other default argument unchanged."""
        return _translate_default(default)

    def _method_signature(self, name: str, function: Callable[..., Any]) -> MethodSignature:
        found = read_method_signature(name, function)
        return replace(found, parameters=tuple(map(self._parameter, found.parameters)))

    def _parameter(self, parameter: Parameter) -> Parameter:
        default = self._asked(parameter.default)
        return replace(parameter, default=default, kind=kind_of(default))

    def _described(self) -> DoFnSignature:
        dofn = self.dofn
        process = self._process_signature()
        timers = {timer_of(spec): self._timer_signature(spec) for spec in beam_state.get_dofn_specs(dofn)[1]}
        methods = [process, *timers.values()]
        states = {
            parameter.default.state_spec
            for method in methods
            for parameter in method.asking_for("StateParam")
        }
        cycle = ("setup", "start_bundle", "finish_bundle", "teardown")
        return DoFnSignature(
            process=process,
            process_batch=self._batch_signature(),
            state_specs=tuple(sorted(states, key=lambda spec: spec.name)),
            timers=tuple(timers.items()),
            **{name: self._overridden(name, states) for name in cycle},
        )

    def _process_signature(self) -> MethodSignature:
        found = self._method_signature("process", self.dofn._process_argspec_fn())
        declared: Any = getattr(self.dofn, "_fullargspec", None) or ((), ())
        names, defaults = declared
        if not defaults:
            return found
        # The function that Beam makes of a MapTuple's takes a tuple and passes on all else, and only this list says
        # what the user's function asks for.
        element, *asking = names
        others = (Parameter(name, default) for name, default in zip(asking, defaults, strict=True))
        return replace(found, parameters=(Parameter(element), *map(self._parameter, others)))

    def _batch_signature(self) -> MethodSignature | None:
        if not self.dofn._process_batch_defined:
            return None
        return self._method_signature("process_batch", self.dofn.process_batch)

    def _timer_signature(self, spec: beam_state.TimerSpec) -> MethodSignature:
        name = spec._attached_callback.__name__
        return self._method_signature(name, getattr(self.dofn, name))

    def _overridden(self, name: str, states: Iterable[StateSpec]) -> MethodSignature | None:
        method = getattr(self.dofn, name)
        is_default = getattr(method, "__func__", method) is getattr(beam_core.DoFn, name)
        # The CombineFns of states also have a life cycle.
        combines = any(isinstance(spec, CombiningValueStateSpec) for spec in states)
        if is_default and not (combines and name in ("setup", "teardown")):
            return None
        return self._method_signature(name, method)

    def timer_owner(self) -> _Methods:
        return _Methods(self.dofn)

    def process(self, *args: object, **kwargs: object) -> Any:
        results = self._called(self.dofn.process, args, kwargs)
        return self._apart(results) if self.dofn._process_yields_batches else results

    def process_batch(self, batch: list[Any], *args: object, **kwargs: object) -> Any:
        whole = self.dofn.input_batch_converter.produce_batch(batch)
        results = self._called(self.dofn.process_batch, (whole, *args), kwargs)
        return results if self.dofn._process_batch_yields_elements else self._apart(results)

    def get_input_batch_type(self, input_element_type: object) -> object:
        return typehints.List[input_element_type]

    @property
    def defines_process(self) -> bool:
        return bool(self.dofn._process_defined)

    @property
    def defines_process_batch(self) -> bool:
        return bool(self.dofn._process_batch_defined)

    @property
    def process_batch_yields_elements(self) -> bool:
        # Beam's converters make its batches and take them apart, so that all that Beam takes for a batch is one.
        return True

    def _called(self, method: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        return method(*map(_argument, args), **{name: _argument(value) for name, value in kwargs.items()})

    def _apart(self, results: Iterable[Any] | None) -> Iterator[Any]:
        explode = self.dofn.output_batch_converter.explode_batch
        for result in results or ():
            if isinstance(result, beam_pvalue.TaggedOutput):
                yield from (TaggedOutput(result.tag, element) for element in explode(result.value))
            else:
                yield from explode(result)

    def setup(self, **kwargs: object) -> None:
        for spec in self._combined():
            spec.combine_fn.setup()
        self.dofn.setup(**kwargs)

    def start_bundle(self, **kwargs: object) -> object:
        return self.dofn.start_bundle(**kwargs)

    def finish_bundle(self, **kwargs: object) -> object:
        return self.dofn.finish_bundle(**kwargs)

    def teardown(self, **kwargs: object) -> None:
        for spec in self._combined():
            spec.combine_fn.teardown()
        self.dofn.teardown(**kwargs)

    def _combined(self) -> list[CombiningValueStateSpec]:
        specs = self._signature.state_specs
        return [spec for spec in specs if isinstance(spec, CombiningValueStateSpec)]


class _Methods:
    """The methods for timers of a Beam DoFn."""

    def __init__(self, dofn: beam_core.DoFn) -> None:
        self._dofn = dofn

    def __getattr__(self, name: str) -> object:
        method = getattr(self._dofn, name)
        if not callable(method):
            return method

        def called(*args: object, **kwargs: object) -> object:
            return method(*map(_argument, args), **{word: _argument(value) for word, value in kwargs.items()})

        return called
