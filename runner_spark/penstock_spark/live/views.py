"""Looks at a run twice a second at most, in a thread of its own, and shows each snapshot to the views of the run."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol, TextIO

from penstock.error import refusal
from penstock.options.spark import SparkOptions
from penstock.options.table import TOKEN_MIN
from penstock.utils import clock
from penstock_spark.live.formatting import (
    escape_control_characters,
    format_count,
    format_lag,
    format_moment,
    format_seconds,
)
from penstock_spark.live.progress import SILENT_SECONDS, Bar, Lines
from penstock_spark.live.server import LOOPBACK, LiveServer, SendCommand
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.snapshot_files import KEEP_SECONDS, NAME
from penstock_spark.process.progress import is_quiet, print_progress

LINE_SECONDS = (5.0, 10.0)
"""The times at which a stream prints a line; the last is the interval from then on."""

TOKEN_VARIABLE = "PENSTOCK_LIVE_TOKEN"
LOOK_SECONDS = 0.5
_LAST_LOOK_SECONDS = 5.0
"""The longest time for which the end of a run waits for its views."""

_LOGGER = logging.getLogger(__name__)


class View(Protocol):
    """Something that shows snapshots."""

    def show(self, now: RunSnapshot) -> None:
        """Shows a snapshot; the last one is of a run that is over."""

    def close(self) -> None:
        """Leaves the last display unchanged."""


@dataclass
class Page:
    """The page of a run, at a server that stays for the next run of the program."""

    server: LiveServer
    token: str | None = None
    is_in_use: bool = True
    _now: RunSnapshot | None = None

    def __post_init__(self) -> None:
        self.server.look = self.look
        self.server.token, self.server.send = self.token, None

    def take_commands(self, send: SendCommand | None) -> None:
        """Lets who has the token send the run commands; None says that the run takes none."""
        if self.token is not None and send is None:
            print_progress(
                "the live page cannot drain or cancel the run, because it has no checkpoint_location"
            )
        self.server.send = send

    def look(self) -> RunSnapshot | None:
        return self._now

    def show(self, now: RunSnapshot) -> None:
        self._now = now

    def close(self) -> None:
        """Lets another run have the server; until then, the page of a run that is over can be looked at."""
        self.server.send = None
        self.is_in_use = False


@dataclass
class SnapshotFile:
    """The file of the snapshot beside a checkpoint; `write` replaces it."""

    write: Callable[[str, bytes], None]
    _next: float = 0.0

    def show(self, now: RunSnapshot) -> None:
        if now.is_over or clock.monotonic_seconds() >= self._next:
            self.write(NAME, now.to_json().encode())
            self._next = clock.monotonic_seconds() + KEEP_SECONDS

    def close(self) -> None:
        """Leaves the last snapshot unchanged."""


@dataclass(frozen=True)
class Views:
    """The views that the options of a run ask for.

    Attributes:
        shown: The views.
        url: The address of the page; None without one.
        is_watched: Whether more than the progress is shown, so that workers count panes and elements.
        first_seconds: When the first look is due.
    """

    shown: tuple[View, ...] = ()
    url: str | None = None
    is_watched: bool = False
    first_seconds: float = 0.0

    def close(self) -> None:
        """Gives the views back if the run has not begun."""
        for view in self.shown:
            view.close()


NO_VIEWS = Views()


@dataclass
class _Pages:
    """The pages of this process, by host and port."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_place: dict[tuple[str, int], Page] = field(default_factory=dict)
    tree: Any = None  # The view that has the terminal.


_pages = _Pages()


def views_of(settings: SparkOptions, is_batch: bool, err: TextIO | None = None) -> Views:
    """Opens the views that a run is asked for, before it starts.

    Raises:
        ValueError: The port of the page is taken, or the package for the tree is missing.
    """
    err = sys.stderr if err is None else err
    shown: list[View] = []
    url = None
    if settings.live:
        shown.append(_tree(err))
    elif is_batch and settings.progress != "off" and not is_quiet() and err is not None:
        tells_end = settings.progress == "always"
        shown.append(
            Bar(err, _columns(), tells_end) if _is_terminal(err) else Lines(err, tells_end=tells_end)
        )
    if settings.live_port is not None:
        token = settings.live_token or _token_of_environment()
        page = _page(settings.live_host or LOOPBACK, settings.live_port, token)
        shown.append(page)
        url = page.server.url
        print_progress(f"the live view is at {url}")
    is_watched = bool(settings.live) or settings.live_port is not None
    return Views(tuple(shown), url, is_watched, 0.0 if is_watched else SILENT_SECONDS)


def _token_of_environment() -> str | None:
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and len(token) < TOKEN_MIN:
        what = f"{TOKEN_VARIABLE} has {len(token)} characters, and needs at least {TOKEN_MIN}"
        hint = 'use the output of: python -c "import secrets; print(secrets.token_urlsafe())"'
        raise refusal(ValueError, what, where="in the environment", hint=hint)
    return token


def _page(host: str, port: int, token: str | None = None) -> Page:
    with _pages.lock:
        before = _pages.by_place.get((host, port)) if port else None
        if before is None:
            server = LiveServer(lambda: None, port, host)
        elif before.is_in_use:
            what = f"another run of this program shows its live view at port {port}"
            raise refusal(ValueError, what, hint="use --live_port=0 for any port that is free")
        else:
            server = before.server
        page = Page(server, token)
        _pages.by_place[host, server.port] = page
        return page


def _tree(err: TextIO) -> View:
    """Returns the tree on a terminal; elsewhere, and beside another tree, lines."""
    if not _is_terminal(err):
        return Lines(err, render_stream_line, LINE_SECONDS)
    if find_spec("rich") is None:
        what = "the live view in the terminal needs the package rich"
        raise refusal(ValueError, what, hint="pip install 'penstock[live]', or use --live_port=0 for a page")
    from penstock_spark.live.tree import LiveTree

    with _pages.lock:
        if _pages.tree is not None and not _pages.tree.is_over:
            return Lines(err, render_stream_line, LINE_SECONDS)
        _pages.tree = LiveTree(err)
    tree: View = _pages.tree
    return tree


def _is_terminal(out: TextIO) -> bool:
    try:
        return out.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False


def _columns() -> int:
    return shutil.get_terminal_size().columns


class Watch:
    """Shows a run until `end` says that the run is over.

    Args:
        look: Makes a snapshot.
        views: The views; one that fails is left out from then on, and never harms the run.
        name: The name of the run.
        first_seconds: When the first look is due; a run that is over sooner is looked at only once.
    """

    def __init__(
        self, look: Callable[[], RunSnapshot], views: Sequence[View], name: str, first_seconds: float = 0.0
    ) -> None:
        self._look = look
        self._views = list(views)
        self._first_seconds = first_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"penstock view {name}", daemon=True)
        if self._views:
            self._thread.start()

    def end(self) -> None:
        """Shows the run's end, and waits a little until that is done."""
        if self._views:
            self._over.set()
            self._thread.join(_LAST_LOOK_SECONDS)

    def _watch(self) -> None:
        wait = self._first_seconds
        while not self._over.wait(wait):
            self._show()
            wait = LOOK_SECONDS
        self._show()
        for view in self._views:
            self._try(view, view.close)

    def _show(self) -> None:
        try:
            now = self._look()
        except Exception as error:
            # A session that ends takes the answers with it.
            _LOGGER.debug("a run could not be inspected: %s", error)
            return
        for view in list(self._views):
            self._try(view, view.show, now)

    def _try(self, view: View, call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception as error:
            if view in self._views:
                self._views.remove(view)
            # Nobody needs to hear that a terminal was closed.
            level = logging.DEBUG if isinstance(error, OSError | ValueError) else logging.WARNING
            _LOGGER.log(
                level, "a view of the run, %s, has stopped: %s", type(view).__name__, type(error).__name__
            )
            _LOGGER.debug("%s", error)


def render_stream_line(now: RunSnapshot) -> str:
    """Says in one line how far a stream has come.

    >>> from penstock_spark.live.snapshot import GroupingNow
    >>> sums = GroupingNow("Sum", 1, output_micros=60_000_000, event_lag_micros=5_000_000)
    >>> render_stream_line(RunSnapshot("", "", "streaming", "RUNNING", 0, 9_000_000, rows_in=10, groupings=(sums,)))
    'running for 9.0 s · 10 rows read · Sum at 1970-01-01 00:01:00, 5.0 s behind'
    """
    parts = [f"{now.state.lower()} for {format_seconds(now.seconds)}"]
    if now.pace is not None:
        parts.append(now.pace.doing)
    if now.rows_in is not None:
        parts.append(f"{format_count(now.rows_in)} rows read")
    if now.groupings:
        # The first that is behind all others says when results come.
        last = min(now.groupings, key=lambda grouping: grouping.output_micros or 0)
        lag = f", {format_lag(last.event_lag_micros)} behind" if last.event_lag_micros is not None else ""
        parts.append(f"{escape_control_characters(last.label)} at {format_moment(last.output_micros)}{lag}")
    return " · ".join(parts)
