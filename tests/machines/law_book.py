"""What a law is: something that holds for whatever a generator makes, and the smallest case where it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.machines.generated import Case


@dataclass(frozen=True)
class Law:
    """A statement about all cases of a kind.

    Attributes:
        name: What it says, in words.
        says: The whole of it, and where it is from.
        make: Makes a case from its number.
        check: Raises an AssertionError where a case breaks it.
        cases: How many cases there are.
        usual_cases: How many of them are always tried, and find every break; the others are for long runs.
    """

    name: str
    says: str
    make: Callable[[int], Any]
    check: Callable[[Any], None]
    cases: int
    usual_cases: int

    def hold(self, first: int = 0, end: int | None = None) -> None:
        """Tries cases; the first that breaks the law is made as small as possible and shown.

        Args:
            first: The number of the first.
            end: The number after the last; None means those that are always tried.
        """
        for number in range(first, self.usual_cases if end is None else end):
            case = self.make(number)
            fault = self._fault(case)
            if fault is not None:
                case = self._smallest(case)
                raise AssertionError(f"{self.name}: {self._fault(case)!r}\ncase {number}:\n{case}") from fault

    def broken(self) -> AssertionError | None:
        """How some case that is always tried breaks it; None if none does."""
        for number in range(self.usual_cases):
            try:
                self.check(self.make(number))
            except AssertionError as fault:
                return fault
        return None

    def _fault(self, case: Any) -> Exception | None:
        try:
            self.check(case)
        except Exception as fault:
            return fault
        return None

    def _smallest(self, case: Any) -> Any:
        """With as few events as still break it in the same way."""
        if not isinstance(case, Case):
            return case
        kind = type(self._fault(case))
        position = 0
        while position < len(case.events):
            fewer = replace(case, events=case.events[:position] + case.events[position + 1 :])
            if type(self._fault(fewer)) is kind:
                case, position = fewer, 0
            else:
                position += 1
        return case


def law(make: Callable[[Random], Any], cases: int) -> Callable[[Callable[[Any], None]], Law]:
    """Makes a law of a function that checks one case; its name and its docstring are what the law says.

    Args:
        make: Makes a case at random.
        cases: How many there are; half of them are always tried.
    """

    def decorate(check: Callable[[Any], None]) -> Law:
        name, says = check.__name__, check.__doc__ or ""
        return Law(name, says, lambda number: make(Random(number)), check, cases, cases // 2)

    return decorate


def law_of_each(cases: Sequence[Any]) -> Callable[[Callable[[Any], None]], Law]:
    """The same for a law that is tried with certain cases."""

    def decorate(check: Callable[[Any], None]) -> Law:
        return Law(check.__name__, check.__doc__ or "", cases.__getitem__, check, len(cases), len(cases))

    return decorate
