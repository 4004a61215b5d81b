"""The loop that adds values up, written once and compiled for each kernel and for each way to tell windows.

A call for each element would cost as much as adding it up. Therefore the text of the loop contains the expressions of
a kernel and the lines that find an element's window, as Python does it for named tuples and dataclasses.

Pairs are taken as they come. A loop over them ends at the first element that is no tuple, or whose key has another type
than the first one's, and says how many it has added: the general way, which knows what to do with anything, takes the
rest. A loop over names and values has no such end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import length_hint
from textwrap import indent
from typing import Any

from penstock_spark.aggregates.kernels import Adding

Held = dict[Any, Any]
"""What is held, by name."""

_PAIRS = """\
rest = iter(pairs)
for {mark}pair in {marked_rest}:
    if type(pair) is not tuple:
        break
    name, value = pair
    if type(name) is not kind:
        break
{body}
else:
    return len(pairs){result}
return len(pairs) - length_hint(rest) - 1{result}
"""

_LISTS = """\
for {mark}name, value in zip({marks}names, values, strict=True):
{body}
"""

_BY_TIME = """\
# What comes together is mostly of one window, and two comparisons are cheaper than a division.
if not start <= time < end:
    start = time - (time - offset) % size
    end = start + size
    if start in found:
        helds = found[start]
    else:
        helds = found[start] = helds_of(start)
"""

_BY_WINDOW = """\
# Neighbours mostly share a window, whose tuple a step before keeps.
if own is not last:
    last, place = own, id(own)
    if place in found:
        helds = found[place]
    else:
        helds = found[place] = helds_of(own)
"""

_ADD = """\
if name in helds:
    held = helds[name]
    helds[name] = {more}
else:
    helds[name] = {first}
"""

_ADD_AND_COUNT = """\
if name in helds:
    both = helds[name]
    held = both[0]
    both[0] = {more}
    both[1] += 1
else:
    helds[name] = [{first}, 1]
    new += 1
"""

_ADD_TO_SESSION = """\
if name not in helds:
    helds[name] = [start, end, {first}]
    continue
session = helds[name]
first, last, held = session
if start >= last:
    close(name, first, last, held)
    session[:] = start, end, {first}
elif end <= first:
    close(name, start, end, {first})
else:
    session[2] = {more}
    if end > last:
        session[1] = end
    if start < first:
        session[0] = start
"""


def kind_of_keys(pairs: list[Any], kinds: tuple[type, ...]) -> type | None:
    """The type of the first key, if it is one of some types and comes in a pair.

    >>> kind_of_keys([("a", 1), (2, 3)], (str,)), kind_of_keys(["ab"], (str,)), kind_of_keys([], (str,))
    (<class 'str'>, None, None)
    """
    first = pairs[0] if pairs else None
    kind = type(first[0]) if type(first) is tuple and first else None
    return kind if kind in kinds else None


def by_key(adding: Adding) -> Callable[[Held, list[Any], type], int]:
    """The loop that adds the value of each pair to what is held of its key.

    The function takes what is held, the pairs, and the type of the keys.

    >>> from penstock_spark.aggregates.kernels import Kernel
    >>> sums = {"a": 1}
    >>> add = by_key(Kernel.named("sum").adding)
    >>> add(sums, [("a", 2), ("b", 3), (None, 4), ("b", 5)], str), sums
    (2, {'a': 3, 'b': 3})
    """
    return _compiled(adding, "helds, pairs, kind", _PAIRS, "", _ADD)


def lists_by_key(adding: Adding) -> Callable[[Held, list[Any], list[Any]], None]:
    """The same for names and values: the function takes what is held, the names, and the values."""
    return _compiled(adding, "helds, names, values", _LISTS, "", _ADD)


def by_time(
    adding: Adding,
) -> Callable[[Callable[[int], Held], int, int, list[int], list[Any], type], int]:
    """The loop that adds the value of each pair to what is held of its key in the window that its time is in.

    The function takes: what gives the values held of the window that starts at a time, asked once for each; the
    length of the windows and the start of one of them, in microseconds as all times; the times; the pairs; and the type
    of the keys.

    >>> from penstock_spark.aggregates.kernels import Kernel
    >>> counts = {0: {}, 10: {}}
    >>> add = by_time(Kernel.named("count").adding)
    >>> add(counts.get, 10, 0, [3, 12, 4, 0], [("a", 1), ("a", 2), ("a", 3), "ab"], str)
    3
    >>> counts
    {0: {'a': 2}, 10: {'a': 1}}
    """
    return _compiled(
        adding, "helds_of, size, offset, times, pairs, kind", _PAIRS, _BY_TIME, _ADD, "time", "times"
    )


def lists_by_window(
    adding: Adding,
) -> Callable[[Callable[[Any], Held], list[Any], list[Any], list[Any]], None]:
    """The loop that adds each value to what is held of its name in its windows.

    The function takes: what gives the values held of an element's windows, asked once for each distinct object; the
    windows; the names; and the values.
    """
    return _compiled(adding, "helds_of, windows, names, values", _LISTS, _BY_WINDOW, _ADD, "own", "windows")


def by_window(adding: Adding) -> Callable[[Callable[[Any], Held], list[Any], list[Any], type], int]:
    """The same for pairs, with the type of their keys.

    >>> from penstock_spark.aggregates.kernels import Kernel
    >>> greatest = {("v",): {}, ("w",): {}}
    >>> first, second = greatest
    >>> add = by_window(Kernel.named("max").adding)
    >>> add(greatest.__getitem__, [first, second, first], [("a", 1), ("a", 2), ("a", 3)], str)
    3
    >>> greatest
    {('v',): {'a': 3}, ('w',): {'a': 2}}
    """
    return _compiled(adding, "helds_of, windows, pairs, kind", _PAIRS, _BY_WINDOW, _ADD, "own", "windows")


def by_window_with_counts(
    adding: Adding,
) -> Callable[[Callable[[Any], dict[Any, list[Any]]], list[Any], list[Any], type], tuple[int, int]]:
    """The same for pairs that are counted, too: what is held is a list of what values come to and of their number.

    The function also says how many names are new.

    >>> from penstock_spark.aggregates.kernels import Kernel
    >>> held = {("v",): {}, ("w",): {}}
    >>> first, second = held
    >>> add = by_window_with_counts(Kernel.named("sum").adding)
    >>> add(held.get, [first, second, first, first], [("a", 1), ("a", 2), ("a", 3), "ab"], str)
    (3, 2)
    >>> held
    {('v',): {'a': [4, 2]}, ('w',): {'a': [2, 1]}}
    """
    return _compiled(
        adding, "helds_of, windows, pairs, kind", _PAIRS, _BY_WINDOW, _ADD_AND_COUNT, "own", "windows"
    )


def by_time_with_counts(
    adding: Adding,
) -> Callable[[Callable[[int], dict[Any, list[Any]]], int, int, list[int], list[Any], type], tuple[int, int]]:
    """The same in the window that a pair's time is in, as `by_time` finds it."""
    return _compiled(
        adding,
        "helds_of, size, offset, times, pairs, kind",
        _PAIRS,
        _BY_TIME,
        _ADD_AND_COUNT,
        "time",
        "times",
    )


def by_session(
    adding: Adding,
) -> Callable[[Held, Callable[[Any, int, int, Any], None], list[int], list[int], list[Any], type], int]:
    """The loop that adds the value of each pair to the latest session of its key, if it is in it.

    The function takes: the latest session of each name, as a list of its start, its end, and what is held of it; what
    takes the other ones; the start and the end of each pair's window; the pairs; and the type of the keys.
    """
    return _compiled(
        adding,
        "helds, close, starts, ends, pairs, kind",
        _PAIRS,
        "",
        _ADD_TO_SESSION,
        "start, end",
        "starts, ends",
    )


@cache
def _compiled(
    adding: Adding, parameters: str, loop: str, find: str, add: str, mark: str = "", marks: str = ""
) -> Callable[..., Any]:
    """A function of one loop.

    Args:
        adding: What is put into it.
        parameters: Its parameters.
        loop: The loop itself.
        find: The lines that find what is held in an element's window.
        add: The lines that add a value.
        mark: What comes beside each element, and tells its window.
        marks: The parameters that have those.
    """
    body = find + add.format(first=adding.first, more=adding.more)
    lines = loop.format(
        mark=mark and f"{mark}, ",
        marks=marks and f"{marks}, ",
        marked_rest=f"zip({marks}, rest, strict=True)" if marks else "rest",
        body=indent(body, "    "),
        result=", new" if add is _ADD_AND_COUNT else "",
    )
    start = "found, helds, last, start, end, new = {}, {}, None, 0, 0, 0\n" if find else ""
    text = f"def add({parameters}):\n" + indent(start + lines, "    ")
    made: dict[str, Any] = {"length_hint": length_hint}
    exec(text, made)
    add_up: Callable[..., Any] = made["add"]
    return add_up
