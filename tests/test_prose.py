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
    "of Spark's: Spark's": (
        r"\bof (Spark|Beam|Python|Java|Kafka|pandas|penstock)'s(?=[^\w\s]|$| (and|as|at|for|is|on|or|that|to)\b)"
    ),
    "so many: the number or the limit": r"\bso many\b|\bso much that\b",
    "taken back: retracted": r"\btak(e|es|en) (it |them )?back\b|\btaken back\b",
    "texts: strings": r"\btexts\b",
    "that of the: repeat the noun": r"\b(that|those) of (the|a|an|all|its|what|each|such)\b",
    "too at the end: also": r", too\b[.,;]",
    "What, How, Where as the first word of a docstring: a verb": (
        r'^[ \t]*(r?"""|#[ \t]*)(What|How|Where|Whether|From|The same|The other|The one)\b'
    ),
    "without a word: silently": r"\bwithout a word\b",
    "another X than: a different X than": r"\b([Aa]nother|[Oo]ther) [\w-]+( [\w-]+)? than\b",
    "belongs into: belongs in": r"\bbelongs? into\b",
    "each two minutes: every two minutes": r"\b[Ee]ach (two|three|four|five|ten|\d+) \w+s\b",
    "from N on: N or more": r"\b[Ff]rom (?!now|then|there|here)(\w+ ){1,3}on[.,;:)\"]",
    "has not, at the end: does not have": r"\b(has|have) not[.,;\"]",
    "is no X: is not an X": (
        r"(?<!there )(?<!There )\b(is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|later\b|earlier\b|better\b)"
    ),
    "lengths of time: durations": r"\b[Ll]engths? of time\b",
    "look whether: check whether": r"\b[Ll]ooks? whether\b",
    "made again: created again": r"\bmade again\b",
    "may not: cannot, must not, might not": r"\bmay not\b",
    "stands still: does not advance, is stopped": r"\b(stands?|stood|standing) still\b",
    "stands there, stands before: is there, precedes": r"\bstands? (there|here|before|behind|beside|above|inside)\b",
    "take X back: retract": r"\b[Tt]ak(e|es|en|ing) (\w+ ){0,3}back\b",
    "tells apart: distinguishes": r"\b([Tt]ells?|told) (\w+ ){0,4}apart\b",
    "tells whether: shows": r"\btells? (whether|which|how|where|when|what|of|nothing|no)\b",
    "truth values: booleans": r"(?<!three )\b[Tt]ruth values?\b",
    "without an end: that never ends": r"\b[Ww]ithout (an )?end\b",
    "behind the point: after the point": r"\bbehind the (decimal )?point\b",
    "in the place of: instead of, replaces": r"\b[Ii]n the place of\b",
    "the one before: the previous one": r"\bthe (one|step|part) before(?=[,.;:\"]| has\b)",
    "once more: again": r"\bonce more\b",
    "by chance: in any order, random": r"\bby chance\b",
    "processor time: CPU time": r"\bprocessor time\b",
    "least and greatest: minimum and maximum": r"\b([Ll]east (and|or) greatest|greatest (and|or) least)\b",
    "refuses by name: refuses with an error that names it": r"\b[Rr]efus\w+ (\w+ ){0,4}by name\b",
    "the clock less a minute: the clock minus a minute": r"\b(clock|time) less\b",
    "whoever: a user who, a caller that": r"\b[Ww]hoever\b",
    "would else: would otherwise": r"\bwould else\b",
    "more rarely: less often": r"\bmore rarely\b",
    "tells the place, tells it from others: names, distinguishes": (
        r"\b[Tt]ells? (it|its|their|the) (from|places?|lines?|columns|keys?|snapshot|declaration|partition|time)\b"
    ),
    "what is asked of it: the questions to it": r"\bwhat \w+ (asks?|is asked) of\b|\bwhat is asked of\b",
    "the means of: the code of, in the same way": r"\b(with|by) the (same )?means( of)?\b",
    "is cut into: is divided into": r"\b(is|are) cut (in)?to\b",
    "Has X do Y: makes, lets, registers": r'"""Has (?!been\b)[a-z]',
    "the least or most N: the minimum, the maximum number of": (
        r'(: |""")The (least|most) (number|time|memory|value|elements|calls|digits|lines|runs|keys) '
    ),
    "whole number: integer": r"\b[Ww]hole numbers?\b",
    "the greatest or least X: the largest, the smallest, the maximum": (
        r"\b[Tt]he (least|greatest)\b(?!\s+(recently|CPU|before|and most)\b)"
    ),
    "a list item inside a line: begin a new line": r"[.;:)] - (?=\*|`[^`]+`[:.] )",
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
        "It has another coder than before.",
        "HAVING belongs into the query.",
        "Each two minutes have a sum.",
        "It takes a number from 0 on.",
        "Spark has what Python has not.",
        "The file is no table.",
        "a length of time",
        "Look whether it runs.",
        "The table was made again.",
        "The user may not do that.",
        "The clock stands still.",
        "The text stands before the first line.",
        "Each round takes its results back.",
        "The key tells the rows apart.",
        "It tells whether the run has ended.",
        "strings and truth values",
        "It waits without an end.",
        "two digits behind the point",
        "A row comes in the place of the call.",
        "Each delay is longer than the one before.",
        "The job runs once more.",
        "Spark takes them by chance.",
        "a second of processor time",
        "the least and greatest value",
        "Other changes are refused by name.",
        "The watermark is the clock less a minute.",
        "Whoever waits gets the error.",
        "All would else begin with the same shard.",
        "It is printed more rarely.",
        "The position tells it from all others.",
        "the format, and what is asked of it",
        "A batch is read with the means of a stream.",
        "The batch is cut into parts.",
        '    """Has the engine compute a query."""',
        "    limit: The most lines to print.",
        "a sum of whole numbers",
        "the greatest size of a batch",
        "- *One.* The first item. - *Two.* The second item.",
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
