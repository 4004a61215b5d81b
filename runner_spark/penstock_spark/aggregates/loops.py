"""The loop that adds values up, written once and compiled for each kernel and for each way to tell windows.

A call for each element would cost as much as adding it up. Therefore the text of the loop contains the expressions of
a kernel and the lines that find an element's window, as Python does it for named tuples and dataclasses.

Pairs are taken as they come. A loop over them ends at the first element that is not a tuple, or whose key has another
type than the first one's, and says how many it has added: the general way, which knows what to do with anything, takes
the rest. A loop over names and values has no such end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import length_hint
from textwrap import indent
from typing import Any, NamedTuple

from penstock_spark.aggregates.kernels import Adding

Held = dict[Any, Any]
"""Partial results, by name."""

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

Loop = Callable[..., Any]


class _Way(NamedTuple):
    """A way to find the window of an element."""

    parameters: str  # The loop's parameters for it.
    find: str = ""  # The lines that find the partial results of the window.
    mark: str = ""  # The loop variable beside each element.
    marks: str = ""  # The parameter that has these variables.


_WAYS = {
    "key": _Way("helds"),
    "time": _Way("helds_of, size, offset, times", _BY_TIME, "time", "times"),
    "window": _Way("helds_of, windows", _BY_WINDOW, "own", "windows"),
    "session": _Way("helds, close, starts, ends", "", "start, end", "starts, ends"),
}


def kind_of_keys(pairs: list[Any], kinds: tuple[type, ...]) -> type | None:
    """Returns the type of the first key, if it is one of some types and comes in a pair.

    >>> kind_of_keys([("a", 1), (2, 3)], (str,)), kind_of_keys(["ab"], (str,)), kind_of_keys([], (str,))
    (<class 'str'>, None, None)
    """
    first = pairs[0] if pairs else None
    kind = type(first[0]) if type(first) is tuple and first else None
    return kind if kind in kinds else None


@cache
def loop_of(adding: Adding, by: str, from_pairs: bool = True, counts: bool = False) -> Loop:
    """Returns a function that adds values to partial results.

    Args:
        adding: The code inside of the loop.
        by: The way to the partial result of a value, which decides the function's first parameters:

            - ``key``: the partial results, by key.
            - ``time``: a function that returns them for the window that starts at a time, called once for each; the
              length of the windows and the start of one of them, in microseconds as all times; and the elements' times.
            - ``window``: a function that returns them for the windows of an element, called once for each distinct
              object; and the elements' windows.
            - ``session``: the latest session of each key, as a list of its start, its end and its partial result; a
              function that takes the other sessions; and the start and the end of each element's window.
        from_pairs: Whether the last parameters are pairs and the type of their keys, and it returns how many it added;
            otherwise they are names and values.
        counts: Whether it also counts: a partial result is then a list of the result and of the number of values, and
            the function also returns the number of new names.

    >>> from penstock_spark.aggregates.kernels import Kernel
    >>> sums, greatest = Kernel.named("sum").adding, Kernel.named("max").adding
    >>> held = {"a": 1}
    >>> loop_of(sums, "key")(held, [("a", 2), ("b", 3), (None, 4), ("b", 5)], str), held
    (2, {'a': 3, 'b': 3})
    >>> held = {0: {}, 10: {}}
    >>> loop_of(greatest, "time")(held.get, 10, 0, [3, 12, 4, 0], [("a", 1), ("a", 2), ("a", 3), "ab"], str), held
    (3, {0: {'a': 3}, 10: {'a': 2}})
    >>> held = {("v",): {}, ("w",): {}}
    >>> own = [*held, *held]
    >>> loop_of(sums, "window", counts=True)(held.get, own, [("a", 1), ("a", 2), ("a", 3), "ab"], str), held
    ((3, 2), {('v',): {'a': [4, 2]}, ('w',): {'a': [2, 1]}})
    """
    way = _WAYS[by]
    add = _ADD_TO_SESSION if by == "session" else _ADD_AND_COUNT if counts else _ADD
    body = way.find + add.format(first=adding.first, more=adding.more)
    lines = (_PAIRS if from_pairs else _LISTS).format(
        mark=way.mark and f"{way.mark}, ",
        marks=way.marks and f"{way.marks}, ",
        marked_rest=f"zip({way.marks}, rest, strict=True)" if way.marks else "rest",
        body=indent(body, "    "),
        result=", new" if counts else "",
    )
    start = "found, helds, last, start, end, new = {}, {}, None, 0, 0, 0\n" if way.find else ""
    elements = "pairs, kind" if from_pairs else "names, values"
    text = f"def add({way.parameters}, {elements}):\n" + indent(start + lines, "    ")
    made: dict[str, Any] = {"length_hint": length_hint}
    # Errors of the user's values show that name.
    exec(compile(text, f"<the loop that adds values up by {by}>", "exec"), made)
    loop: Loop = made["add"]
    return loop
