"""One window of many keys, where a grouping's machine has one key and its windows: the same panes, keys together.

A `Cell` of a few plain values holds what is known of a key in a window. The watermark affects all keys of a window at
once, and elements arrive window by window: a plain loop over cells. Only groupings with a `WindowRule` are that
simple; the law is that the output equals the output of `GroupingMachine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.records import Times
from penstock.machines.simple_triggers import AfterCountMachine, AfterProcessingTimeMachine
from penstock.machines.window_rules import Numbering, SimpleTrigger, WindowRule
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming

Cell = tuple[Any, int, int | None, int, int]
"""The state of one key: its partial result; the number of elements since its last pane; the time at which the
clock makes it due, or None; the number of its panes; and how many of them were not early."""

FRESH, DUE = 1, 2
"""The indexes of these two in a cell."""

_NEW: Cell = (None, 0, None, 0, 0)


class Firing(NamedTuple):
    """Panes of one window, one for each key; the window's last timestamp is their event time."""

    window: BoundedWindow
    names: Sequence[bytes]  # The encoded keys.
    values: list[Any]
    infos: list[PaneInfo]


class WindowCells:
    """A window with its cells."""

    __slots__ = ("cells", "dues", "ended", "fresh", "is_past_end", "window")

    def __init__(self, window: BoundedWindow, is_past_end: bool) -> None:
        self.window = window
        self.cells: dict[bytes, Cell] = {}  # By encoded key.
        self.dues: dict[
            int, list[bytes]
        ] = {}  # The keys that wait for the clock, by the time for which they wait.
        self.fresh = 0  # The number of cells with something new.
        self.is_past_end = is_past_end
        # The keys for which a window that is open again had ended before the watermark went back.
        self.ended: set[bytes] = set()

    def reopen(self) -> None:
        """Notes that the watermark is before the end again: for the keys that the window has now, it has ended."""
        self.is_past_end = False
        self.ended.update(self.cells)


class WindowMachine:
    """The machine of one grouping for one window at a time; the state of each window is apart from it.

    >>> from penstock.machines.window_rules import window_rule
    >>> from penstock.functions.combinefn import CombineFn
    >>> from penstock.transforms.window import FixedWindows, IntervalWindow
    >>> from penstock.transforms.grouping.windowing import Windowing
    >>> rule = window_rule(Windowing(FixedWindows(10)), CombineFn.from_callable(sum), False)
    >>> machine = WindowMachine(rule)
    >>> column = machine.opened(IntervalWindow(0, 10), Times())
    >>> machine.take_together(column, [b"sa", b"sb"], [3, 4], [2, 1], Times()) is None
    True
    >>> machine.pass_watermark(column, Times(watermark_micros=10_000_000)).values
    [3, 4]
    """

    def __init__(self, rule: WindowRule) -> None:
        self.rule = rule
        self.fold = rule.program.fold
        self._keeps = rule.program.keeps
        self._result = self._kept_result if self._keeps else self.fold.finish
        self._takes_singly = isinstance(rule.early, AfterCountMachine)
        self._numberings: dict[tuple[int, bool], Numbering] = {}

    def opened(self, window: BoundedWindow, times: Times) -> WindowCells:
        """Returns a window without keys."""
        return WindowCells(window, times.watermark_micros >= window.end_micros)

    def is_expired(self, window: BoundedWindow, times: Times) -> bool:
        """True if a window takes no more elements."""
        return times.watermark_micros >= self.rule.program.expiry_micros(window)

    def next_micros(self, column: WindowCells) -> int:
        """Returns the watermark at which something happens to all keys of a window."""
        if column.is_past_end:
            return self.rule.program.expiry_micros(column.window)
        return column.window.end_micros

    def can_add_in_parts(self, column: WindowCells) -> bool:
        """True if elements can be added in any parts, because they fire nothing."""
        return not (column.is_past_end or column.ended or self._takes_singly)

    def take_together(
        self,
        column: WindowCells,
        names: Sequence[bytes],
        helds: Sequence[Any],
        counts: Sequence[int],
        times: Times,
    ) -> Firing | None:
        """Combined elements of several keys arrive at one logical time; each key once, if not `can_add_in_parts`."""
        early, merge, keeps = self.rule.early, self.fold.merge, self._keeps
        if not self.can_add_in_parts(column):
            return self._take(column, names, helds, counts, _itself, merge, times)
        due = early.due_micros(times.clock_micros) if isinstance(early, AfterProcessingTimeMachine) else None
        cells, get, renewed = column.cells, column.cells.get, []
        for name, held, count in zip(names, helds, counts, strict=True):
            cell = get(name)
            if cell is None:
                cells[name] = held, count, due, 0, 0
                renewed.append(name)
                continue
            before, fresh, own_due, panes, nonspeculative = cell
            if fresh:
                cells[name] = merge(before, held), fresh + count, own_due, panes, nonspeculative
            else:
                together = merge(before, held) if keeps else held
                cells[name] = together, count, due, panes, nonspeculative
                renewed.append(name)
        column.fresh += len(renewed)
        if due is not None and renewed:
            column.dues.setdefault(due, []).extend(renewed)
        return None

    def take(
        self, column: WindowCells, names: Sequence[bytes], values: Sequence[Any], times: Times
    ) -> Firing | None:
        """Adds single elements, one after the other; returns the panes that they fire, in that order."""
        return self._take(column, names, values, repeat(1), self.fold.lift, self.fold.step, times)

    def _take(
        self,
        column: WindowCells,
        names: Sequence[bytes],
        mores: Sequence[Any],
        counts: Iterable[int],
        first: Callable[[Any], Any],
        put: Callable[[Any, Any], Any],
        times: Times,
    ) -> Firing | None:
        """Something arrives for one key after the other, and may fire it at once."""
        cells, get, keeps, result = column.cells, column.cells.get, self._keeps, self._result
        is_past_end, ended, dues = column.is_past_end, column.ended, column.dues
        timing = _early_or_late(column)
        usual = self._numbering(timing, False), timing != PaneInfoTiming.EARLY
        again = self._numbering(PaneInfoTiming.LATE, False), True
        rule = self.rule.late if is_past_end else self.rule.early
        fired: list[bytes] = []
        results: list[Any] = []
        infos: list[PaneInfo] = []
        more_fresh = 0
        for name, more, count in zip(names, mores, counts, strict=False):
            cell = get(name)
            held, before, due, panes, nonspeculative = _NEW if cell is None else cell
            held = put(held, more) if before or (keeps and cell is not None) else first(more)
            fresh = before + count
            # A window that is opened after its end fires at its first element.
            fires = is_past_end and cell is None
            match self._rule_of_ended if name in ended else rule:
                case AfterCountMachine(enough):
                    fires = fires or fresh >= enough
                case AfterProcessingTimeMachine() as delay if due is None and not fires:
                    due = delay.due_micros(times.clock_micros)
                    dues.setdefault(due, []).append(name)
            if not fires:
                more_fresh += not before
                cells[name] = held, fresh, due, panes, nonspeculative
                continue
            more_fresh -= before > 0
            infos_of, spoken = again if name in ended else usual
            fired.append(name)
            results.append(result(held))
            infos.append(infos_of[panes, nonspeculative])
            cells[name] = held if keeps else None, 0, None, panes + 1, nonspeculative + spoken
        column.fresh += more_fresh
        return Firing(column.window, fired, results, infos) if fired else None

    def _kept_result(self, held: object) -> object:
        return self.fold.result(held, True)

    @property
    def _rule_of_ended(self) -> SimpleTrigger | None:
        """The rule that fires new elements of a key for which the window had ended before it was open again."""
        return None if self.rule.late_waits_for_end else self.rule.late

    def _numbering(self, timing: int, is_last: bool) -> Numbering:
        found = self._numberings.get((timing, is_last))
        if found is None:
            found = self._numberings[timing, is_last] = Numbering(timing, is_last)
        return found

    def pass_watermark(self, column: WindowCells, times: Times) -> Firing | None:
        """The watermark has reached `next_micros`: the window ends, or expires, or both.

        A window that `is_expired` now must be forgotten afterwards.
        """
        is_last = self.is_expired(column.window, times)
        closes_empty = is_last and self.rule.program.fires_empty_when_closing
        ends = not column.is_past_end
        timing = PaneInfoTiming.ON_TIME if ends else PaneInfoTiming.LATE
        names = self._with_panes(column, closes_empty or (ends and self.rule.fires_empty_at_end))
        dues, column.dues = column.dues, {}
        if column.ended:
            fires_fresh = is_last or self.rule.late_waits_for_end
            cells, ended = column.cells, column.ended
            names = [
                name
                for name in names
                if name not in ended or (fires_fresh if cells[name][FRESH] else closes_empty)
            ]
            for due_micros, waiting in dues.items():
                if still := column.ended.intersection(waiting):
                    column.dues[due_micros] = list(still)
        firing = self._fire(column, names, timing, is_last) if names else None
        column.is_past_end = True
        column.ended.clear()
        return firing

    def may_close_quietly(self, fresh: int) -> bool:
        """True if keys of a window after its end, `fresh` of them with something new, emit no panes at its expiry."""
        return not (fresh or self.rule.program.fires_empty_when_closing)

    def pass_clock(self, column: WindowCells, due_micros: int) -> Firing | None:
        """The clock has reached a time for which keys of a window wait."""
        cells = column.cells
        names = [name for name in column.dues.pop(due_micros, ()) if cells[name][DUE] == due_micros]
        return self._fire(column, sorted(names), _early_or_late(column), False) if names else None

    def _with_panes(self, column: WindowCells, fires_empty: bool) -> list[bytes]:
        """All keys with something new, and perhaps the others."""
        # An empty window has no maximum, for example, and then fires no pane.
        if fires_empty and (self._keeps or self.fold.has_result_of_nothing):
            return sorted(column.cells)
        if column.fresh:
            return sorted(name for name, cell in column.cells.items() if cell[FRESH])
        return []

    def _fire(self, column: WindowCells, names: list[bytes], timing: int, is_last: bool) -> Firing:
        """The panes of some keys, which then have nothing new; they are late for keys that had ended before."""
        cells, keeps, result, fold = column.cells, self._keeps, self._result, self.fold
        usual = self._numbering(timing, is_last), timing != PaneInfoTiming.EARLY
        again = self._numbering(PaneInfoTiming.LATE, is_last), True
        values, infos, renewed = [], [], 0
        for name in names:
            held, fresh, _, panes, nonspeculative = cells[name]
            if fresh:
                renewed += 1
            values.append(result(held) if fresh or keeps else fold.finish(fold.empty()))
            infos_of, spoken = again if name in column.ended else usual
            infos.append(infos_of[panes, nonspeculative])
            cells[name] = held if keeps else None, 0, None, panes + 1, nonspeculative + spoken
        column.fresh -= renewed
        return Firing(column.window, names, values, infos)


def _itself(held: object) -> object:
    return held


def _early_or_late(column: WindowCells) -> int:
    return PaneInfoTiming.LATE if column.is_past_end else PaneInfoTiming.EARLY
