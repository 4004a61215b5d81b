"""How an exception of user code travels from a worker to the caller of `run`, with its type and the step it left.

Spark reports a worker's exception as text. The worker therefore puts the pickled exception into that text, and the
driver takes it out again. The text may quote the input as well, which may hold anything: so the worker signs what it
puts there, and the driver unpickles only what is signed with the key of its run.
"""

from __future__ import annotations

import base64
import pickle
import re
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import cloudpickle

from penstock.error import RunnerError, three_parts
from penstock.metrics.execution import MetricsContainer, set_current
from penstock_spark.reports.reporting import reporting_now

_MARKED = re.compile(r"penstock-failure<([0-9a-f]{64}):([A-Za-z0-9+/=]+)>")
_LIMIT_BYTES = 60_000
_TRACEBACK_LIMIT = 12
_SHOWN_CHARACTERS = 1_000
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Failure:
    """An exception of user code.

    Attributes:
        exception: The pickled exception, or None if it could not be pickled.
        kind: The exception's type name.
        message: Its text.
        where: The step, as an error's second line.
        frames: The traceback in the worker, as text, with those of the exceptions that led to it.
        element: The element that the step worked on, as text; None unless the user asked for it.
    """

    exception: bytes | None
    kind: str
    message: str
    where: str
    frames: str
    element: str | None = None


_MEMORY_HINT = (
    "let the step hold less at once, or give the workers more: fewer tasks at a time, or a larger machine"
)


class StepFailed(Exception):
    """Raised in a worker: user code of a step raised; the text carries the `Failure`."""


class UserCodeError(RunnerError):
    """User code raised an exception that could not be brought to the driver as itself."""


def step_failed(error: BaseException, where: str, element: tuple[Any, ...] = ()) -> NoReturn:
    """Raises the marked form of an exception that left user code; one that is marked already passes unchanged.

    Args:
        error: The exception.
        where: The step.
        element: The element it worked on, as a 1-tuple; () if that is not known.
    """
    if isinstance(error, StepFailed):
        raise error
    raise StepFailed(marked(error, where, element)) from None


def marked(error: BaseException, where: str, element: tuple[Any, ...] = ()) -> str:
    """The text in which an exception travels to the driver; its arguments are those of `step_failed`."""
    # The text of the exceptions it came from is there too: they do not survive pickling.
    frames = "".join(traceback.format_exception(error, limit=-_TRACEBACK_LIMIT))
    reporting = reporting_now()
    shown = _cut(repr(element[0])) if element and reporting.show_elements else None
    failure = Failure(
        _pickled(error), type(error).__qualname__, _cut(_text(error)), where, _cut(frames), shown
    )
    packed = base64.b64encode(cloudpickle.dumps(failure)).decode("ascii")
    return f"{failure.kind} {where} penstock-failure<{reporting.signature(packed)}:{packed}>"


def guarded(
    metrics: MetricsContainer, where: str, call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """A call that may reach user code: what that counts is the step's, and what it raises names the step."""
    set_current(metrics)
    try:
        return call(*args, **kwargs)
    except Exception as error:
        step_failed(error, where)


LEAVING = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""What ends a process or a generator, and is no error of a step unless the step raises it."""


def named(results: Iterator[_Result], where: Callable[[], str]) -> Iterator[_Result]:
    """The same results; where user code leaves with what is no ordinary exception, the error names the step.

    Args:
        results: A generator that calls user code.
        where: Tells the step at work.
    """
    try:
        while True:
            try:
                result = next(results)
            except StopIteration:
                return
            except LEAVING as error:
                step_failed(error, where())
            # Whoever closes this generator does so here, and that is no error.
            yield result
    finally:
        if isinstance(results, Generator):
            results.close()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text cannot be made)"


def _cut(text: str, limit: int = _LIMIT_BYTES) -> str:
    return text if len(text) <= limit else text[:limit] + " ..."


def _pickled(error: BaseException) -> bytes | None:
    """The pickled exception, if it survives a round trip and is small enough to travel in a message."""
    try:
        data = bytes(cloudpickle.dumps(error))
        if len(data) > _LIMIT_BYTES or type(pickle.loads(data)) is not type(error):
            return None
    except Exception:
        return None
    return data


def find_failure(text: str) -> Failure | None:
    """The failure that a task of this run has put into an error text of Spark's; None if there is none."""
    reporting = reporting_now()
    for match in _MARKED.finditer(text):
        signature, packed = match.groups()
        if reporting.has_signed(packed, signature):
            failure: Failure = pickle.loads(base64.b64decode(packed))
            return failure
    return None


def to_exception(failure: Failure) -> BaseException:
    """The exception to raise on the driver: the user's own where possible, naming the step it left.

    >>> try:
    ...     step_failed(ValueError("no"), "at step 'A' (game.py:41)")
    ... except StepFailed as marked:
    ...     print(repr(to_exception(find_failure(str(marked)))))
    ValueError("no [while running 'A' (game.py:41)]")
    """
    hint = "the traceback below ends in the code of that step; the option show_elements_in_errors adds the element"
    if failure.element is not None:
        hint = f"the traceback below ends in the code of that step; its element is {failure.element}"
    error: BaseException
    try:
        if failure.exception is None:
            raise ValueError
        error = pickle.loads(failure.exception)
    except Exception:
        error = UserCodeError(f"{failure.kind}: {_shown(failure)}", where=failure.where, hint=hint)
        error.add_note(f"In the worker:\n{failure.frames}")
        return error
    if isinstance(error, RunnerError) and "\n" in str(error):
        # It says where, and what to do.
        return error
    if isinstance(error, LEAVING):
        what = f"the step left with {failure.kind}: {_shown(failure)}".removesuffix(": ")
        hint = "raise an exception that says what is wrong; a step does not end the program"
        error = UserCodeError(what, where=failure.where, hint=hint)
        error.add_note(f"In the worker:\n{failure.frames}")
        return error
    if isinstance(error, MemoryError):
        what = f"a step asks for more memory than there is: {_shown(failure)}".removesuffix(": ")
        error = MemoryError(three_parts(what, where=failure.where, hint=_MEMORY_HINT))
    _name_step(error, failure.where)
    error.add_note(f"{failure.where}\n  hint: {hint}\nIn the worker:\n{failure.frames}")
    return error


def _shown(failure: Failure) -> str:
    """The text of an exception, as far as an error's first line takes it."""
    return _cut(failure.message, _SHOWN_CHARACTERS)


def _name_step(error: Any, where: str) -> None:
    """Appends the step to the message, as Beam does, where that is the exception's only argument, or the system's text.

    Messages of three parts name the step already.
    """
    step = f" [while running {where.removeprefix('at step ')}]"
    if len(error.args) == 1 and isinstance(error.args[0], str) and where not in error.args[0]:
        error.args = (f"{error.args[0]}{step}",)
    elif isinstance(error, OSError) and isinstance(error.strerror, str) and where not in error.strerror:
        error.strerror += step
