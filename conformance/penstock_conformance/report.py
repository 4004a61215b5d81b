"""The report of a run: a JUnit file for machines, and a page of drawings for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.error import refusal
from penstock_conformance.choosing import rows_of
from penstock_conformance.citations import is_figure, order_of
from penstock_conformance.junit import junit_xml
from penstock_conformance.outcomes import Outcome, Status
from penstock_figures import Recording, Section, draw, page, recording_of_played

JUNIT = "junit.xml"
PAGE = "index.html"


def prepare(folder: Path) -> None:
    """Makes sure that a report can be written to a folder, which is created if it does not exist."""
    _written(folder, JUNIT, "")


def write(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Writes both files to the folder of `prepare`."""
    _written(folder, PAGE, page_of(outcomes))
    _written(folder, JUNIT, junit_xml(outcomes))


def _written(folder: Path, name: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"no report can be written to {folder}: {error.strerror}"
        raise refusal(ValueError, what, where="", hint="pass another folder to --report") from None


def page_of(outcomes: Sequence[Outcome]) -> str:
    """The page, as HTML: a section for each figure and each file of rules, with a drawing for each mode.

    The drawings show what happened, not what is written.
    """
    by_row: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        # Scenarios that test the harness expect wrong panes, and their drawings have no use.
        if outcome.scenario.unmet is None and outcome.status is not Status.NOT_PLAYED:
            by_row.setdefault(rows_of(outcome.scenario)[0], []).append(outcome)
    rows = sorted(by_row, key=lambda row: (not is_figure(row), order_of(row)))
    sections = [_section(row, by_row[row]) for row in rows]
    return page("Conformance", [section for section in sections if section.text or section.figures])


def _section(row: str, outcomes: Sequence[Outcome]) -> Section:
    folder, _, file = row.partition("/")
    heading = f"{folder.capitalize()}: {file.replace('_', ' ')}" if file else row.capitalize()
    sources = dict.fromkeys(outcome.scenario.source for outcome in outcomes) if is_figure(row) else {}
    told = [f"Source: {source}." for source in sources]
    wrong = [outcome.text for outcome in outcomes if outcome.status is Status.FAILED]
    figures = [figure for outcome in outcomes for figure in _figures(outcome)]
    return Section(heading, "\n\n".join([" ".join(told), *wrong]).strip(), figures)


def _figures(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """The drawing of an outcome with its caption and status; nothing if nothing happened."""
    recording = outcome.recording or _recording(outcome)
    if recording is not None:
        yield f"{outcome.scenario.title}, in {outcome.mode}", draw(recording), outcome.status.value


def _recording(outcome: Outcome) -> Recording | None:
    """Returns what happened on the bare machine, if it was played there."""
    run = outcome.run
    if run is None or not run.events:
        return None
    title = outcome.scenario.title
    return recording_of_played(
        run.events, run.played, title=title, mode=outcome.mode, ends_input=run.ends_input
    )
