"""Compares penstock's grouping with Beam's over generated programs, and says of each difference what causes it.

As a program, ``python -m tests.beam.beam_comparison > tests/beam/outcomes_of_seeds.txt`` compares the programs of all
seeds of the tests, writes down what came of each, and prints a table; ``0 250`` asks for other seeds.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.beam import beam_model, beam_runner, on_penstock
from tests.beam.beam_panes import Shown, in_order
from tests.beam.beam_programs import Program, programs
from tests.beam.beam_quirks import Quirk

PROGRAMS_PER_SEED = 8
SEEDS = (*range(250), 1096, 2014, 2291)


@dataclass
class Report:
    """What came of a comparison.

    Attributes:
        programs: How many there were.
        agreeing: For how many of them both give the same panes, in all respects.
        causes: How many are different because of each quirk, mostly of several.
        unexplained: Those that the model does not explain, in words.
    """

    programs: int = 0
    agreeing: int = 0
    causes: Counter[Quirk] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def add(self, program: Program, beam: list[Shown], penstock: list[Shown]) -> None:
        """Compares one program's panes with each other and with the model's."""
        self.programs += 1
        modelled_beam = model(program, beam_model.BEAM)
        modelled_penstock = model(program, beam_model.PENSTOCK)
        if (modelled_beam, modelled_penstock) != (beam, penstock):
            self.unexplained.append(
                f"{program}\n"
                f"{_differences('Beam', beam, modelled_beam)}{_differences('penstock', penstock, modelled_penstock)}"
            )
        elif beam == penstock:
            self.agreeing += 1
        else:
            self.causes.update(causes(program, beam))

    def table(self) -> str:
        """A row for each quirk."""
        return "".join(f"| `{quirk.name}` | {self.causes[quirk]:,} |\n" for quirk in Quirk)


def compare(seeds: Iterable[int]) -> Report:
    """Compares the programs of some seeds."""
    report = Report()
    for seed in seeds:
        some = programs(seed, PROGRAMS_PER_SEED)
        for program, beam in zip(some, beam_runner.run(some), strict=True):
            report.add(program, in_order(beam), in_order(on_penstock.run(program)))
    return report


def outcome(seed: int, report: Report) -> str:
    """What came of the programs of one seed, as a line of the file."""
    counts = [("agree", report.agreeing), *((quirk.name, report.causes[quirk]) for quirk in Quirk)]
    return f"{seed}: " + ", ".join(f"{name} {count}" for name, count in counts if count)


def sum_of(lines: Iterable[str]) -> Report:
    """What came of the programs of all seeds of the file."""
    report = Report()
    for line in lines:
        report.programs += PROGRAMS_PER_SEED
        for name, count in (part.split() for part in line.partition(": ")[2].split(", ")):
            if name == "agree":
                report.agreeing += int(count)
            else:
                report.causes[Quirk[name]] += int(count)
    return report


def model(program: Program, quirks: frozenset[Quirk]) -> list[Shown]:
    """What the model gives."""
    return in_order(beam_model.play(program, quirks))


def causes(program: Program, beam: list[Shown]) -> frozenset[Quirk]:
    """Quirks with which the model gives what Beam gives, and none of which can be left out: one, if one is enough."""
    for quirk in Quirk:
        if model(program, frozenset([quirk])) == beam:
            return frozenset([quirk])
    needed = beam_model.BEAM
    for quirk in Quirk:
        if model(program, needed - {quirk}) == beam:
            needed -= {quirk}
    return needed


def _differences(name: str, panes: list[Shown], modelled: list[Shown]) -> str:
    if panes == modelled:
        return ""
    return "".join(
        f"  {who}:\n" + "".join(f"    {pane}\n" for pane in some)
        for who, some in ((name, panes), (f"{name} by the model", modelled))
    )


def _main(first: str = "", end: str = "") -> None:
    lines = []
    for seed in range(int(first), int(end)) if end else SEEDS:
        report = compare([seed])
        print("\n".join(report.unexplained), end="", file=sys.stderr)
        lines.append(outcome(seed, report))
        print(lines[-1], flush=True)
    whole = sum_of(lines)
    print(whole.table(), file=sys.stderr)
    print(f"{whole.programs:,} programs, {whole.agreeing:,} agree", file=sys.stderr)


if __name__ == "__main__":
    _main(*sys.argv[1:])
