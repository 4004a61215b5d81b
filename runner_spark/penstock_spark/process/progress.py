"""What a pipeline tells of its progress on standard error, line by line."""

from __future__ import annotations

import os
import sys

QUIET = "PENSTOCK_QUIET"
"""The environment variable that turns this off when ``1``."""


def tell(text: str) -> None:
    """Writes a line at once, unless that is switched off or tests are running.

    Args:
        text: What goes on.
    """
    if os.environ.get(QUIET) == "1" or "PYTEST_VERSION" in os.environ or sys.stderr is None:
        return
    print(f"penstock: {text}", file=sys.stderr, flush=True)
