"""Elements of one key that arrive at one logical time, combined by window before the machine sees them."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.program import GroupingProgram
from penstock.machines.records import Arrival
from penstock.windows.window_fn import Sessions, merge_runs


def unite_arrivals(program: GroupingProgram, arrivals: Iterable[Arrival]) -> list[Arrival]:
    """One arrival for each window, or session, of what arrives of one key at one logical time; uses `arrivals` up."""
    arrivals = list(arrivals)
    if len(arrivals) == 1:
        return arrivals
    groups: dict[BoundedWindow, list[Arrival]] = {}
    if isinstance(program.windowfn, Sessions):
        windows = [arrival.window for arrival in arrivals]
        for window, places in merge_runs(windows, program.windowfn.merge_touching):
            groups[window] = [arrivals[place] for place in sorted(places)]
    else:
        for arrival in arrivals:
            groups.setdefault(arrival.window, []).append(arrival)
    return [_as_one(program, window, group) for window, group in groups.items()]


def _as_one(program: GroupingProgram, window: BoundedWindow, group: list[Arrival]) -> Arrival:
    if len(group) == 1:
        return group[0]
    timestamps = program.output_times.needed(micros for one in group for micros in one.timestamps)
    held = program.fold.merged([one.held for one in group])
    return Arrival(window, held, sum(one.count for one in group), timestamps)
