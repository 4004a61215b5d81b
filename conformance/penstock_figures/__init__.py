"""Drawings of windows, triggers and panes: event time across, processing time up."""

from penstock.machines.recorder import RecordedInput as RecordedInput
from penstock.machines.recorder import RecordedPane as RecordedPane
from penstock.machines.recorder import value_text as value_text
from penstock_figures.drawing import draw as draw
from penstock_figures.pages import Section as Section
from penstock_figures.pages import page as page
from penstock_figures.played import recording_of_played as recording_of_played
from penstock_figures.played import recording_of_test_stream as recording_of_test_stream
from penstock_figures.recording import Recording as Recording
