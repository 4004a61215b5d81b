"""Pipelines of programs, drawn without starting anything."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.construction.pipeline import Pipeline
from penstock.diagrams.graphs import mermaid_of, svg_of
from penstock.diagrams.steps import StepView, fold_composite, steps_of
from penstock.pvalue import AsList
from penstock.transforms.combiners import Count
from penstock.transforms.core import Create, DoFn, FlatMap, ParDo
from penstock.transforms.display import DisplayDataItem
from penstock_conformance import command
from penstock_conformance.program_graphs import pipeline_of_program
from tests.live.sample import HOSTILE, STEPS

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = """
import sys
import helper
import penstock as beam

with beam.Pipeline() as pipeline:
    pairs = pipeline | "Read" >> beam.Create([1, 2]) | "Team/Pair" >> beam.Map(helper.pair)
    _ = pairs | "Team/Sum" >> beam.CombinePerKey(sum) | sys.argv[1] >> beam.Map(print)
open("ran", "w").close()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "helper.py").write_text("def pair(x):\n    return x, x\n", encoding="utf-8")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def test_a_program_goes_on_until_it_runs_its_pipeline(program: Path) -> None:
    argv, folders, run = sys.argv, list(sys.path), Pipeline.run
    graph = pipeline_of_program(program, ["Print"]).to_graph()
    assert [step.label for step in graph.steps][-2:] == ["Team/Sum", "Print"]
    assert not Path("ran").exists()
    assert (sys.argv, sys.path, Pipeline.run) == (argv, folders, run)
    sys.modules.pop("helper")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has run no pipeline"),
        ("import sys\nsys.exit(3)", "has ended with the status 3"),
        ("import sys\nsys.exit()", "has run no pipeline"),
    ],
)
def test_a_program_without_a_pipeline_is_refused_with_a_hint(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said) as refused:
        pipeline_of_program(path)
    assert "hint: " in str(refused.value)


@pytest.mark.parametrize("form", ["text", "svg", "mermaid"])
def test_the_command_draws_a_program(form: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["graph", str(program), "--to", form, "--arguments", "Print"]) == 0
    out = capsys.readouterr().out
    assert "Sum" in out
    assert out.startswith({"text": "Read = ", "svg": "<svg", "mermaid": "flowchart TD"}[form])
    sys.modules.pop("helper")


def test_a_file_that_does_not_exist_is_a_wrong_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["graph", "no_such_program.py"]) == 2
    assert "there is no file no_such_program.py" in capsys.readouterr().err


def test_the_script_of_the_command_is_not_a_program_of_the_user() -> None:
    script = Path(sys.executable).with_name("penstock")
    told = subprocess.run(
        [sys.executable, script, "graph", "absent.py"], capture_output=True, text=True, check=False
    )
    assert told.stderr == "there is no file absent.py\n  hint: name the file of a program\n"


def test_examples_are_drawn_with_an_arrow_for_each_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The program writes its files here before it runs its pipeline.
    monkeypatch.chdir(tmp_path)
    for name in ("leaderboard.py", "wordcount.py"):
        steps = steps_of(pipeline_of_program(EXAMPLES / name, ["--output", str(tmp_path)]).to_graph())
        drawn = mermaid_of(steps)
        assert drawn.count(" --> ") == sum(len(step.inputs) for step in steps) > 5
        assert drawn.count(" -.-> ") == sum(len(step.side_inputs) for step in steps)


def test_a_drawing_has_a_box_a_step_below_what_it_reads_and_none_over_another() -> None:
    tree = ET.fromstring(svg_of(STEPS, "scores"))
    space = "{http://www.w3.org/2000/svg}"
    found: dict[str, tuple[float, float, float]] = {}
    for group in tree.iter(f"{space}g"):
        title, box = group.find(f"{space}title"), group.find(f"{space}rect")
        assert title is not None
        assert box is not None
        label = str(title.text).rpartition(" = ")[0]
        found[label] = (float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
    assert found.keys() == {step.label for step in STEPS}
    for step in STEPS:
        for before in (*step.inputs, *step.side_inputs):
            assert found[before][1] < found[step.label][1]
    boxes = sorted((y, x, width) for x, y, width in found.values())
    for (y, x, width), (other_y, other_x, _) in pairwise(boxes):
        assert y != other_y or x + width < other_x


def test_a_hostile_label_is_text_in_drawings() -> None:
    steps = (StepView(f'a "quoted" {HOSTILE} \x00', "Read"),)
    assert HOSTILE not in svg_of(steps, HOSTILE)
    ET.fromstring(svg_of(steps, HOSTILE))
    assert HOSTILE not in mermaid_of(steps)
    assert mermaid_of(steps).count('"') == 2


def test_an_empty_pipeline_has_a_drawing() -> None:
    ET.fromstring(svg_of(()))


def test_a_composite_is_one_box_and_a_click_shows_all_steps() -> None:
    pipeline = Pipeline()
    words = pipeline | "Read/Words" >> Create(["a"])
    counts = words | "Count" >> Count.PerElement()
    _ = words | "Join" >> FlatMap(lambda word, seen: [word], seen=AsList(counts))
    shown = fold_composite(steps_of(pipeline.to_graph()))
    assert [(step.label, step.inputs, step.side_inputs) for step in shown] == [
        ("Read", (), ()),
        ("Count", ("Read",), ()),
        ("Join", ("Read",), ("Count",)),
    ]
    drawn = pipeline._repr_html_()
    assert drawn.count("<svg") == 2
    ET.fromstring(f"<all>{drawn}</all>")


def test_labels_with_slashes_may_fold_into_a_circle() -> None:
    steps = (StepView("a/1", "Read"), StepView("b", "ParDo", ("a/1",)), StepView("a/2", "ParDo", ("b",)))
    assert [step.inputs for step in fold_composite(steps)] == [("b",), ("a",)]
    ET.fromstring(svg_of(fold_composite(steps)))


def test_a_folded_graph_is_drawn_but_not_told_as_text(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["graph", str(program), "--to=mermaid", "--folded", "--arguments", "Print"]) == 0
    assert "Team/Sum" not in capsys.readouterr().out
    assert command.main(["graph", str(program), "--folded", "--arguments", "Print"]) == 2
    assert "add --to svg or --to mermaid" in capsys.readouterr().err
    sys.modules.pop("helper")


def test_a_drawing_shows_the_display_data_of_steps_where_the_pointer_rests() -> None:
    class Parse(DoFn):
        def __init__(self, team: str) -> None:
            self.team = team

        def process(self, line: str) -> list[str]:
            return [line]

        def display_data(self) -> dict[str, Any]:
            return {
                "team": DisplayDataItem(self.team, label="Team"),
                "none": DisplayDataItem(None).drop_if_none(),
            }

    pipeline = Pipeline()
    _ = pipeline | Create(["a"]) | "Parse" >> ParDo(Parse("<red>"))
    assert pipeline.facts()["Parse"] == ("Transform Function: Parse", "Team: <red>")
    shown = pipeline._repr_html_()
    assert "<title>Parse = ParDo\nTransform Function: Parse\nTeam: &lt;red&gt;</title>" in shown
