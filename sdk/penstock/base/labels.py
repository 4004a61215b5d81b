"""The names of functions in labels."""

from __future__ import annotations

import os
from typing import Any


def label_from_callable(fn: Any) -> str:
    """Returns a name for a function in labels (Beam's name)."""
    if hasattr(fn, "default_label"):
        return str(fn.default_label())
    name = getattr(fn, "__name__", None)
    if name == "<lambda>":
        return f"<lambda at {os.path.basename(fn.__code__.co_filename)}:{fn.__code__.co_firstlineno}>"
    return str(name or fn)
