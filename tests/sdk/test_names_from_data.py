"""File names and error texts that the data has a part in: what a stranger's element must not be able to do."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.io.fileio import WriteToFiles, destination_prefix_naming
from penstock.io.files.write_files import FileResult, _Move
from penstock.transforms.window import GlobalWindow
from penstock.utils.timestamp import Duration, Timestamp

NAMING = destination_prefix_naming(".txt")


def _write(folder: Path, destination: Any, naming: Any = NAMING, allow_outside: bool = False) -> list[str]:
    """Has the last step of ``WriteToFiles`` name a file; the names in the end."""
    temporary = folder / "temporary"
    temporary.write_text("x")
    move = _Move(str(folder / "out"), naming, allow_outside, None)
    (folder / "out").mkdir(exist_ok=True)
    result = FileResult(str(temporary), -1, 0, GlobalWindow(), None, destination)
    return [each.file_name for each in move.process((destination, [result]))]


@pytest.mark.parametrize(
    "destination", ["../secret", "/etc/secret", "eu/secret", "..\\secret", "s3://b/secret"]
)
def test_a_destination_of_the_data_does_not_choose_a_folder(tmp_path: Path, destination: str) -> None:
    with pytest.raises(ValueError, match="a destination, of type str, contains a separator") as caught:
        _write(tmp_path, destination)
    assert "secret" not in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "temporary"]


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/secret", "a/../../secret", "file:/secret", "..", "C:\\secret", ""]
)
def test_no_naming_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leads out of the folder") as caught:
        _write(tmp_path, "x", lambda *_: name)
    assert "secret" not in str(caught.value)


def test_folders_and_paths_outside_are_there_for_who_asks(tmp_path: Path) -> None:
    inside = destination_prefix_naming(".txt", allow_separators=True)
    assert _write(tmp_path, "eu/fr", inside) == ["eu/fr-00000-of-00001.txt"]
    assert (tmp_path / "out" / "eu" / "fr-00000-of-00001.txt").read_text() == "x"
    assert _write(tmp_path, 7) == ["7-00000-of-00001.txt"]
    assert _write(tmp_path, "a..b", NAMING) == ["a..b-00000-of-00001.txt"]
    with pytest.raises(ValueError, match="leads out"):
        _write(tmp_path, "../eu", inside)
    _write(tmp_path, "../eu", inside, allow_outside=True)
    assert (tmp_path / "eu-00000-of-00001.txt").exists()
    assert WriteToFiles("x", allow_outside_path=True)._allow_outside_path


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Timestamp.of("secret"), "cannot interpret a str as a Timestamp"),
        (lambda: Timestamp(["secret"]), "cannot interpret a list as"),
        (lambda: Duration.of({"secret": 1}), "cannot interpret a dict as a Duration"),
        (lambda: Timestamp.from_rfc3339("secret"), "could not parse the RFC 3339 string of 6 characters"),
        (lambda: Timestamp.from_rfc3339("1987-06-05T04:03:02"), "it has no offset"),
        (lambda: Timestamp.of(datetime.datetime(1987, 6, 5)), "dt has no timezone info"),
    ],
)
def test_an_error_about_a_time_does_not_show_what_was_given(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        call()
    assert "secret" not in str(caught.value)
    assert "1987" not in str(caught.value)
