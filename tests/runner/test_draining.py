"""When the sources of a stream have been read up to the moment at which a drain was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock_spark.lowering.readings import OpenReading
from penstock_spark.runs.draining import Backlog, reaches, say_cancelled_early
from tests.runner.disk_place import DiskPlace

ASKED_MILLIS = 100_000


def backlog(folder: Path, *limited: bool, newest_first: bool = False) -> Backlog:
    """The backlog of sources that are the second one of a query and those after it."""
    readings = [
        OpenReading(
            None,
            SimpleNamespace(origin=f"Read {number}"),
            False,
            is_limited=each,
            is_newest_first=newest_first,
        )  # type: ignore[arg-type]
        for number, each in enumerate(limited)
    ]
    made = Backlog(readings, 1, DiskPlace(folder), ASKED_MILLIS)
    made.begin(100)
    return made


def progress(number: int, *sources: dict[str, Any]) -> dict[str, Any]:
    """Of a finished micro-batch."""
    others = {"description": "RateStreamV2", "startOffset": "1", "endOffset": "2", "latestOffset": None}
    return {"batchId": number, "sources": [others, *sources]}


def source(
    start: Any, end: Any, latest: Any = None, description: str = "KafkaV2[Subscribe]"
) -> dict[str, Any]:
    return {"description": description, "startOffset": start, "endOffset": end, "latestOffset": latest}


def test_a_micro_batch_that_was_planned_before_tells_nothing(tmp_path: Path) -> None:
    left = backlog(tmp_path, False)
    left.see_progress(progress(99, source("1", "1")))
    left.see_progress(progress(100, source("1", "2")))
    assert left.labels() == ["Read 0"]
    left.see_progress(progress(101, source("2", "3")))
    assert left.labels() == []


def test_a_limited_source_is_read_when_it_has_nothing_new(tmp_path: Path) -> None:
    left = backlog(tmp_path, True, False)
    left.see_progress(progress(101, source("1", "2"), source("1", "2")))
    assert left.labels() == ["Read 0"]
    left.see_progress(progress(102, source("2", "2"), source("2", "3")))
    assert left.labels() == []


def test_a_source_that_names_its_latest_offset_is_read_when_it_has_come_so_far(tmp_path: Path) -> None:
    left = backlog(tmp_path, True)
    kafka = '{"clicks": {"0": %d, "1": %d}}'
    left.see_progress(progress(101, source(kafka % (1, 1), kafka % (2, 2), kafka % (4, 2))))
    # More has come by then, which is not waited for.
    left.see_progress(progress(102, source(kafka % (2, 2), kafka % (3, 5), kafka % (9, 9))))
    assert left.labels() == ["Read 0"]
    left.see_progress(progress(103, source(kafka % (3, 5), kafka % (4, 6), kafka % (9, 9))))
    assert left.labels() == []


def test_a_source_that_does_not_know_its_latest_offset_may_know_it_later(tmp_path: Path) -> None:
    left = backlog(tmp_path, True)
    left.see_progress(progress(101, source("1", "2")))
    left.see_progress(progress(102, source("2", "3", "4")))
    assert left.labels() == ["Read 0"]
    left.see_progress(progress(103, source("3", "4", "9")))
    assert left.labels() == []


def test_a_source_that_was_away_before_is_not_read(tmp_path: Path) -> None:
    reading = OpenReading(None, SimpleNamespace(origin="Read"), False)  # type: ignore[arg-type]
    left = Backlog([reading], 1, DiskPlace(tmp_path), ASKED_MILLIS, is_any_away=True)
    left.begin(100)
    for now in (0.0, 5.0):
        left.see_status(True, now)
    assert left.labels() == ["Read"]


def test_what_a_source_has_announced_is_read_in_the_next_micro_batch(tmp_path: Path) -> None:
    announcing = OpenReading(None, SimpleNamespace(origin="Read"), False, announces=True)  # type: ignore[arg-type]
    left = Backlog([announcing], 1, DiskPlace(tmp_path), ASKED_MILLIS)
    left.begin(100)
    left.see_progress(progress(101, source('{"a": 7}', '{"a": 7, "b": 0}')))
    assert left.labels() == ["Read"]
    left.see_progress(progress(102, source('{"a": 7, "b": 0}', '{"a": 7, "b": 5}')))
    assert left.labels() == []


def test_what_a_source_has_seen_before_tells_nothing(tmp_path: Path) -> None:
    polled = OpenReading(None, SimpleNamespace(origin="Read"), False, poll_seconds=5.0)  # type: ignore[arg-type]
    left = Backlog([polled], 1, DiskPlace(tmp_path), ASKED_MILLIS)
    assert left.poll_seconds == 5.0
    left.see_progress(progress(101, source("1", "1")))
    for now in (0.0, 4.0):
        left.see_status(True, now)
    assert left.labels() == ["Read"]
    left.begin(102)
    left.see_progress(progress(102, source("1", "1")))
    assert left.labels() == ["Read"]
    left.see_progress(progress(103, source("1", "1")))
    assert left.labels() == []


def test_a_source_that_cannot_be_reached_is_not_read(tmp_path: Path) -> None:
    left = backlog(tmp_path, True, False)
    here, away = '{"position": 7}', '{"position": 7, "away": 1}'
    left.see_progress(progress(101, source(away, away), source(here, away)))
    for now in (0.0, 5.0):
        left.see_status(True, now)
    assert left.labels() == ["Read 0", "Read 1"]
    left.see_progress(progress(102, source(away, here), source(away, here)))
    # One without a limit yields everything with that.
    assert left.labels() == ["Read 0"]
    for now in (6.0, 8.0):
        left.see_status(True, now)
    assert left.labels() == []


@pytest.mark.parametrize("name", ["7", "7.compact"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_files_are_read_when_one_came_that_changed_long_after(
    tmp_path: Path, name: str, newest_first: bool
) -> None:
    left = backlog(tmp_path, True, newest_first=newest_first)
    (tmp_path / "1").mkdir()
    files = [
        {"path": "a", "timestamp": ASKED_MILLIS + 10_001, "batchId": 7},
        {"path": "b", "timestamp": 5, "batchId": 7},
    ]
    (tmp_path / "1" / "6").write_text("v1\n" + json.dumps(files[1] | {"timestamp": ASKED_MILLIS + 10_000}))
    (tmp_path / "1" / name).write_text("\n".join(["v1", *map(json.dumps, files)]))
    files_of = "FileStreamSource[file:/in/*.txt]"
    left.see_progress(progress(101, source({"logOffset": 5}, {"logOffset": 6}, description=files_of)))
    assert left.labels() == ["Read 0"]
    left.see_progress(progress(102, source({"logOffset": 6}, {"logOffset": 7}, description=files_of)))
    assert left.labels() == (["Read 0"] if newest_first else [])


def test_a_query_that_rests_for_a_second_has_read_all(tmp_path: Path) -> None:
    left = backlog(tmp_path, True, True)
    left.see_status(True, 10.0)
    left.see_status(True, 10.9)
    left.see_progress(progress(101, source("1", "2"), source("1", "2")))
    left.see_status(True, 11.1)
    left.see_status(False, 12.0)
    assert left.labels() == ["Read 0", "Read 1"]
    left.see_status(True, 12.2)
    assert left.labels() == []


@pytest.mark.parametrize(
    ("offset", "goal", "expected"),
    [
        (5, 5, True),
        (4, 5, False),
        (None, None, False),
        ("b", "a", False),
        ("a", "a", True),
        (5, {"0": 5}, False),
    ],
)
def test_offsets_are_compared_part_by_part(offset: Any, goal: Any, expected: bool) -> None:
    assert reaches(offset, goal) is expected


def test_a_run_that_has_read_what_was_available_may_be_cancelled_silently() -> None:
    assert say_cancelled_early(is_drain=False, places=[], is_kept=True) is None


@pytest.mark.parametrize(
    ("is_drain", "places", "is_kept", "what", "where", "hint"),
    [
        (
            False,
            ["at step 'A'", "at step 'B'"],
            True,
            "at its start",
            "at step 'A', at step 'B'",
            "reads the rest",
        ),
        (True, ["at step 'A'"], True, "when its drain began", "at step 'A'", "reads the rest"),
        (True, [], True, "before all windows of its drain had fired", "in the windows", "it fires them"),
        (False, ["at step 'A'"], False, "at its start", "at step 'A'", "pass --checkpoint_location"),
    ],
)
def test_a_cancelled_run_names_what_is_left_where_and_what_to_do(
    is_drain, places, is_kept, what, where, hint
) -> None:
    said = say_cancelled_early(is_drain, places, is_kept)
    assert said is not None
    first, second, third = said.split("\n")
    assert what in first
    assert where in second
    assert hint in third
