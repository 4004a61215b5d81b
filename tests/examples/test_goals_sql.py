"""The job in SQL: it is stopped by a signal, and its tables have each goal once."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.sql.jobs.running import Job

EXAMPLE = Path(__file__).parents[2] / "examples" / "goals.sql"
SECONDS_MAX = 120


def test_the_job_writes_windows_and_totals(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOALS", str(tmp_path))
    (tmp_path / "in").mkdir()
    goals = "blue,3,2026-01-01T12:00:01Z\nred,5,2026-01-01T12:00:02Z\nblue,x,\nblue,4,2026-01-01T12:01:10Z\n"
    (tmp_path / "in" / "1.csv").write_text(f"team,points,at\n{goals}")
    started = Job(EXAMPLE.read_text(), EXAMPLE.name, checkpoint_location=str(tmp_path / "checkpoint")).start()
    assert started is not None
    deadline = time.monotonic() + SECONDS_MAX
    while not (tmp_path / "minutes").exists() or not (tmp_path / "game.db").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    started.drain()
    started.wait_until_finish()
    files = (tmp_path / "minutes").glob("*.parquet")
    rows = [(row["team"], row["total"]) for file in files for row in pq.read_table(file).to_pylist()]
    assert sorted(rows) == [("blue", 3), ("blue", 4), ("red", 5)]
    with sqlite3.connect(tmp_path / "game.db") as database:
        assert sorted(database.execute("SELECT team, total FROM totals")) == [("blue", 7), ("red", 5)]
    [rejects] = (tmp_path / "rejects").glob("*.json")
    assert '"record":"blue,x,"' in rejects.read_text()
