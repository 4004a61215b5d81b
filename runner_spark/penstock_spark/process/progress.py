"""Prints the progress of a pipeline on standard error, line by line."""

from __future__ import annotations

import os
import sys

QUIET = "PENSTOCK_QUIET"
"""The environment variable that turns progress lines off when it is ``1``."""


def is_quiet() -> bool:
    """Whether nothing is to be told: progress is switched off, tests are running, or there is no standard error."""
    return os.environ.get(QUIET) == "1" or "PYTEST_VERSION" in os.environ or sys.stderr is None


def tell(text: str) -> None:
    """Prints a line, unless `is_quiet`."""
    if not is_quiet():
        print(f"{line_start()}penstock: {text}", file=sys.stderr, flush=True)


def line_start() -> str:
    """What begins a line on standard error: on a terminal, a bar may stand where the line goes."""
    return "\r\x1b[2K" if sys.stderr is not None and sys.stderr.isatty() else ""
