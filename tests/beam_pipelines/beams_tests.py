"""Beam's own tests, read from the installed package, as tests of the runner."""

from __future__ import annotations

import functools
import unittest
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import pytest


def is_marked(test: Any, mark: str) -> bool:
    """True if a test of Beam's has a mark of pytest's."""
    return any(found.name == mark for found in getattr(test, "pytestmark", ()))


def cases_of(
    modules: list[str], chosen: Callable[[Any], bool], misses: Mapping[str, str], **instead: Any
) -> dict[str, type[unittest.TestCase]]:
    """The classes of tests of some of Beam's modules, by name, with only the chosen tests.

    Args:
        modules: The modules, below ``apache_beam``.
        chosen: Says which test functions to keep.
        misses: Why tests fail on this runner, by ``Class.test``; they must fail.
        instead: What the classes get instead of attributes of theirs.
    """
    found = {}
    for module in modules:
        with warnings.catch_warnings():
            # One of them leaves files open when it is imported.
            warnings.simplefilter("ignore", ResourceWarning)
            inside = vars(import_module(f"apache_beam.{module}"))
        for name, case in inside.items():
            if not (isinstance(case, type) and issubclass(case, unittest.TestCase)):
                continue
            if case.__module__ != f"apache_beam.{module}":
                continue
            replaced = {name: value for name, value in instead.items() if hasattr(case, name)}
            made = case_of(case, chosen, misses, **replaced)
            if made is not None:
                # Some modules have classes of the same name.
                found[f"{name}_of_{module.rpartition('.')[2]}" if name in found else name] = made
    return found


def case_of(
    case: type[unittest.TestCase], chosen: Callable[[Any], bool], misses: Mapping[str, str], **more: Any
) -> type[unittest.TestCase] | None:
    """A class of tests with only the chosen ones, and with more attributes; None if none is chosen."""
    tests = {name: getattr(case, name) for name in dir(case) if name.startswith("test")}
    kept = {name for name, test in tests.items() if chosen(test)}
    if not kept:
        return None
    inside: dict[str, Any] = dict.fromkeys(tests.keys() - kept)
    for name in kept:
        reason = misses.get(f"{case.__name__}.{name}")
        if reason is not None:
            inside[name] = pytest.mark.xfail(strict=True, reason=reason)(_copy(tests[name]))
    return type(case.__name__, (case,), {**inside, **more, "__module__": __name__})


def _copy(test: Any) -> Any:
    @functools.wraps(test)
    def called(self: Any) -> Any:
        return test(self)

    return called
