"""Dead-letter handlers: they collect the elements that steps cannot process (Beam's module)."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal
from penstock.transforms.grouping.group_by_key import Flatten
from penstock.where import find_caller

__all__ = ["CollectingErrorHandler", "ErrorHandler"]


class ErrorHandler:
    """Collects the error outputs of several steps, and applies a transform to all of them (Beam's name).

    It is closed when its ``with`` block ends. A pipeline does not run with a handler that is used but not closed.

    Args:
        consumer: The transform that takes the errors; None leaves them unchanged.

    Example::

        with ErrorHandler(WriteToText("errors")) as handler:
            parsed = lines | Map(parse).with_exception_handling(error_handler=handler)

    >>> ErrorHandler(None).output()
    Traceback (most recent call last):
    RuntimeError: Cannot access the output of an error handler until it has been closed.
      ...
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._created = f"at {type(self).__name__} ({find_caller()})"
        self._error_pcolls: list[Any] = []
        self._closed = False
        self._result: object = None

    def __enter__(self) -> ErrorHandler:
        self._error_pcolls = []
        self._closed = False
        return self

    def __exit__(self, error_type: object, error: object, traceback: object) -> None:
        if error_type is None:
            self.close()

    def close(self) -> None:
        """Ends the collection of errors, and applies the transform to them if there are any error outputs."""
        if self._error_pcolls:
            # Several handlers in one pipeline each need a label of their own.
            number = self._error_pcolls[0].pipeline.error_handlers.index(self)
            errors = tuple(self._error_pcolls) | f"Errors{number}" >> Flatten()
            self._result = errors if self._consumer is None else errors | self._consumer
        self._closed = True

    def output(self) -> Any:
        """Returns the transform's output, None if no step reported here; RuntimeError if the handler is not closed."""
        if not self._closed:
            what = "Cannot access the output of an error handler until it has been closed."
            raise refusal(RuntimeError, what, where=self._created, hint="call output() after the with block")
        return self._result

    def add_error_pcollection(self, pcoll: Any) -> None:
        """Adds a step's error output; transforms with error handling call it."""
        pcoll.pipeline.register_error_handler(self)
        self._error_pcolls.append(pcoll)

    def verify_closed(self) -> None:
        """Raises RuntimeError if the handler is not closed; the pipeline calls it before it runs."""
        if not self._closed:
            what = "Unclosed error handler"
            hint = "use it in a with block, or call close()"
            raise refusal(RuntimeError, what, where=self._created, hint=hint)


class CollectingErrorHandler(ErrorHandler):
    """Only collects the errors; `output` returns them as a PCollection, and must be called (Beam's name).

    >>> with CollectingErrorHandler() as handler:
    ...     pass
    >>> handler.verify_closed()
    Traceback (most recent call last):
    RuntimeError: CollectingErrorHandler requires the output to be retrieved.
      ...
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._output_accessed = False

    def output(self) -> Any:
        """Returns the errors; None if no step reported here."""
        self._output_accessed = True
        return super().output()

    def verify_closed(self) -> None:
        """Raises RuntimeError if `output` was not called, or the handler is not closed."""
        if not self._output_accessed:
            what = "CollectingErrorHandler requires the output to be retrieved."
            raise refusal(
                RuntimeError, what, where=self._created, hint="call output() and use what it returns"
            )
        super().verify_closed()
