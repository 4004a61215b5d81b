"""Sums of pairs taken as they come: one loop in the place of lists of keys, of values and of windows.

A loop ends at the first element that is no tuple, or whose key is of another type than the first one's, and says how
many it has added. What is left is for the general way, which knows what to do with anything.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import length_hint
from typing import Any

Sums = dict[Any, Any]


def kind_of_keys(pairs: list[Any], kinds: tuple[type, ...]) -> type | None:
    """The type of the first key, if it is one of some types and comes in a pair.

    >>> kind_of_keys([("a", 1), (2, 3)], (str,)), kind_of_keys(["ab"], (str,)), kind_of_keys([], (str,))
    (<class 'str'>, None, None)
    """
    first = pairs[0] if pairs else None
    kind = type(first[0]) if type(first) is tuple and first else None
    return kind if kind in kinds else None


def add_pairs(sums: Sums, pairs: list[Any], kind: type) -> int:
    """Adds the value of each pair to the sum of its key.

    Args:
        sums: The sums by key.
        pairs: The pairs, and perhaps other things.
        kind: The type of the keys.

    Returns:
        How many pairs were added.

    Raises:
        ValueError: A tuple has more or fewer than two parts.

    >>> sums = {"a": 1}
    >>> add_pairs(sums, [("a", 2), ("b", 3), (None, 4), ("b", 5)], str), sums
    (2, {'a': 3, 'b': 3})
    """
    rest = iter(pairs)
    for pair in rest:
        if type(pair) is not tuple:
            break
        name, value = pair
        if type(name) is not kind:
            break
        if name in sums:
            # Not `+=`: that would change a value which belongs to the user.
            sums[name] = sums[name] + value
        else:
            sums[name] = 0 + value
    else:
        return len(pairs)
    return len(pairs) - length_hint(rest) - 1


def add_pairs_by_time(
    sums_at: Callable[[int], Sums], size: int, offset: int, times: list[int], pairs: list[Any], kind: type
) -> int:
    """Adds the value of each pair to the sum of its key in the window that its time is in.

    Args:
        sums_at: Gives the sums by key of the window that starts at a time; asked once for each.
        size: The windows' length; all times are in microseconds.
        offset: The start of one of the windows.
        times: The time of each pair.
        pairs: The pairs, and perhaps other things.
        kind: The type of the keys.

    Returns:
        How many pairs were added.

    Raises:
        ValueError: A tuple has more or fewer than two parts.

    >>> sums = {0: {}, 10: {}}
    >>> add_pairs_by_time(sums.get, 10, 0, [3, 12, 4, 0], [("a", 1), ("a", 2), ("a", 3), "ab"], str)
    3
    >>> sums
    {0: {'a': 4}, 10: {'a': 2}}
    """
    found: dict[int, Sums] = {}
    start = end = 0
    sums: Sums = {}
    rest = iter(pairs)
    for at, pair in zip(times, rest, strict=True):
        if type(pair) is not tuple:
            break
        name, value = pair
        if type(name) is not kind:
            break
        # What comes together is mostly of one window, and two comparisons are cheaper than a division.
        if not start <= at < end:
            start = at - (at - offset) % size
            end = start + size
            if start in found:
                sums = found[start]
            else:
                sums = found[start] = sums_at(start)
        if name in sums:
            # Not `+=`: that would change a value which belongs to the user.
            sums[name] = sums[name] + value
        else:
            sums[name] = 0 + value
    else:
        return len(pairs)
    return len(pairs) - length_hint(rest) - 1


def add_and_count(
    held_of: Callable[[Any], dict[Any, list[Any]]], windows: list[Any], pairs: list[Any], kind: type
) -> tuple[int, int]:
    """Adds the value of each pair to the sum of its key in its window, and counts it.

    Args:
        held_of: Gives the sum and the number of values of each key, for what an element has as windows; asked once for
            each distinct object.
        windows: What each pair has as windows.
        pairs: The pairs, and perhaps other things.
        kind: The type of the keys.

    Returns:
        How many pairs were added, and how many sums are new.

    Raises:
        ValueError: A tuple has more or fewer than two parts.

    >>> held = {("v",): {}, ("w",): {}}
    >>> first, second = held
    >>> add_and_count(held.get, [first, second, first, first], [("a", 1), ("a", 2), ("a", 3), "ab"], str)
    (3, 2)
    >>> held
    {('v',): {'a': [4, 2]}, ('w',): {'a': [2, 1]}}
    """
    found: dict[int, dict[Any, list[Any]]] = {}
    last = None
    held: dict[Any, list[Any]] = {}
    new = 0
    rest = iter(pairs)
    for own, pair in zip(windows, rest, strict=True):
        if type(pair) is not tuple:
            break
        name, value = pair
        if type(name) is not kind:
            break
        # Neighbours mostly share a window, whose tuple a step before keeps.
        if own is not last:
            last, place = own, id(own)
            if place in found:
                held = found[place]
            else:
                held = found[place] = held_of(own)
        if name in held:
            both = held[name]
            # Not `+=`: that would change a value which belongs to the user.
            both[0] = both[0] + value
            both[1] += 1
        else:
            held[name] = [0 + value, 1]
            new += 1
    else:
        return len(pairs), new
    return len(pairs) - length_hint(rest) - 1, new
