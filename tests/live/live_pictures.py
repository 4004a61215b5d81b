"""Takes the picture of the live page for docs/running.md: ``python tests/live/live_pictures.py docs/screenshots``.

It needs Chromium. ``--all FOLDER`` takes each page at two widths, light and dark, for somebody to look at.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sample import SECOND, batch, hostile, stream

from penstock.base import clock
from penstock.live.server import LiveServer
from penstock.live.snapshot import RunSnapshot

WIDTHS = {"wide": (1280, 1180), "narrow": (400, 1900)}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str | None:
    """The path of a Chromium; None if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def run_browser(url: str, *options: str, size: tuple[int, int] = (1280, 1180), is_dark: bool = False) -> str:
    """Opens a page without a window for some seconds, and returns what the browser prints."""
    chromium = browser()
    assert chromium is not None
    # A frame of the width: a window without a frame is never narrower than 500 pixels.
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--disable-dev-shm-usage", f"--user-data-dir={profile}", "--virtual-time-budget=4000"),
            *([f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]),
            *(f"--window-size={size[0]},{size[1]}", *options, url),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    return done.stdout


def as_of_now(now: RunSnapshot) -> RunSnapshot:
    """The same snapshot, taken this moment."""
    moment = clock.micros()
    return replace(now, at_micros=moment, began_micros=moment - (now.at_micros - now.began_micros))


def picture(now: RunSnapshot, path: Path, size: tuple[int, int], is_dark: bool = False) -> None:
    """Takes a picture of the page of a snapshot."""
    # The page says so if a run has been silent for long.
    server = LiveServer(lambda: as_of_now(now), 0)
    try:
        run_browser(server.url, f"--screenshot={path}", size=size, is_dark=is_dark)
    finally:
        server.close()


def main(arguments: list[str]) -> None:
    began = (clock.micros() // SECOND - 118) * SECOND
    pages: Mapping[str, RunSnapshot] = {"stream": stream(began=began), "batch": batch(), "hostile": hostile()}
    folder = Path(arguments[-1])
    folder.mkdir(parents=True, exist_ok=True)
    if arguments[0] != "--all":
        picture(pages["stream"], folder / "live.png", WIDTHS["wide"])
        return
    for name, now in pages.items():
        for width, size in WIDTHS.items():
            for is_dark in (False, True):
                picture(now, folder / f"{name}_{width}_{'dark' if is_dark else 'light'}.png", size, is_dark)


if __name__ == "__main__":
    main(sys.argv[1:])
