"""Data that another version has written is refused by name, in three parts, and nothing is read into it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock_spark.checkpoints.custody.folder import open_at
from penstock_spark.checkpoints.custody.holder import this_holder
from penstock_spark.checkpoints.custody.lease import HOLDERS, Timing, take_lease
from penstock_spark.formats.ranges.stream import Planner
from penstock_spark.process import written_formats
from penstock_spark.process.identity import Process, this_process
from penstock_spark.process.written_formats import FORMATS, WrittenFormat
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.stream.shards.waiting import dump_waiting_page, load_waiting_state
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import KeyPage, keys_of
from penstock_spark.stream.state.window_pages import is_by_window, page_of
from penstock_spark.stream.transport.control import COMMAND, decode_row
from tests.runner.checkpoint_plans import BASE
from tests.runner.disk_place import DiskPlace


def page_of_keys() -> bytes:
    page = KeyPage()
    page.change({b"a": (b"", {}, None, None, {})})
    return page.encoded()[0]


def page_of_windows() -> bytes:
    return pickle.dumps((f"columns {written_formats.COLUMN_PAGE.number}", []))


def command() -> bytes:
    return COMMAND.encode() + b'0 {"format": 1, "command": "drain"}'


def renumbered(content: bytes, number: int) -> bytes:
    """The content with the number of another version."""
    if content.startswith(COMMAND.encode()):
        return content.replace(b'"format": 1', b'"format": %d' % number)
    mark, *rest = pickle.loads(content)
    return pickle.dumps((f"columns {number}" if isinstance(mark, str) else number, *rest))


STORED: dict[WrittenFormat, tuple[bytes, Callable[[bytes], Any]]] = {
    written_formats.HEADER: (Header().encoded(), Header.decoded),
    written_formats.KEY_PAGE: (page_of_keys(), lambda page: list(keys_of(page))),
    written_formats.COLUMN_PAGE: (page_of_windows(), page_of),
    written_formats.WAITING_PAGE: (dump_waiting_page(("state", {})), load_waiting_state),
    written_formats.COMMAND: (command(), decode_row),
}


@pytest.mark.parametrize("form", STORED, ids=lambda form: form.name)
def test_state_and_commands_of_another_version_are_refused_by_name(form: WrittenFormat) -> None:
    content, read = STORED[form]
    read(content)
    with pytest.raises(ValueError, match=form.name) as newer:
        read(renumbered(content, form.number + 1))
    what, *_, hint = str(newer.value).splitlines()
    assert [what, hint] == [
        f"a newer penstock wrote {form.name}, in the format {form.number + 1}; "
        f"penstock {penstock.__version__} reads the format {form.number}",
        "  hint: continue with the newer penstock",
    ]
    with pytest.raises(ValueError, match=f"an older penstock wrote {form.name}"):
        read(renumbered(content, form.number - 1))


def test_a_page_of_windows_is_told_from_one_of_keys_whatever_its_number() -> None:
    assert is_by_window(renumbered(page_of_windows(), 12))
    assert not is_by_window(page_of_keys())


def ended(place: DiskPlace, number: Any) -> None:
    place.write("ended.json", json.dumps({"format": number, "state": "DONE", "at": "now"}).encode())


def planned(place: DiskPlace, number: Any) -> None:
    plan = json.loads(place.read("plan-1.json"))
    (place.path / "plan-1.json").write_text(json.dumps({**plan, "format": number, "penstock": "9.0"}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (ended, "a newer penstock wrote the note that a run has ended, in the format 7"),
        (planned, "penstock 9.0 wrote the plan of a checkpoint, in the format 7"),
    ],
)
def test_a_folder_that_another_version_has_used_is_refused_by_name(
    change: Callable[[DiskPlace, Any], None], says: str, tmp_path: Path
) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    change(place, 7)
    with pytest.raises(ValueError, match=says) as refused:
        open_at(place, BASE.signature())
    assert str(refused.value).splitlines()[1:] == [
        f"  in {tmp_path}",
        "  hint: continue with the newer penstock",
    ]


@pytest.mark.parametrize("take_over", [False, True])
def test_a_checkpoint_that_a_run_of_a_newer_version_holds_is_not_taken(
    tmp_path: Path, take_over: bool
) -> None:
    place, quick = DiskPlace(tmp_path), Timing(beat_seconds=0.02, silence_seconds=0.1)
    holders = place.inside(HOLDERS)
    holders.make()
    claim = {**this_holder("first").as_json(), "format": 2}
    holders.claim("000001.json", json.dumps(claim).encode())
    with pytest.raises(
        ValueError, match="a newer penstock wrote the claim of the run that holds a checkpoint"
    ):
        take_lease(place, this_holder("second"), take_over, quick)
    # It has stopped, and said so.
    holders.write("000001.over", b"")
    take_lease(place, this_holder("second"), take_over, quick).release()


def test_a_temporary_folder_of_another_version_is_left_alone() -> None:
    mark = json.loads(this_process().to_json())
    assert Process.from_json(json.dumps(mark).encode()) == this_process()
    assert Process.from_json(json.dumps({**mark, "format": 2}).encode()) is None


def test_a_position_of_another_version_is_refused_by_name() -> None:
    planner = Planner.__new__(Planner)
    planner._planned = SimpleNamespace(where="at step 'Read'")  # type: ignore[assignment]
    written = planner.written([7])
    assert planner.position(written) == [7]
    with pytest.raises(StepFailure) as failed:
        planner.position({**written, "format": 2})
    failure = find_failure(str(failed.value))
    assert failure is not None
    assert "a newer penstock wrote the position of a source" in failure.message


def test_every_form_has_a_name_of_its_own() -> None:
    defined = [value for value in vars(written_formats).values() if isinstance(value, WrittenFormat)]
    assert [*FORMATS] == defined
    assert len({form.name for form in FORMATS}) == len(FORMATS)
