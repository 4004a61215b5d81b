"""One window of many keys, where a grouping's machine has one key and its windows: the same panes, keys together.

A `Cell` of a few plain values holds what is known of a key in a window. The watermark affects all keys of a window at
once, and elements arrive window by window: a plain loop over cells. Only groupings with a `ColumnRule` are that
simple; the law is that the output equals the output of `GroupingMachine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.column_rules import ColumnRule, Holding, Numbering
from penstock.machines.records import Times
from penstock.machines.simple_triggers import ClockDelay, Total
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming

Cell = tuple[Any, int, int | None, int, int]
"""What a key holds; the number of elements since its last pane; when it is due by the clock, or None; the number of
its panes; and how many of them were not early."""

FRESH, DUE = 1, 2
"""The indexes of these two in a cell."""

_NEW: Cell = (None, 0, None, 0, 0)


class Firing(NamedTuple):
    """Panes of one window, one for each key; the window's last timestamp is their event time."""

    window: BoundedWindow
    names: Sequence[bytes]  # The encoded keys.
    values: list[Any]
    infos: list[PaneInfo]


class WindowColumn:
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
        """The watermark is before the end again: for the keys that the window has now, it has ended."""
        self.is_past_end = False
        self.ended.update(self.cells)


class ColumnMachine:
    """The machine of one grouping for one window at a time; the state of each window is apart from it.

    >>> from penstock.machines.column_rules import column_rule, holding_of
    >>> from penstock.functions.combinefn import CombineFn
    >>> from penstock.transforms.window import FixedWindows, IntervalWindow
    >>> from penstock.transforms.windowing import Windowing
    >>> rule = column_rule(Windowing(FixedWindows(10)), CombineFn.from_callable(sum), False)
    >>> machine = ColumnMachine(rule, holding_of(rule.program.contents, rule.program.keeps))
    >>> column = machine.opened(IntervalWindow(0, 10), Times())
    >>> machine.take_together(column, [b"sa", b"sb"], [[1, 2], [4]], [2, 1], Times())
    []
    >>> machine.pass_watermark(column, Times(watermark_micros=10_000_000)).values
    [3, 4]
    """

    def __init__(self, rule: ColumnRule, holding: Holding) -> None:
        self.rule = rule
        self.holding = holding
        self._keeps = rule.program.keeps
        self._takes_singly = isinstance(rule.early, Total)

    def opened(self, window: BoundedWindow, times: Times) -> WindowColumn:
        """A window without keys."""
        return WindowColumn(window, times.watermark_micros >= window.end_micros)

    def is_expired(self, window: BoundedWindow, times: Times) -> bool:
        """Whether a window takes no more elements."""
        return times.watermark_micros >= self.rule.program.expiry_micros(window)

    def next_micros(self, column: WindowColumn) -> int:
        """Where the watermark must be for something to happen to all keys of a window."""
        if column.is_past_end:
            return self.rule.program.expiry_micros(column.window)
        return column.window.end_micros

    def takes_together(self, column: WindowColumn) -> bool:
        """Whether elements can be added in any parts, because they fire nothing."""
        return not (column.is_past_end or column.ended or self._takes_singly)

    def take_together(
        self,
        column: WindowColumn,
        names: Sequence[bytes],
        helds: Sequence[Any],
        counts: Sequence[int],
        times: Times,
    ) -> list[Firing]:
        """Combined elements of several keys arrive at one logical time; each key once, if not `takes_together`."""
        if not self.takes_together(column):
            merge = self.holding.merge
            return [
                firing
                for name, held, count in zip(names, helds, counts, strict=True)
                if (firing := self._take(column, name, held, count, merge, times)) is not None
            ]
        early, merge, keeps = self.rule.early, self.holding.merge, self._keeps
        due = early.due_micros(times.clock_micros) if isinstance(early, ClockDelay) else None
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
        return []

    def take(self, column: WindowColumn, name: bytes, value: Any, times: Times) -> Firing | None:
        """A single element arrives."""
        return self._take(column, name, value, 1, self.holding.add, times)

    def _take(
        self, column: WindowColumn, name: bytes, more: Any, count: int, put: Any, times: Times
    ) -> Firing | None:
        """Something arrives for one key, and may fire it at once."""
        is_new = name not in column.cells
        held, fresh, due, panes, nonspeculative = _NEW if is_new else column.cells[name]
        if fresh or (self._keeps and not is_new):
            held = put(held, more)
        else:
            held = self.holding.first(more) if put is self.holding.add else more
        column.fresh += not fresh
        fresh += count
        fires = False
        match self._rule_of(column, name):
            case Total(enough):
                fires = fresh >= enough
            case ClockDelay() as delay if due is None and not (is_new and column.is_past_end):
                due = delay.due_micros(times.clock_micros)
                column.dues.setdefault(due, []).append(name)
        column.cells[name] = held, fresh, due, panes, nonspeculative
        # A window that is opened after its end fires at its first element.
        if fires or (is_new and column.is_past_end):
            return self._fire(column, [name], _early_or_late(column), False)
        return None

    def _rule_of(self, column: WindowColumn, name: bytes) -> Total | ClockDelay | None:
        """What fires new elements of a key."""
        if column.is_past_end:
            return self.rule.late
        if name in column.ended:
            return None if self.rule.late_waits_for_end else self.rule.late
        return self.rule.early

    def pass_watermark(self, column: WindowColumn, times: Times) -> Firing | None:
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
        """Whether keys of a window after its end, `fresh` of them with something new, give no panes at its expiry."""
        return not (fresh or self.rule.program.fires_empty_when_closing)

    def pass_clock(self, column: WindowColumn, due_micros: int) -> Firing | None:
        """The clock has reached a time for which keys of a window wait."""
        cells = column.cells
        names = [name for name in column.dues.pop(due_micros, ()) if cells[name][DUE] == due_micros]
        return self._fire(column, sorted(names), _early_or_late(column), False) if names else None

    def _with_panes(self, column: WindowColumn, fires_empty: bool) -> list[bytes]:
        """All keys with something new, and perhaps the others."""
        # An empty window has no maximum, for example, and then gives no pane.
        if fires_empty and (self._keeps or self.rule.program.contents.has_result_of_nothing):
            return sorted(column.cells)
        if column.fresh:
            return sorted(name for name, cell in column.cells.items() if cell[FRESH])
        return []

    def _fire(self, column: WindowColumn, names: list[bytes], timing: int, is_last: bool) -> Firing:
        """The panes of some keys, which then have nothing new; they are late for keys that had ended before."""
        cells, keeps, result, nothing = column.cells, self._keeps, self.holding.result, self.holding.nothing
        usual = Numbering(timing, is_last), timing != PaneInfoTiming.EARLY
        again = Numbering(PaneInfoTiming.LATE, is_last), True
        values, infos, renewed = [], [], 0
        for name in names:
            held, fresh, _, panes, nonspeculative = cells[name]
            if fresh:
                renewed += 1
            values.append(result(held) if fresh or keeps else nothing())
            infos_of, spoken = again if name in column.ended else usual
            infos.append(infos_of[panes, nonspeculative])
            cells[name] = held if keeps else None, 0, None, panes + 1, nonspeculative + spoken
        column.fresh -= renewed
        return Firing(column.window, names, values, infos)


def _early_or_late(column: WindowColumn) -> int:
    return PaneInfoTiming.LATE if column.is_past_end else PaneInfoTiming.EARLY
