"""The methods of a DoFn in a child process, so that a crash there is an error here: ``use_subprocess=True``."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.coders.coders import CloudpickleCoder
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.metrics.execution import MetricsContainer, current_container, note_current_in, set_current
from penstock.utils.child_process import ChildProcess, ProcessEnded


class _SameAsBefore:
    """Stands for an argument that the child has from the previous call, such as a side input."""


class _Traceback(Exception):
    """The text of the child's traceback, as the cause of the error."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class IsolatedCalls:
    """Calls the methods of a DoFn in a child process, which is started again after it has ended.

    The child is a copy of the worker at the time of the first element: the DoFn, its modules and its side inputs are
    there without being sent. Elements, later side inputs and outputs are pickled. The parent adds the child's metrics
    to its own. Only the copy of the DoFn in the child is ever set up.
    """

    def __init__(self, dofn: DoFn) -> None:
        self._dofn = dofn
        self._child: ChildProcess | None = None
        self._in_bundle = False
        self._known: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_child": None, "_in_bundle": False, "_known": {}}

    def new_bundle(self) -> None:
        """Marks the next element as the first one of a bundle."""
        self._in_bundle = False

    def begin(self) -> None:
        """Calls ``setup`` and ``start_bundle`` if they have to be called before the next element.

        Their errors are raised here, and BrokenProcessPool if the child ends in them.
        """
        if self._child is not None and not self._child.is_alive():
            # It has ended between two elements, for example because memory was short.
            self._drop()
        if self._child is None:
            self._child = ChildProcess(_Server(self._dofn, self._known).answer)
            self._in_bundle = False
            self._ask("setup")
        if not self._in_bundle:
            self._ask("start_bundle")
            self._in_bundle = True

    def process(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], timeout_seconds: float | None
    ) -> list[Any]:
        """Returns all outputs of ``process`` for an element, after `begin`.

        Raises:
            BrokenProcessPool: If the child ends.
            TimeoutError: If it takes too long.
            Exception: The error of ``process``.
        """
        given: dict[Any, Any] = dict(enumerate(args))
        given.update(kwargs)
        sent = {
            slot: _SameAsBefore if slot in self._known and self._known[slot] is value else value
            for slot, value in given.items()
        }
        self._known = given
        outputs: list[Any] = self._ask("process", (len(args), sent), timeout_seconds)
        return outputs

    def finish_bundle(self) -> None:
        """Calls ``finish_bundle`` if the child has processed an element of it; RuntimeError if it emits outputs."""
        if self._child is not None and self._in_bundle and self._ask("finish_bundle"):
            what = f"{type(self._dofn).__name__}.finish_bundle returned elements, which is not safe with use_subprocess"
            hint = "emit them in process: a crash would lose what waits for the end of the bundle"
            raise refusal(RuntimeError, what, hint=hint)
        self._in_bundle = False

    def teardown(self) -> None:
        """Calls ``teardown`` and ends the child."""
        try:
            if self._child is not None and self._child.is_alive():
                self._ask("teardown")
        finally:
            self._drop()

    def _drop(self) -> None:
        child, self._child = self._child, None
        self._known = {}
        if child is not None:
            child.end()

    def _ask(self, method: str, given: object = None, timeout_seconds: float | None = None) -> Any:
        assert self._child is not None
        container = current_container()
        step = None if container is None else container.step_name
        request = _dumps((method, given, step))
        try:
            reply = self._child.ask(request, timeout_seconds)
        except TimeoutError:
            self._drop()
            raise
        except ProcessEnded as ended:
            from concurrent.futures.process import BrokenProcessPool

            self._drop()
            what = f"the process of {type(self._dofn).__name__} {ended} in {method}"
            hint = "the user's code, or a library that it calls, ends the process or needs too much memory"
            raise refusal(BrokenProcessPool, what, hint=hint) from None
        result, error, lines, counted = pickle.loads(reply)
        if container is not None and counted is not None:
            container.absorb(counted)
        if error is not None:
            raise error from _Traceback(lines)
        return result


class _Server:
    """The child's side: the DoFn and the arguments of the previous call."""

    def __init__(self, dofn: DoFn, known: dict[Any, Any]) -> None:
        self._dofn = dofn
        self._known = known

    def answer(self, request: bytes) -> bytes:
        """Returns the pickled result, error, traceback and counts of a call."""
        counted: MetricsContainer | None = None
        try:
            method, given, step = pickle.loads(request)
            counted = None if step is None else MetricsContainer(step)
            # The child must not change the parent's note of the running step.
            note_current_in([0])
            set_current(counted)
            return _dumps((self._call(method, given), None, "", counted))
        except Exception as error:
            lines = "".join(traceback.format_exception(error))
            return _dumps((None, _sendable(error), lines, counted))

    def _call(self, method: str, given: Any) -> Any:
        if method == "process":
            count, sent = given
            self._known = {
                slot: self._known[slot] if value is _SameAsBefore else value for slot, value in sent.items()
            }
            args = [self._known[position] for position in range(count)]
            kwargs = {name: value for name, value in self._known.items() if isinstance(name, str)}
            return list(self._dofn.process(*args, **kwargs) or ())
        function: Callable[[], Any] = getattr(self._dofn, method)
        result = function()
        return bool(list(result)) if method == "finish_bundle" and result is not None else None


def _dumps(value: object) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        try:
            # Cloudpickle also pickles classes that cannot be imported.
            return CloudpickleCoder().encode(value)
        except Exception as error:
            what = f"what is sent to or from the process of a DoFn cannot be pickled: {error}"
            raise refusal(TypeError, what, hint="pass plain data, or leave use_subprocess out") from error


def _sendable(error: BaseException) -> BaseException:
    """Returns the error, if it can be pickled and loaded; otherwise a RuntimeError with its text."""
    try:
        pickle.loads(_dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    error.__traceback__ = None
    return error
