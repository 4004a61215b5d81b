"""The loop that folds values, written once and compiled for each fold and for each way to find windows.

A call for each element would cost as much as adding it up. Therefore the text of the loop contains the expressions of
a fold and the lines that find an element's window, as Python does it for named tuples and dataclasses.

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

from penstock.functions.folds import FoldSource

Partials = dict[Any, Any]
"""Partial results by name."""

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
# Neighbours are mostly of one window, and two comparisons are cheaper than a division.
if not start <= time < end:
    start = time - (time - offset) % size
    end = start + size
    if start in found:
        partials = found[start]
    else:
        partials = found[start] = partials_of(start)
"""

_BY_WINDOW = """\
# Neighbours mostly share a window, whose tuple a step before keeps.
if own is not last:
    last, place = own, id(own)
    if place in found:
        partials = found[place]
    else:
        partials = found[place] = partials_of(own)
"""

_ADD = """\
if name in partials:
    partial = partials[name]
    partials[name] = {step}
else:
    partials[name] = {lift}
"""

_ADD_AND_COUNT = """\
if name in partials:
    both = partials[name]
    partial = both[0]
    both[0] = {step}
    both[1] += 1
else:
    partials[name] = [{lift}, 1]
    new += 1
"""

_ADD_TO_SESSION = """\
if name not in partials:
    partials[name] = [start, end, {lift}]
    continue
session = partials[name]
first, last, partial = session
if start >= last:
    close(name, first, last, partial)
    session[:] = start, end, {lift}
elif end <= first:
    close(name, start, end, {lift})
else:
    session[2] = {step}
    if end > last:
        session[1] = end
    if start < first:
        session[0] = start
"""

FoldLoop = Callable[..., Any]


class _Way(NamedTuple):
    """A way to find the window of an element."""

    parameters: str  # The loop's parameters for it.
    find: str = ""  # The lines that find the partial results of the window.
    mark: str = ""  # The loop variable beside each element.
    marks: str = ""  # The parameter that has these variables.


_WAYS = {
    "key": _Way("partials"),
    "time": _Way("partials_of, size, offset, times", _BY_TIME, "time", "times"),
    "window": _Way("partials_of, windows", _BY_WINDOW, "own", "windows"),
    "session": _Way("partials, close, starts, ends", "", "start, end", "starts, ends"),
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
def loop_of(source: FoldSource, by: str, from_pairs: bool = True, counts: bool = False) -> FoldLoop:
    """Returns a function that folds values.

    Args:
        source: The expressions that are put into the loop.
        by: How the place of a value is found, with the first parameters of the function:

            - ``key``: partial results by key.
            - ``time``: a function that returns the partial results of the window that starts at a time, called once for
              each; the length of the windows and the start of one of them, in microseconds as all times; and the
              elements' times.
            - ``window``: a function that returns the partial results of an element's windows, called once for each
              distinct object; and the elements' windows.
            - ``session``: the latest session of each key, as a list of its start, its end, and its partial result; a
              function that takes the other sessions; and the start and the end of each element's window.
        from_pairs: Whether the last parameters are pairs and the type of their keys, and it returns how many it added;
            otherwise they are names and values.
        counts: Whether it also counts: a partial result is then a list of one and of the number of its values, and it
            also returns how many names are new.

    >>> from penstock.functions.folds import MAX, SUM
    >>> sums, greatest = SUM.source, MAX.source
    >>> partial = {"a": 1}
    >>> loop_of(sums, "key")(partial, [("a", 2), ("b", 3), (None, 4), ("b", 5)], str), partial
    (2, {'a': 3, 'b': 3})
    >>> partial = {0: {}, 10: {}}
    >>> loop_of(greatest, "time")(partial.get, 10, 0, [3, 12, 4, 0], [("a", 1), ("a", 2), ("a", 3), "ab"], str), partial
    (3, {0: {'a': 3}, 10: {'a': 2}})
    >>> partial = {("v",): {}, ("w",): {}}
    >>> own = [*partial, *partial]
    >>> loop_of(sums, "window", counts=True)(partial.get, own, [("a", 1), ("a", 2), ("a", 3), "ab"], str), partial
    ((3, 2), {('v',): {'a': [4, 2]}, ('w',): {'a': [2, 1]}})
    """
    way = _WAYS[by]
    add = _ADD_TO_SESSION if by == "session" else _ADD_AND_COUNT if counts else _ADD
    body = way.find + add.format(lift=source.lift, step=source.step)
    lines = (_PAIRS if from_pairs else _LISTS).format(
        mark=way.mark and f"{way.mark}, ",
        marks=way.marks and f"{way.marks}, ",
        marked_rest=f"zip({way.marks}, rest, strict=True)" if way.marks else "rest",
        body=indent(body, "    "),
        result=", new" if counts else "",
    )
    start = "found, partials, last, start, end, new = {}, {}, None, 0, 0, 0\n" if way.find else ""
    elements = "pairs, kind" if from_pairs else "names, values"
    text = f"def add({way.parameters}, {elements}):\n" + indent(start + lines, "    ")
    # With the name of this module, its lines do not count as lines of the program in a traceback.
    made: dict[str, Any] = {"length_hint": length_hint, "__name__": __name__}
    exec(compile(text, f"<the loop that adds values up by {by}>", "exec"), made)
    loop: FoldLoop = made["add"]
    return loop
