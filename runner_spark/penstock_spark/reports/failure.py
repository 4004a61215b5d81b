"""Brings an exception of user code from a worker to the caller of `run`, with its type and the step that raised it.

Spark reports a worker's exception as text. The worker therefore puts the pickled exception into that text, and the
driver takes it out again. The text may also quote the input, which may contain anything: so the worker signs the
exception, and the driver unpickles only what is signed with the key of its run.
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

from penstock.error import RunnerError, add_location, refusal, split_hint, three_parts
from penstock.metrics.execution import MetricsContainer, set_current
from penstock_spark.reports.reporting import current_reporting

_MARKED = re.compile(r"penstock-failure<([0-9a-f]{64}):([A-Za-z0-9+/=]+)>")
_LIMIT_BYTES = 60_000
_TRACEBACK_LIMIT = 12
_SHOWN_CHARACTERS = 1_000
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Failure:
    exception: bytes | None  # The pickled exception; None if it cannot be pickled.
    kind: str
    message: str  # The text of the exception.
    where: str
    frames: str  # The traceback in the worker, as text, with the tracebacks of the exceptions that led to it.
    # The element that the step worked on, as text; None unless the user asked for it.
    element: str | None = None


_MEMORY_HINT = "make the step hold less data at once, run fewer tasks at a time, or use a larger machine"


class StepFailure(Exception):
    """A step's user code raised in a worker; the text carries the `Failure`."""


class UserCodeError(RunnerError):
    """An exception of user code that cannot travel to the driver as itself."""


def fail_step(error: BaseException, where: str, element: tuple[Any, ...] = ()) -> NoReturn:
    """Raises the marked form of an exception that left user code; a marked exception passes unchanged.

    `element` is a 1-tuple of the element that the step worked on, or () if it is unknown.
    """
    if isinstance(error, StepFailure):
        raise error
    raise StepFailure(mark(error, where, element)) from None


def mark(error: BaseException, where: str, element: tuple[Any, ...] = ()) -> str:
    """Returns the text in which an exception travels to the driver."""
    # This includes the text of the exceptions that caused it, because they do not survive pickling.
    frames = "".join(traceback.format_exception(error, limit=-_TRACEBACK_LIMIT))
    reporting = current_reporting()
    shown = _cut(repr(element[0])) if element and reporting.show_elements else None
    failure = Failure(
        _pickle(error), type(error).__qualname__, _cut(_text(error)), where, _cut(frames), shown
    )
    packed = base64.b64encode(cloudpickle.dumps(failure)).decode("ascii")
    return f"{failure.kind} {where} penstock-failure<{reporting.signature(packed)}:{packed}>"


def call_guarded(
    metrics: MetricsContainer, where: str, call: Callable[..., Any], *args: object, **kwargs: object
) -> Any:
    """Makes a call that may reach user code: its metrics count for the step, and its exceptions name the step."""
    set_current(metrics)
    try:
        return call(*args, **kwargs)
    except Exception as error:
        fail_step(error, where)


LEAVING = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""Exceptions that end a process or a generator; they are errors only if a step raises them."""


def name_failing_step(results: Iterator[_Result], where: Callable[[], str]) -> Iterator[_Result]:
    """Yields the results of user code; if the code raises one of `LEAVING`, the error names the step that runs."""
    try:
        while True:
            try:
                result = next(results)
            except StopIteration:
                return
            except LEAVING as error:
                fail_step(error, where())
            # A caller that closes this generator does so here, which is not an error.
            yield result
    finally:
        if isinstance(results, Generator):
            results.close()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its __str__ raises an exception)"


def _cut(text: str, limit: int = _LIMIT_BYTES) -> str:
    return text if len(text) <= limit else text[:limit] + " ..."


def _pickle(error: BaseException) -> bytes | None:
    """Returns the pickled exception; None if it does not survive a round trip or is too large for a message."""
    try:
        data = bytes(cloudpickle.dumps(error))
        if len(data) > _LIMIT_BYTES or type(pickle.loads(data)) is not type(error):
            return None
    except Exception:
        return None
    return data


def find_failure(text: str) -> Failure | None:
    """Finds the failure that a task of this run has put into an error text from Spark."""
    reporting = current_reporting()
    for match in _MARKED.finditer(text):
        signature, packed = match.groups()
        if reporting.has_signed(packed, signature):
            failure: Failure = pickle.loads(base64.b64decode(packed))
            return failure
    return None


def to_exception(failure: Failure) -> BaseException:
    """Returns the exception to raise on the driver: the user's own if possible, with the name of the failed step.

    >>> try:
    ...     fail_step(ValueError("no"), "at step 'A' (game.py:41)")
    ... except StepFailure as mark:
    ...     print(repr(to_exception(find_failure(str(mark)))))
    ValueError("no [while running 'A' (game.py:41)]")
    """
    element = "set show_elements_in_errors to see the element"
    if failure.element is not None:
        element = f"the element is {failure.element}"
    hint = f"see the worker's traceback below; {element}"
    if failure.kind == ModuleNotFoundError.__name__:
        hint = (
            "install the module for the Python of the workers, or set PYSPARK_PYTHON to a Python that has it"
        )
    error: BaseException
    try:
        if failure.exception is None:
            raise ValueError
        error = pickle.loads(failure.exception)
    except Exception:
        return _user_code_error(failure, f"{failure.kind}: {_shorten(failure)}", hint)
    if isinstance(error, RunnerError) and "\n" in split_hint(str(error))[0]:
        # The error already says where it happened, and what to do.
        return error if failure.element is None else _with_element(error, failure.element)
    if isinstance(error, LEAVING):
        what = f"the step raised {failure.kind}: {_shorten(failure)}".removesuffix(": ")
        hint = "raise an exception that says what is wrong: a step cannot end the program"
        return _user_code_error(failure, what, hint)
    if isinstance(error, MemoryError):
        what = f"a step asks for more memory than the machine has: {_shorten(failure)}".removesuffix(": ")
        error = refusal(MemoryError, what, where=failure.where, hint=_MEMORY_HINT)
    _name_step(error, failure.where)
    has_hint = split_hint(_text(error))[1] != ""
    told = f"{element[0].upper()}{element[1:]}." if has_hint else f"{failure.where}\n  hint: {hint}"
    error.add_note(f"{told}\nIn the worker:\n{failure.frames}")
    return error


def _user_code_error(failure: Failure, what: str, hint: str) -> UserCodeError:
    error = UserCodeError(what, where=failure.where, hint=hint)
    error.add_note(f"In the worker:\n{failure.frames}")
    return error


def _with_element(error: RunnerError, element: str) -> RunnerError:
    r"""Returns an error whose hint ends with the element.

    >>> print(_with_element(RunnerError("no half", where="line 1", hint="correct it"), "(3, 4)"))
    no half
      line 1
      hint: correct it; the element is (3, 4)
    """
    what, hint = split_hint(str(error))
    hint = hint.partition("; set show_elements_in_errors")[0]
    told = f"the element is {element}"
    return type(error)(three_parts(what, hint=f"{hint}; {told}" if hint else told))


def _shorten(failure: Failure) -> str:
    """Returns the text of an exception, cut to fit the first line of an error."""
    return _cut(failure.message, _SHOWN_CHARACTERS)


def _name_step(error: BaseException, where: str) -> None:
    """Adds the step to the exception's only argument, or to the text that it keeps elsewhere."""
    if len(error.args) == 1 and isinstance(error.args[0], str) and where not in error.args[0]:
        error.args = (_with_step(error.args[0], where),)
        if isinstance(error, ImportError):
            error.msg = error.args[0]
    elif isinstance(error, UnicodeEncodeError | UnicodeDecodeError) and where not in error.reason:
        error.reason = _with_step(error.reason, where)
    elif isinstance(error, OSError) and isinstance(error.strerror, str) and where not in error.strerror:
        error.strerror = _with_step(error.strerror, where)


def _with_step(text: str, where: str) -> str:
    r"""Returns a text with the step: as its middle part if it lacks one, else at the end of what is wrong, as in Beam.

    >>> print(_with_step("no pair\n  hint: make pairs", "at step 'A' (game.py:41)"))
    no pair
      at step 'A' (game.py:41)
      hint: make pairs
    >>> print(_with_step("no time\n  at game.py:7\n  hint: give one", "at step 'A' (game.py:41)"))
    no time [while running 'A' (game.py:41)]
      at game.py:7
      hint: give one
    """
    what, hint = split_hint(text)
    if hint and "\n" not in what:
        return add_location(text, where)
    first, newline, place = what.partition("\n") if hint else (what, "", "")
    running = f"{first} [while running {where.removeprefix('at step ')}]"
    return three_parts(f"{running}{newline}{place}", hint=hint)
