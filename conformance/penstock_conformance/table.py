"""The page of what the suite shows, generated from a run and the list of capabilities, and never edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from penstock_conformance.capabilities import ROOT, Capability, Chapter
from penstock_conformance.choosing import file_of
from penstock_conformance.citations import key_of
from penstock_conformance.outcomes import Outcome, Status, by_row
from penstock_conformance.scenario import MODES, Scenario

README = ROOT / "conformance" / "README.md"

_NOT_BUILT = "not built yet"
_NOT_HERE = "not for this engine"
_MISSING = "**missing**"
_PROSE = """\
# Results of the conformance suite

<!-- Made by `penstock conformance --engine bare --table`; do not edit. -->

Which figures and rules of the Dataflow Model does penstock reproduce? This page answers that for the Dataflow Model
paper, the book *Streaming Systems*, and the patent on windows and triggers. We have written each figure and rule as a
[transcript](penstock_conformance/transcripts/FORMAT.md), which says what arrives, and which panes must be emitted when.
A command plays the transcripts, on Spark by default:

    penstock conformance --mode streaming micro_batch batch --report out
    penstock conformance --figure 7 2-11 S-3 --engine bare

The exit status is 0 if all transcripts passed, 1 if one failed, and 2 if the command cannot do what you asked for.
`out/index.html` draws each scenario of this run, and `out/junit.xml` has the same results for other programs. `--list`
lists all names. To use a cluster, pass `--master`, and `--checkpoint` with a folder that all of its machines can reach.
To use a server of Spark Connect, pass `--remote` with its address, or `--remote=local` for one that the command starts.
[differences.md](differences.md) lists the deliberate differences from Apache Beam.

"""
_FIGURES_PROSE = """\
*passed*: the output is the same as in the figure. *differs by the model*: in this mode, different panes are correct,
and penstock emits them. For example, a batch has no early panes and no late data.

"""
_CAPABILITIES_PROSE = """
## Capabilities

Each row has the name of a rule in our list, the rule, and the transcripts, tests and pages that show it.

"""


def page_of(outcomes: Sequence[Outcome], sources: Sequence[Chapter]) -> str:
    """The page, as Markdown, from all outcomes and the list of capabilities, which begins with the figures."""
    figures, *others = sources
    shown = _shown(outcomes)
    parts = [_PROSE, f"## {figures.title}\n\n", _FIGURES_PROSE, *_figures(figures, outcomes)]
    parts.append(_CAPABILITIES_PROSE)
    parts += _totals(others, shown)
    for chapter in others:
        parts += [f"\n### {chapter.title}\n\n", *_capabilities(chapter, shown)]
    return "".join(parts)


def write(outcomes: Sequence[Outcome], sources: Sequence[Chapter]) -> None:
    """Writes the page into the project; see `page_of`."""
    README.write_text(page_of(outcomes, sources), encoding="utf-8")


def _figures(figures: Chapter, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"| figure | | {' | '.join(MODES)} | |\n| --- | --- |{' --- |' * len(MODES)} --- |\n"
    rows = by_row(outcomes)
    for figure in figures.capabilities:
        cells = [_cell(figure, rows.get(figure.name, {}), mode) for mode in MODES]
        remarks = "; ".join(filter(None, (", ".join(map(_link, figure.places)), figure.note)))
        name = figure.name.removeprefix("figure ")
        yield f"| {name} | {figure.what} | {' | '.join(cells)} | {remarks} |\n"


def _cell(figure: Capability, cells: Mapping[str, Status], mode: str) -> str:
    if mode in cells:
        return cells[mode].value
    if not figure.is_built:
        return _NOT_BUILT
    # A figure without a transcript is shown elsewhere.
    return figure.explained.get(mode, "" if figure.places and not cells else _MISSING)


def _shown(outcomes: Sequence[Outcome]) -> Mapping[str, list[Scenario]]:
    """The scenarios that show a name, by its key, and pass in all modes."""
    failed = {outcome.scenario.place for outcome in outcomes if outcome.status is Status.FAILED}
    shown: dict[str, list[Scenario]] = {}
    for scenario in {outcome.scenario.place: outcome.scenario for outcome in outcomes}.values():
        if scenario.place not in failed and scenario.unmet is None:
            for name in scenario.names:
                shown.setdefault(key_of(name), []).append(scenario)
    return shown


def _totals(sources: Sequence[Chapter], shown: Mapping[str, Sequence[Scenario]]) -> Iterator[str]:
    standings = ("shown", "missing", _NOT_BUILT, _NOT_HERE)
    yield f"| source | {' | '.join(standings)} |\n| ---{' | ---' * len(standings)} |\n"
    for chapter in sources:
        counts = Counter(standing_of(one, shown) for one in chapter.capabilities)
        yield f"| {chapter.title} | {' | '.join(str(counts[name]) for name in standings)} |\n"


def standing_of(capability: Capability, shown: Mapping[str, Sequence[Scenario]]) -> str:
    """Returns ``shown``, ``missing``, ``not built yet`` or ``not for this engine``, for a capability."""
    if not capability.is_built:
        return _NOT_BUILT
    if capability.not_here:
        return _NOT_HERE
    return "shown" if capability.places or shown.get(key_of(capability.name)) else "missing"


def _capabilities(chapter: Chapter, shown: Mapping[str, Sequence[Scenario]]) -> Iterator[str]:
    yield "| | | shown in |\n| --- | --- | --- |\n"
    for one in chapter.capabilities:
        counts = Counter(map(file_of, shown.get(key_of(one.name), ())))
        links = [*(_transcripts(file, number) for file, number in counts.items()), *map(_link, one.places)]
        text = {
            "shown": ", ".join(links),
            "missing": _MISSING,
            _NOT_BUILT: _NOT_BUILT,
            _NOT_HERE: f"{_NOT_HERE}: {one.not_here}",
        }[standing_of(one, shown)]
        yield f"| {one.name} | {one.what} | {text}{f'; {one.note}' if one.note else ''} |\n"


def _transcripts(file: str, number: int) -> str:
    times = f" ({number})" if number > 1 else ""
    return f"[{file}](penstock_conformance/transcripts/{file}.transcript){times}"


def _link(place: str) -> str:
    """A place as a link from the page: its text is the name of the place, without the folders."""
    file, _, name = place.partition("::")
    return f"[{name or file.partition('#')[0].rpartition('/')[2]}](../{file})"
