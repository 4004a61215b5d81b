"""A copy of this process that answers requests, so that a crash ends only the copy."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import typing
import warnings
import weakref
from collections.abc import Callable

from penstock.utils import clock

if typing.TYPE_CHECKING:
    from multiprocessing.connection import Connection


_open: weakref.WeakSet[ChildProcess] = weakref.WeakSet()
# A process that the child itself has started may keep the connection open after the child has ended.
_SECONDS_BETWEEN_LOOKS = 0.5


class ProcessEnded(Exception):
    """The child ended before it answered; the message says how."""


class ChildProcess:
    """A fork of this process, with all its data; `answer` runs in the child, and turns a request into its answer.

    It ends with `end`, when this object is collected, and when this process ends, however that happens: it holds
    the reading end of a pipe, and the kernel signals it when the writing end is closed.

    >>> child = ChildProcess(lambda request: request.upper())
    >>> child.ask(b"hello")
    b'HELLO'
    >>> child.end()
    """

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        from multiprocessing.connection import Pipe

        self._connection, theirs = Pipe()
        life, self._life = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with warnings.catch_warnings():
            # Since Python 3.12 a fork beside threads warns. The child uses none of those threads' locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _live(self, theirs, life, answer)
        theirs.close()
        os.close(life)
        # This fails if the child has done it already, or has ended.
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)
        _open.add(self)
        self._end = weakref.finalize(self, _kill, self.pid, self._connection, self._life)

    def forget(self) -> None:
        """Forgets the child in another fork of this process, which must neither end it nor keep its pipes open."""
        if hasattr(self, "_end"):
            self._end.detach()
        self._connection.close()
        os.close(self._life)

    def is_alive(self) -> bool:
        """True if the child has not ended."""
        return self._end.alive and self._status() is None

    def ask(self, request: bytes, timeout_seconds: float | None = None) -> bytes:
        """Returns the answer to a request.

        Raises:
            ProcessEnded: If the child has ended.
            TimeoutError: If there is no answer in time; then the child has been ended.
        """
        deadline = None if timeout_seconds is None else clock.monotonic_seconds() + timeout_seconds
        try:
            self._connection.send_bytes(request)
            while not self._connection.poll(_wait(deadline)):
                if deadline is not None and clock.monotonic_seconds() >= deadline:
                    self.end()
                    raise TimeoutError
                if self._status() is not None and not self._connection.poll(0):
                    raise EOFError
            return self._connection.recv_bytes()
        except (EOFError, ConnectionError) as error:
            raise ProcessEnded(self._say_how_it_ended()) from error

    def end(self) -> None:
        """Ends the child, and the processes that it has started, at once."""
        _open.discard(self)
        self._end()

    def _status(self) -> int | None:
        """Returns how the child has ended: an exit code, or minus a signal; None if it has not."""
        if not hasattr(self, "_ended"):
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Other code has already asked for the status.
                pid, status = self.pid, 0
            if pid == 0:
                return None
            self._ended = os.waitstatus_to_exitcode(status)
        return self._ended

    def _say_how_it_ended(self) -> str:
        # The connection closes shortly before the process has ended.
        deadline = clock.monotonic_seconds() + _SECONDS_BETWEEN_LOOKS
        while self._status() is None and clock.monotonic_seconds() < deadline:
            clock.sleep(0.001)
        status = self._status()
        self.end()
        if status is None:
            return "closed its connection"
        if status < 0:
            return f"was ended by signal {-status} ({signal.Signals(-status).name})"
        return f"ended with exit code {status}"


def _wait(deadline: float | None) -> float:
    if deadline is None:
        return _SECONDS_BETWEEN_LOOKS
    return max(0.0, min(_SECONDS_BETWEEN_LOOKS, deadline - clock.monotonic_seconds()))


def _kill(pid: int, connection: Connection, life: int) -> None:
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
            break
        except (ProcessLookupError, PermissionError):
            # The group no longer exists; the process itself may still wait for ``waitpid``.
            continue
    connection.close()
    os.close(life)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _live(child: ChildProcess, connection: Connection, life: int, answer: Callable[[bytes], bytes]) -> None:
    """The life of the child until it ends; it never returns."""
    try:
        import fcntl

        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGIO, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        for other in [child, *_open]:
            other.forget()
        # The end of the parent closes the pipe, and the signal for that ends this process and all in its group.
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        while True:
            reply = answer(connection.recv_bytes())
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            connection.send_bytes(reply)
    except (EOFError, ConnectionError):
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        # None of the parent's exit handlers may run here.
        os._exit(1)
