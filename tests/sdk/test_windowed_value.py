"""Windowed values, panes and batches of them."""

import pickle

import pytest

from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.utils import windowed_value as module
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import (
    PANE_INFO_UNKNOWN,
    HomogeneousWindowedBatch,
    PaneInfo,
    PaneInfoTiming,
    WindowedValue,
)

WINDOWS = (IntervalWindow(0, 10), IntervalWindow(5, 15))
LATE = PaneInfo(False, True, PaneInfoTiming.LATE, 3, 2)


@pytest.mark.parametrize("timestamp", [7, 7.0, Timestamp(7)])
def test_a_timestamp_may_be_a_number_of_seconds(timestamp) -> None:
    value = WindowedValue("a", timestamp, WINDOWS)
    assert (value.timestamp_micros, value.timestamp) == (7_000_000, Timestamp(7))
    assert value.timestamp is value.timestamp
    assert value.pane_info is PANE_INFO_UNKNOWN


def test_equality_looks_at_every_part_and_hash_and_pickle_agree_with_it() -> None:
    value = WindowedValue("a", 1, WINDOWS, LATE)
    same = module.create("a", 1_000_000, WINDOWS, LATE)
    assert value == same == pickle.loads(pickle.dumps(value))
    assert hash(value) == hash(same)
    others = [
        WindowedValue("b", 1, WINDOWS, LATE),
        WindowedValue("a", 2, WINDOWS, LATE),
        WindowedValue("a", 1, (GlobalWindow(),), LATE),
        WindowedValue("a", 1, WINDOWS),
    ]
    assert value not in [*others, "a"]
    assert others[0] == value.with_value("b")


def test_the_extremes_of_time_are_shown_by_name() -> None:
    pane = "PaneInfo(first: True, last: True, timing: UNKNOWN, index: 0, nonspeculative_index: 0)"
    shown = [repr(WindowedValue(1, time, (GlobalWindow(),))) for time in (MIN_TIMESTAMP, 2.5, MAX_TIMESTAMP)]
    assert shown == [
        f"(1, {time}, (GlobalWindow,), {pane})" for time in ("MIN_TIMESTAMP", "2.5", "MAX_TIMESTAMP")
    ]


def test_the_well_known_panes_are_those_of_beam() -> None:
    beam_coders = pytest.importorskip("apache_beam.coders.coder_impl")
    for byte in range(16):
        ours, theirs = PaneInfo.from_encoded_byte(byte), beam_coders.PaneInfoCoderImpl().decode(bytes([byte]))
        assert (repr(ours), ours.encoded_byte) == (repr(theirs), byte)


def test_panes_are_immutable_values() -> None:
    assert pickle.loads(pickle.dumps(LATE)) == LATE
    assert pickle.loads(pickle.dumps(PANE_INFO_UNKNOWN)) is PANE_INFO_UNKNOWN
    assert hash(PaneInfo(False, True, PaneInfoTiming.LATE, 3, 2)) == hash(LATE)
    with pytest.raises(AttributeError):
        LATE.index = 4
    with pytest.raises(ValueError, match="no pane is encoded") as caught:
        PaneInfo.from_encoded_byte(16)
    assert "hint: " in str(caught.value)
    for timing in range(4):
        assert PaneInfoTiming.from_string(PaneInfoTiming.to_string(timing)) == timing


def test_a_batch_keeps_windows_timestamp_and_pane() -> None:
    batch = HomogeneousWindowedBatch.of([1, 2], 3, WINDOWS, LATE)
    assert (batch.timestamp, batch.windows, batch.pane_info) == (Timestamp(3), WINDOWS, LATE)
    hashable = HomogeneousWindowedBatch.of((1, 2), 3, WINDOWS, LATE)
    assert hash(hashable) == hash(HomogeneousWindowedBatch.of((1, 2), 3, WINDOWS, LATE))
