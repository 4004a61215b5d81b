"""Side inputs in the worker: the view of a main input's window, built once and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from penstock.construction.pvalue import EmptySideInput
from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal
from penstock.machines.folds import add_to_bag, retract_from_bag
from penstock.transforms.window import BoundedWindow
from penstock.windows.window_fn import GlobalWindows
from penstock_spark.worker.batch import Batch, decode_page
from penstock_spark.worker.program import ViewSpec


def group_by_window(pages: list[bytes]) -> dict[Any, list[Any]]:
    """The elements of each window; an element of several windows is in the list of each.

    Retractions, and the elements that they retract, are left out.
    """
    batches = list(map(decode_page, pages))
    if any(batch.retracts for batch in batches):
        return _net(batches)
    found: dict[Any, list[Any]] = {}
    for batch in batches:
        if isinstance(batch.windows, list):
            for value, windows in zip(batch.values, batch.windows, strict=True):
                for window in windows:
                    found.setdefault(window, []).append(value)
        else:
            for window in batch.windows:
                found.setdefault(window, []).extend(batch.values)
    return found


def _net(batches: list[Batch]) -> dict[Any, list[Any]]:
    """The elements left in each window; pages come in any order, so a retraction may precede its element."""
    found: dict[Any, tuple[list[Any], list[Any]]] = {}
    for value, _, windows, pane in (row for batch in batches for row in batch.rows()):
        change = retract_from_bag if pane.kind.is_retraction else add_to_bag
        for window in windows:
            change(found.setdefault(window, ([], [])), value)
    return {window: there for window, (there, _) in found.items()}


_DECODED: WeakKeyDictionary[Any, dict[Any, list[Any]]] = WeakKeyDictionary()
"""The elements of broadcasts, by window: the tasks of a process, one after the other, read each of them once.

A worker forgets a broadcast, and so its elements, when Spark has it do so.
"""


class BroadcastContents:
    """The constant content of a side input, by window."""

    is_fixed = True

    def __init__(self, pages: Any) -> None:
        self._pages = pages

    def of(self, window: BoundedWindow) -> list[Any]:
        elements = _DECODED.get(self._pages)
        if elements is None:
            pages = self._pages.value
            elements = _DECODED[self._pages] = group_by_window(pages)
            # The list is this process's own. What is decoded takes its place, so that both are not kept.
            pages.clear()
        return elements.get(window, [])


class ChangingContents:
    """The present content of a side input, by window."""

    is_fixed = False

    def __init__(self) -> None:
        # The elements of a window; set by the owner of the elements.
        self.of: Callable[[Any], list[Any]] = _nothing


def _nothing(window: BoundedWindow) -> list[Any]:
    return []


Contents = BroadcastContents | ChangingContents


class View:
    """The views of one side input, by window of the main input."""

    def __init__(self, spec: ViewSpec, contents: Contents) -> None:
        self.spec = spec
        self.contents = contents
        self.global_only = isinstance(spec.windowfn, GlobalWindows) and spec.window_mapping_fn is None
        self._views: dict[Any, Any] = {}

    @property
    def is_constant(self) -> bool:
        """True if one constant view serves all windows."""
        return self.global_only and self.contents.is_fixed

    def of(self, main_window: BoundedWindow) -> object:
        key = GlobalWindow() if self.global_only else main_window
        if key not in self._views:
            self._views[key] = self._build(self.side_window(key))
        return self._views[key]

    def forget(self) -> None:
        """Called when the contents have changed."""
        self._views.clear()

    def side_window(self, main_window: BoundedWindow) -> BoundedWindow:
        """The side input's window for a main input's window: by default the one that holds its last timestamp."""
        if self.spec.window_mapping_fn is not None:
            return self.spec.window_mapping_fn(main_window)
        if self.global_only:
            return GlobalWindow()
        context = self.spec.windowfn.AssignContext(main_window.max_timestamp())
        return list(self.spec.windowfn.assign(context))[-1]

    def _build(self, window: BoundedWindow) -> object:
        elements = self.contents.of(window)
        if self.spec.make is not None:
            # A task may do with its list what it likes.
            return self.spec.make(list(elements))
        match self.spec.kind:
            case "iter" | "list":
                return list(elements)
            case "dict":
                return self._of_pairs(dict, elements)
            case "multimap":
                return self._of_pairs(_multimap, elements)
            case "singleton":
                return self._singleton(elements)
            case kind:
                raise AssertionError(f"no such view: {kind}")

    def _of_pairs(self, make: Callable[[list[Any]], Any], elements: list[Any]) -> object:
        try:
            return make(elements)
        except (TypeError, ValueError):
            other = next(
                (each for each in elements if not isinstance(each, tuple | list) or len(each) != 2), None
            )
            if other is None:
                # The elements are pairs, and some key cannot be one of a dict: Python says which type it has.
                raise
            what = f"a side input is read as a dict, and has an element of type {type(other).__name__}"
            raise refusal(
                TypeError,
                f"{what}, which is not a pair",
                where=self.spec.where,
                hint="make pairs (key, value) of its elements, or read it with AsList",
            ) from None

    def _singleton(self, elements: list[Any]) -> object:
        if len(elements) == 1:
            return elements[0]
        if not elements:
            return self.spec.default[0] if self.spec.default else EmptySideInput()
        raise refusal(
            ValueError,
            f"a PCollection of {len(elements)} elements is read as a singleton side input",
            where=self.spec.where,
            hint="combine it to one element per window, or read it with AsIter or AsList",
        )


class MultiMap(dict[Any, list[Any]]):
    """Lists of values by key; a missing key has an empty list, as in Beam."""

    def __missing__(self, key: object) -> list[Any]:
        return []


def _multimap(elements: list[Any]) -> MultiMap:
    found = MultiMap()
    for key, value in elements:
        found.setdefault(key, []).append(value)
    return found
