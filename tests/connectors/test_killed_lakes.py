"""Files, a Delta table and an Iceberg table, whose streams are at a commit when their program is killed."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc

pytest.importorskip("pyiceberg", reason="needs the package pyiceberg")
pytest.importorskip("sqlalchemy", reason="needs the package sqlalchemy")
pytest.importorskip("deltalake", reason="needs the package deltalake")

import deltalake

from tests.connectors import iceberg_tables
from tests.connectors.scores import FILES, expected_of, put

PROGRAM = Path(__file__).with_name("lakes_program.py")
FIRST = {"parquet": (0, "half"), "orc": (1, "half"), "delta": (1, "before"), "iceberg": (0, "after")}
SECOND = {"parquet": (4, "after"), "orc": (3, "before"), "delta": (1, "after"), "iceberg": (3, "before")}
"""The step of each stream when the program dies: files get names, or a commit comes next or is just done."""


def rows_of_files(folder: Path, read: Any) -> list[dict[str, Any]]:
    """The rows that other readers find in files and in the names of their folders."""
    assert {path.name for path in folder.iterdir()} == {"team=a", "team=b", "team=c"}
    rows = [
        {"team": path.parent.name.partition("=")[2], "number": int(row["number"])}
        for path in folder.glob("team=*/*")
        for row in read(path).read().to_pylist()
    ]
    return sorted(rows, key=repr)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "kills", [[FIRST], pytest.param([FIRST, SECOND], marks=pytest.mark.soak)], ids=["once", "twice"]
)
def test_killed_streams_leave_each_element_once_in_each_format(
    tmp_path: Path, kills: list[dict[str, tuple[int, str]]]
) -> None:
    """Soak also kills the stream of each format alone, more often, and at moments that are drawn."""
    for name in ("in", "parquet", "orc"):
        (tmp_path / name).mkdir()
    iceberg_tables.make_namespace(tmp_path / "iceberg")
    for number in range(FILES):
        put(tmp_path / "in", number)
    for moments in kills:
        words = [str(word) for kind, moment in moments.items() for word in (kind, *moment)]
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(tmp_path), *words],
            start_new_session=True,
            capture_output=True,
            timeout=240,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-3000:]
    # The last run saves a start of Spark.
    importlib.import_module("tests.connectors.lakes_program").run(tmp_path)
    found = {
        "parquet": rows_of_files(tmp_path / "parquet", pq.ParquetFile),
        "orc": rows_of_files(tmp_path / "orc", orc.ORCFile),
        "delta": sorted(
            deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().to_pylist(), key=repr
        ),
        "iceberg": iceberg_tables.rows_of(tmp_path / "iceberg"),
    }
    assert found == dict.fromkeys(found, expected_of("append"))
