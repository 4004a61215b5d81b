"""Pipelines of programs, drawn without starting anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.construction.pipeline import Pipeline
from penstock.diagrams.graphs import svg_of
from penstock.diagrams.languages import dot_of, mermaid_of
from penstock.diagrams.steps import StepView, fold_composites, steps_of
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


FORMS = {
    "text": "┌",
    "text --horizontal": "╭─ Team ",
    "svg": "<svg",
    "svg --dark --horizontal": "<svg",
    "mermaid": "flowchart TD",
    "mermaid --dark --horizontal": '%%{init: {"theme": "dark"}}%%\nflowchart LR',
    "dot": "digraph {",
    "dot --dark --horizontal": "digraph {\n    rankdir=LR\n    graph [bgcolor=",
    "ir": "Read = ",
    "json": "[\n  {",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_command_draws_a_program(form: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = ["--to", *form.split()] if form != "text" else []
    assert command.main(["graph", str(program), *to, "--arguments", "Print"]) == 0
    out = capsys.readouterr().out
    assert "Sum" in out
    assert out.lstrip().startswith(FORMS[form]), out
    assert ("prefers-color-scheme" in out) == (form == "svg")
    sys.modules.pop("helper")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--dark", "--dark means nothing with --to text\n  hint: leave it out, or add --to svg or --to dot"),
        ("--to json --horizontal", "--horizontal means nothing with --to json"),
        ("--to ir --folded", "--folded means nothing with --to ir"),
        ("--to json --steps", "--steps means nothing with --to json"),
        ("--steps --folded", "not allowed with argument"),
    ],
)
def test_a_flag_that_a_form_cannot_follow_is_refused(
    arguments: str, said: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = command.main(["graph", str(program), *arguments.split()])
    except SystemExit as left:
        status = int(str(left.code))
    assert status == 2
    assert said in capsys.readouterr().err


def test_a_terminal_without_the_characters_of_boxes_gets_ascii(program: Path) -> None:
    for encoding, corner in (("ascii", "+--"), ("utf-8", "┌──")):
        shown = subprocess.run(
            [sys.executable, "-m", "penstock", "graph", str(program), "--arguments", "Print"],
            capture_output=True,
            encoding=encoding,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            check=True,
        )
        assert shown.stdout.lstrip().startswith(corner), shown.stdout


def test_json_has_the_types_and_the_line_of_each_step(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["graph", str(program), "--to=json", "--arguments", "Print"]) == 0
    steps = {step["label"]: step for step in json.loads(capsys.readouterr().out)}
    assert steps["Read"]["outputs"][0]["type"] == "<class 'int'>"
    assert steps["Team/Sum"]["inputs"] == ["Team/Pair"]
    assert steps["Team/Sum"]["written_at"] == "program.py:8"
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


def test_each_input_is_an_arrow_in_mermaid_and_dot() -> None:
    steps = steps_of(pipeline_of_program(EXAMPLES / "cookbook" / "side_inputs.py").to_graph())
    inputs = sum(len(step.inputs) for step in steps)
    sides = sum(len(step.side_inputs) for step in steps)
    assert sides == 3
    assert (mermaid_of(steps).count(" --> "), mermaid_of(steps).count(" -.-> ")) == (inputs, sides)
    assert (dot_of(steps).count(" -> "), dot_of(steps).count("dashed")) == (inputs + sides, sides)
    # A composite of two steps or more is a group.
    assert mermaid_of(STEPS).count("subgraph") == dot_of(STEPS).count("subgraph") == 0
    assert mermaid_of(STEPS, {}).count("\n") == len(STEPS) + 10


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
    shown = fold_composites(steps_of(pipeline.to_graph()))
    assert [(step.label, step.inputs, step.side_inputs) for step in shown] == [
        ("Read", (), ()),
        ("Count", ("Read",), ()),
        ("Join", ("Read",), ("Count",)),
    ]
    drawn = pipeline._repr_html_()
    assert drawn.count("<svg") == 2
    ET.fromstring(f"<all>{drawn}</all>")


def test_a_composite_that_elements_leave_and_enter_again_is_not_folded_and_has_no_frame() -> None:
    steps = (StepView("a/1", "Read"), StepView("b", "ParDo", ("a/1",)), StepView("a/2", "ParDo", ("b",)))
    assert fold_composites(steps) == steps
    assert 'class="group"' not in svg_of(steps)
    closed = (*steps[:2], StepView("c/2", "ParDo", ("b",)), StepView("c/3", "Write", ("c/2",)))
    assert [step.label for step in fold_composites(closed)] == ["a", "b", "c"]
    assert svg_of(closed).count('class="group"') == 1


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
