"""The distribution of files among tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

SHARE_BYTES = 64 << 20
"""So many bytes are worth a task."""

_Item = TypeVar("_Item")


def packed(
    items: Sequence[_Item], bytes_of: Callable[[_Item], int], parallelism: int
) -> tuple[tuple[_Item, ...], ...]:
    """Returns the items of each task: about as many bytes in each, and not many more tasks than run at once.

    >>> packed([1, 2, 3], lambda item: item, parallelism=2)
    ((3,), (2, 1))
    """
    total = sum(map(bytes_of, items))
    count = min(len(items), max(parallelism, total // SHARE_BYTES))
    tasks: list[list[_Item]] = [[] for _ in range(count)]
    weights = [0] * count
    for item in sorted(items, key=lambda each: -bytes_of(each)):
        lightest = weights.index(min(weights))
        tasks[lightest].append(item)
        weights[lightest] += bytes_of(item) + 1
    return tuple(map(tuple, tasks))
