"""The server of the page of a run: the page itself, the snapshot as JSON, metrics for Prometheus, and two commands."""

from __future__ import annotations

import base64
import errno
import hashlib
import hmac
import re
import threading
from collections.abc import Callable
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

from penstock.error import RunnerError, refusal
from penstock.utils import clock
from penstock_spark.checkpoints.custody.requests import CANCEL, DRAIN, Answer
from penstock_spark.live import prometheus
from penstock_spark.live.snapshot import RunSnapshot

LOOPBACK = "127.0.0.1"
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)

TOKEN_HEADER = "Penstock-Token"
"""The header of a request with the token. A page of another site cannot send it: a browser asks first, in vain."""

COMMANDS_HEADER = "Penstock-Commands"
"""The header of a snapshot with the commands that the server takes now."""

_WRONG_TOKEN_SECONDS = 0.5
"""The wait after a wrong token, which makes guessing slow."""

Look = Callable[[], RunSnapshot | None]
"""Gives the present snapshot; None before the first."""

SendCommand = Callable[[str], Answer]
"""Sends the run one of the commands ``drain`` and ``cancel``, and returns its answer."""


@cache
def page() -> str:
    """The page, which needs nothing else."""
    return files("penstock_spark.live").joinpath("page.html").read_text(encoding="utf-8")


def page_with(now: RunSnapshot) -> str:
    """The page with a snapshot in it, which asks no server."""
    # Inside of a script, no text may end it.
    safe = now.to_json().replace("<", "\\u003c")
    return page().replace("<!--given-->", f'<script type="application/json" id="given">{safe}</script>')


@cache
def _policy() -> str:
    """Returns the policy that lets the page run its own script, use its own style, and ask only this server."""
    found: dict[str, list[str]] = {"script": [], "style": []}
    for kind, content in _INLINE.findall(page()):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
        found[kind].append(f"'sha256-{digest}'")
    return (
        f"default-src 'none'; connect-src 'self'; script-src {' '.join(found['script'])}; "
        f"style-src {' '.join(found['style'])}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class LiveServer:
    """A server of snapshots, in threads of its own, until the program ends or it is closed.

    Args:
        look: Returns the present snapshot.
        port: The port; 0 takes any free one.
        host: The address to listen at; anything but the loopback lets other machines look.
        token: Who sends it may drain and cancel the run; None for a page that only shows.
        send: Sends a command to the run; None if the run takes none.

    Raises:
        ValueError: The port is taken, or cannot be used.
    """

    def __init__(
        self,
        look: Look,
        port: int,
        host: str = LOOPBACK,
        token: str | None = None,
        send: SendCommand | None = None,
    ) -> None:
        self.look = look
        self.host = host
        self.token = token
        self.send = send
        handler = type("_Handler", (_Handler,), {"of": self})
        try:
            self._server = _Server((host, port), handler)
        except (OSError, OverflowError) as error:
            raise _cannot_listen(error, host, port) from None
        self.port: int = self._server.server_address[1]
        serve = partial(self._server.serve_forever, poll_interval=0.2)
        threading.Thread(target=serve, name="penstock live", daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    def accepts(self, host: str) -> bool:
        """True if this host names this server: another site may reach it through a name of its own."""
        if self.host not in (LOOPBACK, "::1", "localhost"):
            return True
        return host.rpartition(":")[0] in _LOCAL_NAMES or host in _LOCAL_NAMES

    def has_token(self, given: str) -> bool:
        """True if this is the token; it takes as long for a wrong one, whatever is wrong with it."""
        return self.token is not None and hmac.compare_digest(self.token.encode(), given.encode())

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A second view at the same port would take requests from the first.
    allow_reuse_port = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: a browser that goes away is not an error of the run."""


class _Handler(BaseHTTPRequestHandler):
    of: LiveServer
    timeout = 30
    server_version, sys_version = "penstock", ""

    def do_POST(self) -> None:
        """Carries out a command; a request without the token changes nothing."""
        if not self._is_for_here():
            return
        of, command = self.of, self.path.removeprefix("/")
        if command not in (DRAIN, CANCEL):
            self._say(404, "the commands are /drain and /cancel")
        elif of.token is None:
            self._say(403, "this page is read-only; a run with --live_token accepts commands")
        elif not of.has_token(self.headers.get(TOKEN_HEADER, "")):
            clock.sleep(_WRONG_TOKEN_SECONDS)
            self._say(403, "this is not the token of the run")
        elif of.send is None:
            self._say(409, "the run accepts no commands: it is over, or has no checkpoint_location")
        else:
            try:
                answer = of.send(command)
            except (OSError, RunnerError, ValueError) as error:
                answer = Answer(False, str(error))
            self._say(200 if answer.is_obeyed else 409, answer.text)

    def _is_for_here(self) -> bool:
        """True if a request names this server; answers it otherwise."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if self.of.accepts(host) and origin in (None, f"http://{host}", f"https://{host}"):
            return True
        self._say(403, "this page answers only to names of this machine, and to its own page")
        return False

    def _say(self, status: int, text: str) -> None:
        self._answer(status, "text/plain; charset=utf-8", f"{text}\n")

    def do_GET(self) -> None:
        if not self._is_for_here():
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(200, "text/html; charset=utf-8", page())
            return
        if path not in ("/snapshot.json", "/metrics"):
            self._say(404, "the pages are /, /snapshot.json and /metrics")
            return
        try:
            now = self.of.look()
        except ValueError as error:
            self._say(503, str(error))
            return
        if now is None:
            self._say(503, "the run has not begun")
        elif path == "/metrics":
            self._answer(200, prometheus.CONTENT_TYPE, prometheus.metrics_text(now))
        else:
            self._answer(200, "application/json", now.to_json())

    do_HEAD = do_GET

    def _answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _policy())
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.of.token is not None and self.of.send is not None:
            self.send_header(COMMANDS_HEADER, f"{DRAIN}, {CANCEL}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: a browser asks every second."""


def _cannot_listen(error: Exception, host: str, port: int) -> ValueError:
    if getattr(error, "errno", None) == errno.EADDRINUSE:
        what = f"the port {port} for the live view is taken"
        return refusal(ValueError, what, hint="use another one, or --live_port=0 for any that is free")
    why = getattr(error, "strerror", None) or str(error)
    what = f"the live view cannot listen at {host}, port {port}: {why}"
    return refusal(ValueError, what, hint="use --live_port=0, and leave out --live_host")
