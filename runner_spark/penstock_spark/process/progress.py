"""Prints the progress of a pipeline on standard error, line by line."""

from __future__ import annotations

import os
import sys

QUIET = "PENSTOCK_QUIET"
"""The environment variable that turns progress lines off when it is ``1``."""


def tell(text: str) -> None:
    """Prints a line, unless progress lines are switched off or tests are running."""
    if os.environ.get(QUIET) == "1" or "PYTEST_VERSION" in os.environ or sys.stderr is None:
        return
    print(f"penstock: {text}", file=sys.stderr, flush=True)
