"""A program that ends without having run its pipeline says so, unless its user knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import penstock as beam

def built(*names):
    p = beam.Pipeline()
    for name in names:
        p | name >> beam.Create([1])
    return p

def built_elsewhere():
    p = beam.Pipeline()
    p | beam.Create([2])

built()
built("A", "B")
built("C")
built_elsewhere()
built("explained").explain()
built("drawn")._repr_html_()
built("visited").visit(beam.pipeline.PipelineVisitor())
try:
    with built("failed") as p:
        raise KeyError
except KeyError:
    pass
try:
    built("wrong") | "wrong" >> beam.Create([3])
except RuntimeError:
    pass
"""


def errors_of(program: str, folder: Path) -> str:
    """What a program of its own writes to the standard error stream."""
    file = folder / "game.py"
    file.write_text(program)
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert ran.stdout == ""
    return ran.stderr


def test_a_pipeline_that_was_never_run_is_named_at_the_end_of_its_program(tmp_path: Path) -> None:
    hint = "  hint: make it with 'with beam.Pipeline() as p:', or call its run() at the end\n"
    assert errors_of(PROGRAM, tmp_path) == (
        f"a pipeline of 2 transforms was never run\n  made at game.py:5\n{hint}"
        f"a pipeline of one transform was never run\n  made at game.py:11\n{hint}"
    )


def test_a_program_that_ends_with_an_error_says_nothing_of_pipelines(tmp_path: Path) -> None:
    told = errors_of(f"{PROGRAM}\nraise KeyError('mine')", tmp_path)
    assert "KeyError: 'mine'" in told
    assert "never run" not in told
