"""What the literature asks for, by name, and where each of it is shown: data that people write, read from files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.error import three_parts

ROOT = Path(__file__).parents[2]
"""The folder of the project, where this is not an installed package."""

CAPABILITIES = ROOT / "conformance" / "capabilities"


@dataclass(frozen=True)
class Capability:
    """A figure, or something that a source asks for.

    Attributes:
        name: Its name, such as ``figure 7``, ``C-100`` or ``S6-02``.
        what: What it is, in a few words.
        places: Where it is shown besides the transcripts that name it: ``tests/folder/test_file.py::name``,
            ``docs/page.md#heading``, or a file.
        note: What is to be known about it.
        is_built: Whether it is there at all.
        not_here: Why it is not for an engine on Spark; empty if it is.
        explained: For a figure, why it is not played in a mode, by mode.
    """

    name: str
    what: str
    places: tuple[str, ...] = ()
    note: str = ""
    is_built: bool = True
    not_here: str = ""
    explained: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chapter:
    """What one source asks for.

    Attributes:
        title: The source.
        capabilities: What it asks for, in its order.
    """

    title: str
    capabilities: tuple[Capability, ...]


def chapters(folder: Path = CAPABILITIES) -> tuple[Chapter, ...]:
    """All sources; the first one is that of the figures.

    Args:
        folder: Where their files are.

    Raises:
        ValueError: The folder is not there, as in an installed package; or a file says what is not understood.

    >>> figures, paper = chapters()[:2]
    >>> paper.title, paper.capabilities[0].name
    ('The Dataflow Model (VLDB 2015)', 'C-001')
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        what = "the table is made in a clone of the project, where the list of capabilities is"
        raise ValueError(
            three_parts(what, where=f"not in {folder}", hint="clone the project, and install it with -e")
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
        raise ValueError(three_parts(what, where=f"at {path.name}", hint=hint))
    if "not_here" in about and (not about["not_here"].strip() or about.keys() - {"what", "not_here"}):
        what = f"{name} is not for this engine, and that needs a reason and nothing else"
        hint = "write what and not_here, with a reason; what is shown somewhere has no not_here"
        raise ValueError(three_parts(what, where=f"at {path.name}", hint=hint))
    return Capability(
        name,
        about["what"],
        tuple(about.get("in", ())),
        about.get("note", ""),
        about.get("built", True),
        about.get("not_here", ""),
        about.get("explained", {}),
    )


def wrong_places(capability: Capability, root: Path = ROOT) -> Iterator[str]:
    """The places of a capability that are not there.

    Args:
        capability: The capability.
        root: The folder of the project.

    >>> list(wrong_places(Capability("C-1", "nothing", ("docs/triggers.md#triggers", "docs/none.md"))))
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
    """The names by which headings of a page are linked to."""
    headings = (line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#"))
    return {
        "".join(letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
        for heading in headings
    }
