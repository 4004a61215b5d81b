"""The example notebook runs from top to bottom, and shows what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "scores.ipynb"


def shown(cell: Any) -> str:
    """What a cell shows, as HTML where there is any, else as text."""
    texts = [output.get("text", "") for output in cell.outputs]
    data = [output.get("data", {}) for output in cell.outputs]
    return "".join([*texts, *(one.get("text/html", one.get("text/plain", "")) for one in data)])


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_the_example_notebook_runs_and_shows_tables_a_figure_and_a_short_error(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # As other programs of the tests: Java only compiles quickly, which takes half of the time.
    [built] = [cell for cell in notebook.cells if "beam.Pipeline(record_events=100)" in cell.source]
    built.source = built.source.replace("record_events=100", "record_events=100, fast_start=True")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, goals, totals, collected, drawing, result, figure, mistake = (
        shown(cell) for cell in notebook.cells if cell.cell_type == "code"
    )
    assert "<th>team</th><th>points</th><th>second</th>" in goals
    assert goals.count("<tr>") == 4
    assert "made by</th><td>Total" in totals
    assert collected.count("<tr>") == 4
    assert drawing.count("<svg") == 1
    assert "CombinePerKey, FixedWindows" in drawing
    assert "state</th><td>DONE" in result
    assert "<svg" in result
    assert "<svg" in figure
    assert "hint:" in mistake
    assert "Traceback" not in mistake
