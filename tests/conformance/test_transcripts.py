"""Every transcript holds on the bare machine, in each of its engine modes, also when all state is cut."""

from __future__ import annotations

import pytest

from penstock_conformance import bare
from penstock_conformance.parsing import TRANSCRIPTS, load
from penstock_conformance.scenario import MODES, Scenario

SCENARIOS = load()
CASES = [
    pytest.param(scenario, mode, id=f"{scenario.place.rpartition(':')[0]}: {scenario.title} ({mode})")
    for scenario in SCENARIOS
    for mode in scenario.modes
]


@pytest.mark.parametrize(("scenario", "mode"), CASES)
def test_the_machine_does_as_the_transcript_says(scenario: Scenario, mode: str) -> None:
    difference = bare.report(scenario, mode)
    assert difference is None, f"\n{difference}"


@pytest.mark.parametrize(("scenario", "mode"), CASES)
def test_cutting_the_input_after_each_event_changes_nothing(scenario: Scenario, mode: str) -> None:
    difference = bare.report(scenario, mode, cut=True)
    assert difference is None, f"\n{difference}"


def test_there_are_transcripts_of_every_kind_and_mode() -> None:
    folders = {scenario.place.partition("/")[0] for scenario in SCENARIOS}
    assert folders == {path.name for path in TRANSCRIPTS.iterdir() if path.is_dir()}
    of_groupings = {"windows", "triggers", "panes", "refinement", "must_fail", "figures", "scenarios"}
    assert folders == {*of_groupings, "joins", "state"}
    assert {mode for scenario in SCENARIOS for mode in scenario.modes} == set(MODES)


def test_what_must_fail_says_how() -> None:
    for scenario in SCENARIOS:
        says_how = scenario.fails is not None or scenario.unmet is not None
        assert says_how == scenario.place.startswith("must_fail/"), scenario.place
