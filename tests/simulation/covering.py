"""Chooses few of many random programs, so that each pair of facts about a program still occurs several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from itertools import combinations

from stream_programs import Program, random_program

TIMES = 12
"""The least number of chosen programs with a pair of facts, unless fewer of all programs have it."""

_BY_PRESENCE = {"lateness", "delay", "more_delay", "idle", "files_per_batch", "poll", "interval"}
"""The fields of a shape whose number makes no difference, only whether there is one."""


def facts_of(program: Program) -> frozenset[str]:
    """Returns what distinguishes a program from others: the values of its shapes, and how its drivers end.

    >>> sorted(fact for fact in facts_of(random_program(1)) if "windows" in fact)
    ['first shape: windows=fixed', 'later shape: windows=fixed']
    """
    return frozenset(_facts(program))


def _facts(program: Program) -> Iterator[str]:
    for number, shape in enumerate(program.shapes):
        which = "later shape" if number else "first shape"
        for field in fields(shape):
            value = getattr(shape, field.name)
            if field.name in _BY_PRESENCE:
                value = bool(value)
            for each in value if isinstance(value, tuple) else (value,):
                yield f"{which}: {field.name}={each}"
    for life in program.lives:
        yield f"a driver ends: {life.fate}"
        yield f"a driver's machine: {life.machine}"
        yield f"a rival: {life.rival or 'none'}"
    if program.clock_step:
        yield f"the clock is set {'back' if program.clock_step < 0 else 'forward'}"
    yield f"calm: {program.is_calm}"


def chosen(seeds: Iterable[int], facts: Callable[[int], Iterable[str]], times: int = TIMES) -> list[int]:
    """Returns the seeds of programs with a pair of facts that too few programs before them have.

    >>> chosen([1, 2, 3, 4], {1: "ab", 2: "ab", 3: "bc", 4: "ac"}.__getitem__, times=1)
    [1, 3, 4]
    """
    covered: Counter[tuple[str, str]] = Counter()
    found = []
    for seed in seeds:
        pairs = [*combinations(sorted(facts(seed)), 2)]
        if any(covered[pair] < times for pair in pairs):
            covered.update(pairs)
            found.append(seed)
    return found


@cache
def covering_seeds(count: int) -> frozenset[int]:
    """Returns the seeds below a number whose programs cover each pair of facts of all programs below it."""
    return frozenset(chosen(range(count), lambda seed: facts_of(random_program(seed))))
