"""The options of the socket between a worker and Spark, on sockets that are held as the worker holds its own."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from penstock_spark.session.worker_socket import acknowledge_each, confirm_at_once


def main(infile: Any, action: Callable[[], Any]) -> Any:
    """Holds what it reads in a local variable of this name, as the worker does."""
    return action()


def _no_delay(end: socket.socket) -> bool:
    return bool(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_messages_of_the_worker_go_out_as_they_are_and_the_socket_stays_open() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as spark,
        server.accept()[0] as worker,
    ):
        assert not _no_delay(worker)
        with os.fdopen(os.dup(worker.fileno()), "rb") as infile:
            assert main(infile, lambda: list(acknowledge_each(iter("ab")))) == ["a", "b"]
            spark.sendall(b"rows")
            assert infile.read(4) == b"rows"
        assert _no_delay(worker)
        assert not _no_delay(spark)


def _taken() -> list[int]:
    return list(acknowledge_each(iter([1, 2])))


@pytest.mark.parametrize(
    "kind", ["no worker", "a name", "a pipe", "a local socket", "bytes", "a closed file"]
)
def test_what_is_no_socket_of_a_network_is_left_as_it_is(kind: str) -> None:
    first, second = socket.socketpair()
    reading, writing = os.pipe()
    closed = io.BytesIO()
    closed.close()
    with first, second, os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        held: dict[str, Any] = {"a name": "input.txt", "a pipe": pipe}
        held |= {"a local socket": first, "bytes": io.BytesIO(), "a closed file": closed}
        taken = _taken() if kind == "no worker" else main(held[kind], _taken)
        assert taken == [1, 2]
        confirm_at_once()
        first.sendall(b"still open")
        assert second.recv(20) == b"still open"
