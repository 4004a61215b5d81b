"""Spark's error conditions: the names that Spark has for what went wrong, with the values that belong to them.

A message of Spark quotes paths and data, so a pattern over it may end in the middle of a path, or find its words in a
value. A condition is separate from the values in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_CAUSES_MAX = 20


@dataclass(frozen=True)
class Condition:
    """A condition, such as ``PATH_NOT_FOUND`` or ``INVALID_PARAMETER_VALUE.CHARSET``."""

    name: str
    parameters: Mapping[str, str]


def conditions_of(error: BaseException) -> list[Condition]:
    """Returns the conditions of an error and of its causes, the error's own first; none if Java has ended.

    >>> class NotFound(PySparkException):
    ...     def getCondition(self): return "PATH_NOT_FOUND"
    ...     def getMessageParameters(self): return {"path": "/a b"}
    >>> conditions_of(NotFound("Path does not exist: /a b"))
    [Condition(name='PATH_NOT_FOUND', parameters={'path': '/a b'})]
    """
    thrown = _thrown(error)
    if thrown is None:
        name = error.getCondition() if isinstance(error, PySparkException) else None
        return [] if name is None else [Condition(name, _plain(error.getMessageParameters()))]  # type: ignore[attr-defined]
    found: list[Condition] = []
    with contextlib.suppress(Exception):
        for _ in range(_CAUSES_MAX):
            if thrown is None:
                break
            # Errors of Java itself have no such method.
            with contextlib.suppress(Exception):
                name = thrown.getCondition()
                if name is not None:
                    found.append(Condition(str(name), _plain(thrown.getMessageParameters())))
            thrown = thrown.getCause()
    return found


def _thrown(error: Any) -> JavaObject | None:
    """Returns the error of Java, or its cause: PySpark keeps only the cause of a query that has failed."""
    while error is not None:
        thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        if thrown is not None:
            return thrown
        error = getattr(error, "_cause", None)
    return None


def _plain(parameters: Mapping[Any, Any] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(parameters or {}).items()}
