"""Which files a `MatchContinuously` with a cursor gives: what changed at or after the latest change that was seen."""

import logging
from collections.abc import Callable

import pytest

import penstock as beam
from penstock.io.avroio import ReadAllFromAvroContinuously
from penstock.io.files.match_files import MatchContinuously, _Look, _PastTheCursor
from penstock.io.filesystem import BeamIOError, FileMetadata
from penstock.io.textio import ReadAllFromTextContinuously


class Held:
    """The state of one key."""

    def __init__(self) -> None:
        self.value = None

    def read(self):
        return self.value

    def write(self, value) -> None:
        self.value = value


@pytest.fixture
def looked() -> Callable[..., list[str]]:
    """Gives the new ones among files that are there, by their names, each with the time of its change."""
    dofn, state = _PastTheCursor(), Held()

    def look(**changed: float) -> list[str]:
        files = [(time, FileMetadata(name, 1, time)) for name, time in changed.items()]
        return [file.path for file in dofn.process(("*", files), state)]

    look.state = state
    return look


def test_a_file_comes_once_and_again_when_it_has_changed(looked):
    assert looked(b=2.5, a=1.5) == ["a", "b"]
    assert looked(a=1.5, b=2.5) == []
    assert looked(a=3.5, b=2.5) == ["a"]


def test_a_file_that_changed_before_the_latest_change_is_taken_as_seen(looked):
    assert looked(a=2.5) == ["a"]
    assert looked(a=2.5, old=1.5) == []


def test_files_of_one_time_are_told_apart(looked):
    assert looked(a=2.5) == ["a"]
    assert looked(a=2.5, b=2.5) == ["b"]
    assert looked(a=2.5, b=2.5, c=2.5) == ["c"]
    assert looked(a=2.5, b=2.5, c=2.5) == []


def test_only_the_files_of_the_latest_change_are_remembered(looked):
    looked(**{f"f{number}": 1.0 + number for number in range(100)})
    assert looked.state.value == (100.0, {"f99"})


def test_a_file_system_that_knows_no_times_has_no_cursor(monkeypatch, tmp_path):
    (tmp_path / "a").write_text("")
    assert len(_Look("ALLOW").process(f"{tmp_path}/*")[0][1]) == 1
    monkeypatch.setattr(
        "penstock.io.filesystem.LocalFileSystem.metadata", lambda self, path: FileMetadata(path, 0)
    )
    with pytest.raises(BeamIOError, match="time of the last change"):
        _Look("ALLOW").process(f"{tmp_path}/*")


def test_a_cursor_needs_deduplication_and_gives_changed_files_again(caplog):
    with pytest.raises(ValueError, match=r"(?s)needs has_deduplication=True\n  at .*\n  hint"):
        MatchContinuously("*", has_deduplication=False, timestamp_cursor=True)
    with caplog.at_level(logging.WARNING):
        assert MatchContinuously("*", timestamp_cursor=True).match_upd
    assert "that have changed" in caplog.text


@pytest.mark.parametrize("read", [ReadAllFromTextContinuously, ReadAllFromAvroContinuously])
def test_a_read_of_files_that_appear_takes_all_arguments_of_the_match(read):
    polls = {"interval": 5, "empty_match_treatment": "DISALLOW", "match_updated_files": True}
    lines = beam.Pipeline() | read("/logs/*", **polls, timestamp_cursor=True, with_filename=True)
    assert not lines.is_bounded


@pytest.mark.parametrize("read", [ReadAllFromTextContinuously, ReadAllFromAvroContinuously])
def test_a_read_of_files_that_appear_refuses_an_argument_that_nothing_has(read):
    with pytest.raises(TypeError, match="'timestamp_curser'"):
        read("/logs/*", timestamp_curser=True)
