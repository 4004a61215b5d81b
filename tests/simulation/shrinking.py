"""Makes a program smaller as long as it fails in the same way."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from tests.simulation.simulated_drivers import Simulation
from tests.simulation.stream_checks import check
from tests.simulation.stream_programs import Program, Shape, random_program

_TRIES = 400
_SEEDS = 3
"""A smaller program is tried with so many seeds, because the same one decides otherwise there."""


@dataclass(frozen=True)
class Failure:
    seed: int  # Of what happens; the program may be smaller than the one of this seed.
    program: Program
    error: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [self.error, f"seed {self.seed}", str(self.program), *(line[:200] for line in self.trace)]
        )


def failure_of(seed: int, program: Program | None = None) -> Failure | None:
    """Runs the program of a seed, or another one; None if everything is as it has to be."""
    found = program or random_program(seed)
    error = _error(Simulation(seed, found))
    return None if error is None else Failure(seed, found, error, ())


def _error(simulation: Simulation) -> str | None:
    before = logging.root.manager.disable
    # What drivers log about their ends is in the trace.
    logging.disable(logging.CRITICAL)
    try:
        simulation.run()
        check(simulation)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        logging.disable(before)
    return None


def shrunk(failure: Failure) -> Failure:
    """A smaller program that fails in the same way, with a trace of all that happened."""
    kind, tries = _kind(failure.error), 0
    going_on = True
    while going_on:
        going_on = False
        for smaller in _smaller(failure.program):
            for seed in range(failure.seed, failure.seed + _SEEDS):
                tries += 1
                found = failure_of(seed, smaller)
                if found is not None and _kind(found.error) == kind:
                    failure, going_on = found, True
                    break
            if going_on or tries > _TRIES:
                break
        if tries > _TRIES:
            break
    simulation = Simulation(failure.seed, failure.program, traced=True)
    error = _error(simulation)
    return replace(failure, error=error or failure.error, trace=tuple(simulation.world.trace or ()))


def _kind(error: str) -> str:
    return re.sub(r"[\d\['(].*", "", error)


def _smaller(program: Program) -> Iterator[Program]:
    for number in range(len(program.lives) - 1):
        yield replace(program, lives=program.lives[:number] + program.lives[number + 1 :])
    for number in range(len(program.files)):
        yield replace(program, files=program.files[:number] + program.files[number + 1 :])
    for number, life in enumerate(program.lives):
        for simpler in (replace(life, rival=""), replace(life, pause=0.0), replace(life, machine="first")):
            if simpler != life:
                yield replace(program, lives=(*program.lives[:number], simpler, *program.lives[number + 1 :]))
    if not program.is_calm:
        yield replace(program, is_calm=True)
    if program.clock_step:
        yield replace(program, clock_step=0.0)
    if len(program.shapes) > 1 and not any(life.shape for life in program.lives):
        yield replace(program, shapes=program.shapes[:1])
    for field in fields(Shape):
        plain = field.default
        shapes = tuple(replace(shape, **{field.name: plain}) for shape in program.shapes)
        # A trigger of global windows, and an end, are not given up: some programs need them.
        if shapes != program.shapes and field.name not in ("trigger", "ends", "grouping"):
            yield replace(program, shapes=shapes)
    for number, file in enumerate(program.files):
        if len(file.lines) > 1:
            for half in (file.lines[: len(file.lines) // 2], file.lines[len(file.lines) // 2 :]):
                fewer = replace(file, lines=half)
                yield replace(program, files=(*program.files[:number], fewer, *program.files[number + 1 :]))
