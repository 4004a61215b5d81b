"""Random window functions with OVER as text, each in penstock's language and in DuckDB's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tests.sql.random_queries import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    Generator,
    Query,
    Text,
    Value,
    listed,
    text,
)

FAMILIES: Mapping[str, float] = {"ranks": 2, "ntile": 0.5, "neighbours": 2, "values": 2, "aggregates": 4}
"""The families of functions, and how often each is chosen."""
_TYPED = (INTEGER, STRING, BOOLEAN, TIME)


def random_over(random: Random, values: Sequence[Value], weights: Mapping[str, float]) -> Value:
    """Returns a call of a window function over rows that have some values; all of them together tell rows apart.

    Args:
        random: Where chances come from.
        values: The values.
        weights: How often each of the `FAMILIES` is chosen.
    """
    [family] = random.choices(list(FAMILIES), [weights[each] for each in FAMILIES])
    partition = (
        text("PARTITION BY {} ", random.choice(values).text) if random.random() < 0.6 else Text("", "")
    )
    by_all, by_one = _orders(random, values), _orders(random, [random.choice(values)])
    match family:
        case "ranks":
            name = random.choice(["RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "ROW_NUMBER"])
            order = by_all if name == "ROW_NUMBER" else by_one
            kind = DOUBLE if name in ("PERCENT_RANK", "CUME_DIST") else INTEGER
            return Value(text(name + "() OVER ({}ORDER BY {})", partition, order), kind)
        case "ntile":
            number = random.choice([1, 2, 3, 7])
            return Value(text(f"NTILE({number}) OVER ({{}}ORDER BY {{}})", partition, by_all), INTEGER)
        case "neighbours":
            return _neighbour(random, values, partition, by_all)
        case "values":
            return _value(random, values, partition, by_all)
    return _aggregate(random, values, partition, by_all)


def _orders(random: Random, values: Sequence[Value]) -> Text:
    texts = list(dict.fromkeys(value.text for value in values))
    random.shuffle(texts)
    ends = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
    return listed([text("{}" + random.choice(ends), each) for each in texts])


def _nulls(random: Random, call: Text) -> Text:
    """A call, whose last parenthesis is missing, perhaps without NULLs."""
    if random.random() < 0.6:
        return text("{})", call)
    return Text(f"{call.own}) IGNORE NULLS", f"{call.other} IGNORE NULLS)")


def _neighbour(random: Random, values: Sequence[Value], partition: Text, order: Text) -> Value:
    value = random.choice([each for each in values if each.type in _TYPED] or values)
    call = text(random.choice(["LAG", "LEAD"]) + "({}", value.text)
    if random.random() < 0.6:
        call = text("{}, " + str(random.choice([0, 1, 2, 3])), call)
        if value.type == INTEGER and random.random() < 0.5:
            call = text("{}, -7", call)
    return Value(text("{} OVER ({}ORDER BY {})", _nulls(random, call), partition, order), value.type)


def _value(random: Random, values: Sequence[Value], partition: Text, order: Text) -> Value:
    value = random.choice([each for each in values if each.type in _TYPED] or values)
    name = random.choice(["FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"])
    call = text(name + "({}", value.text)
    if name == "NTH_VALUE":
        call = text("{}, " + str(random.choice([1, 2, 3])), call)
    over = text("{} OVER ({}ORDER BY {}{})", _nulls(random, call), partition, order, _rows(random))
    return Value(over, value.type)


def _aggregate(random: Random, values: Sequence[Value], partition: Text, order: Text) -> Value:
    name = random.choice(["COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG", "SUM", "MAX"])
    numbers = [each for each in values if each.type == INTEGER]
    if name in ("SUM", "AVG") and not numbers:
        name = "COUNT(*)"
    kind = DOUBLE if name == "AVG" else INTEGER
    call = Text(name, name)
    if name != "COUNT(*)":
        value = random.choice(numbers if name in ("SUM", "AVG") else [*values])
        kind = value.type if name in ("MIN", "MAX") else kind
        call = text(name + "({})", value.text)
    if random.random() < 0.1 and numbers:
        call = text("{} FILTER (WHERE {} > 0)", call, numbers[0].text)
    window = random.choice(["rows", "rows", "range", "default", "whole"])
    if window == "whole":
        return Value(text("{} OVER ({})", call, partition), kind)
    if window == "rows":
        return Value(text("{} OVER ({}ORDER BY {}{})", call, partition, order, _rows(random)), kind)
    by = [each for each in values if window == "default" or each.type in (INTEGER, TIME)]
    if not by:
        return Value(text("{} OVER ({}ORDER BY {})", call, partition, order), kind)
    ordered = random.choice(by)
    frame = Text("", "") if window == "default" else _range(random, ordered.type)
    return Value(text("{} OVER ({}ORDER BY {}{})", call, partition, _orders(random, [ordered]), frame), kind)


def _rows(random: Random) -> Text:
    return _frame(random, "ROWS", [str(each) for each in (1, 2, 3)])


def _range(random: Random, kind: str) -> Text:
    distances = ["1", "2"] if kind == INTEGER else ["INTERVAL '3' SECOND", "INTERVAL '7' SECOND"]
    return _frame(random, "RANGE", distances)


def _frame(random: Random, unit: str, distances: Sequence[str]) -> Text:
    """A frame; its bounds are two of a list from the first row to the last one."""
    bounds = [
        "UNBOUNDED PRECEDING",
        *(f"{each} PRECEDING" for each in reversed(distances)),
        "CURRENT ROW",
        *(f"{each} FOLLOWING" for each in distances),
        "UNBOUNDED FOLLOWING",
    ]
    start, end = sorted(random.choices(range(len(bounds)), k=2))
    start, end = min(start, len(bounds) - 2), max(end, 1)
    made = f" {unit} BETWEEN {bounds[start]} AND {bounds[end]}"
    if bounds[end] == "CURRENT ROW" and random.random() < 0.3:
        made = f" {unit} {bounds[start]}"
    return Text(made, made)


class OverGenerator(Generator):
    """Makes one query, in which most SELECTs have a window function.

    Args:
        seed: Where chances come from.
        weights: How often each of the `FAMILIES` is chosen.
    """

    def __init__(self, seed: int, weights: Mapping[str, float] = FAMILIES) -> None:
        super().__init__(Random(seed), {"value of a subquery": 0.1}, depth=2)
        self._families = weights
        self._has_types: list[bool] = []

    def _plain(self, depth: int, types: Sequence[str] = ()) -> Query:
        self._has_types.append(bool(types))
        query = super()._plain(depth, types)
        self._has_types.pop()
        return query

    def _grouped(self, depth: int, types: Sequence[str] = ()) -> Query:
        self._has_types.append(bool(types))
        query = super()._grouped(depth, types)
        self._has_types.pop()
        return query

    def _finished(
        self, values: list[Value], source: Text, where: Text, grouping: Text, numberable: list[Value]
    ) -> Query:
        if self._has_types[-1] or self._random.random() < 0.2:
            return super()._finished(values, source, where, grouping, numberable)
        rows = [*values, *numberable] if numberable else values
        over = [
            random_over(self._random, rows, self._families) for _ in range(self._random.choice([1, 1, 1, 2]))
        ]
        return super()._finished([*values, *over], source, where, grouping, [])


def random_over_query(seed: int, weights: Mapping[str, float] = FAMILIES) -> Query:
    """The query of a seed, in which most SELECTs have a window function."""
    return OverGenerator(seed, weights).query()
