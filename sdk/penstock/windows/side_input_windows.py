"""The window of a side input that an element sees (Beam's ``transforms.sideinputs``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal
from penstock.utils.window import BoundedWindow
from penstock.windows.window_fn import GlobalWindows, PerElementFixedWindows, UnalignedFixedWindows, WindowFn

SIDE_INPUT_PREFIX = "python_side_input"
SIDE_INPUT_REGEX = SIDE_INPUT_PREFIX + "([0-9]+)(-.*)?$"


def default_window_mapping_fn(target_window_fn: WindowFn) -> Callable[[Any], Any]:
    """Maps a window of the main input to the window of the side input that its elements see.

    The result is the global window, or the last window that the side input's WindowFn assigns to the end of the main
    input's window. Windows that merge or that depend on an element's key or value raise a RuntimeError.

    >>> default_window_mapping_fn(GlobalWindows())(None)
    GlobalWindow
    """
    if target_window_fn == GlobalWindows():
        return lambda window: GlobalWindow()
    by_element = isinstance(target_window_fn, UnalignedFixedWindows | PerElementFixedWindows)
    if target_window_fn.is_merging() or by_element:
        what = f"{type(target_window_fn).__name__} is not allowed in side inputs"
        raise refusal(RuntimeError, what, hint="window the side input into fixed windows")

    def by_end(window: BoundedWindow) -> BoundedWindow:
        context = WindowFn.AssignContext(window.max_timestamp(), window=window)
        return list(target_window_fn.assign(context))[-1]

    return by_end


def get_sideinput_index(tag: str) -> int:
    """Returns the number in the name of a side input; another name raises a RuntimeError.

    >>> get_sideinput_index("python_side_input2-total")
    2
    """
    match = re.match(SIDE_INPUT_REGEX, tag, re.DOTALL)
    if match is None:
        hint = f"pass a tag that starts with {SIDE_INPUT_PREFIX}"
        raise refusal(RuntimeError, f"Invalid tag {tag!r}", hint=hint)
    return int(match[1])
