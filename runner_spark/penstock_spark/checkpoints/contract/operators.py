"""The levels of a plan in each stateful operator of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def levels_of_operators(plan: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Returns the numbers of the levels of each operator, by the number of the operator.

    Spark counts operators from the end of the query: operator 0 has the deepest level.

    >>> levels_of_operators({"levels": [{}, {}]}), levels_of_operators({"levels": [{}, {}], "is_one_operator": True})
    ([(2,), (1,)], [(1, 2)])
    """
    numbers = tuple(range(1, len(plan["levels"]) + 1))
    if numbers and plan.get("is_one_operator", False):
        return [numbers]
    return [(number,) for number in reversed(numbers)]
