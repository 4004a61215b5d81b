"""A stream on Spark Connect continues after its server is killed, and after its connection is cut for a while."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

import pytest

from penstock_conformance.connect_server import started_server
from tests.spark.test_killed_streams import (
    MOMENTS,
    WAIT_SECONDS_MAX,
    content_of,
    expected,
    source,
    started,
    wait_for,
)

__all__ = ["expected", "source"]

pytestmark = pytest.mark.soak

_NAME = "windows"


def _run(
    address: str, folder: Path, scores: Path, log: Path
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return started(_NAME, str(scores), f"{folder}/out", f"{folder}/checkpoint", log=log, remote=address)


def _comes_to(moment: str, folder: Path, process: subprocess.Popen[bytes]) -> bool:
    is_now = MOMENTS[moment]
    return wait_for(partial(is_now, folder / "out" / _NAME, folder / "checkpoint" / _NAME), process)


def test_a_stream_whose_server_is_killed_says_so_and_continues_on_another_server(
    source: Path, expected: Callable[[str], dict[str, list[str]]], tmp_path: Path
) -> None:
    for moment in ("between two", "while one is written"):
        log = tmp_path / f"killed {moment}"
        with (
            started_server("local[2,4]") as (server, address),
            _run(address, tmp_path, source, log) as process,
        ):
            assert _comes_to(moment, tmp_path, process), log.read_text()
            os.killpg(server.pid, signal.SIGKILL)
            assert process.wait(WAIT_SECONDS_MAX) == 1
        assert (
            log.read_text().count("penstock.error.RunnerError: no Spark Connect server answers\n  in ") == 1
        )
        assert "(a stream continues from its checkpoint)" in log.read_text()
    log = tmp_path / "log"
    with started_server("local[2,4]") as (_, address), _run(address, tmp_path, source, log) as process:
        assert process.wait(WAIT_SECONDS_MAX) == 0, log.read_text()
    assert content_of(tmp_path / "out" / _NAME) == expected(_NAME)


def test_a_stream_whose_connection_is_cut_for_some_seconds_goes_on(
    source: Path, expected: Callable[[str], dict[str, list[str]]], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with started_server("local[2,4]") as (_, address):
        port = address.removeprefix("sc://localhost:").partition("/")[0]
        with _Cable(int(port)) as cable:
            through = address.replace(port, str(cable.port))
            with _run(through, tmp_path, source, log) as process:
                for moment in ("between two", "while one is written"):
                    assert _comes_to(moment, tmp_path, process), log.read_text()
                    cable.cut(6)
                assert process.wait(WAIT_SECONDS_MAX) == 0, log.read_text()
    assert "the Spark Connect server does not answer: trying again" in log.read_text()
    assert content_of(tmp_path / "out" / _NAME) == expected(_NAME)


class _Cable:
    """Relays the connections to a port of this machine, until it is cut.

    Attributes:
        port: The port to connect to.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_cut = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self) -> _Cable:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone does not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self._end_connections()

    def cut(self, duration_seconds: float) -> None:
        """Ends all connections, and accepts none for a while."""
        self._is_cut = True
        self._end_connections()
        time.sleep(duration_seconds)
        self._is_cut = False

    def _end_connections(self) -> None:
        while self._sockets:
            _end(self._sockets.pop())

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += near, far
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_relay, args=(one, other), daemon=True).start()


def _relay(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    _end(other)
    _end(one)
    one.close()


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
