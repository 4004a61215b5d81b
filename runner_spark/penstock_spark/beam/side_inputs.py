"""Beam's side inputs in penstock's terms; Beam's own functions make their views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apache_beam import pvalue as beam_pvalue
from apache_beam.portability import common_urns

from penstock.elements.bounded_window import BoundedWindow
from penstock.graph import SideInput
from penstock_spark.beam.values import beam_window_of, window_of

_USUAL_MAPPINGS = ("_global_window_mapping_fn", "default_window_mapping_fn.<locals>.map_via_end")
_VIEWS: Mapping[Any, str] = {list: "list", dict: "dict"}


def side_input_of(side: beam_pvalue.AsSideInput, edge: int) -> SideInput:
    """Returns the side input that reads an edge; a pipeline that was a message has forgotten the classes of its own."""
    data = side._side_input_data()
    mapping = _mapping(data.window_mapping_fn)
    if data.access_pattern == common_urns.side_inputs.MULTIMAP.urn:
        return SideInput(edge, "multimap", window_mapping_fn=mapping)
    view = _VIEWS.get(data.view_fn)
    if view is not None:
        return SideInput(edge, view, window_mapping_fn=mapping)
    view = "singleton" if _is_singleton(data.view_fn) else "iter"
    return SideInput(edge, view, window_mapping_fn=mapping, make=data.view_fn)


def _is_singleton(view_fn: object) -> bool:
    name = beam_pvalue.AsSingleton._from_runtime_iterable.__qualname__
    cells = getattr(view_fn, "__closure__", None) or ()
    return any(getattr(cell.cell_contents, "__qualname__", None) == name for cell in cells)


def _mapping(mapping: object) -> Callable[[BoundedWindow], BoundedWindow] | None:
    """Returns the window of the side input for one of the main input; None if penstock finds the same."""
    if getattr(mapping, "__qualname__", None) in _USUAL_MAPPINGS:
        return None
    return _Mapping(mapping)


class _Mapping:
    def __init__(self, mapping: Any) -> None:
        self.mapping = mapping

    def __call__(self, window: BoundedWindow) -> BoundedWindow:
        return window_of(self.mapping(beam_window_of(window)))
