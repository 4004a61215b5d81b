"""The documentation site is built without a warning, and its pictures show what the machines do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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
    sys.path.append(str(ROOT / "docs"))
    try:
        from pictures import FOLDER, pictures
    finally:
        sys.path.pop()
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == pictures()
