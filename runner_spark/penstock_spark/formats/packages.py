"""A package that a format needs: looked for before Spark starts, and imported when it is used and not before."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

from penstock.error import refusal


@dataclass(frozen=True)
class Package:
    """A package that may not be installed.

    >>> Package("entries of Redis", "redis", "no_such_module").check("at step 'Read'")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: entries of Redis need the package redis, which is not installed
      at step 'Read'
      hint: pip install 'redis'

    Attributes:
        subjects: What needs it.
        name: Its name for pip.
        module: Its name for Python.
        extra: The extra of penstock that brings it; "" for a package that is installed by its own name.
    """

    subjects: str
    name: str
    module: str
    extra: str = ""

    def check(self, where: str | None = None) -> None:
        """Raises ModuleNotFoundError if it is not installed; imports nothing but the packages around it."""
        try:
            is_installed = find_spec(self.module) is not None
        except ModuleNotFoundError:
            is_installed = False
        if not is_installed:
            what = f"{self.subjects} need the package {self.name}, which is not installed"
            wanted = f"penstock[{self.extra}]" if self.extra else self.name
            raise refusal(ModuleNotFoundError, what, where=where, hint=f"pip install '{wanted}'")

    def load(self, where: str | None = None, submodule: str | None = None) -> ModuleType:
        """Imports it, or a module in it; ModuleNotFoundError in three parts if it is not installed."""
        self.check(where)
        return importlib.import_module(self.module if submodule is None else f"{self.module}.{submodule}")
