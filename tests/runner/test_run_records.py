"""The runs of a checkpoint: each keeps its own record, and a later one sees how the earlier ones ended."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.checkpoints.custody.run_records import (
    DIED,
    RUNS,
    RUNS_MAX,
    RunRecord,
    begin_record,
    read_records,
    write_record,
)
from penstock_spark.files.disk_place import DiskPlace
from penstock_spark.live.checkpoint_size import CheckpointMeter
from penstock_spark.runs.own_record import EVERY_SECONDS, OwnRecord


def record(claim: int, state: str = PipelineState.RUNNING) -> RunRecord:
    return RunRecord(claim, f"run-{claim}", claim * 10, claim * 10 + 5, state, "0.1.0", "4.1.0", 7, 0, 3)


def test_a_run_that_noted_no_end_has_died_once_another_one_begins(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    assert begin_record(place, record(1)) == ()
    assert [each.state for each in read_records(place)] == ["RUNNING"]
    write_record(place, record(1, PipelineState.CANCELLED))
    assert begin_record(place, record(2)) == (record(1, PipelineState.CANCELLED),)
    assert begin_record(place, record(4)) == (record(1, PipelineState.CANCELLED), record(2, DIED))


def test_only_the_last_runs_are_kept(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    for claim in range(1, RUNS_MAX + 4):
        begin_record(place, record(claim))
    assert [each.claim for each in read_records(place)] == [*range(4, RUNS_MAX + 4)]


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"format": 1}', "not JSON", json.dumps({"format": 2, "claim": 1}), "null"],
)
def test_a_record_that_cannot_be_read_is_left_out(tmp_path: Path, content: str) -> None:
    place = DiskPlace(tmp_path)
    begin_record(place, record(3))
    (tmp_path / RUNS / "000002.json").write_text(content)
    (tmp_path / RUNS / "notes.txt").write_text("a file of somebody else")
    assert read_records(place) == (record(3),)


def test_a_record_with_other_types_is_left_out(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    begin_record(place, record(3))
    path = tmp_path / RUNS / "000003.json"
    written: dict[str, Any] = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "rows": "<script>"}))
    assert read_records(place) == ()


class Passing(clock.Clock):
    """A clock that a test sets."""

    now = 100.0

    def monotonic_seconds(self) -> float:
        return self.now


def test_a_run_writes_its_record_often_at_first_and_a_full_disk_does_not_end_it(tmp_path: Path) -> None:
    place, passing = DiskPlace(tmp_path), Passing()

    def now(state: str = PipelineState.RUNNING) -> RunRecord:
        return replace(record(1, state), rows=round(passing.now))

    with clock.replace_clock(passing):
        own = OwnRecord(now())
        own.keep(now)
        assert not place.names(), "it has claimed no checkpoint yet"
        own.begin(place, 7)
        assert [each.claim for each in read_records(place)] == [7]
        written = []
        for _ in range(20):
            passing.now += 1
            own.keep(lambda: replace(now(), claim=7))
            written.append(read_records(place)[0].rows)
        assert sorted(set(written)) == [101, 102, 104, 108, 108 + EVERY_SECONDS, 108 + 2 * EVERY_SECONDS]
        own.write(lambda: replace(now(PipelineState.DRAINED), claim=7))
        assert read_records(place)[0].state == "DRAINED"
        (tmp_path / "file").write_text("not a folder")
        broken = OwnRecord(now())
        broken.begin(DiskPlace(tmp_path / "file"), 1)
        assert broken.earlier == ()
        broken.write(lambda: now(PipelineState.FAILED))


def test_a_run_that_fails_before_it_begins_notes_that_and_one_that_has_ended_keeps_its_end(
    tmp_path: Path,
) -> None:
    place = DiskPlace(tmp_path)
    early = OwnRecord(record(0))
    early.begin(place, 1)
    early.note_failed_start(PipelineState.FAILED, "ValueError at step 'Write'")
    ended = OwnRecord(record(0))
    ended.begin(place, 2)
    ended.write(lambda: record(2, PipelineState.CANCELLED))
    ended.note_failed_start(PipelineState.FAILED, "KeyError")
    assert [(each.claim, each.state, each.error) for each in read_records(place)] == [
        (1, "FAILED", "ValueError at step 'Write'"),
        (2, "CANCELLED", ""),
    ]


def test_a_record_without_dropped_elements_is_read(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    begin_record(place, replace(record(3), dropped=4))
    path = tmp_path / RUNS / "000003.json"
    written: dict[str, Any] = json.loads(path.read_text())
    assert written.pop("dropped") == 4
    path.write_text(json.dumps(written))
    assert read_records(place) == (record(3),)


def test_the_size_of_a_checkpoint_is_measured_now_and_then(tmp_path: Path) -> None:
    (tmp_path / "spark" / "state" / "0").mkdir(parents=True)
    (tmp_path / "plan-1.json").write_bytes(b"x" * 100)
    (tmp_path / "spark" / "state" / "0" / "1.delta").write_bytes(b"x" * 1_000)
    place, passing = DiskPlace(tmp_path), Passing()
    with clock.replace_clock(passing):
        meter = CheckpointMeter(place, place.inside("spark").inside("state"))
        assert meter.last.bytes is None
        meter.measure_if_due()
        assert (meter.last.bytes, meter.last.state_bytes, meter.last.files) == (1_100, 1_000, 2)
        (tmp_path / "more").write_bytes(b"x")
        meter.measure_if_due()
        assert meter.last.files == 2
        # The first measurement comes before the state does, so the second one follows soon.
        passing.now += 6
        meter.measure_if_due()
        assert meter.last.files == 3
        (tmp_path / "most").write_bytes(b"x")
        passing.now += 29
        meter.measure_if_due()
        assert meter.last.files == 3
        passing.now += 2
        meter.measure_if_due()
        assert meter.last.files == 4
