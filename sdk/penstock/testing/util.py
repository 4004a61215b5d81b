"""Assertions about PCollections (Beam's ``apache_beam.testing.util``)."""

from __future__ import annotations

import glob
import itertools
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from penstock.base.bounded_window import GlobalWindow
from penstock.base.where import at_step, caller
from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform
from penstock.error import three_parts
from penstock.functions.dofn import DoFn
from penstock.testing.matchers import (
    BeamAssertException,
    EqualToPerWindow,
    TestWindowedValue,
    contains_in_any_order,
    equal_to,
    equal_to_approx,
    equal_to_per_window,
    is_empty,
    is_not_empty,
    matches_all,
    row_namedtuple_equals_fn,
)
from penstock.transforms.create import Create
from penstock.transforms.grouping import Flatten, GroupByKey
from penstock.transforms.pardo import Map, ParDo
from penstock.transforms.windowing import WindowInto
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN
from penstock.windows.plain_windows import GlobalWindows
from penstock.windows.trigger_base import AccumulationMode, ClosingBehavior

__all__ = [
    "PANE_INFO_UNKNOWN",
    "AssertThat",
    "BeamAssertException",
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

_Keyed = tuple[None, Any]


def assert_that(
    actual: pvalue.PCollection[Any],
    matcher: Callable[[Any], Any],
    label: str = "assert_that",
    reify_windows: bool = False,
    use_global_window: bool = True,
) -> Any:
    """Makes the pipeline fail unless a PCollection's elements fit (Beam's ``assert_that``).

    All elements are brought together in one place: this is for tests. The check is done for an empty
    PCollection too.

    Args:
        actual: The PCollection.
        matcher: Called with the list of elements; raises if they do not fit. See `equal_to` and the others
            here.
        label: The step's label; a number is added if it is used already.
        reify_windows: Gives the matcher a `TestWindowedValue` for each element.
        use_global_window: False calls the matcher for each window, with the pair of its elements and the
            window; and once with no elements and the global window.

    Returns:
        Nothing of use.

    Raises:
        AssertionError: If `actual` is no PCollection.
        RuntimeError: If its pipeline has run already.
    """
    if not isinstance(actual, pvalue.PCollection):
        raise AssertionError(
            three_parts(
                f"{type(actual).__name__} is not a supported type for assert_that", hint="pass a PCollection"
            )
        )
    pipeline = actual.pipeline
    if pipeline.result is not None:
        raise RuntimeError(
            three_parts(
                "assert_that must be used within a Pipeline context: this pipeline has run already",
                where=f"at {caller()}",
                hint="move the call into the pipeline's with block",
            )
        )
    transform = AssertThat(matcher, reify_windows=reify_windows, use_global_window=use_global_window)
    return actual | _free_label(pipeline, label) >> transform


def _free_label(pipeline: Any, label: str) -> str:
    around = pipeline._current_transform().full_label
    candidates = itertools.chain([label], (f"{label}_{number}" for number in itertools.count(2)))
    return next(
        name for name in candidates if (f"{around}/{name}" if around else name) not in pipeline._labels
    )


class AssertThat(PTransform[Any, Any]):
    """As `assert_that`, to apply with ``|`` (Beam's ``AssertThat``).

    Args:
        matcher: As of `assert_that`, and so are the others.
        label: The step's label.
        reify_windows: Gives the matcher a `TestWindowedValue` for each element.
        use_global_window: False calls the matcher for each window.
    """

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

    def expand(self, pcoll: Any) -> Any:
        """Groups all elements under one key, together with a pair that is always there."""
        label = pcoll.pipeline._current_transform().full_label
        match = _Match(self._matcher, at_step(label, caller()))
        to_key = ParDo(_ReifyToKey()) if self._reify_windows else Map(_to_key)
        keyed = pcoll | "ToVoidKey" >> to_key.with_output_types(_Keyed)
        if not self._use_global_window:
            return self._per_window(keyed, match)
        nothing = pcoll.pipeline | "Always" >> Create([(None, ())]).with_output_types(_Keyed)
        together = (nothing | "WindowAlways" >> _up_to_the_end(), keyed | "Window" >> _up_to_the_end())
        collected = together | "Together" >> Flatten()
        # A test's stream ends, and the check waits for that; grouping an endless one would be refused.
        collected.is_bounded = True
        return collected | "Group" >> GroupByKey() | "Match" >> ParDo(_MatchAtTheEnd(match))

    def _per_window(self, keyed: Any, match: _Match) -> Any:
        nothing = keyed.pipeline | "Always" >> Create([([], GlobalWindow())])
        groups = keyed | "Group" >> GroupByKey() | "AddWindow" >> ParDo(_AddWindow())
        groups |= "Window" >> WindowInto(GlobalWindows())
        return (nothing, groups) | "Together" >> Flatten() | "Match" >> Map(match.call)


@dataclass(frozen=True)
class _Match:
    """Calls the matcher; an error of its gets the step's label and place."""

    matcher: Callable[[Any], Any]
    where: str

    def __call__(self, group: tuple[None, Iterable[tuple[Any, ...]]]) -> Any:
        return self.call(list(itertools.chain.from_iterable(group[1])))

    def call(self, actual: Any) -> Any:
        try:
            return self.matcher(actual)
        except BeamAssertException as error:
            raise type(error)(three_parts(str(error), where=self.where)) from None
        except Exception as error:
            # Its type and text stay as the test's own matcher made them.
            error.add_note(self.where)
            raise


def _up_to_the_end() -> WindowInto:
    """Everything in one pane, the last: a micro-batch gives a pane each time, with all that there has been."""
    return WindowInto(
        GlobalWindows(),
        accumulation_mode=AccumulationMode.ACCUMULATING,
        closing_behavior=ClosingBehavior.FIRE_ALWAYS,
    )


class _MatchAtTheEnd(DoFn):
    def __init__(self, match: _Match) -> None:
        super().__init__()
        self.match = match

    def process(self, element: Any, pane_info: Any = DoFn.PaneInfoParam) -> Any:
        return [self.match(element)] if pane_info.is_last else []


def _to_key(element: Any) -> Any:
    # The element goes into a tuple of one, since the pair that is always there has an empty tuple.
    return None, (element,)


class _ReifyToKey(DoFn):
    def process(
        self,
        element: Any,
        timestamp: Any = DoFn.TimestampParam,
        window: Any = DoFn.WindowParam,
        pane_info: Any = DoFn.PaneInfoParam,
    ) -> Any:
        return [(None, (TestWindowedValue(element, timestamp, [window], pane_info),))]


class _AddWindow(DoFn):
    def process(self, element: Any, window: Any = DoFn.WindowParam) -> Any:
        return [(list(itertools.chain.from_iterable(element[1])), window)]


def has_at_least_one(
    input: pvalue.PCollection[Any],
    criterion: Callable[[Any, Any, Any, Any], Any],
    label: str = "has_at_least_one",
) -> None:
    """Makes the pipeline fail unless an element meets a criterion (Beam's name).

    Args:
        input: The PCollection.
        criterion: Called with element, timestamp, window and pane.
        label: The step's label; a number is added if it is used already.
    """
    met = input | _free_label(input.pipeline, label) >> ParDo(_Meets(criterion))
    assert_that(met, _check_met)


class _Meets(DoFn):
    def __init__(self, criterion: Callable[[Any, Any, Any, Any], Any]) -> None:
        super().__init__()
        self._criterion = criterion

    def process(
        self,
        element: Any,
        timestamp: Any = DoFn.TimestampParam,
        window: Any = DoFn.WindowParam,
        pane_info: Any = DoFn.PaneInfoParam,
    ) -> Any:
        return [True] if self._criterion(element, timestamp, window, pane_info) else []


def _check_met(met: list[Any]) -> None:
    if not met:
        raise BeamAssertException("Failed assert: nothing matches the criterion")


def open_shards(glob_pattern: str, mode: str = "rt", encoding: str | None = "utf-8") -> IO[Any]:
    """All files that match a pattern, one after the other, as one open file (Beam's name).

    Args:
        glob_pattern: The pattern, as of ``glob``; files come in the order of their names.
        mode: As of ``open``.
        encoding: Of text.

    Returns:
        A file; the caller closes it.
    """
    with tempfile.NamedTemporaryFile(delete=False) as together:
        for name in sorted(glob.glob(glob_pattern)):
            with open(name, "rb") as shard:
                together.write(shard.read())
    return open(together.name, mode, encoding=None if "b" in mode else encoding)


def _sorted_lists(element: Any) -> Any:
    match element:
        case tuple():
            return tuple(_sorted_lists(part) for part in element)
        case dict():
            return {key: _sorted_lists(part) for key, part in element.items()}
        case str() | bytes():
            return element
    return sorted(element) if isinstance(element, Iterable) else element


SortLists = Map(_sorted_lists)
"""Sorts the lists in each element, for tests to compare (Beam's name); a transform, to apply with ``|``."""
