"""A server with MongoDB's protocol for tests, from the package ``SecantusDB``, in a process of its own.

Beam asks for the size of a collection by ``collstats``, another name that MongoDB has for ``collStats``. This server
does not know it, and so learns it here.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def mongo_server() -> Iterator[str]:
    """The address of a server with no documents."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).resolve()), folder]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet) as server:
            try:
                assert server.stdout is not None
                yield server.stdout.readline().decode().strip()
            finally:
                server.kill()


def _serve(folder: str) -> None:
    from secantus import SecantusDBServer, commands

    def collstats(doc: dict[str, Any], context: Any) -> Any:
        return commands._coll_stats({**doc, "collStats": doc["collstats"]}, context)

    commands._HANDLERS["collstats"] = collstats
    with SecantusDBServer(storage_path=folder) as server:
        print(server.uri, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1])
