"""Phrases at which a native reader stumbles become fewer: each pattern has a count, which may only fall."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COUNTS = Path(__file__).with_name("prose_counts.json")
"""How often each pattern occurs in the code of the product, and in the documentation."""

AREAS = {
    "code": ("sdk/**/*.py", "runner_spark/**/*.py", "connectors/**/*.py", "conformance/**/*.py"),
    "docs": ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "SECURITY.md", "docs/**/*.md"),
}
GENERATED = ("docs/bad_input.md", "docs/beam_names.md")

PATTERNS = {
    "anew, of late, for ever: again, lately, forever": r"\b(anew|of late|for ever|in case that)\b",
    "as it is: unchanged": r"\bas (it is|they are)\b",
    "by itself: on its own": r"\bby (itself|themselves)\b",
    "gives: returns, emits, yields, writes": r"\b(gives|gave)\b(?! (up|way|rise))",
    "goes on: continues": r"\b(goes|go|went|going) on\b",
    "nobody, somebody: the reader, the caller, the user": r"\b(nobody|somebody)\b",
    "of Spark's: Spark's": r"\bof (Spark|Beam|Python|Java|Kafka|pandas|penstock)'s\b",
    "so many: the number or the limit": r"\bso many\b|\bso much that\b",
    "taken back: retracted": r"\btak(e|es|en) (it |them )?back\b|\btaken back\b",
    "texts: strings": r"\btexts\b",
    "that of the: repeat the noun": r"\b(that|those) of (the|a|an|all|its|what|each|such)\b",
    "too at the end: also": r", too\b[.,;]",
    "What, How, Where as the first word of a docstring: a verb": (
        r'^[ \t]*(r?"""|#[ \t]*)(What|How|Where|Whether|From|The same|The other|The one)\b'
    ),
    "without a word: silently": r"\bwithout a word\b",
}
"""What to avoid and what to say, and the pattern that finds it."""


def counts_of(text: str) -> dict[str, int]:
    """Returns how often each pattern occurs within the lines of a text.

    >>> counts_of('It gives a list, too.\\n"What is read."')["gives: returns, emits, yields, writes"]
    1
    """
    return {name: len(re.findall(pattern, text, re.MULTILINE)) for name, pattern in PATTERNS.items()}


def text_of(area: str) -> str:
    """Returns the text of all files of an area that are not generated."""
    paths = [path for pattern in AREAS[area] for path in sorted(ROOT.glob(pattern))]
    names = [path for path in paths if path.relative_to(ROOT).as_posix() not in GENERATED]
    return "\n".join(path.read_text(encoding="utf-8") for path in names)


def test_each_pattern_finds_what_it_names() -> None:
    examples = [
        "It is written anew.",
        "It stays as it is.",
        "It ends by itself.",
        "It gives a list.",
        "It goes on.",
        "Nobody or somebody: somebody.",
        "a source of Spark's",
        "so many rows",
        "A pane is taken back.",
        "two texts",
        "that of the window",
        "This one, too.",
        '    """How it is read."""',
        "It is lost without a word.",
    ]
    assert all(counts_of(example)[name] for name, example in zip(PATTERNS, examples, strict=True))


@pytest.mark.parametrize("area", AREAS)
def test_phrases_that_readers_stumble_at_become_fewer(area: str) -> None:
    before = json.loads(COUNTS.read_text(encoding="utf-8"))[area]
    now = counts_of(text_of(area))
    more = {
        name: f"{before[name]} before, {count} now" for name, count in now.items() if count > before[name]
    }
    assert not more, "say it in other words"
    fewer = {name: count for name, count in now.items() if count < before[name]}
    assert not fewer, f"write the new counts into {COUNTS.name}: python tests/test_prose.py"


def write_counts() -> None:
    """Writes the counts of now."""
    counts = {area: counts_of(text_of(area)) for area in AREAS}
    COUNTS.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_counts()
