"""Beam's suites of triggers, state, windows, side inputs, combiners, files and data frames, unchanged, on Spark."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam

from tests.beam_pipelines.beams_tests import cases_of, is_marked

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.filterwarnings("ignore")]

MODULES = [
    "dataframe.transforms_test",
    "io.fileio_test",
    "testing.test_stream_test",
    "transforms.combiners_test",
    "transforms.sideinputs_test",
    "transforms.trigger_test",
    "transforms.userstate_test",
    "transforms.window_test",
]

REVERSED = "ReverseTestStream is a part of Beam's interactive runner, and asks Beam's in-process runner for its clock"
PER_ELEMENT = "triggers fire per element, and not per bundle"
FUSED = "it asks how many stages Beam's in-process runner has fused"
NO_MESSAGE = "Beam itself cannot write the timestamp combiner of the test in a message"
MISSES = {
    "CombineTest.test_top_key": "a list that is piped into a transform becomes one in Beam's in-process runner only",
    "TestStreamTranscriptTest.test_timestamp_combiner_custom_timestamping_earliest_1": NO_MESSAGE,
    "TriggerPipelineTest.test_after_count": PER_ELEMENT,
    "TriggerPipelineTest.test_always": PER_ELEMENT,
    "WeakTestStreamTranscriptTest.test_timestamp_combiner_custom_timestamping_earliest_1": NO_MESSAGE,
    "FusionTest.test_column_manipulation": FUSED,
    "FusionTest.test_loc_filter": FUSED,
    "ReverseTestStreamTest.test_basic_execution": REVERSED,
    "ReverseTestStreamTest.test_basic_execution_in_records_format": REVERSED,
    "ReverseTestStreamTest.test_windowing": REVERSED,
    "TestStreamTest.test_basic_execution_sideinputs_fixed_windows": (
        "an element of a side input that comes after the end of its window is late, and dropped as in a grouping"
    ),
    "TestStreamTest.test_basic_execution_with_service": "a TestStream has its events itself, and asks no service",
    "TestStreamTest.test_multiple_outputs_with_watermark_advancement": PER_ELEMENT,
    "TestStreamTest.test_windowed_values_interpreted_correctly": (
        "the elements of a TestStream have times, and no windows of their own"
    ),
    "MatchIntegrationTest.test_transform_on_gcs": "it reads files in Google's cloud",
    "MatchContinuouslyTest.test_without_deduplication": (
        "both of its looks, 0.2 seconds apart, are due when the stream begins; it wants the outputs of the first to be"
        " processed before the second"
    ),
}


def is_for_runners(test: Any) -> bool:
    """True if a test is about pipelines, and not one of those that validate every runner, which run every day."""
    return not is_marked(test, "it_validatesrunner")


class Records(list[Any]):
    """The elements that `Recording` has written, where Beam's tests look at a list that no worker shares."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def __iter__(self) -> Iterator[Any]:
        with self.file.open("rb") as records:
            while records.peek():
                yield pickle.load(records)

    def __eq__(self, other: object) -> bool:
        return list(self) == other

    __hash__ = None  # type: ignore[assignment]


class Recording(beam.DoFn):  # type: ignore[misc]
    """Writes each element to the end of a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def process(self, element: Any) -> None:
        with self.file.open("ab", buffering=0) as records:
            records.write(pickle.dumps(element))


def record_dofn(self: Any) -> beam.DoFn:
    """A DoFn whose elements become the test's ``all_records``."""
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    file = Path(folder.name, "records")
    file.touch()
    type(self).__base__.all_records = Records(file)
    return Recording(file)


globals().update(cases_of(MODULES, is_for_runners, MISSES, record_dofn=record_dofn))
