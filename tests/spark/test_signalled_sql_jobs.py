"""Jobs in SQL as processes: signals end them, a changed file continues them, and each window is there once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECONDS_MAX = 120

JOB = """SET checkpoint = 'checkpoint'; SET shuffle_partitions = 2;
CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECONDS)
WITH (format = 'csv', path = 'goals', header = 'true');
CREATE TABLE minutes (start TIMESTAMP, team STRING, total BIGINT) WITH (format = 'json', path = 'minutes');
INSERT INTO minutes SELECT window_start, team, SUM(points) AS total
  FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE)
  WHERE points > 0
  GROUP BY window_start, window_end, team EMIT AFTER WATERMARK;
"""


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """The job at work in a session of its own, of which nothing is left."""
    command = [sys.executable, "-m", "penstock", "sql", "job.sql", *flags]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until(process: subprocess.Popen[str], is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < deadline
        time.sleep(0.1)


def add(folder: Path, name: str, *lines: str) -> None:
    hidden = folder / "goals" / f".{name}"
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("team,points,at\n" + "".join(f"{line}\n" for line in lines))
    hidden.rename(folder / "goals" / f"{name}.csv")


def rows_of(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.glob("*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def minute(number: int, team: str, total: int) -> dict[str, object]:
    return {"start": f"2026-01-01T12:0{number}:00.000Z", "team": team, "total": total}


def test_a_job_is_ended_by_signals_changed_and_continued(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(JOB)
    add(tmp_path, "a", "blue,3,2026-01-01T12:00:01Z", "blue,4,2026-01-01T12:01:10Z")
    with started(tmp_path) as process:
        until(process, lambda: len(rows_of(tmp_path / "minutes")) == 1)
        # As on a terminal, all processes of the group hear it.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(SECONDS_MAX) == 130
    said = (tmp_path / "log").read_text()
    assert "Ctrl-C: the stream was cancelled; its progress is in the checkpoint checkpoint" in said
    assert "Traceback" not in said

    # Other keys do not fit the windows that are kept, and nothing is written.
    (tmp_path / "job.sql").write_text(JOB.replace("window_end, team EMIT", "window_end, team, points EMIT"))
    with started(tmp_path) as process:
        assert process.wait(SECONDS_MAX) == 2
    said = (tmp_path / "log").read_text()
    assert "Insert minutes" in said
    assert "does not fit the state in its checkpoint" in said
    assert "Traceback" not in said
    assert len(rows_of(tmp_path / "minutes")) == 1

    # A filter may change.
    (tmp_path / "job.sql").write_text(JOB.replace("points > 0", "points > 1"))
    add(
        tmp_path,
        "b",
        "blue,1,2026-01-01T12:01:20Z",
        "red,5,2026-01-01T12:01:30Z",
        "red,2,2026-01-01T12:03:00Z",
    )
    with started(tmp_path, "--drain_on_signal") as process:
        until(process, lambda: len(rows_of(tmp_path / "minutes")) == 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == 0
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert rows_of(tmp_path / "minutes") == [
        *(minute(0, "blue", 3), minute(1, "blue", 4), minute(1, "red", 5), minute(3, "red", 2))
    ]
