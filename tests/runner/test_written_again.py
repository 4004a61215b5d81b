"""The files that earlier runs have left in a folder that is written again: the rules, on a local disk."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.io.fileio import default_file_naming, single_file_naming
from penstock.io.files.shards import Shards
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.naming import Naming
from penstock_spark.files.temporary import (
    ABANDONED_SECONDS,
    MARK,
    PREFIX,
    begin,
    end,
    make_name,
    remove_abandoned,
)
from penstock_spark.process.identity import this_process


@pytest.mark.parametrize(
    ("shards", "names", "stale", "others"),
    [
        (
            Shards("/o/a", ".t"),
            ["a-00000-of-00002.t", "a-00001-of-00002.t"],
            ["a-00000-of-00001.t", "a-00001-of-00004.t", "a-99999-of-100000.t"],
            # No file of this sink's: not so many shards, another prefix or suffix, other digits, a user's own name.
            [
                *("a-00004-of-00004.t", "a-b-00000-of-00004.t", "aa-00000-of-00004.t", "a-00000-of-00004"),
                *("a-00000-of-00004.t.bak", "a-0-of-4.t", "a-0000٣-of-00004.t", "a.t", "a-notes-of-00004.t"),
            ],
        ),
        (Shards("/o/a", shard_name_template=""), ["a", "a"], [], ["ab", "a-00000-of-00001"]),
        (
            Shards("/o/a.", shard_name_template="S_N"),
            ["a.0_2", "a.1_2"],
            ["a.2_3"],
            ["a.3_2", "a.02_3", "a.x_2"],
        ),
        (
            Shards("/o/a", shard_name_template="-SS"),
            ["a-00", "a-01"],
            ["a-02", "a-03"],
            ["a-05", "a-2026", "a-4"],
        ),
    ],
)
def test_files_of_another_number_of_shards_are_stale_and_no_others(
    shards: Shards, names: list[str], stale: list[str], others: list[str]
) -> None:
    naming = Naming(shards.check().name)
    assert [os.path.basename(name) for name in naming.names(2)] == names
    assert sorted(naming.find_stale(2, [*names, *stale, *others])) == sorted(stale)
    assert all(name.startswith(naming.beginning) for name in (*names, *stale))


def test_a_run_that_writes_no_file_leaves_none_of_an_earlier_one() -> None:
    single = single_file_naming("x", ".csv")
    assert Naming(lambda shard, shards: single(None, None, shard, shards, "", None)).find_stale(
        0, ["x.csv", "y.csv"]
    ) == ["x.csv"]
    numbered = default_file_naming("x")
    naming = Naming(lambda shard, shards: numbered(None, None, shard, shards, "", None))
    assert naming.find_stale(0, ["x-00000-of-00001", "x"]) == ["x-00000-of-00001"]


def _left_behind(folder: Path, name: str, mark: bytes | None) -> Path:
    path = folder / name
    path.mkdir()
    (path / "000000-half").write_text("half")
    if mark is not None:
        (path / MARK).write_bytes(mark)
    return path


def _ended_process() -> bytes:
    code = (
        "import sys; from penstock_spark.process.identity import this_process;"
        " sys.stdout.buffer.write(this_process().to_json())"
    )
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout


def _age(path: Path) -> None:
    for each in (*path.iterdir(), path):
        os.utime(each, (0, time.time() - ABANDONED_SECONDS - 60))


def test_only_what_a_dead_run_has_left_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    me = this_process()
    elsewhere = replace(me, machine="elsewhere").to_json()
    gone = [
        _left_behind(tmp_path, make_name(), _ended_process()),
        # The number has gone to another process since.
        _left_behind(tmp_path, f"{PREFIX}o-stream-00000-of-00001", replace(me, started="1").to_json()),
        _left_behind(tmp_path, "penstock-temp-" + "0" * 32, None),
        _left_behind(tmp_path, make_name(), elsewhere),
    ]
    kept = [
        _left_behind(tmp_path, make_name(), me.to_json()),
        _left_behind(tmp_path, make_name(), elsewhere),
        _left_behind(tmp_path, make_name(), None),
        _left_behind(tmp_path, f"{PREFIX}notes", None),
        _left_behind(tmp_path, f"{PREFIX}mine", b"my own"),
        _left_behind(tmp_path, "data", _ended_process()),
    ]
    (tmp_path / f"{PREFIX}file").write_text("keep")
    for old in (*gone[2:], *kept[3:]):
        _age(old)
    remove_abandoned(DiskFiles(), str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {*(path.name for path in kept), f"{PREFIX}file"}
    assert sorted(record.args[0] for record in caplog.records if isinstance(record.args, tuple)) == sorted(
        map(str, gone)
    )


def test_a_folder_that_is_not_there_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_abandoned(DiskFiles(), str(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_a_run_deletes_its_temporary_folder_unless_another_run_has_begun_it_anew(tmp_path: Path) -> None:
    disk, folder = DiskFiles(), tmp_path / make_name()
    begin(disk, str(folder))
    (folder / "000000").write_text("")
    end(disk, str(folder))
    assert not folder.exists()
    begin(disk, str(folder))
    (folder / MARK).write_bytes(replace(this_process(), machine="elsewhere").to_json())
    end(disk, str(folder))
    assert folder.exists()
