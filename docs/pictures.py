"""Draws the figures of the documentation from what the machines do: ``python docs/pictures.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from motion import animate

from penstock_conformance.bare import run
from penstock_conformance.parsing import load
from penstock_conformance.scenario import Scenario
from penstock_figures import draw, recording_of_played

FOLDER = Path(__file__).parent / "images"
_PAPER = "Paper, figure "
_FIGURES: Mapping[str, tuple[str, str]] = {
    "batch": ("10: fixed windows in batch", "batch"),
    "micro_batches": ("11: fixed windows in micro-batches", "micro_batch"),
    "watermark": ("12: fixed windows, streaming", "streaming"),
    "early_and_late": ("13: fixed windows, partial results", "streaming"),
    "sessions": ("14: sessions, retracting", "streaming"),
}
"""For each picture, the scenario of the conformance suite and its mode."""

MOVING = "moving.svg"
"""The picture of the landing page."""


def pictures() -> dict[str, str]:
    """The text of each picture, as SVG, by its file's name."""
    scenarios = {scenario.title: scenario for scenario in load()}
    found = {
        f"{name}.svg": _drawn(scenarios[_PAPER + title], mode) for name, (title, mode) in _FIGURES.items()
    }
    return {**found, MOVING: animate(found["early_and_late.svg"])}


def _drawn(scenario: Scenario, mode: str) -> str:
    played = run(scenario, mode)
    recording = recording_of_played(
        played.events, played.played, title=scenario.title, mode=mode, ends_input=played.ends_input
    )
    return draw(recording)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
