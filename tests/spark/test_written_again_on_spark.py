"""Output folders that are written again, after runs that ended well and after one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as beam
from penstock.elements.row import Row
from penstock.io import WriteToCsv, WriteToJson, WriteToParquet, WriteToText
from penstock.io.fileio import WriteToFiles, destination_prefix_naming
from penstock_spark.files.file_store import HadoopFiles
from penstock_spark.files.temporary import MARK, PREFIX
from tests.spark.schemes import SCHEMES


def _run(values: list[Any], write: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(values) | write


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@SCHEMES
@pytest.mark.parametrize(
    ("write", "value"),
    [
        (lambda o, n: WriteToText(o, ".x", num_shards=n), "a"),
        (lambda o, n: WriteToCsv(o + ".x", num_shards=n), Row(a=1)),
        (lambda o, n: WriteToJson(o + ".x", num_shards=n), Row(a=1)),
        (
            lambda o, n: WriteToParquet(
                o, pa.schema([("a", pa.int64())]), file_name_suffix=".x", num_shards=n
            ),
            {"a": 1},
        ),
    ],
    ids=["text", "csv", "json", "parquet"],
)
def test_a_folder_that_is_written_again_holds_the_files_of_the_last_run_only(
    tmp_path: Path, scheme: str, write: Callable[[str, int], Any], value: Any
) -> None:
    mine = ["o-notes", "other-00000-of-00004.x", "o-00009-of-00004.x"]
    for name in mine:
        (tmp_path / name).write_text("keep")
    for shards in (4, 2, 3):
        _run([value] * 8, write(f"{scheme}{tmp_path}/o", shards))
        written = [name for name in _names(tmp_path) if name not in mine]
        assert len(written) == shards
        assert all(f"of-0000{shards}" in name for name in written)
    assert set(mine) < set(_names(tmp_path))


@SCHEMES
def test_a_run_that_dies_between_renames_and_deletions_loses_nothing_and_the_next_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    class Killed(Exception):
        pass

    def die(*args: Any) -> None:
        raise Killed

    def write(shards: int, word: str) -> None:
        _run([word] * 8, WriteToText(f"{scheme}{tmp_path}/o", num_shards=shards))

    write(4, "old")
    with monkeypatch.context() as patch:
        remove, remove_far = os.remove, HadoopFiles.remove
        patch.setattr(os, "remove", lambda path: die() if "of-00004" in str(path) else remove(path))
        patch.setattr(
            HadoopFiles,
            "remove",
            lambda files, path: die() if "of-00004" in path else remove_far(files, path),
        )
        with pytest.raises(Killed):
            write(2, "new")
    assert "".join(path.read_text() for path in tmp_path.glob("o-*-of-00002")) == "new\n" * 8
    write(2, "newest")
    assert _names(tmp_path) == ["o-00000-of-00002", "o-00001-of-00002"]


_WRITES_SLOWLY = """
import sys, time
import penstock as beam
def slow(value, begun=sys.argv[2]):
    open(begun, "w").close()
    time.sleep(600)
    return value
with beam.Pipeline(argv=["--master=local[1]", "--fast_start"]) as pipeline:
    pipeline | beam.Create(["a"]) | beam.Map(slow) | beam.io.WriteToText(sys.argv[1])
"""


@pytest.mark.parametrize("scheme", [pytest.param("", marks=pytest.mark.soak), "file://"])
def test_what_a_killed_run_has_left_is_removed_by_the_next_and_what_a_living_one_writes_is_not(
    tmp_path: Path, scheme: str
) -> None:
    out, begun, script = tmp_path / "out", tmp_path / "begun", tmp_path / "slow.py"
    script.write_text(_WRITES_SLOWLY)
    command = [sys.executable, str(script), f"{scheme}{out}/o", str(begun)]
    driver = subprocess.Popen(command, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        (temporary,) = out.iterdir()
        assert temporary.name.startswith(PREFIX)
        assert (temporary / MARK).exists()
        _run(["b"], WriteToText(f"{scheme}{out}/p"))
        assert temporary.exists()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    _run(["b"], WriteToText(f"{scheme}{out}/p"))
    assert _names(out) == ["p-00000-of-00001"]


@pytest.mark.parametrize("writers", [0, 20])
def test_write_to_files_removes_its_temporary_folder_and_none_that_it_was_given(
    tmp_path: Path, writers: int
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for temporary in (None, str(given)):
        for _ in range(2):
            write = WriteToFiles(
                str(tmp_path / "out"),
                destination=lambda word: word,
                file_naming=destination_prefix_naming(),
                temp_directory=temporary,
                shards=1,
                max_writers_per_bundle=writers,
            )
            _run(["a", "b"], write)
        assert _names(tmp_path / "out") == ["a-00000-of-00001", "b-00000-of-00001"]
    assert _names(given) == []
