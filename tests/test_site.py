"""The documentation site is built without a warning, and its pictures show what the machines do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def scripts_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the scripts beside the pages importable."""
    monkeypatch.syspath_prepend(ROOT / "docs")


SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
"""Sphinx without a search for garbage among its millions of objects: a quarter of the time."""


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("apache_beam")
    command = [sys.executable, "-c", SPHINX, "-q", "-W", "--keep-going", "-c", "docs"]
    # Without every object in the table of contents, which the theme copies for each page: a third of the time.
    command += ["-D", "toc_object_entries=0", ".", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert [page for page in sorted(pages) if not (tmp_path / page).exists()] == []
    reference = (tmp_path / "docs/reference/pipelines.html").read_text(encoding="utf-8")
    assert 'id="penstock.CombinePerKey"' in reference
    assert 'id="penstock.Pipeline.run"' in reference


def test_the_pictures_of_the_model_are_what_the_machines_do() -> None:
    from pictures import FOLDER, pictures

    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == pictures()


def test_a_value_of_the_moving_picture_appears_when_its_pane_fires() -> None:
    from motion import RISE_PERCENT, percents_of_values
    from pictures import FOLDER, MOVING

    still = (FOLDER / "early_and_late.svg").read_text(encoding="utf-8")
    fired = [
        minutes(pane) for pane in re.findall(r"<title>\d+ in [^<]*pane \d+, at ([\d:.]+)</title>", still)
    ]
    parts = sorted(percent / RISE_PERCENT for percent in percents_of_values(still))
    first, last = min(fired), max(fired)
    expected = [parts[0] + (parts[-1] - parts[0]) * (at - first) / (last - first) for at in sorted(fired)]
    assert len(parts) == 8
    assert parts == pytest.approx(expected, abs=0.002)
    moving = (FOLDER / MOVING).read_text(encoding="utf-8")
    assert [f'class="v{number} value' in moving for number in range(9)] == [True] * 8 + [False]
    assert "http" not in moving.replace("http://www.w3.org/2000/svg", "")


def minutes(time_of_day: str) -> float:
    """A time of day in minutes."""
    hours, minute, second = time_of_day.split(":")
    return int(hours) * 60 + int(minute) + float(second) / 60
