"""Penstock's grouping gives what Beam's in-process runner gives, but for the differences that a page lists.

Generated programs are played on both. Each runs on a small model of grouping too, which has a switch for every
listed difference: with all of them on it must give what Beam gives, with all off what penstock gives. So a difference
that is not listed has no place to hide, and for each one that is found the model says what causes it.

A file says what came of each of 2,024 programs. The tests play a twentieth of them again; with the mark ``soak`` all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")

from penstock.machines.composite_triggers import AfterAllMachine
from penstock.machines.program import GroupingProgram as MachineProgram
from penstock.machines.simple_triggers import AfterCountMachine, EndOfWindowMachine
from tests.beam import beam_model, beam_runner, on_penstock
from tests.beam.beam_comparison import SEEDS, Report, causes, compare, model, outcome, sum_of
from tests.beam.beam_examples import EXAMPLES, element, program, transcript
from tests.beam.beam_panes import in_order
from tests.beam.beam_programs import Make, Program, programs
from tests.beam.beam_quirks import Quirk

OUTCOMES = Path(__file__).parent / "outcomes_of_seeds.txt"
"""What came of the programs of each seed; ``python -m tests.beam.beam_comparison`` writes it."""

EVERY = 20
"""Of so many seeds, the tests play the programs of one."""

PAGE = Path(__file__).parents[2] / "conformance" / "differences.md"
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes() -> dict[int, str]:
    """The line of each seed in the file."""
    lines = OUTCOMES.read_text(encoding="utf-8").splitlines()
    return {int(line.partition(":")[0]): line for line in lines}


@pytest.fixture(scope="module")
def on_file(outcomes: dict[int, str]) -> Report:
    """The outcomes of all seeds, added up."""
    return sum_of(outcomes.values())


@pytest.mark.parametrize(
    "seeds",
    [
        # The programs of the last seeds found that an element may be taken for one of a session that is finished.
        pytest.param([*SEEDS[:-3:EVERY], *SEEDS[-3:]], id="some"),
        pytest.param(SEEDS, marks=pytest.mark.soak, id="all"),
    ],
)
def test_no_difference_is_without_an_explanation(seeds: Sequence[int], outcomes: dict[int, str]) -> None:
    for seed in seeds:
        report = compare([seed])
        assert not report.unexplained, "\n".join(report.unexplained[:3])
        assert outcome(seed, report) == outcomes[seed]


def test_the_file_has_the_outcome_of_every_seed(outcomes: dict[int, str], on_file: Report) -> None:
    assert tuple(outcomes) == SEEDS
    assert on_file.programs == 2024


def test_many_programs_agree_in_every_pane_and_all_that_is_said_of_it(on_file: Report) -> None:
    [on_page] = re.findall(r"([\d,]+) of them agree", PAGE.read_text(encoding="utf-8"))
    assert f"{on_file.agreeing:,}" == on_page


def test_the_page_lists_the_differences_that_are_found_and_no_others(on_file: Report) -> None:
    assert set(on_file.causes) == set(Quirk)
    assert ROW.findall(PAGE.read_text(encoding="utf-8")) == ROW.findall(on_file.table())


@pytest.mark.parametrize("quirk", Quirk, ids=lambda quirk: quirk.name)
def test_every_listed_difference_has_a_program_in_which_it_alone_is_the_cause(quirk: Quirk) -> None:
    example = EXAMPLES[quirk]
    [panes] = beam_runner.run([example])
    beam, penstock = in_order(panes), in_order(on_penstock.run(example))
    assert beam != penstock
    assert model(example, frozenset([quirk])) == beam
    assert model(example, beam_model.BEAM - {quirk}) == penstock
    assert causes(example, beam) == {quirk}


@pytest.mark.parametrize("quirk", Quirk, ids=lambda quirk: quirk.name)
def test_the_page_explains_every_difference_and_shows_its_program(quirk: Quirk) -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    [section] = [section for section in sections if section.startswith(f"`{quirk.name}`")]
    assert f"```\n{transcript(EXAMPLES[quirk])}```" in section
    assert "**Who is right.**" in section


GAPS = program(Make("SlidingWindows", 5, 10), Make("DefaultTrigger"), element(1, 7))
DEFAULTS = replace(program(Make("GlobalWindows"), Make("DefaultTrigger"), element(1, 7)), summed=True)


@pytest.mark.parametrize(
    ("refused", "error", "panes"),
    [
        pytest.param(GAPS, IndexError, 0, id="no window"),
        pytest.param(DEFAULTS, RuntimeError, 1, id="defaults"),
    ],
)
def test_what_the_programs_leave_out_is_an_error_in_beams_runner_only(
    refused: Program, error: type[Exception], panes: int
) -> None:
    assert len(on_penstock.run(refused)) == panes
    with pytest.raises(error):
        beam_runner.run([refused])


MUTANTS: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "counts one too many": (
        AfterCountMachine,
        "should_fire",
        lambda trigger, state, status: state > trigger.enough,
    ),
    "takes any for all": (AfterAllMachine, "_of_parts", lambda trigger, answers: any(answers)),
    "misses the end of the window": (
        *(EndOfWindowMachine, "should_fire"),
        lambda trigger, state, status: status.times.watermark_micros > status.window.end_micros,
    ),
    "lets go one microsecond later": (
        *(MachineProgram, "expiry_micros"),
        lambda machine, window: window.end_micros + machine.lateness_micros + 1,
    ),
}


SOME = [each for seed in range(30) for each in programs(seed, 8)]


def is_explained(some: Program) -> bool:
    """True if the model gives for a program what the machine gives."""
    return model(some, beam_model.PENSTOCK) == in_order(on_penstock.run(some))


def test_a_machine_that_is_whole_does_as_the_model_does() -> None:
    assert all(map(is_explained, SOME))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_machine_that_is_broken_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    assert not all(map(is_explained, SOME))
