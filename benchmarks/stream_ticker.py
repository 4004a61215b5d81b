"""Sends lines at a steady rate to whoever connects: a running number and the microsecond at which it was sent."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TICK_WINDOW_SECONDS = 60
TICK_DISORDER_SECONDS = 10

_PAUSE_SECONDS = 0.002


def parsed_tick(line: str, keys: int) -> tuple[int, int, int]:
    """The key of a line, its score, and the microsecond of its birth; what Python does for each contender.

    >>> parsed_tick("1007,1600000000000000", 1000)
    (7, 1, 1600000000000000)
    """
    number, _, micros = line.partition(",")
    return int(number) % keys, 1, int(micros)


@contextmanager
def tick_source(source: str, rate: int) -> Iterator[dict[str, Any]]:
    """The options of a Spark source, which yields `rate` events a second within the block.

    The source ``socket`` yields lines, and ``rate`` yields numbers and their timestamps.
    """
    if source == "rate":
        yield {"rowsPerSecond": rate}
        return
    with ticking(rate) as port:
        yield {"host": "127.0.0.1", "port": port}


@contextmanager
def ticking(per_second: int) -> Iterator[int]:
    """Starts such a server for a block, and yields its port."""
    command = [sys.executable, __file__, str(per_second)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.communicate()


def serve(per_second: int) -> None:
    """Says which port it listens on, and serves until its own input ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_accept, args=(listener, per_second), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket, per_second: int) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_send, args=(connection, per_second), daemon=True).start()


def _send(connection: socket.socket, per_second: int) -> None:
    """Sends until the other side has enough; what a pause was too long for is caught up with at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - start) * per_second)
        micros = time.time_ns() // 1_000
        try:
            connection.sendall("".join(f"{number},{micros}\n" for number in range(sent, due)).encode())
        except OSError:
            return
        sent = due
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
