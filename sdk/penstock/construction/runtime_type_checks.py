"""Wraps DoFns and CombineFns so that they check type hints while a pipeline runs, if the options ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from penstock import graph
from penstock.elements.bounded_window import TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.functions.asynchronous import outputs_of
from penstock.functions.combinefn import CombineFn, NoValue, WrappingCombineFn, describe_function
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import DoFnParam
from penstock.functions.wrapping import WrappingDoFn
from penstock.typehints import typehints
from penstock.typehints.annotations import signature_as_written
from penstock.typehints.decorators import IOTypeHints, TypeCheckError, getcallargs_forhints
from penstock.utils.windowed_value import WindowedValue

_SAMPLE_EVERY = 100
_PASSED_ON = "setup create_accumulator merge_accumulators compact teardown get_accumulator_coder"


def add_type_checks(
    primitive: graph.Primitive, hints: IOTypeHints, label: str, sampled: bool = False
) -> graph.Primitive:
    """Returns a primitive whose user code is checked against the transform's type hints, or the primitive itself.

    If `sampled`, only the first of every hundred elements is checked. DoFns on whole batches stay unchanged: arrays and
    tables already have the types of their elements.
    """
    every = _SAMPLE_EVERY if sampled else 1
    match primitive:
        case graph.ParDo(dofn=DoFn() as dofn) | graph.StatefulParDo(dofn=DoFn() as dofn):
            if dofn.defines_process_batch or dofn.process_yields_batches:
                return primitive
            kind = AsyncCheckedDoFn if dofn.calls_asynchronously else CheckedDoFn
            checked = kind(dofn, hints, label, every)
            return replace(primitive, dofn=checked) if checked.checks_something else primitive
        case graph.CombinePerKey(fn=CombineFn() as fn):
            return replace(primitive, fn=CheckedCombineFn(fn, hints, label, every))
        case _:
            return primitive


class _Sample:
    """Selects the elements to check: one of every `every`, beginning with the first."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._next = 0

    def takes(self) -> bool:
        if self.every == 1:
            return True
        taken = self._next == 0
        self._next = (self._next + 1) % self.every
        return taken


class CheckedDoFn(WrappingDoFn):
    """Wraps a DoFn, and checks the inputs and outputs of its ``process``; outputs of timers are not checked."""

    def __init__(self, dofn: DoFn, hints: IOTypeHints, label: str, every: int) -> None:
        super().__init__(dofn)
        self._label = label
        self._sample = _Sample(every)
        self._inputs = _input_checks(dofn.argspec_of_process(), hints)
        output = hints.simple_output_type(label)
        declared = [(None, output), *hints.tagged_output_types().items()]
        self._outputs = {tag: hint for tag, hint in declared if not _is_any(hint)}

    @property
    def checks_something(self) -> bool:
        """True if a hint says more than Any."""
        return bool(self._inputs or self._outputs)

    def describe(self) -> str:
        """Returns the name of the DoFn inside, for people."""
        return describe_function(self.dofn)

    def process(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the results of the DoFn inside; a TypeCheckError if a value does not fit its hint."""
        if not self._sample.takes():
            return self.dofn.process(*args, **kwargs)
        self._check_arguments(args, kwargs)
        return self._checked(self.dofn.process(*args, **kwargs))

    def _check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for position, name, hint in self._inputs:
            if position < len(args):
                self._check_argument(name, hint, args[position])
            elif name in kwargs:
                self._check_argument(name, hint, kwargs[name])

    def _check_argument(self, name: str, hint: object, value: object) -> None:
        reason = _violation(f"Type-hint for argument: {name!r} violated", hint, value)
        if reason is not None:
            correct = f"the argument's hint {typehints.show_type(hint)}, or what comes in"
            raise _error(f"ParDo({self._label})", reason, correct)

    def _checked(self, results: list[Any]) -> object:
        # The runner refuses results that are not an iterable of elements.
        if not self._outputs or not isinstance(results, Iterable) or isinstance(results, (str, bytes, dict)):
            return results
        return self._checked_outputs(results)

    def _checked_outputs(self, results: Iterable[Any]) -> Iterator[Any]:
        for result in results:
            tag, value = None, result
            if isinstance(value, TaggedOutput):
                tag, value = value.tag, value.value
            if isinstance(value, (TimestampedValue, WindowedValue)):
                value = value.value
            hint = self._outputs.get(tag)
            if hint is not None:
                self._check_output(hint, value)
            yield result

    def _check_output(self, hint: object, value: object) -> None:
        sampled = "Type-hint for return type violated" if self._sample.every > 1 else None
        reason = _violation(sampled, hint, value) if sampled else _output_violation(hint, value)
        if reason is not None:
            correct = f"the output's hint {typehints.show_type(hint)}, or the code"
            raise _error(f"ParDo({self._label})", reason, correct)


class AsyncCheckedDoFn(CheckedDoFn):
    """Checks the types of an asynchronous ``process``."""

    async def process(self, *args: object, **kwargs: object) -> Any:
        if not self._sample.takes():
            return await outputs_of(self.dofn.process(*args, **kwargs))
        self._check_arguments(args, kwargs)
        return self._checked(await outputs_of(self.dofn.process(*args, **kwargs)))


class CheckedCombineFn(WrappingCombineFn):
    """Wraps a CombineFn, and checks its inputs and results. The transform's type hints describe pairs."""

    def __init__(self, fn: CombineFn, hints: IOTypeHints, label: str, every: int) -> None:
        super().__init__(fn, _PASSED_ON)
        self._label = label
        self._sample = _Sample(every)
        self._input = _value_hint(
            hints.input_types[0][0] if hints.input_types and hints.input_types[0] else None
        )
        self._output = _value_hint(hints.simple_output_type(label))

    def add_input(
        self, mutable_accumulator: object, element: object, *args: object, **kwargs: object
    ) -> object:
        # `NoValue`, which yields the result for no values, is not a value of the user.
        if self._input is not None and not isinstance(element, NoValue) and self._sample.takes():
            self._check("Type-hint for argument: 'element' violated", self._input, element)
        return self.fn.add_input(mutable_accumulator, element, *args, **kwargs)

    def extract_output(self, accumulator: object, *args: object, **kwargs: object) -> object:
        result = self.fn.extract_output(accumulator, *args, **kwargs)
        if self._output is not None:
            self._check("Type-hint for return type violated", self._output, result)
        return result

    def _check(self, what: str, hint: object, value: object) -> None:
        reason = _violation(what, hint, value)
        if reason is not None:
            correct = f"the CombineFn's hint {typehints.show_type(hint)}, or the values"
            raise _error(self._label, reason, correct)


def _input_checks(function: Callable[..., Any], hints: IOTypeHints) -> list[tuple[int, str, Any]]:
    """The position, name and hint of each argument to check: elements and side inputs.

    The runner's own arguments, such as a window, need no check.
    """
    if not hints.input_types or not any(hints.input_types):
        return []
    args, kwargs = hints.input_types
    bound = getcallargs_forhints(function, *args, **kwargs)
    try:
        parameters = list(signature_as_written(function).parameters.values())
    except (TypeError, ValueError):
        # A built-in function without a signature takes the element first.
        return [(0, "element", args[0])] if args and not _is_any(args[0]) else []
    return [
        (position, parameter.name, bound[parameter.name])
        for position, parameter in enumerate(parameters)
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and not isinstance(parameter.default, DoFnParam)
        and not _is_any(bound.get(parameter.name))
    ]


def _value_hint(pair: object) -> object:
    """The hint of the value in a hint of pairs; None if it says nothing."""
    types: tuple[Any, ...] = getattr(pair, "tuple_types", ())
    return types[1] if len(types) == 2 and not _is_any(types[1]) else None


def _is_any(hint: object) -> bool:
    return hint is None or isinstance(hint, typehints.AnyTypeConstraint)


def _violation(what: str, hint: object, value: object) -> str | None:
    """Returns how a value violates a hint, in terms of types but not values; None if it fits."""
    reason = typehints.describe_mismatch(hint, value)
    if reason is None:
        return None
    if typehints.is_composite(hint):
        return f"{what}: {reason}"
    return f"{what}. Expected an instance of {hint!r}, instead found an instance of {type(value)!r}."


def _output_violation(hint: object, value: object) -> str | None:
    """Returns how an output violates a hint if every element is checked: Beam uses other words then."""
    reason = typehints.describe_mismatch(hint, value)
    if reason is None or typehints.is_composite(hint):
        return reason
    expected = f"According to type-hint expected output should be of type {hint!r}."
    return f"{expected} Instead, received an instance of type {type(value)!r}."


def _error(step: str, reason: str, what_to_correct: str) -> TypeCheckError:
    what = f"Runtime type violation detected within {step}: {reason}"
    return TypeCheckError(what, hint=f"correct {what_to_correct}")
