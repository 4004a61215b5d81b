"""How Sphinx makes the documentation site of the project's Markdown pages and docstrings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# The docstrings are those of this checkout, whatever is installed.
sys.path[:0] = [str(ROOT / folder) for folder in ("sdk", "runner_spark", "connectors", "conformance", "docs")]

from prompts import end_statements, end_statements_in_page  # noqa: E402
from reference_examples import examples_by_name  # noqa: E402

project = "penstock"
copyright = "the penstock authors"
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "docs/reference/examples/*.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "STYLE.md",
    "conformance/*.md",
    "deploy/README.md",
    "conformance/penstock_conformance/transcripts/FORMAT.md",
    "tests/beam_suite/README.md",
]
# Sphinx looks for pages in every other folder, and a virtual environment has many.
exclude_patterns = [".*"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "penstock"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(ROOT / "docs/static/search_scorer.js")
copybutton_prompt_text = r">>> |\.\.\. |\.\.\.$|\$ "
copybutton_prompt_is_regexp = True

myst_heading_anchors = 4
# Docstrings have names in single backticks, as Markdown has.
default_role = "code"
# The tables of the reference list names; the pages beside them have their text.
autosummary_generate = False
# A method that overrides another one, such as `expand`, is shown where it says something of its own.
autodoc_inherit_docstrings = False
# A default value is shown as it is written.
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_ivar = True


_OF_DEVELOPERS = (
    "ARCHITECTURE",
    "CONTRIBUTING",
    "STYLE",
    "docs/decisions/",
    "docs/design/",
    "docs/test_cost",
    "tests/",
)
"""The pages that concern those who change penstock: the search shows what its users need."""


def setup(app: Any) -> None:
    """Keeps pages for developers out of the search, leads from the root to the front page, and adds examples."""
    app.connect("autodoc-process-docstring", _add_example)
    app.connect("autodoc-skip-member", _skip_field)
    app.connect("source-read", _prepare_source)
    app.connect("build-finished", _lead_to_the_front_page)


def _lead_to_the_front_page(app: Any, _error: Exception | None) -> None:
    """Writes the page at the root of the site, which leads to the front page."""
    where = '<meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">'
    text = f'<!doctype html>{where}<title>penstock</title><a href="docs/index.html">penstock</a>\n'
    Path(app.outdir, "index.html").write_text(text, encoding="utf-8")


def _prepare_source(_app: Any, name: str, source: list[str]) -> None:
    metadata = "nosearch: true\n" if name.startswith(_OF_DEVELOPERS) else ""
    if name.startswith("docs/decisions/0"):
        metadata += "orphan: true\n"
    if metadata:
        source[0] = f"---\n{metadata}---\n\n{source[0]}"
    # An empty line ends an example for doctest, and is nothing to look at.
    source[0] = end_statements_in_page(source[0].replace("\n\n```\n", "\n```\n"))


def _skip_field(_app: Any, _what: str, _name: str, member: Any, _skip: bool, _options: Any) -> bool | None:
    """True if a member is a field of a named tuple, which Python itself describes; the class lists its fields."""
    return True if type(member).__name__ == "_tuplegetter" else None


def _add_example(_app: Any, what: str, name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Adds the example of a public class or function to the end of its docstring."""
    example = examples_by_name().get(name.rpartition(".")[2])
    if example is not None and what in ("class", "data", "function"):
        code = [f"   {line}".rstrip() for line in end_statements(example).splitlines()]
        lines += ["", ".. rubric:: Example", "", ".. code-block:: pycon", "", *code, ""]
