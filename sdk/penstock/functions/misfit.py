"""The error of arguments that do not fit a function."""

from __future__ import annotations

from penstock.base.where import here
from penstock.typehints.decorators import TypeCheckError


class ArgumentsMisfit(TypeCheckError, TypeError):
    """The arguments do not fit the function: Beam's type for it, and Python's own."""


def misfit(what: str, problem: str, hint: str) -> ArgumentsMisfit:
    """The error, with the user's line.

    Args:
        what: The function, and what it is for.
        problem: What does not fit.
        hint: What to do.

    >>> str(misfit("add, passed to Map,", "takes no element", "its first parameter is the element")).splitlines()[0]
    'add, passed to Map, takes no element'
    """
    return ArgumentsMisfit(f"{what} {problem}", where=here(), hint=hint)
