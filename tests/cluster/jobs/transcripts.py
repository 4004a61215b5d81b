"""Runs some transcripts on the cluster in both modes of streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock_conformance.parsing import load
from penstock_conformance.pipelines import run_scenarios

TITLES = {
    "streaming": {
        # Windows and triggers of the package's own, which the workers do not have.
        "A WindowFn of the user's may put an element into several windows, or into none",
        "A trigger of the user's over sessions that merge",
        # Two groupings in a row, and a CombineFn of the package's own.
        "A late retraction updates its window",
        "Early, on-time and late panes",
    },
    "micro_batch": {
        "Rounds give the windows of a key in order of time",
        "A session goes on over rounds",
    },
}


def outcomes(folder: Path) -> dict[str, Any]:
    """The number of transcripts and what is wrong, by mode."""
    scenarios = load()
    told = {}
    for mode, titles in TITLES.items():
        chosen = [scenario for scenario in scenarios if scenario.title in titles]
        found = list(run_scenarios(chosen, mode, checkpoint_location=f"{folder}/{mode}"))
        told[mode] = [len(found), [report.wrong for report in found if report.wrong]]
    return told
