"""Fixed windows that differ by key or by element."""

import os
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coders.coders import IntervalWindowCoder
from penstock.transforms.window import (
    IntervalWindow,
    PerElementFixedWindows,
    UnalignedFixedWindows,
    WindowFn,
)
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp

KEYS = st.text() | st.integers() | st.tuples(st.booleans(), st.floats()) | st.none()
MICROS = st.integers(MIN_TIMESTAMP.micros + 10**13, MAX_TIMESTAMP.micros - 10**13)
LENGTHS = st.integers(1, 10**12)


def window_of(window_fn: WindowFn, seconds: Any, element: Any) -> IntervalWindow:
    (window,) = window_fn.assign(WindowFn.AssignContext(seconds, element))
    return window


@given(KEYS, KEYS, MICROS, MICROS, LENGTHS, st.integers(-(10**12), 10**12))
def test_the_windows_of_a_key_tile_time_whatever_the_value(key, value, time, later, size, offset) -> None:
    window_fn = UnalignedFixedWindows(Duration(micros=size), Duration(micros=offset))
    windows = [window_of(window_fn, Timestamp(micros=at), (key, value)) for at in (time, later)]
    for at, window in zip((time, later), windows, strict=True):
        assert window.start_micros <= at < window.end_micros
        assert window.end_micros - window.start_micros == size
    assert (windows[0].start_micros - windows[1].start_micros) % size == 0
    plain = window_of(UnalignedFixedWindows(Duration(micros=size)), Timestamp(micros=time), (key, None))
    assert (windows[0].start_micros - plain.start_micros - offset) % size == 0


PHASES_MICROS = {"a": 42767379, "b": 9876575, 1: 48247624, (1, "a"): 57730912}


def test_the_phase_of_a_key_is_the_same_in_every_process_and_run() -> None:
    program = (
        "from penstock.transforms.window import UnalignedFixedWindows, WindowFn\n"
        f"for key in {list(PHASES_MICROS)!r}:\n"
        "    (window,) = UnalignedFixedWindows(60).assign(WindowFn.AssignContext(0, (key, 1)))\n"
        "    print(window.start_micros % 60_000_000)\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, env=environment, timeout=60
        )
        assert [int(line) for line in done.stdout.split()] == list(PHASES_MICROS.values()), done.stderr


def test_the_phases_of_many_keys_are_spread_over_the_whole_size() -> None:
    starts = [window_of(UnalignedFixedWindows(60), 0, (key, 1)).start.micros for key in range(2000)]
    tenths = Counter(-start // 6_000_000 for start in starts)
    assert sorted(tenths) == list(range(10))
    assert min(tenths.values()) > 140
    assert len(set(starts)) == len(starts)


KEY_B = [(3, 120), (6, 19), (4, 73), (4, 133), (1, 353), (8, 237)]
KEY_B += [(9, 173), (7, 330), (5, 420), (2, 446), (6, 499)]
"""The scores of key B in Streaming Systems' figures 4-8 to 4-10, at seconds after noon."""


@pytest.mark.parametrize(
    ("window_fn", "expected"),
    [
        # Figure 4-8, aligned, and figure 4-9, a minute later.
        (
            UnalignedFixedWindows(120, phase_of=lambda key: 0),
            {(0, 120): 10, (120, 240): 24, (240, 360): 8, (360, 480): 7, (480, 600): 6},
        ),
        (
            UnalignedFixedWindows(120, phase_of={"A": 0, "B": 60}.get),
            {(-60, 60): 6, (60, 180): 20, (180, 300): 8, (300, 420): 8, (420, 540): 13},
        ),
        # Figure 4-10; it shows 12 where the scores add up to 7.
        (
            PerElementFixedWindows(lambda element: {"A": 120, "B": 60}[element[0]]),
            {(0, 60): 6, (60, 120): 4, (120, 180): 16, (180, 240): 8}
            | {(300, 360): 8, (420, 480): 7, (480, 540): 6},
        ),
    ],
)
def test_the_figures_of_chapter_four_come_out(window_fn, expected) -> None:
    sums: Counter[tuple[int, int]] = Counter()
    for score, time in KEY_B:
        window = window_of(window_fn, time, ("B", score))
        sums[int(window.start), int(window.end)] += score
    assert dict(sums) == expected


@given(MICROS, LENGTHS)
def test_an_element_is_in_the_window_of_the_size_it_chose(time, size) -> None:
    window_fn = PerElementFixedWindows(lambda element: Duration(micros=element["size"]))
    window = window_of(window_fn, Timestamp(micros=time), {"size": size})
    assert window.start_micros <= time < window.end_micros
    assert (window.start_micros % size, window.end_micros - window.start_micros) == (0, size)


def size_of_pair(element):
    return element[1]


def phase_of_key(key):
    return 1


def test_they_are_values() -> None:
    fns = [
        UnalignedFixedWindows(60),
        UnalignedFixedWindows(60, 1),
        UnalignedFixedWindows(61),
        UnalignedFixedWindows(60, phase_of=phase_of_key),
        PerElementFixedWindows(size_of_pair),
        PerElementFixedWindows(phase_of_key),
    ]
    assert len(set(fns)) == len(set(map(repr, fns))) == len(fns)
    for window_fn in fns:
        again = pickle.loads(pickle.dumps(window_fn))
        assert (again, hash(again)) == (window_fn, hash(window_fn)) == (eval(repr(window_fn)), hash(again))
        assert not window_fn.is_merging()
        assert isinstance(window_fn.get_window_coder(), IntervalWindowCoder)
        # The timestamp alone does not decide, and no runner may think so.
        assert not hasattr(window_fn, "assign_micros")
    assert UnalignedFixedWindows(60, 61) == UnalignedFixedWindows(Duration(60), Duration(1))
    assert "at test_keyed_windows.py:" in repr(PerElementFixedWindows(lambda element: 1))


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: UnalignedFixedWindows(0), ValueError, "size parameter must be strictly positive"),
        (lambda: UnalignedFixedWindows(None), TypeError, "size parameter must be a duration"),
        (lambda: UnalignedFixedWindows(1, float("nan")), ValueError, "offset parameter must be finite"),
        (lambda: UnalignedFixedWindows(1, "1"), TypeError, "offset parameter must be a duration"),
        (lambda: UnalignedFixedWindows(1, phase_of=5), TypeError, "phase_of parameter must be a function"),
        (lambda: PerElementFixedWindows(60), TypeError, "size_of parameter must be a function"),
    ],
)
def test_what_is_refused_is_named_with_its_place_and_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    _, where, hint = str(caught.value).split("\n")
    assert where.startswith("  at test_keyed_windows.py:")
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize(
    ("window_fn", "element", "error", "part"),
    [
        (UnalignedFixedWindows(60), "kv", TypeError, "an element of type str is not a (key, value) pair"),
        (
            UnalignedFixedWindows(60),
            {"secret": 1, "a": 2},
            TypeError,
            "of type dict is not a (key, value) pair",
        ),
        (UnalignedFixedWindows(60), (1, 2, 3), TypeError, "of type tuple is not a (key, value) pair"),
        (UnalignedFixedWindows(60), None, TypeError, "of type NoneType is not a (key, value) pair"),
        (
            UnalignedFixedWindows(60, phase_of={}.get),
            ("secret", 1),
            TypeError,
            "the phase of a key must be a duration, but is None",
        ),
        (
            PerElementFixedWindows(size_of_pair),
            ("secret", 0),
            ValueError,
            "the size of an element's window must be strictly positive",
        ),
        (PerElementFixedWindows(size_of_pair), ("secret", -1.5), ValueError, "must be strictly positive"),
        (PerElementFixedWindows(size_of_pair), ("secret", float("inf")), ValueError, "must be finite"),
        (
            PerElementFixedWindows(size_of_pair),
            ("key", "secret"),
            TypeError,
            "must be a duration, but is a str",
        ),
        (PerElementFixedWindows(size_of_pair), ("secret", None), TypeError, "must be a duration"),
    ],
)
def test_an_element_that_fits_no_window_is_refused_without_being_shown(
    window_fn, element, error, part
) -> None:
    with pytest.raises(error) as caught:
        window_of(window_fn, 5, element)
    what, where, hint = str(caught.value).split("\n")
    assert part in what
    assert where == f"  in {window_fn!r}"
    assert hint.startswith("  hint: ")
    assert "secret" not in str(caught.value)


def test_a_key_without_a_deterministic_encoding_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        window_of(UnalignedFixedWindows(60), 5, (object(), 1))
