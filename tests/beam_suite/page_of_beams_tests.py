"""Writes the tables of Beam's tests in docs/beam_names.md from the lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.beam_suite.porting import Modules, expected_failures

PAGE = Path(__file__).parents[2] / "docs" / "beam_names.md"
BEGIN = "<!-- of Beam's tests: python -m tests.beam_suite.page_of_beams_tests writes this -->"
END = "<!-- the end of Beam's tests -->"
_MARKED = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", re.DOTALL)


def section() -> str:
    """Returns the tables of tests that fail, and of modules and tests that are not run, with a row for each reason.

    >>> "| tests | why they fail | where |" in section()
    True
    """
    modules, failures, on_spark = Modules.read(), expected_failures(), expected_failures("on_spark")
    failing = _by_reason(failures)
    rows = [(str(len(names)), why, _modules_of(names)) for why, names in failing.items()]
    rows.sort(key=lambda row: (-int(row[0]), row[1]))
    return "\n".join(
        [
            BEGIN,
            "",
            f"{len(failures)} tests of these modules fail, for {len(failing)} reasons:",
            "",
            *_table(("tests", "why they fail", "where"), rows),
            "",
            f"{len(on_spark)} more tests fail on Spark, which also runs tests that the quick engine cannot run:",
            "",
            *_table(("tests", "why"), _single_tests(on_spark)),
            "",
            "These tests run on the quick engine only:",
            "",
            *_table(("tests", "why"), _single_tests(modules.in_one_process)),
            "",
            "These modules are not run:",
            "",
            *_table(
                ("modules", "why"), [(_codes(n), why) for why, n in _by_reason(modules.left_out).items()]
            ),
            "",
            "These tests of other modules are not run:",
            "",
            *_table(("tests", "why"), _single_tests(modules.left_out_tests)),
            "",
            END,
            "",
        ]
    )


def updated(page: str) -> str:
    """Returns the page with new tables.

    >>> updated(f"a\\n{BEGIN}\\nold\\n{END}\\nz\\n") == f"a\\n{section()}z\\n"
    True
    """
    return _MARKED.sub(lambda _: section(), page)


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, why in reasons.items():
        found.setdefault(why, []).append(name)
    return found


def _single_tests(left_out: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for why, names in _by_reason(left_out).items():
        tests = [name.replace(".py::", ": ").replace("::", ".") for name in names]
        yield ", ".join(f"`{test}`" for test in tests), why


def _modules_of(names: Iterable[str]) -> str:
    return _codes(dict.fromkeys(name.partition("::")[0] for name in names))


def _codes(paths: Iterable[str]) -> str:
    """Paths as code, without their ending: they are files of Beam's, and not of this project."""
    return ", ".join(f"`{path.removesuffix('.py')}`" for path in paths)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' for _ in heads)} |"
    for row in rows:
        yield f"| {' | '.join(map(cell_of, row))} |"


def cell_of(text: str) -> str:
    r"""Escapes a text for the cell of a table: an angle bracket would begin HTML, and a bar would end the cell.

    >>> print(cell_of("<class> | b"))
    \<class> \| b
    """
    return re.sub(r"([\\|<])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
