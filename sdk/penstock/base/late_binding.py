"""Functions that a module calls, and that a higher module, which imports it, provides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from penstock.error import refusal

P = ParamSpec("P")
R = TypeVar("R")


class LateBinding(Generic[P, R]):
    """A function that another module, `provider`, provides when it is imported.

    >>> double: LateBinding[[int], int] = LateBinding("games.arithmetic")
    >>> double(4)
    Traceback (most recent call last):
        ...
    RuntimeError: games.arithmetic has not been imported
      at ...
      hint: import it, or import penstock, which imports everything
    >>> _ = double.bind(lambda number: 2 * number)
    >>> double(4)
    8
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._function: Callable[P, R] | None = None

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """Provides the function; also a decorator of it."""
        self._function = function
        return function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns the function's result; RuntimeError if nothing has provided it."""
        if self._function is None:
            hint = "import it, or import penstock, which imports everything"
            raise refusal(RuntimeError, f"{self._provider} has not been imported", hint=hint)
        return self._function(*args, **kwargs)
