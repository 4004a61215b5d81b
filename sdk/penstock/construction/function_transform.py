"""Composites made of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from penstock.base.labels import label_from_callable
from penstock.construction.applicable import PartT, ResultT
from penstock.construction.ptransform import PTransform
from penstock.typehints.decorators import IOTypeHints, get_type_hints

P = ParamSpec("P")


class _PTransformFnPTransform(PTransform[Any, Any]):
    """A composite whose `expand` is a function."""

    _cuts_label = True

    def __init__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._fn = fn
        self._args = args
        self._kwargs = kwargs

    def display_data(self) -> dict[str, Any]:
        """The function's name."""
        return {"fn": getattr(self._fn, "__name__", type(self._fn).__name__)}

    def default_type_hints(self) -> Any:
        """The type hints on the function."""
        hints = IOTypeHints.from_callable(self._fn)
        return get_type_hints(self._fn).with_defaults(hints.strip_pcoll() if hints is not None else None)

    def expand(self, pcoll: Any) -> Any:
        """Calls the function; one with a parameter ``type_hints`` gets the transform's type hints."""
        try:
            wants_hints = "type_hints" in inspect.signature(self._fn).parameters
        except (TypeError, ValueError):
            wants_hints = False
        args = (self.get_type_hints(), *self._args) if wants_hints else self._args
        return self._fn(pcoll, *args, **self._kwargs)

    def see_options(self, options: Any) -> None:
        """Keeps long labels, which are the names of state, for pipelines that are compatible with Beam before 2.68."""
        self._cuts_label = not options.is_compat_version_prior_to("2.68.0")

    def default_label(self) -> str:
        """The function's name, with its first argument; a long one is cut."""
        name = label_from_callable(self._fn)
        if not self._args:
            return name
        first = label_from_callable(self._args[0])
        shown = (
            first
            if len(first) <= 19 or not self._cuts_label
            else f"{first[:10]}...{first[-6:]}".replace("\n", " ")
        )
        return f"{name}({shown})"


def ptransform_fn(fn: Callable[Concatenate[PartT, P], ResultT]) -> Callable[P, PTransform[PartT, ResultT]]:
    """Makes a composite of a function from PCollection to PCollection (Beam's ``ptransform_fn``).

    Args:
        fn: The function; the input comes first, then the arguments.

    Returns:
        What makes the transform from the arguments.

    >>> @ptransform_fn
    ... def Twice(pcoll, label):
    ...     return pcoll
    >>> Twice("x").label
    'Twice(x)'
    """

    @functools.wraps(fn)
    def make(*args: P.args, **kwargs: P.kwargs) -> PTransform[PartT, ResultT]:
        transform: PTransform[PartT, ResultT] = _PTransformFnPTransform(fn, *args, **kwargs)
        # Hints from decorators below this one came along with `wraps`; those above it are set on `make` later.
        hints = get_type_hints(make)
        transform._set_type_hints(hints.with_defaults(transform.get_type_hints()))
        return transform

    try:
        make.__signature__ = inspect.signature(functools.partial(fn, None))  # type: ignore[attr-defined,arg-type]
    except (TypeError, ValueError):
        # Such a function takes arguments all the same; only `help` shows less.
        return make
    return make


def annotate_yaml(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Returns its argument: there is no YAML form of transforms here (Beam's decorator)."""
    return constructor
