"""A break of production code: a few words are replaced; it fails if these words are not there any more."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tests.simulation.stream_programs import Program, random_program


@dataclass(frozen=True)
class Mutant:
    name: str
    owner: Any  # A class or a module.
    function: str
    old: str
    new: str
    # Makes programs of the kind that it takes, where that is rare among all.
    make: Callable[[int], Program] = random_program
    seed: int = 0  # Of a program that finds it.
    also: tuple[Mutant, ...] = ()  # Breaks of what would make up for it.

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Lets the break be there within the block."""
        found = inspect.getattr_static(self.owner, self.function)
        plain = found.fget if isinstance(found, property) else found
        source = textwrap.dedent(inspect.getsource(plain))
        assert self.old in source, f"{self.name}: {self.old!r} is not in {self.function}"
        module = sys.modules[plain.__module__]
        made: dict[str, Any] = {}
        exec(compile(source.replace(self.old, self.new), f"<{self.name}>", "exec"), vars(module), made)
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(self.owner, self.function, made[self.function]))
            stack.enter_context(_everywhere(plain, made, self))
            for other in self.also:
                stack.enter_context(other.applied())
            yield


@contextmanager
def _everywhere(plain: Any, made: dict[str, Any], mutant: Mutant) -> Iterator[None]:
    """Also replaces a function of a module in the modules that have imported it."""
    users = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(("penstock_spark", "penstock_connectors"))
        and vars(module).get(mutant.function) is plain
    ]
    before = [(module, vars(module)[mutant.function]) for module in users]
    for module in users:
        setattr(module, mutant.function, made[mutant.function])
    try:
        yield
    finally:
        for module, own in before:
            setattr(module, mutant.function, own)
