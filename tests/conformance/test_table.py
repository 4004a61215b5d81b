"""The table in ``conformance/README.md``: it lists everything, names only what there is, and is made of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from penstock_conformance import table
from penstock_conformance.capabilities import Capability, Chapter, find_wrong_places, read_chapters
from penstock_conformance.citations import key_of, names_in, order_of
from penstock_conformance.outcomes import Outcome, Status, by_row
from penstock_conformance.parsing import load
from penstock_conformance.playing import outcomes_of
from penstock_conformance.scenario import MODES

SCENARIOS = load()
CHAPTERS = read_chapters()
CAPABILITIES = [capability for chapter in CHAPTERS for capability in chapter.capabilities]

INVENTORY = """
C-001 to C-006, C-010 to C-011, C-020 to C-028, C-030 to C-040, C-050 to C-053, C-060 to C-071, C-080 to C-092,
C-100 to C-107, C-110 to C-113, C-120 to C-124, C-130 to C-134, S-0 to S-9,
M-01 to M-19, P-01 to P-09, P-20 to P-33, P-40 to P-48,
C1-01 to C1-15, C2-01 to C2-23, C3-01 to C3-35, C4-01 to C4-12, C5-01 to C5-28, S5-01 to S5-10,
C6-01 to C6-20, S6-01 to S6-08, C7-01 to C7-10, C7-20, S7-01 to S7-06, C8-01 to C8-20, S8-01 to S8-17,
C9-01 to C9-14, S9-01 to S9-15, S9-06b, C10-01 to C10-10
"""
"""All that the paper, the patent and the book ask for."""

FIGURES = (
    *(f"figure {number}" for number in range(1, 15)),
    *(f"figure 2-{number}" for number in (3, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15)),
    *(f"figure 3-{number}" for number in (2, 4, 5, 6, 11)),
    *(f"figure 4-{number}" for number in (2, 3, 4, 7, 8, 9, 10, 11)),
    *(f"figure 6-{number}" for number in (4, 6, 8, 10, 12)),
    *(f"figure 7-{number}" for number in (1, 2)),
)
"""All that have numbers in them, and those of chapters 6 and 7 that show the same again."""


@cache
def bare_outcomes() -> list[Outcome]:
    """What came of all transcripts on the bare machine."""
    return list(outcomes_of(SCENARIOS, MODES, "bare"))


def names_of(wanted: str) -> Iterator[str]:
    """Those of a list with ranges; each series of the patent and the paper has its own gaps."""
    for part in wanted.replace("\n", " ").split(", "):
        first, _, last = part.strip(" ,").partition(" to ")
        if last and last.partition("-")[0] == first.partition("-")[0]:
            last = last.partition("-")[2]
            series, number = first.split("-")
            yield from (f"{series}-{one:0{len(number)}}" for one in range(int(number), int(last) + 1))
        else:
            yield first


def test_everything_is_listed_once() -> None:
    names = [capability.name for capability in CAPABILITIES]
    assert len(names) == len(set(names))
    assert set(names) == {*names_of(INVENTORY), *FIGURES}


def test_each_source_is_in_the_order_of_its_names() -> None:
    for chapter in CHAPTERS:
        names = [capability.name for capability in chapter.capabilities]
        for series in {name.partition("-")[0] for name in names}:
            of_series = [name for name in names if name.partition("-")[0] == series]
            assert of_series == sorted(of_series, key=order_of)


def test_every_place_that_the_list_names_is_there() -> None:
    wrong = [(one.name, place) for one in CAPABILITIES for place in find_wrong_places(one)]
    assert wrong == []


@pytest.mark.parametrize(
    "place",
    [
        "tests/conformance/test_table.py::test_that_nobody_has_written",
        "tests/conformance/test_nothing.py::test_everything_is_listed_once",
        "docs/triggers.md#no-such-heading",
        "docs",
    ],
)
def test_a_place_that_is_not_there_is_found(place: str) -> None:
    assert list(find_wrong_places(Capability("C-1", "a test", (place,)))) == [place]


def test_every_rule_and_figure_that_a_transcript_names_is_listed() -> None:
    listed = {key_of(capability.name) for capability in CAPABILITIES}
    # Examples and tables of the book have figures, and decisions about its slips are our own.
    others = ("example", "table", "D-")
    named = {name for scenario in SCENARIOS for name in scenario.names if not name.startswith(others)}
    assert {name for name in named if key_of(name) not in listed} == set()


def test_what_is_not_built_is_shown_nowhere() -> None:
    named = {key_of(name) for scenario in SCENARIOS for name in scenario.names}
    wrong = [
        one.name for one in CAPABILITIES if not one.is_built and (one.places or key_of(one.name) in named)
    ]
    assert wrong == []


def test_what_is_not_for_this_engine_is_shown_nowhere_and_is_no_figure() -> None:
    named = {key_of(name) for scenario in SCENARIOS for name in scenario.names}
    assert [one.name for one in CAPABILITIES if one.not_here and key_of(one.name) in named] == []
    assert [one.name for one in CHAPTERS[0].capabilities if one.not_here] == []


@pytest.mark.parametrize(
    "line", ['not_here = " "', 'not_here = "why"\nin = ["STYLE.md"]', 'not_here = "why"\nbuilt = false']
)
def test_what_is_not_for_this_engine_needs_a_reason_and_nothing_else(tmp_path: Path, line: str) -> None:
    (tmp_path / "source.toml").write_text(f'title = "A source"\n[C-1]\nwhat = "ids"\n{line}\n')
    with pytest.raises(ValueError, match=r"(?s)C-1 is not for this engine.*source\.toml"):
        read_chapters(tmp_path)


def test_the_page_says_why_something_is_not_for_this_engine() -> None:
    source = Chapter("A source", (Capability("C-1", "ids", not_here="Spark has others"),))
    page = table.page_of([], [Chapter("Figures", ()), source])
    assert "| C-1 | ids | not for this engine: Spark has others |" in page
    assert "| A source | 0 | 0 | 0 | 1 |" in page


def test_nothing_is_missing() -> None:
    assert "**missing**" not in table.README.read_text("utf-8")


def test_every_figure_is_played_in_each_mode_or_it_is_said_why_not() -> None:
    rows = by_row(bare_outcomes())
    for figure in CHAPTERS[0].capabilities:
        played = rows.get(figure.name, {})
        assert Status.FAILED not in played.values()
        if played or not figure.places:
            assert {*played, *figure.explained} == set(MODES), figure.name
        # What is explained away is not played.
        assert played.keys().isdisjoint(figure.explained)


def test_the_page_is_what_is_made_of_a_run() -> None:
    assert table.README.read_text("utf-8") == table.page_of(bare_outcomes(), CHAPTERS), (
        "run `penstock conformance --engine bare --table`"
    )


def test_the_files_that_the_page_links_to_exist() -> None:
    links = set(re.findall(r"\]\(([^)#]+)", table.README.read_text("utf-8")))
    assert len(links) > 50
    assert [link for link in links if not (table.README.parent / link).exists()] == []


def test_a_transcript_that_fails_shows_nothing() -> None:
    [shown] = (outcome for outcome in bare_outcomes() if "C2-14" in outcome.scenario.names)
    source = Chapter("A source", (Capability("C2-14", "lateness"),))
    passed, failed = (
        table.page_of([replace(shown, status=status)], [Chapter("Figures", ()), source])
        for status in (Status.PASSED, Status.FAILED)
    )
    assert "| C2-14 | lateness | [panes/lateness]" in passed
    assert "| C2-14 | lateness | **missing** |" in failed


def test_a_figure_that_fails_is_said_to() -> None:
    figures = Chapter("Figures", (Capability("figure 11", "rounds", explained={"batch": "no"}),))
    [outcome] = (one for one in bare_outcomes() if one.scenario.title.startswith("Paper, figure 11"))
    page = table.page_of([Outcome(outcome.scenario, outcome.mode, Status.FAILED)], [figures])
    assert "| 11 | rounds | **missing** | failed | no |  |" in page


def test_a_name_is_the_same_in_all_its_forms() -> None:
    assert names_in("C-120 to C-122") == tuple(names_of("C-120 to C-122"))
    assert (
        len({key_of(name) for name in ("figure 7", "Figure 7", "7", "paper figure 7", "Paper, figure 7")})
        == 1
    )
    assert len({key_of(name) for name in ("P-4", "p-04", "patent P-04")}) == 1
    assert key_of("S-3") != key_of("S6-03") != key_of("S6-3b")
