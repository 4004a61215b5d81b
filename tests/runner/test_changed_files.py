"""Which files a stream warns of, because they have changed since it has read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock_spark.files.changed_files import ChangedFiles, warn_of_empty_files

WHERE = "at step 'Read' (game.py:41)"


def test_each_file_that_has_changed_since_it_was_read_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [str(tmp_path / name) for name in ("same", "longer", "other", "gone", "began empty")]
    for path in paths:
        Path(path).write_text("1\n")
    files = ChangedFiles()
    files.read({path: 0 if path.endswith("empty") else 2 for path in paths}, WHERE)
    files.look()
    _same, longer, other, gone, began_empty = paths
    Path(longer).write_text("1\n2\n")
    os.utime(other, ns=(0, 0))
    Path(gone).unlink()
    files.look()
    Path(gone).write_text("1\n2\n")
    files.look()
    told = [each.getMessage().partition(" changed after")[0] for each in caplog.records]
    assert told == [began_empty, longer, other]
    assert f"\n  {WHERE}\n  hint: " in caplog.text


def test_only_the_files_that_were_read_last_are_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ChangedFiles()
    paths = [str(tmp_path / str(number)) for number in range(102)]
    for path in paths:
        Path(path).write_text("")
        files.read({path: 0}, WHERE)
    for path in paths:
        Path(path).write_text("more")
    files.look()
    assert len(caplog.records) == 100
    assert paths[2] in caplog.text


def test_files_without_a_byte_are_told_together(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_empty_files({"/in/c": 0, "/in/b": 1, "/in/a": 0}, WHERE)
    warn_of_empty_files({"/in/b": 1}, WHERE)
    assert [each.getMessage().partition(", and is read")[0] for each in caplog.records] == [
        "/in/a (and 1 more) has no content (0 bytes)"
    ]
    assert f"\n  {WHERE}\n  hint: " in caplog.text
