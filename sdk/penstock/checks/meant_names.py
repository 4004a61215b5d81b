"""A hint at the name that a program has misspelled, by the error that Python raised."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from types import TracebackType

from penstock.checks.similar_names import find_nearest, hint_at_name

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
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
    if error is None or found is None:
        return None
    # A constructor may have passed the keyword on.
    return find_nearest(found[2], (*_parameters_of(found[1]), *_arguments_of(error.__traceback__)))


def is_passed_on(error: BaseException, line: str) -> bool:
    """True if a line has passed on a wrong keyword argument, and does not name it.

    >>> error = TypeError("f() got an unexpected keyword argument 'teem'")
    >>> is_passed_on(error, "f(**kwargs)"), is_passed_on(error, "f(teem=1)")
    (True, False)
    """
    found = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    return found is not None and f"{found[2]}=" not in line and "**" in line


def hint_at_meant_name(error: BaseException, element: tuple[object, ...] = ()) -> str | None:
    """Returns the hint at a field, a key or a keyword that a program has misspelled; None without any.

    Args:
        error: What Python has raised, with its traceback.
        element: A 1-tuple of the element at which it did, or () if that is unknown: it may have the key.

    >>> try:
    ...     {"team": "red"}["taem"]
    ... except KeyError as error:
    ...     hint_at_meant_name(error, ({"team": "red"},))
    "did you mean 'team'?"
    """
    match error:
        case AttributeError(name=str(name), obj=obj) if obj is not None and "\n" not in str(error):
            declared = _fields_of(obj)
            return hint_at_name(name, declared) if declared else _hint_at_near(name, _public(dir(obj)))
        case KeyError(args=(str(name),)):
            return _hint_at_near(name, _keys_of(element))
        case TypeError():
            return None if (meant := find_meant_keyword(error)) is None else f"did you mean {meant!r}?"
        case _:
            return None


def hint_at_variable(text: str, file: str) -> str | None:
    """Returns the hint at a variable that a program has misspelled; None if no variable of the file is like it.

    Args:
        text: The text of a NameError. A worker has only those variables of a module that its functions use.
        file: The file of the module.

    >>> hint_at_variable("name '_keys_off' is not defined", __file__)
    "did you mean '_keys_of'?"
    """
    found = _UNDEFINED.search(text)
    modules = (each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == file)
    module = next(modules, sys.modules["__main__"])
    return found and _hint_at_near(found[1], (*vars(module), *vars(builtins)))


def list_part_names(value: object) -> list[str]:
    """Returns the names of an element's parts: the keys of a dictionary, the fields of a record, or attributes.

    >>> list_part_names({"team": "red"})
    ['team']
    """
    if isinstance(value, Mapping):
        return list(_keys_of((value,)))
    return _fields_of(value) or list(_public(getattr(value, "__dict__", ()) or dir(value)))


def _hint_at_near(name: str, names: Iterable[str]) -> str | None:
    near = find_nearest(name, names)
    return None if near is None else f"did you mean {near!r}?"


def _public(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.startswith("_"))


def _fields_of(value: object) -> list[str]:
    """The names of the fields of a record: of a named tuple, or of an instance of a dataclass."""
    if isinstance(value, tuple):
        return list(getattr(value, "_fields", ()))
    return [field.name for field in fields(value)] if is_dataclass(value) else []


def _keys_of(values: Iterable[object], depth: int = 2) -> Iterator[str]:
    """The keys of dictionaries among values, and in tuples among them."""
    for value in values:
        if isinstance(value, Mapping):
            yield from (key for key in value if isinstance(key, str))
        elif isinstance(value, tuple) and depth:
            yield from _keys_of(value, depth - 1)


def _arguments_of(trace: TracebackType | None) -> Iterator[str]:
    """Yields the parameters of the functions of penstock in a traceback."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith("penstock"):
            yield from code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        trace = trace.tb_next


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
