"""The runner's ways of assigning windows, the fast ones too, give what the WindowFns say."""

from random import Random

import pytest

from penstock.transforms.window import (
    BoundedSessions,
    CalendarWindows,
    FixedWindows,
    IntervalWindow,
    PerElementFixedWindows,
    Sessions,
    SlidingWindows,
    UnalignedFixedWindows,
    WindowFn,
)
from penstock.utils.timestamp import Timestamp
from penstock_spark.folding.merging import merge_groups
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.keys import merges_in_one_pass
from penstock_spark.worker.windowing import make_assigner

WINDOW_FNS = [
    FixedWindows(7, offset=2),
    SlidingWindows(10, 4),
    Sessions(5),
    BoundedSessions(5, 20),
    CalendarWindows.days(time_zone="Europe/Berlin"),
    CalendarWindows.months(2, time_zone="America/Sao_Paulo"),
    UnalignedFixedWindows(60),
    PerElementFixedWindows(lambda element: element[1] + 1),
]
TIMES = [0, -1, 5_500_000, 1_711_843_200_000_000, 0, -86_400_000_000]


@pytest.mark.parametrize("window_fn", WINDOW_FNS, ids=lambda window_fn: type(window_fn).__name__)
def test_a_batch_is_assigned_as_its_elements_are(window_fn) -> None:
    elements = [("k", 1), (("l", 2), 2), (None, 3), ("k", 4), ("k", 5), (7, 6)]
    contexts = [
        WindowFn.AssignContext(Timestamp(micros=time), element)
        for time, element in zip(TIMES, elements, strict=True)
    ]
    expected = [tuple(window_fn.assign(context)) for context in contexts]
    assign = make_assigner(window_fn)
    assert assign(Batch(elements, TIMES)) == assign(Batch(elements, TIMES)) == expected
    shared = assign(Batch(elements[:1], TIMES[0]))
    assert shared in (expected[0], expected[:1])


@pytest.mark.parametrize("seed", range(20))
def test_times_in_the_same_sliding_windows_share_one_tuple(seed: int) -> None:
    random = Random(seed)
    size, period, offset = random.randint(1, 12), random.randint(1, 6), random.randint(-9, 9)
    window_fn = SlidingWindows(size, period, offset)
    # Every edge of a window, the times beside it, and a few others.
    edges = [second * 1_000_000 + beside for second in range(-20, 20) for beside in (-1, 0, 1)]
    times = random.sample([*edges, *edges], 2 * len(edges))
    assigned = make_assigner(window_fn)(Batch([None] * len(times), times))
    assert isinstance(assigned, list)
    assert assigned == [window_fn.assign_micros(time) for time in times]
    if size % period == 0:
        assert len(set(map(id, assigned))) == len(set(assigned))


@pytest.mark.parametrize("window_fn", [CalendarWindows.weeks(), Sessions(5), BoundedSessions(5, 5)])
def test_where_the_timestamp_alone_decides_no_element_is_asked_for(window_fn, monkeypatch) -> None:
    expected = [window_fn.assign_micros(time) for time in TIMES]
    monkeypatch.delattr(WindowFn, "AssignContext")
    assert make_assigner(window_fn)(Batch([None] * len(TIMES), TIMES)) == expected


def test_bounded_sessions_of_a_batch_are_cut_from_the_start_on() -> None:
    window_fn = BoundedSessions(60, 180, merge_touching=True)
    starts = [26, 86, 146, 186, 219, 259, 399, 446, 466]
    groups = [(IntervalWindow(start, start + 60), iter([(start, str(start).encode())])) for start in starts]
    found = merge_groups(window_fn, groups, merges_in_one_pass(window_fn))
    assert [(window, [int(data) for _, data in chunks]) for window, chunks in found] == [
        (IntervalWindow(26, 206), [26, 86, 146]),
        (IntervalWindow(186, 319), [186, 219, 259]),
        (IntervalWindow(399, 526), [399, 446, 466]),
    ]
