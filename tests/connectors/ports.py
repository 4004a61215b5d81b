"""Ports for the servers of tests."""

from __future__ import annotations

import random
import socket

# The system assigns no lower number to a program that leaves the choice to it.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A free port that the system does not assign to another program later.

    When a server has stopped, its clients still try to connect. If the system gave the server's port to Spark, which
    opens a port for each result, a client could take the result's only connection.
    """
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
