"""Chooses few of many random programs, so that each pair of facts about a program still occurs several times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise

from tests.simulation.stream_programs import Program, random_program

TIMES = 1
"""The least number of chosen programs with a pair of facts."""

MORE_TIMES = 12
"""The same for the programs among which a break is looked for whose seed is not known."""

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
    bits: dict[str, int] = {}
    # For each fact, the facts that so many chosen programs have with it, as bits: all of them at first for none.
    beside: list[dict[int, int]] = [defaultdict(lambda: -1), *(defaultdict(int) for _ in range(times))]
    found = []
    for seed in seeds:
        own = [1 << bits.setdefault(fact, len(bits)) for fact in facts(seed)]
        all_of_them = sum(own)
        if any(all_of_them & ~beside[-1][fact] & ~fact for fact in own):
            found.append(seed)
            for fewer, more in reversed([*pairwise(beside)]):
                for fact in own:
                    more[fact] |= fewer[fact] & all_of_them
    return found


@cache
def covering_seeds(count: int, times: int = TIMES) -> frozenset[int]:
    """Returns the seeds below a number whose programs cover each pair of facts of all programs below it."""
    return frozenset(chosen(range(count), lambda seed: facts_of(random_program(seed)), times))
