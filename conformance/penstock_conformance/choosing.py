"""Selects the scenarios that a user means: by figure, rule, file or title."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal
from penstock_conformance.citations import is_figure, key_of, order_of
from penstock_conformance.scenario import MODES, Scenario


def choose_scenarios(scenarios: Iterable[Scenario], wanted: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenarios with one of the given names, or with one in their file or title; all without names.

    Names are ``7``, ``figure 2-7``, ``S-3``, or parts of titles and files such as ``panes/holds``.

    >>> from penstock_conformance.parsing import load
    >>> [scenario.title for scenario in choose_scenarios(load(), ["2-7"])][0]
    'Figure 2-7: aligned delays'
    """
    all_scenarios = tuple(scenarios)
    if not wanted:
        return all_scenarios
    found = {id(one) for name in wanted for one in _of_name(all_scenarios, name)}
    return tuple(scenario for scenario in all_scenarios if id(scenario) in found)


def _of_name(scenarios: Sequence[Scenario], name: str) -> list[Scenario]:
    key = key_of(name)
    # A figure means its drawing; the rules that it shows have their own names.
    found = [scenario for scenario in scenarios if key in rows_of(scenario)]
    found = found or [scenario for scenario in scenarios if key in map(key_of, scenario.names)]
    text = " ".join(name.lower().split())
    if not found and not re.fullmatch(r"[\d-]*", text):
        found = [one for one in scenarios if text in f"{file_of(one)} {one.title}".lower()]
    if not found:
        known = {key_of(one): one for scenario in scenarios for one in scenario.names}
        close = [known[one] for one in difflib.get_close_matches(key, known, n=3)]
        hint = f"there is {', '.join(close)}; " if close else ""
        raise refusal(
            ValueError,
            f"no transcript shows {name!r}",
            where="",
            hint=f"{hint}`penstock conformance --list` lists all names",
        )
    return found


def choose_modes(wanted: Sequence[str]) -> tuple[str, ...]:
    """The given engine modes, in their usual order; all if none is given."""
    for name in wanted:
        if name not in MODES:
            raise refusal(
                ValueError,
                f"the engine mode {name!r} is unknown",
                where="",
                hint=hint_at_name(name, MODES, f"use one of {', '.join(MODES)}"),
            )
    return tuple(mode for mode in MODES if not wanted or mode in wanted)


def rows_of(scenario: Scenario) -> tuple[str, ...]:
    """The rows of a table for a scenario: its figures, or else its file."""
    file = file_of(scenario)
    figures = tuple(name for name in scenario.names if is_figure(name)) if file.startswith("figures/") else ()
    return figures or (file,)


def file_of(scenario: Scenario) -> str:
    """The file of a scenario, without its ending, relative to the folder of transcripts."""
    return scenario.place.rpartition(":")[0].removesuffix(".transcript")


def list_scenarios(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Lines with the names, title and modes of each scenario, beginning with figures."""
    lines = []
    for scenario in scenarios:
        first = rows_of(scenario)[0]
        names = ", ".join(scenario.names) or "-"
        place = (not is_figure(first), order_of(first))
        lines.append((place, f"{scenario.title}\n    {names}  ({', '.join(scenario.modes)})"))
    yield from (line for _, line in sorted(lines, key=lambda pair: pair[0]))
