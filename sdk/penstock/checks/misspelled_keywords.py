"""A hint at the keyword argument of penstock that a program has misspelled."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import reduce

from penstock.checks.similar_names import find_nearest

_UNEXPECTED = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")


def find_meant_keyword(error: BaseException | None) -> str | None:
    """Returns the parameter that a call of penstock most likely means, by the error that Python raised; else None.

    The error has the name of the function alone, so it is looked for in the modules of penstock.

    >>> try:
    ...     find_nearest("teem", ["team"], likenes=0.5)
    ... except TypeError as error:
    ...     find_meant_keyword(error)
    'likeness'
    """
    found = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    return find_nearest(found[2], _parameters_of(found[1])) if found else None


def _parameters_of(qualified_name: str) -> Iterator[str]:
    """Yields the parameters of the functions in penstock that have a name, such as ``ReadFromText.__init__``."""
    first, *rest = qualified_name.split(".")
    for name, module in list(sys.modules.items()):
        function = vars(module).get(first) if name.startswith("penstock") else None
        if getattr(function, "__module__", None) != name:
            continue
        function = reduce(lambda owner, part: getattr(owner, part, None), rest, function)
        if inspect.isfunction(function):
            yield from inspect.signature(function).parameters
