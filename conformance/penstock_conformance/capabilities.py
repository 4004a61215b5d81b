"""The capabilities that the literature asks for, and where each is shown, from files that people write."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.error import refusal

ROOT = Path(__file__).parents[2]
"""The folder of the project, unless this is an installed package."""

CAPABILITIES = ROOT / "conformance" / "capabilities"


@dataclass(frozen=True)
class Capability:
    """A figure, or a capability that a source asks for."""

    name: str  # Such as ``figure 7``, ``C-100`` or ``S6-02``.
    what: str
    # Other places that show it: ``tests/folder/test_file.py::name``, ``docs/page.md#heading``, or a file.
    places: tuple[str, ...] = ()
    note: str = ""
    is_built: bool = True
    not_here: str = ""  # Why it does not suit an engine on Spark; empty if it does.
    explained: Mapping[str, str] = field(default_factory=dict)  # For a figure, why a mode does not play it.


@dataclass(frozen=True)
class Chapter:
    """The capabilities of one source, in its order."""

    title: str
    capabilities: tuple[Capability, ...]


def read_chapters(folder: Path = CAPABILITIES) -> tuple[Chapter, ...]:
    """All sources, from their files; the first one has the figures.

    >>> figures, paper = read_chapters()[:2]
    >>> paper.title, paper.capabilities[0].name
    ('The Dataflow Model (VLDB 2015)', 'C-001')
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        what = "the table needs the list of capabilities, which only a clone of the project has"
        raise refusal(
            ValueError, what, where=f"not in {folder}", hint="clone the project, and install it with -e"
        )
    return tuple(_chapter(path) for path in files)


def _chapter(path: Path) -> Chapter:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    title = content.pop("title")
    return Chapter(title, tuple(_capability(path, name, about) for name, about in content.items()))


def _capability(path: Path, name: str, about: Mapping[str, Any]) -> Capability:
    unknown = about.keys() - {"what", "in", "note", "built", "not_here", "explained"}
    if unknown or "what" not in about:
        what = f"{name} says {', '.join(sorted(unknown))}" if unknown else f"{name} does not say what it is"
        hint = "write what, in, note, built, not_here, explained"
        raise refusal(ValueError, what, where=f"at {path.name}", hint=hint)
    if "not_here" in about and (not about["not_here"].strip() or about.keys() - {"what", "not_here"}):
        what = f"{name} is not for this engine, and that needs a reason and nothing else"
        hint = "write what and not_here, with a reason; what is shown somewhere has no not_here"
        raise refusal(ValueError, what, where=f"at {path.name}", hint=hint)
    return Capability(
        name,
        about["what"],
        tuple(about.get("in", ())),
        about.get("note", ""),
        about.get("built", True),
        about.get("not_here", ""),
        about.get("explained", {}),
    )


def find_wrong_places(capability: Capability, root: Path = ROOT) -> Iterator[str]:
    """The places of a capability that do not exist below `root`.

    >>> list(find_wrong_places(Capability("C-1", "nothing", ("docs/triggers.md#triggers", "docs/none.md"))))
    ['docs/none.md']
    """
    for place in capability.places:
        file, _, name = place.partition("::")
        file, _, anchor = file.partition("#")
        path = root / file
        text = path.read_text(encoding="utf-8") if path.is_file() else None
        if text is None or (name and f"def {name}(" not in text) or (anchor and anchor not in _anchors(text)):
            yield place


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings."""
    headings = (line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#"))
    return {
        "".join(letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
        for heading in headings
    }
