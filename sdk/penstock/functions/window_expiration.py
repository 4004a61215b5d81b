"""The method of a DoFn that is called before the state of a window goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.base.where import here
from penstock.error import three_parts

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

_MARK = "_is_on_window_expiration"


def on_window_expiration(method: MethodT) -> MethodT:
    """Marks the method of a DoFn that is called before the state of a window goes (Java's ``@OnWindowExpiration``).

    It may ask for states, for the key and for the window, and gives elements at the window's last moment.

    Raises:
        ValueError: If it is no method.
    """
    if not callable(method):
        raise ValueError(three_parts("@on_window_expiration decorator expected callable"))
    setattr(method, _MARK, True)
    return method


def expiration_method(dofn: Any) -> Callable[..., Any] | None:
    """The method of an object that is so marked, bound; None if there is none.

    Raises:
        ValueError: There are several.
    """
    names = [name for name in dir(type(dofn)) if getattr(getattr(type(dofn), name, None), _MARK, False)]
    if len(names) > 1:
        what = f"{type(dofn).__name__} has several methods for the end of a window: {', '.join(names)}"
        raise ValueError(three_parts(what, where=here(), hint="decorate one with @on_window_expiration"))
    return getattr(dofn, names[0]) if names else None
