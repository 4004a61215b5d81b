"""Takes the pictures of a run for the documentation: ``python -m tests.live.live_pictures docs/screenshots``.

They show the live page, the tree in a terminal, and the example notebook. It needs Chromium and Spark. ``--all FOLDER``
takes only the page, at two widths, light and dark, for a person to look at.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

from penstock.utils import clock
from penstock_spark.live.server import LiveServer
from penstock_spark.live.snapshot import RunSnapshot
from tests.live.sample import SECOND, batch, historic, hostile, stream

WIDTHS = {"wide": (1440, 2300), "narrow": (400, 4200)}
IN_DOCUMENTS = (1280, 1560)
"""The size of the picture in the documentation: to the end of the rows of sources, groupings and sinks."""

EXAMPLE = Path(__file__).parents[2] / "examples" / "scores.ipynb"
_NOTEBOOK = """
body{font:14px system-ui,sans-serif;margin:24px;color:#1d1f24}
pre{font-size:13px}pre.code{background:#f5f3ee;padding:8px 12px;border-radius:4px}
table{border-collapse:collapse;margin:8px 0}th,td{border:1px solid #dcd7cc;padding:3px 9px;text-align:left}
caption{text-align:left;font-weight:600;padding:3px 0}
"""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str | None:
    """The path of a Chromium; None if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def run_browser(
    url: str,
    *options: str,
    size: tuple[int, int] = (1280, 1180),
    is_dark: bool = False,
    budget_millis: int | None = 4000,
) -> str:
    """Opens a page without a window, and returns what the browser prints.

    The clock of the page runs as fast as it can for `budget_millis`; without them, the page is open until it is loaded.
    """
    chromium = browser()
    assert chromium is not None
    # A frame of the width: a window without a frame is never narrower than 500 pixels.
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--disable-dev-shm-usage", f"--user-data-dir={profile}"),
            *([] if budget_millis is None else [f"--virtual-time-budget={budget_millis}"]),
            *([f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]),
            *(f"--window-size={size[0]},{size[1]}", *options, url),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    return done.stdout


def as_of_now(now: RunSnapshot) -> RunSnapshot:
    """The snapshot, taken this moment."""
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


def terminal(now: RunSnapshot) -> str:
    """The tree of a snapshot in a terminal, as SVG, without the fonts of another server."""
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    console.print(draw_tree(now))
    return re.sub(
        r"@font-face \{.*?\}\s*", "", console.export_svg(title="python scores.py --live"), flags=re.DOTALL
    )


def notebook_page(path: Path) -> str:
    """A notebook that has just run, as a page: the code of each cell, and what it shows."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        parts.append(f"<pre class=code>{escape(cell.source)}</pre>")
        for output in cell.outputs:
            data = output.get("data", {})
            plain = escape(output.get("text", "") or data.get("text/plain", ""))
            is_noise = output.get("name") == "stderr" and "hint:" not in plain
            parts.append("" if is_noise else data.get("text/html") or f"<pre>{plain}</pre>")
    return f"<!doctype html><meta charset=utf-8><style>{_NOTEBOOK}</style>{''.join(parts)}"


def notebook_picture(path: Path) -> None:
    """Takes a picture of the example notebook."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "notebook.html")
        page.write_text(notebook_page(EXAMPLE), encoding="utf-8")
        run_browser(page.as_uri(), f"--screenshot={path}", size=(900, 2050))


def main(arguments: list[str]) -> None:
    began = (clock.micros() // SECOND - 118) * SECOND
    pages: Mapping[str, RunSnapshot] = {
        "stream": stream(began=began),
        "batch": batch(),
        "hostile": hostile(),
        "historic": historic(),
    }
    folder = Path(arguments[-1])
    folder.mkdir(parents=True, exist_ok=True)
    if arguments[0] != "--all":
        picture(pages["stream"], folder / "live.png", IN_DOCUMENTS)
        (folder / "terminal.svg").write_text(terminal(pages["stream"]), encoding="utf-8")
        notebook_picture(folder / "notebook.png")
        return
    for name, now in pages.items():
        for width, size in WIDTHS.items():
            for is_dark in (False, True):
                picture(now, folder / f"{name}_{width}_{'dark' if is_dark else 'light'}.png", size, is_dark)


if __name__ == "__main__":
    main(sys.argv[1:])
