"""Elements of one key that arrive at one logical time, combined by window before the machine sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.program import GroupingProgram
from penstock.machines.records import Arrival
from penstock.windows.window_fn import Sessions


def united(program: GroupingProgram, arrivals: Iterable[Arrival]) -> list[Arrival]:
    """One arrival for each window, or session, of what arrives of one key at one logical time; uses `arrivals` up."""
    arrivals = list(arrivals)
    if len(arrivals) == 1:
        return arrivals
    groups: dict[BoundedWindow, list[Arrival]] = {}
    if isinstance(program.windowfn, Sessions):
        windows = [arrival.window for arrival in arrivals]
        for window, places in runs(windows, program.windowfn.merge_touching):
            groups[window] = [arrivals[place] for place in places]
    else:
        for arrival in arrivals:
            groups.setdefault(arrival.window, []).append(arrival)
    return [_as_one(program, window, group) for window, group in groups.items()]


def _as_one(program: GroupingProgram, window: BoundedWindow, group: list[Arrival]) -> Arrival:
    if len(group) == 1:
        return group[0]
    timestamps = program.output_times.needed(micros for one in group for micros in one.timestamps)
    held = program.contents.merge([one.held for one in group])
    return Arrival(window, held, sum(one.count for one in group), timestamps)


def runs(windows: Sequence[Any], merge_touching: bool) -> Iterator[tuple[IntervalWindow, list[int]]]:
    """The sessions that windows make without the key's earlier ones, each with the places of its windows in the
    sequence.

    >>> windows = [IntervalWindow(0, 10), IntervalWindow(20, 30), IntervalWindow(5, 15)]
    >>> list(runs(windows, merge_touching=False))
    [([0.0, 15.0), [0, 2]), ([20.0, 30.0), [1])]
    """
    reach_micros = 1 if merge_touching else 0
    run: list[int] = []
    start_micros = end_micros = 0
    for place in sorted(range(len(windows)), key=lambda place: windows[place].start_micros):
        window = windows[place]
        if run and window.start_micros >= end_micros + reach_micros:
            yield IntervalWindow.from_micros(start_micros, end_micros), sorted(run)
            run = []
        if not run:
            start_micros, end_micros = window.start_micros, window.end_micros
        run.append(place)
        end_micros = max(end_micros, window.end_micros)
    if run:
        yield IntervalWindow.from_micros(start_micros, end_micros), sorted(run)
