"""Pipelines as boxes and arrows of a terminal: what is drawn is what the pipeline is."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import penstock as beam
from penstock.diagrams import channels
from penstock.diagrams.drawing import links_of
from penstock.diagrams.notes import notes_of
from penstock.diagrams.steps import StepView, fold_composites, steps_of
from penstock.diagrams.text import measure_width, text_of
from penstock.pvalue import AsDict
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows
from penstock_conformance import command

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parent / "drawings"
Place = tuple[int, int]
_TURNS = {
    "┌": {(0, -1): (1, 0), (-1, 0): (0, 1)},
    "┐": {(0, -1): (-1, 0), (1, 0): (0, 1)},
    "└": {(0, 1): (1, 0), (-1, 0): (0, -1)},
    "┘": {(0, 1): (-1, 0), (1, 0): (0, -1)},
}
_STRAIGHT = {"│": (0, 1), "┆": (0, 1), "─": (1, 0), "┄": (1, 0)}


class Drawn:
    """A drawing, read as a person reads it: rectangles with a name, and lines that are followed to their arrows."""

    def __init__(self, text: str) -> None:
        self._rows = text.splitlines()
        self._owners: dict[Place, str] = {}
        self.labels: list[str] = []
        for y, row in enumerate(self._rows):
            for x, character in enumerate(row):
                if character == "┌" and self._name(x, y):
                    self._box(x, y)

    def at(self, x: int, y: int) -> str:
        return self._rows[y][x] if 0 <= y < len(self._rows) and 0 <= x < len(self._rows[y]) else " "

    def _name(self, x: int, y: int) -> str:
        """The first text in the box whose upper left corner this is; empty if it is the corner of a line."""
        if self.at(x, y + 1) not in "│├" or self.at(x + 1, y + 1) != " ":
            return ""
        name = ""
        for column in range(x + 2, len(self._rows[y + 1])):
            if not (self.at(column, y + 1).isalnum() or self.at(column, y + 1) == "/"):
                break
            name += self.at(column, y + 1)
        return name

    def _box(self, x: int, y: int) -> None:
        right, bottom = x + 1, y + 1
        while self.at(right, y) != "┐":
            assert self.at(right, y) == "─"
            right += 1
        while self.at(x, bottom) != "└":
            assert self.at(x, bottom) == "│"
            bottom += 1
        name = self._name(x, y)
        self.labels.append(name)
        for row in range(y, bottom + 1):
            for column in range(x, right + 1):
                assert (column, row) not in self._owners, "two boxes overlap"
                self._owners[column, row] = name

    def links(self) -> Counter[tuple[str, str, bool]]:
        """The boxes that lines join, and whether they are dashed."""
        found: Counter[tuple[str, str, bool]] = Counter()
        for (x, y), name in self._owners.items():
            if self.at(x, y) == "┬":
                found[name, *self._follow(x, y, (0, 1))] += 1
            elif self.at(x, y) == "├":
                found[name, *self._follow(x, y, (1, 0))] += 1
        return found

    def _follow(self, x: int, y: int, step: Place) -> tuple[str, bool]:
        characters = ""
        while True:
            x, y = x + step[0], y + step[1]
            character = self.at(x, y)
            if character in "▼►":
                return self._owners[x + step[0], y + step[1]], not set(characters).isdisjoint("┆┄")
            assert (x, y) not in self._owners, "a line goes through a box"
            characters += character
            if character in _TURNS:
                step = _TURNS[character][step]
            elif character != "┼":
                assert _STRAIGHT[character] == (abs(step[0]), abs(step[1])), "a line is broken"


def random_steps(seed: int) -> list[StepView]:
    """Steps that read earlier ones in any way, in composites within composites."""
    chance = random.Random(seed)
    steps: list[StepView] = []
    for number in range(chance.randint(1, 14)):
        path = "".join(f"g{chance.randint(0, 2)}/" for _ in range(chance.choice((0, 0, 1, 1, 2))))
        earlier = [step.label for step in steps]
        inputs = chance.choices(earlier, k=chance.randint(0, 3)) if earlier else []
        sides = chance.sample(earlier, k=min(chance.choice((0, 0, 0, 1, 2)), len(earlier)))
        steps.append(StepView(f"{path}s{number}", "ParDo", tuple(inputs), tuple(sides)))
    return steps


def faults(seeds: Iterable[int], is_horizontal: bool) -> list[str]:
    """What is wrong with the drawings of random steps."""
    found = []
    for seed in seeds:
        steps = random_steps(seed)
        notes = {step.label: [f"number {seed}"] * (seed % 3) for step in steps}
        try:
            drawn = Drawn(text_of(steps, notes, is_horizontal=is_horizontal))
            names = [label.rpartition("/")[2] for label in drawn.labels]
            assert sorted(names) == sorted(step.label.rpartition("/")[2] for step in steps)
            wanted = Counter(
                (one.source.rpartition("/")[2], one.target.rpartition("/")[2], one.is_side)
                for one in links_of(steps)
            )
            seen = Counter(
                (source.rpartition("/")[2], target.rpartition("/")[2], dashed)
                for source, target, dashed in drawn.links().elements()
            )
            # A short line has no room for dashes.
            assert Counter(one[:2] for one in seen.elements()) == Counter(
                one[:2] for one in wanted.elements()
            )
            assert all(seen[one] <= wanted[one] for one in seen if one[2]), "a line is dashed"
        except (AssertionError, KeyError) as fault:
            found.append(f"{seed}: {type(fault).__name__} {fault}")
    return found


@pytest.mark.parametrize("is_horizontal", [False, True], ids=["down", "right"])
def test_each_step_is_a_box_and_each_input_a_line_that_ends_at_an_arrow(is_horizontal: bool) -> None:
    assert faults(range(60), is_horizontal) == []


@pytest.mark.soak
@pytest.mark.parametrize("is_horizontal", [False, True], ids=["down", "right"])
def test_many_more_steps_and_inputs_are_drawn(is_horizontal: bool) -> None:
    assert faults(range(1_000, 6_000), is_horizontal) == []


@pytest.mark.parametrize("broken", ["tracks in any order", "columns of others"])
def test_a_drawing_whose_lines_run_into_each_other_is_found(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "columns of others":
        monkeypatch.setattr(channels._Ports, "is_free", lambda self, column, link: True)
    monkeypatch.setattr(channels, "_set_above", lambda *_: None)
    assert faults(range(60), False) != []


def parse(line: str) -> tuple[str, int]:
    team, points = line.split(",")
    return team, int(points)


def named(total: tuple[str, int], names: dict[str, str]) -> str:
    return f"{names[total[0]]}: {total[1]}"


class Totals(beam.PTransform[beam.PCollection[str], beam.PCollection[tuple[str, int]]]):
    def expand(self, lines: beam.PCollection[str]) -> beam.PCollection[tuple[str, int]]:
        firing = AfterWatermark(AfterCount(5), AfterCount(1)), AccumulationMode.ACCUMULATING
        windows = beam.WindowInto(FixedWindows(60), *firing, allowed_lateness=3600)
        return lines | "Parse" >> beam.Map(parse) | "Minutes" >> windows | "Sum" >> beam.CombinePerKey(sum)


def scores() -> beam.Pipeline:
    """A pipeline with a composite, a Flatten, a side input, two outputs and windows."""
    pipeline = beam.Pipeline()
    lines = [pipeline | f"Game{number}" >> beam.Create(["red,1"]) for number in (1, 2)] | beam.Flatten()
    names = pipeline | "Names" >> beam.Create([("red", "Red Kite")])
    shown, failed = lines | Totals() | beam.Map(named, AsDict(names)).with_exception_handling()
    _ = shown | "Show" >> beam.Map(print)
    _ = failed | "Failed" >> beam.Map(print)
    return pipeline


@pytest.mark.parametrize("way", ["down", "right", "ascii", "folded", "steps"])
def test_a_drawing_is_as_it_was(way: str) -> None:
    """PENSTOCK_UPDATE_GOLDEN=1 writes the files anew; then read them."""
    pipeline = scores()
    graph, folds = pipeline.to_graph(), {} if way == "steps" else pipeline.ready_made()
    steps = fold_composites(steps_of(graph), None if way == "folded" else folds)
    notes = None if way in ("folded", "steps") else notes_of(graph, steps, folds)
    drawn = text_of(steps, notes, is_horizontal=way == "right", is_ascii=way == "ascii") + "\n"
    path = GOLDEN / f"{way}.txt"
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")


def test_wide_characters_and_marks_keep_their_boxes() -> None:
    labels = ("合計", "e\u0301te\u0301", "tab\tand\x1b[31mred", "a" * 200)
    rows = text_of([StepView(label, "Read") for label in labels], columns=1_000).splitlines()
    assert {measure_width(row) for row in rows} == {measure_width(rows[0])}
    assert all(row.isprintable() for row in rows)


def test_a_drawing_that_is_too_wide_is_made_narrower() -> None:
    reads = [StepView(f"Read the file number {number} of the game", "Read") for number in range(4)]
    steps = [*reads, StepView("All", "Flatten", tuple(step.label for step in reads))]
    widths = [measure_width(text_of(steps, columns=columns)) for columns in (200, 80)]
    assert widths[0] > 80 >= widths[1]
    assert "Read the file num…" in text_of(steps, columns=80, narrowest=18)


def test_the_program_of_the_readme_fits_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The program writes its files here before it runs its pipeline.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    program = [str(EXAMPLES / "leaderboard.py"), "--arguments", f"--output={tmp_path}"]
    assert command.main(["graph", *program]) == 0
    out, err = capsys.readouterr()
    assert measure_width(out) <= 80
    assert {"ReadCommits", "TotalOfAuthors", "BestOfWeeks", "WriteLateness"} <= set(out.split())
    assert "composites are folded, to fit 80 columns" in err
