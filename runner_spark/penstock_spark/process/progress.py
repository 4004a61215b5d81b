"""Prints the progress of a pipeline on standard error, line by line."""

from __future__ import annotations

import os
import sys

QUIET = "PENSTOCK_QUIET"
"""The environment variable that turns progress lines off when it is ``1``."""


def is_quiet() -> bool:
    """True if nothing is to be printed: progress is switched off, tests are running, or standard error is missing."""
    return os.environ.get(QUIET) == "1" or "PYTEST_VERSION" in os.environ or sys.stderr is None


def print_progress(text: str) -> None:
    """Prints a line, unless `is_quiet`."""
    if not is_quiet():
        print(f"{line_start()}penstock: {text}", file=sys.stderr, flush=True)


def line_start() -> str:
    """Returns the start of a line on standard error: on a terminal, it erases a bar that may be there."""
    return "\r\x1b[2K" if sys.stderr is not None and sys.stderr.isatty() else ""
