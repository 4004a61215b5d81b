"""Writes the slowest tests of a run into docs/test_cost.md: ``python tests/cost_page.py report.xml``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

PAGE = Path(__file__).parents[1] / "docs" / "test_cost.md"
BEGIN, END = "<!-- slowest -->\n", "<!-- /slowest -->\n"
SLOWEST = 50


def seconds_of(report: str) -> Counter[str]:
    """The seconds of each test of a JUnit report, with those of its set-up.

    >>> seconds_of('<testsuites><testcase classname="tests.a" name="test_b" time="1.5"/></testsuites>')
    Counter({'tests.a::test_b': 1.5})
    """
    found: Counter[str] = Counter()
    for case in ElementTree.fromstring(report).iter("testcase"):
        found[f"{case.get('classname')}::{case.get('name')}"] += float(case.get("time", 0))  # type: ignore[assignment]
    return found


def table(seconds: Counter[str]) -> str:
    """The slowest tests, and what all take.

    >>> print(table(Counter({"tests.a::test_b[1|2]": 1.5, "tests.a::test_c": 0.5})))
    2 tests, 2 seconds in all.
    <BLANKLINE>
    | seconds | test |
    | ---: | --- |
    | 1.5 | `tests.a::test_b[1/2]` |
    | 0.5 | `tests.a::test_c` |
    <BLANKLINE>
    """
    rows = [f"{len(seconds):,} tests, {sum(seconds.values()):,.0f} seconds in all.", ""]
    rows += ["| seconds | test |", "| ---: | --- |"]
    for name, taken in seconds.most_common(SLOWEST):
        rows.append(f"| {taken:.1f} | `{name.replace('|', '/')}` |")
    return "\n".join(rows) + "\n"


def main(report: str) -> None:
    """Replaces the part of the page between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    slowest = table(seconds_of(Path(report).read_text(encoding="utf-8")))
    PAGE.write_text(f"{before}{BEGIN}\n{slowest}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
