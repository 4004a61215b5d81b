"""Drawings of windows, triggers and panes: event time across, processing time up."""

from penstock.figures.drawing import draw
from penstock.figures.pages import Section, page
from penstock.figures.played import recording_of_played, recording_of_test_stream
from penstock.figures.recording import Recording
from penstock.machines.recorder import RecordedInput, RecordedPane, value_text

__all__ = [
    "RecordedInput",
    "RecordedPane",
    "Recording",
    "Section",
    "draw",
    "page",
    "recording_of_played",
    "recording_of_test_stream",
    "value_text",
]
