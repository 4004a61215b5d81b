"""Programs of a simulated Spark are exact, whatever happens to their drivers; and the simulation finds each break."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

# A table is written by penstock's own code for PostgreSQL, and only the server is simulated.
pytest.importorskip("psycopg")
pytest.importorskip("sqlalchemy")
from tests.simulation.covering import MORE_TIMES, TIMES, covering_seeds, facts_of
from tests.simulation.mutants_of_native_streams import a_run_that_is_displaced_while_it_writes
from tests.simulation.mutants_of_streams import (
    KNOWN,
    MUTANTS,
    ORDER,
    Mutant,
    a_full_disk_after_the_end,
    a_table_and_a_driver_that_stands_still,
    a_table_and_another_source,
    a_table_and_another_watermark,
    one_source_more,
)
from tests.simulation.shrinking import Failure, failure_of, shrunk
from tests.simulation.simulated_drivers import Simulation
from tests.simulation.stream_programs import random_program

USUAL, LONG = 10_000, 20_000
"""Of the first number, programs always run that cover all pairs of facts; with ``soak``, all of the second number run.

Each takes about 50 ms of a processor.
"""

BOUND = 2_000
"""Each break of rare programs is found by this number of them at most; the others, by programs that cover all pairs."""


def first_failure(seeds: Iterable[int]) -> Failure | None:
    """The smallest form of the first program that fails."""
    for seed in seeds:
        failure = failure_of(seed)
        if failure is not None:
            return shrunk(failure)
    return None


@pytest.mark.parametrize("first", range(0, USUAL, 50))
def test_every_program_is_exact_whatever_happens_to_its_drivers(first: int) -> None:
    failure = first_failure(sorted(covering_seeds(USUAL) & {*range(first, first + 50)}))
    assert failure is None, f"\n{failure}"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, LONG, 250))
def test_many_more_programs_are_exact(first: int) -> None:
    failure = first_failure(range(first, first + 250))
    assert failure is None, f"\n{failure}"


def test_the_programs_that_always_run_have_each_pair_of_facts() -> None:
    facts = [facts_of(random_program(seed)) for seed in range(USUAL)]
    columns = {fact: number for number, fact in enumerate(sorted(frozenset().union(*facts)))}
    has = np.zeros((USUAL, len(columns)), np.float32)
    for seed, own in enumerate(facts):
        has[seed, [columns[fact] for fact in own]] = 1
    there, covered = (some.T @ some for some in (has, has[sorted(covering_seeds(USUAL))]))
    assert there.max() == USUAL
    assert (covered >= np.minimum(there, TIMES)).all()
    assert len(covering_seeds(USUAL)) < USUAL / 30


def test_a_seed_repeats_everything_that_happened() -> None:
    one, other = (Simulation(3, random_program(3), traced=True) for _ in range(2))
    one.run()
    other.run()
    assert len(one.world.trace or ()) > 50
    assert one.world.trace == other.world.trace


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_break_is_found_by_the_program_of_a_seed(mutant: Mutant) -> None:
    program = mutant.make(mutant.seed)
    with mutant.applied():
        assert failure_of(mutant.seed, program) is not None
    assert failure_of(mutant.seed, program) is None


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_break_is_found_without_knowing_the_seed(mutant: Mutant) -> None:
    is_usual = mutant.make is random_program
    with mutant.applied():
        seeds = sorted(covering_seeds(USUAL, MORE_TIMES)) if is_usual else range(BOUND)
        assert any(failure_of(seed, mutant.make(seed)) is not None for seed in seeds)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.soak) for first in (40, 80, 120))]
)
@pytest.mark.parametrize(
    "make",
    [a_table_and_another_watermark, a_table_and_another_source, a_table_and_a_driver_that_stands_still],
)
def test_a_table_has_each_row_once_wherever_a_program_is_cut_off_and_changed(make: Any, first: int) -> None:
    seeds = range(first, first + 40)
    failures = [failure for seed in seeds if (failure := failure_of(seed, make(seed))) is not None]
    assert not failures, f"\n{failures[0]}"


def test_state_is_written_anew_when_nothing_waits_any_more() -> None:
    """A step with a side input has a page that says so, and no keys."""
    assert failure_of(600_225) is None


def test_a_micro_batch_that_has_begun_after_the_end_is_whole_in_all_sinks() -> None:
    """Spark cannot note it as done, since the disk is full; the run is done nevertheless, and no run repeats it."""
    assert failure_of(215, a_full_disk_after_the_end(215)) is None


@pytest.mark.parametrize("seed", [0, 31, 183, 188, 1322, 1327])
def test_a_run_that_is_displaced_neither_takes_nor_adds_files_of_the_next_one(seed: int) -> None:
    """Both had one temporary folder: rows were lost, and others were there twice."""
    assert failure_of(seed, a_run_that_is_displaced_while_it_writes(seed)) is None


@pytest.mark.parametrize("without", [(), ("window_columns",)])
def test_a_window_that_has_ended_and_is_open_again_is_right(without: tuple[str, ...]) -> None:
    """A source is added, whose watermark is earlier."""
    for seed in range(20):
        program = one_source_more(seed)
        shapes = tuple(replace(shape, lateness=7, without=without) for shape in program.shapes)
        failure = failure_of(seed, replace(program, shapes=shapes))
        assert failure is None, f"\n{failure}"


def test_there_are_breaks_of_the_order_of_commits_and_of_each_known_fix() -> None:
    assert len(ORDER) >= 10
    assert {mutant.name for mutant in KNOWN} >= {
        "a stream that has failed is done",
        "a second run is not refused",
        "a drain ends the sources at once",
        "a run that has ended continues",
    }


def test_a_failure_is_shown_small_with_its_seed_and_what_happened() -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == "files have no number of the micro-batch"]
    with mutant.applied():
        failure = failure_of(mutant.seed)
        assert failure is not None
        small = shrunk(failure)
    assert len(small.program.lives) <= len(failure.program.lives)
    assert sum(len(file.lines) for file in small.program.files) <= 4
    assert f"seed {small.seed}" in str(small)
    assert "micro-batch 0 begins" in str(small)
