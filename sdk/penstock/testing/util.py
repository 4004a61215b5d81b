"""Assertions about PCollections (Beam's ``apache_beam.testing.util``)."""

from __future__ import annotations

import collections
import glob
import itertools
import math
import numbers
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, cast

from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection, PValue
from penstock.elements.bounded_window import GlobalWindow
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.transforms.grouping.windowing import WindowInto
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, PaneInfo
from penstock.where import at_step, find_caller
from penstock.windows.triggers import AccumulationMode, ClosingBehavior
from penstock.windows.window_fn import GlobalWindows

__all__ = [
    "AssertThat",
    "BeamAssertException",
    "PANE_INFO_UNKNOWN",
    "SortLists",
    "TestWindowedValue",
    "assert_that",
    "contains_in_any_order",
    "equal_to",
    "equal_to_approx",
    "equal_to_per_window",
    "has_at_least_one",
    "is_empty",
    "is_not_empty",
    "matches_all",
    "open_shards",
    "row_namedtuple_equals_fn",
]


# The numbers of elements of each list, and of characters of each element, in an error's text.
_SHOWN_ELEMENTS = 20
_SHOWN_CHARACTERS = 500

Matcher = Callable[[list[Any]], None]


class BeamAssertException(Exception):
    """The error about a PCollection that does not match what a test expects (Beam's name)."""


class TestWindowedValue(NamedTuple):
    """An element with its time, windows and pane, for ``reify_windows=True`` (Beam's name)."""

    value: Any
    timestamp: Any
    windows: list[Any]
    pane_info: PaneInfo = PANE_INFO_UNKNOWN


# Otherwise pytest would collect the class because of its name.
TestWindowedValue.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class _EqualTo:
    expected: list[Any]
    equals_fn: Callable[[Any, Any], Any] | None

    def __call__(self, actual: Iterable[Any]) -> None:
        actual = list(actual)
        if self.equals_fn is None and _same_when_sorted(self.expected, actual):
            return
        missing, unexpected = _difference(self.expected, actual, self.equals_fn)
        if missing or unexpected:
            parts = [f"Failed assert: {_shown(self.expected)} == {_shown(actual)}"]
            parts += [f"unexpected elements {_shown(unexpected)}"] * bool(unexpected)
            parts += [f"missing elements {_shown(missing)}"] * bool(missing)
            raise BeamAssertException(", ".join(parts))


def equal_to(expected: Iterable[Any], equals_fn: Callable[[Any, Any], Any] | None = None) -> Matcher:
    """Returns a matcher of exactly these elements, in any order (Beam's ``equal_to``).

    Elements need not be hashable or sortable. The order inside an element counts. A mismatch raises a
    `BeamAssertException` with the missing and the unexpected elements.

    Args:
        expected: The elements.
        equals_fn: Called with an expected and an actual element; by default `row_namedtuple_equals_fn`. Each actual
            element takes the first expected one that it equals.

    >>> equal_to([1, 2])([2, 3])
    Traceback (most recent call last):
        ...
    penstock.testing.util.BeamAssertException: Failed assert: [1, 2] == [2, 3],
        unexpected elements [3], missing elements [1]
    """
    return _EqualTo(list(expected), equals_fn)


def _same_when_sorted(expected: list[Any], actual: list[Any]) -> bool:
    try:
        return sorted(expected) == sorted(actual)
    except (TypeError, ValueError):
        # Not sortable, or, like arrays, without a truth value of `==`.
        return False


def _difference(
    expected: list[Any], actual: list[Any], equals_fn: Callable[[Any, Any], Any] | None
) -> tuple[list[Any], list[Any]]:
    if equals_fn is None:
        expected, actual = _without_common(expected, actual)
        equals_fn = row_namedtuple_equals_fn
    missing = list(expected)
    unexpected = []
    for element in actual:
        for position, candidate in enumerate(missing):
            if equals_fn(candidate, element):
                del missing[position]
                break
        else:
            unexpected.append(element)
    return missing, unexpected


def _without_common(expected: list[Any], actual: list[Any]) -> tuple[list[Any], list[Any]]:
    # Removes equal hashable elements first, so that only the rest is compared each with each.
    try:
        wanted, found = collections.Counter(expected), collections.Counter(actual)
    except TypeError:
        return expected, actual
    return list((wanted - found).elements()), list((found - wanted).elements())


def row_namedtuple_equals_fn(
    expected: Any, actual: Any, fallback_equals_fn: Callable[[Any, Any], Any] | None = None
) -> bool:
    """True if two elements are equal; a `Row` may equal a named tuple with its fields (Beam's name).

    By default ``==`` compares other elements.

    >>> from penstock.pvalue import Row
    >>> Point = collections.namedtuple("Point", "x y")
    >>> row_namedtuple_equals_fn(Row(x=1, y=2), Point(1, 2)), row_namedtuple_equals_fn(Row(x=1), Point(1, 2))
    (True, False)
    """
    if not (_is_record(expected) and _is_record(actual)):
        return bool(fallback_equals_fn(expected, actual) if fallback_equals_fn else expected == actual)
    wanted, found = expected._asdict(), actual._asdict()
    return wanted.keys() == found.keys() and all(
        row_namedtuple_equals_fn(value, found[name]) for name, value in wanted.items()
    )


def _is_record(element: object) -> bool:
    return type(element) is Row or (isinstance(element, tuple) and hasattr(element, "_asdict"))


def equal_to_approx(expected: Iterable[Any], rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Matcher:
    """Returns a matcher like `equal_to`, which compares numbers with ``math.isclose``, also in lists and tuples (Beam's
    name).

    >>> equal_to_approx([1.0, ("a", 2.0)])([("a", 2.0000000001), 1])
    """
    return _EqualTo(list(expected), _Approximately(rel_tol, abs_tol))


@dataclass(frozen=True)
class _Approximately:
    rel_tol: float
    abs_tol: float

    def __call__(self, expected: object, actual: object) -> bool:
        if isinstance(expected, numbers.Real) and isinstance(actual, numbers.Real):
            return math.isclose(expected, actual, rel_tol=self.rel_tol, abs_tol=self.abs_tol)
        if (
            isinstance(expected, list | tuple)
            and type(actual) is type(expected)
            and len(expected) == len(actual)
        ):
            return all(map(self, expected, actual))
        return bool(expected == actual)


@dataclass(frozen=True, eq=False)
class EqualToPerWindow:
    """The matcher of `equal_to_per_window`."""

    expected: Mapping[Any, list[Any]]

    def __call__(self, actual: Iterable[Any]) -> None:
        """Compares reified elements."""
        waiting = {window: list(elements) for window, elements in self.expected.items()}
        for element in actual:
            if not isinstance(element, TestWindowedValue):
                raise BeamAssertException(
                    f"Failed assert: an element of type {type(element).__name__} is not a TestWindowedValue; "
                    "pass reify_windows=True"
                )
            window = element.windows[0]
            if window not in waiting:
                raise BeamAssertException(
                    f"Failed assert: window {window} not found in any expected windows "
                    f"{_shown(list(waiting))}"
                )
            for position, candidate in enumerate(waiting[window]):
                if row_namedtuple_equals_fn(candidate, element.value):
                    del waiting[window][position]
                    break
            else:
                raise BeamAssertException(
                    f"Failed assert: element {_cut(element.value)} not found in window {window}, "
                    f"where {_shown(waiting[window])} remain"
                )
        for window, elements in waiting.items():
            if elements:
                raise BeamAssertException(
                    f"Failed assert: unmatched elements {_shown(elements)} in window {window}"
                )


def equal_to_per_window(expected_window_to_elements: Mapping[Any, list[Any]]) -> EqualToPerWindow:
    """Returns a matcher of each window's elements, in any order (Beam's name); `assert_that` then reifies windows."""
    return EqualToPerWindow(expected_window_to_elements)


def _matches(expected: object, actual: object) -> bool:
    matches = getattr(expected, "matches", None)
    return bool(matches(actual) if callable(matches) else expected == actual)


def matches_all(expected: Iterable[Any]) -> Matcher:
    """Matches elements one to one, in any order, with values or hamcrest's matchers (Beam's name).

    A matcher has a method ``matches(element)``.

    >>> matches_all([1, "a"])(["a", 1])
    """
    return _EqualTo(list(expected), _matches)


def contains_in_any_order(iterable: Iterable[Any]) -> _InAnyOrder:
    """Returns an object that equals any iterable of these elements, in any order (Beam's name).

    >>> ("k", contains_in_any_order([1, 2])) == ("k", [2, 1])
    True
    """
    return _InAnyOrder(list(iterable))


class _InAnyOrder:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements

    def __eq__(self, other: object) -> bool:
        try:
            found = other.elements if isinstance(other, _InAnyOrder) else list(cast(Iterable[Any], other))
        except TypeError:
            return False
        return _difference(self.elements, found, None) == ([], [])

    def __repr__(self) -> str:
        return f"InAnyOrder({self.elements!r})"


def _check_empty(actual: Iterable[Any]) -> None:
    actual = list(actual)
    if actual:
        raise BeamAssertException(f"Failed assert: [] == {_shown(actual)}")


def is_empty() -> Matcher:
    """Returns a matcher of an empty PCollection (Beam's name)."""
    return _check_empty


def _check_not_empty(actual: Iterable[Any]) -> None:
    if not list(actual):
        raise BeamAssertException("Failed assert: pcol is empty")


def is_not_empty() -> Matcher:
    """Returns a matcher of one element or more (Beam's name)."""
    return _check_not_empty


def _shown(elements: list[Any]) -> str:
    if len(elements) <= _SHOWN_ELEMENTS:
        return f"[{', '.join(map(_cut, elements))}]"
    first = ", ".join(map(_cut, elements[:_SHOWN_ELEMENTS]))
    return f"[{first}, ... and {len(elements) - _SHOWN_ELEMENTS} more, {len(elements)} in all]"


def _cut(element: object) -> str:
    text = repr(element)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"


_Keyed = tuple[None, Any]


def assert_that(
    actual: pvalue.PCollection[Any],
    matcher: Callable[[Any], Any],
    label: str = "assert_that",
    reify_windows: bool = False,
    use_global_window: bool = True,
) -> PValue:
    """Checks the elements of a PCollection: the pipeline fails unless they match (Beam's ``assert_that``).

    It is meant for tests, since one worker collects all elements. The check also runs for an empty PCollection.

    Args:
        actual: The PCollection.
        matcher: Called with the list of elements; raises if they do not match, or returns False. See `equal_to` and
            the others here.
        label: The step's label, with a number if it is already used.
        reify_windows: Whether the matcher gets a `TestWindowedValue` for each element.
        use_global_window: If False, the matcher is called for each window, with the pair of its elements and the
            window; and once with no elements and the global window.

    Raises:
        AssertionError: If `actual` is not a PCollection.
        RuntimeError: If its pipeline has already run.

    Example: ``assert_that(totals, equal_to([("red", 5)]))`` before the pipeline runs.
    """
    if not isinstance(actual, pvalue.PCollection):
        what = f"{type(actual).__name__} is not a supported type for assert_that"
        raise refusal(AssertionError, what, hint="pass a PCollection")
    pipeline = actual.pipeline
    if pipeline.result is not None:
        what = "assert_that must be used within a Pipeline context: this pipeline has run already"
        hint = "move the call into the pipeline's with block"
        raise refusal(RuntimeError, what, where=f"at {find_caller()}", hint=hint)
    transform = AssertThat(matcher, reify_windows=reify_windows, use_global_window=use_global_window)
    return actual | _free_label(pipeline, label) >> transform


def _free_label(pipeline: Any, label: str) -> str:
    around = pipeline.current_transform().full_label
    candidates = itertools.chain([label], (f"{label}_{number}" for number in itertools.count(2)))
    return next(
        name for name in candidates if (f"{around}/{name}" if around else name) not in pipeline.applied_labels
    )


class AssertThat(PTransform[Any, Any]):
    """Like `assert_that`, to apply with ``|`` (Beam's ``AssertThat``)."""

    def __init__(
        self,
        matcher: Callable[[Any], Any],
        label: str | None = None,
        reify_windows: bool = False,
        use_global_window: bool = True,
    ) -> None:
        super().__init__(label)
        per_window = isinstance(matcher, EqualToPerWindow)
        self._matcher = matcher
        self._reify_windows = reify_windows or per_window
        self._use_global_window = use_global_window or per_window

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        """Groups all elements under one key, together with a pair that always exists."""
        label = pcoll.pipeline.current_transform().full_label
        match = _Match(self._matcher, at_step(label, find_caller()))
        to_key = ParDo(_ReifyToKey()) if self._reify_windows else Map(_to_key)
        keyed = pcoll | "ToVoidKey" >> to_key.with_output_types(_Keyed)
        if not self._use_global_window:
            return self._per_window(keyed, match)
        nothing = pcoll.pipeline | "Always" >> Create([(None, ())]).with_output_types(_Keyed)
        together = (nothing | "WindowAlways" >> _up_to_the_end(), keyed | "Window" >> _up_to_the_end())
        collected = together | "Together" >> Flatten()
        # The check waits for the end of the test's stream; grouping an unbounded one would be refused.
        collected.is_bounded = True
        return collected | "Group" >> GroupByKey() | "Match" >> ParDo(_MatchAtTheEnd(match))

    def _per_window(self, keyed: Any, match: _Match) -> PCollection[Any]:
        nothing = keyed.pipeline | "Always" >> Create([([], GlobalWindow())])
        groups = keyed | "Group" >> GroupByKey() | "AddWindow" >> ParDo(_AddWindow())
        groups |= "Window" >> WindowInto(GlobalWindows())
        return (nothing, groups) | "Together" >> Flatten() | "Match" >> Map(match.call)


@dataclass(frozen=True)
class _Match:
    """Calls the matcher, and adds the step's label and place to its errors."""

    matcher: Callable[[Any], Any]
    where: str

    def __call__(self, group: tuple[None, Iterable[tuple[Any, ...]]]) -> object:
        return self.call(list(itertools.chain.from_iterable(group[1])))

    def call(self, actual: object) -> object:
        try:
            result = self.matcher(actual)
        except BeamAssertException as error:
            raise refusal(type(error), str(error), where=self.where) from None
        except Exception as error:
            # The type and text of the test's own error stay unchanged.
            error.add_note(self.where)
            raise
        if result is False:
            # Otherwise, a test with a predicate would pass whatever came out.
            what = "Failed assert: the matcher returned False"
            hint = "let the matcher raise an exception, for example with assert"
            raise refusal(BeamAssertException, what, where=self.where, hint=hint)
        return result


def _up_to_the_end() -> WindowInto:
    """Puts everything in the last pane: each micro-batch fires a pane with all elements so far."""
    return WindowInto(
        GlobalWindows(),
        accumulation_mode=AccumulationMode.ACCUMULATING,
        closing_behavior=ClosingBehavior.FIRE_ALWAYS,
    )


class _MatchAtTheEnd(DoFn):
    def __init__(self, match: _Match) -> None:
        super().__init__()
        self.match = match

    def process(self, element: Any, pane_info: PaneInfo = DoFn.PaneInfoParam) -> Any:
        return [self.match(element)] if pane_info.is_last else []


def _to_key(element: object) -> object:
    # The element is in a 1-tuple, because the pair that always exists has an empty tuple.
    return None, (element,)


class _ReifyToKey(DoFn):
    def process(
        self,
        element: object,
        timestamp: Timestamp = DoFn.TimestampParam,
        window: object = DoFn.WindowParam,
        pane_info: PaneInfo = DoFn.PaneInfoParam,
    ) -> Any:
        return [(None, (TestWindowedValue(element, timestamp, [window], pane_info),))]


class _AddWindow(DoFn):
    def process(self, element: Sequence[Any], window: object = DoFn.WindowParam) -> Any:
        return [(list(itertools.chain.from_iterable(element[1])), window)]


def has_at_least_one(
    input: pvalue.PCollection[Any],
    criterion: Callable[[Any, Any, Any, Any], Any],
    label: str = "has_at_least_one",
) -> None:
    """Checks that an element meets a criterion: otherwise the pipeline fails (Beam's name).

    The criterion gets the element, timestamp, window and pane. The label gets a number if it is already used.
    """
    met = input | _free_label(input.pipeline, label) >> ParDo(_Meets(criterion))
    assert_that(met, _check_met)


class _Meets(DoFn):
    def __init__(self, criterion: Callable[[Any, Any, Any, Any], Any]) -> None:
        super().__init__()
        self._criterion = criterion

    def process(
        self,
        element: object,
        timestamp: Timestamp = DoFn.TimestampParam,
        window: object = DoFn.WindowParam,
        pane_info: PaneInfo = DoFn.PaneInfoParam,
    ) -> Any:
        return [True] if self._criterion(element, timestamp, window, pane_info) else []


def _check_met(met: list[Any]) -> None:
    if not met:
        raise BeamAssertException("Failed assert: nothing matches the criterion")


def open_shards(glob_pattern: str, mode: str = "rt", encoding: str | None = "utf-8") -> IO[Any]:
    """Returns all files that match a pattern, one after the other by name, as one open file to close (Beam's name).

    `mode` and `encoding` are the arguments of ``open``.
    """
    with tempfile.NamedTemporaryFile(delete=False) as together:
        for name in sorted(glob.glob(glob_pattern)):
            with open(name, "rb") as shard:
                together.write(shard.read())
    return open(together.name, mode, encoding=None if "b" in mode else encoding)


def _sorted_lists(element: object) -> object:
    match element:
        case tuple():
            return tuple(_sorted_lists(part) for part in element)
        case dict():
            return {key: _sorted_lists(part) for key, part in element.items()}
        case str() | bytes():
            return element
    return sorted(element) if isinstance(element, Iterable) else element


SortLists = Map(_sorted_lists)
"""A transform that sorts the lists in each element, so that tests can compare them (Beam's name)."""
