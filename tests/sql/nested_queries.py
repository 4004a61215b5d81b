"""Random queries with arrays, maps, structs and lambdas, in penstock's language and in DuckDB's."""

from __future__ import annotations

from random import Random

from tests.sql.random_queries import Text, listed, text

FORMS = (
    "grouped",
    "projected",
    "collected",
    "distinct",
    "set operation",
    "join",
    "extreme",
    "first",
    "above",
)
"""The forms of queries."""


class NestedGenerator:
    """Makes queries over the tables ``a`` (k, s, v) and ``b`` (k, s, w).

    Args:
        random: Where chances come from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def query(self, form: str) -> Text:
        """A query of a form."""
        match form:
            case "grouped":
                return self._grouped()
            case "projected":
                return self._projected()
            case "collected":
                return self._collected("a")
            case "distinct":
                return text("SELECT DISTINCT {} AS c0, {} AS c1 FROM a", self.key(), self.array(2))
            case "set operation":
                kind = self._random.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
                key = self._random.choice([self._pair, self._list_of_pair])
                return text(
                    f"SELECT {{}} AS c0 FROM a {kind} SELECT {{}} FROM b", key("a", "v"), key("b", "w")
                )
            case "join":
                kind = self._random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
                key = self._random.choice([self._pair, self._list_of_pair])
                on = text("{} = {}", key("a", "v"), key("b", "w"))
                return text(f"SELECT a.s AS c0, a.v AS c1, b.w AS c2 FROM a {kind} b ON {{}}", on)
            case "correlated":
                body = text("x + {}", self._same(self._random.choice(["a.v", "a.k", "COALESCE(a.v, 1)"])))
                inner = (
                    f"SELECT MAX(ARRAY_MAX(TRANSFORM(ARRAY(b.w, 0), x -> {body.own}))) FROM b WHERE b.k = a.k"
                )
                other = f"SELECT MAX(GREATEST(b.w{body.other[1:]}, 0{body.other[1:]})) FROM b WHERE b.k = a.k"
                return text("SELECT a.k AS c0, ({}) AS c1 FROM a", Text(inner, other))
            case "window":
                condition = self.condition("x")
                size = Text(
                    f"SIZE(FILTER(ARRAY_AGG(v) OVER (PARTITION BY k), x -> {condition.own}))",
                    f"len(list_filter(list(v) OVER (PARTITION BY k), lambda x: x IS NOT NULL AND {condition.other}))",
                )
                return text("SELECT k AS c0, v AS c1, {} AS c2 FROM a", size)
            case "extreme":
                value = self._random.choice([self._known_struct(), self._known_array()])
                call = self._random.choice(["MIN", "MAX"])
                return text(f"SELECT k AS c0, {call}({{}}) AS c1 FROM a GROUP BY k", value)
            case "first":
                value = self._random.choice([self._known_struct(), self._known_array()])
                order = self._random.choice(["", " DESC"])
                return text(
                    f"SELECT {{}} AS c0 FROM a ORDER BY c0{order} LIMIT {self._random.randint(1, 3)}", value
                )
        inner = self._collected("a")
        items = Text(
            "SIZE(c1) AS c0, GET(c1, 0).x AS c1, c1.y AS c2",
            "len(c1) AS c0, c1[1].x AS c1, list_transform(c1, lambda e: e.y) AS c2",
        )
        return text("SELECT {} FROM ({}) AS l", items, inner)

    # Values of a row of the table a

    def number(self, variable: str = "") -> Text:
        """A number, which may be NULL."""
        names = ["k", "v", "COALESCE(v, 0)", "k % 3", str(self._random.randint(0, 3))]
        return self._same(self._random.choice([*names, *[variable] * 3] if variable else names))

    def array(self, depth: int) -> Text:
        """An array of numbers."""
        kind = self._random.choice(["made", "made", "transformed", "filtered", "joined"]) if depth else "made"
        if kind == "made":
            numbers = listed([self.number() for _ in range(self._random.choice([1, 2, 3]))])
            return Text(f"ARRAY({numbers.own})", f"[{numbers.other}]")
        inner = self.array(depth - 1)
        match kind:
            case "transformed":
                body = text("{} + {}", self.number("x"), self.number("x"))
                return _call("TRANSFORM", "list_transform", inner, "x", body)
            case "filtered":
                return _call("FILTER", "list_filter", inner, "x", self.condition("x"))
        other = self.array(depth - 1)
        return Text(f"CONCAT({inner.own}, {other.own})", f"list_concat({inner.other}, {other.other})")

    def condition(self, variable: str = "") -> Text:
        """A condition on numbers."""
        return text(
            f"{{}} {self._random.choice(['>', '<=', '=', '<>'])} {{}}", self.number(variable), self.number()
        )

    def struct(self) -> Text:
        """A struct of a number and a text."""
        x, y = self.number(), self._same(self._random.choice(["s", "'a'"]))
        return Text(f"STRUCT({x.own} AS x, {y.own} AS y)", f"struct_pack(x := {x.other}, y := {y.other})")

    def key(self) -> Text:
        """A value that rows are grouped by."""
        match self._random.choice(["array", "struct", "structs", "nested"]):
            case "array":
                return self.array(1)
            case "struct":
                return self.struct()
            case "structs":
                inner = self.struct()
                return Text(f"ARRAY({inner.own})", f"[{inner.other}]")
        inner = self.array(0)
        return Text(f"STRUCT({inner.own} AS l, k AS n)", f"struct_pack(l := {inner.other}, n := k)")

    def _known_array(self) -> Text:
        return Text(
            "ARRAY(COALESCE(v, 0) % 2, COALESCE(k, -9), COALESCE(v, 0))",
            "[COALESCE(v, 0) % 2, COALESCE(k, -9), COALESCE(v, 0)]",
        )

    def _known_struct(self) -> Text:
        return Text(
            "STRUCT(COALESCE(v, 0) % 2 AS x, COALESCE(s, '') AS y, COALESCE(k, 0) AS z)",
            "struct_pack(x := COALESCE(v, 0) % 2, y := COALESCE(s, ''), z := COALESCE(k, 0))",
        )

    def _pair(self, table: str, number: str) -> Text:
        return Text(f"STRUCT({table}.k AS x, {table}.s AS y)", f"struct_pack(x := {table}.k, y := {table}.s)")

    def _list_of_pair(self, table: str, number: str) -> Text:
        return Text(f"ARRAY({table}.k, {table}.{number} % 2)", f"[{table}.k, {table}.{number} % 2]")

    # Queries

    def _grouped(self) -> Text:
        key = self.key()
        having = self._random.choice(["", " HAVING COUNT(*) > 1"])
        return text(f"SELECT {{}} AS c0, COUNT(*) AS c1, SUM(v) AS c2 FROM a GROUP BY {{}}{having}", key, key)

    def _projected(self) -> Text:
        array, other, struct = self.array(2), self.array(1), self.struct()
        items = [
            Text(f"GET({array.own}, 1)", f"({array.other})[2]"),
            Text(f"{struct.own}.y", f"({struct.other}).y"),
            Text(f"SIZE({other.own})", f"len({other.other})"),
            Text(
                f"AGGREGATE({other.own}, 0, (t, x) -> t + COALESCE(x, 1))",
                f"list_reduce(list_transform({other.other}, lambda x: COALESCE(x, 1)), lambda t, x: t + x, 0)",
            ),
            Text(f"ARRAY_MAX({array.own})", f"list_max({array.other})"),
            Text("MAP('a', k, 'b', v)['b']", "MAP {'a': k, 'b': v}['b']"),
        ]
        chosen = self._random.sample(items, 3)
        condition = Text("", "")
        if self._random.random() < 0.3:
            condition = Text(f" WHERE SIZE({array.own}) > 1", f" WHERE len({array.other}) > 1")
        shown = listed([text(f"{{}} AS c{at}", each) for at, each in enumerate(chosen)])
        return Text(
            f"SELECT {shown.own} FROM a{condition.own}", f"SELECT {shown.other} FROM a{condition.other}"
        )

    def _collected(self, table: str) -> Text:
        """Lists of the structs of a group, and lambdas over them."""
        struct = self._known_struct()
        own = f"ARRAY_AGG({struct.own})"
        other = f"list_sort(list({struct.other}))"
        limit = self._random.randint(0, 3)
        if self._random.random() < 0.5:
            own = f"FILTER({own}, e -> e.x < {limit})"
            other = f"list_filter({other}, lambda e: e.x < {limit})"
        total_own = f"AGGREGATE(ARRAY_AGG(COALESCE(v, 0)), 0, (t, x) -> t + x * {limit})"
        total_other = f"SUM(COALESCE(v, 0) * {limit})"
        return Text(
            f"SELECT k AS c0, {own} AS c1, {total_own} AS c2 FROM {table} GROUP BY k",
            f"SELECT k AS c0, {other} AS c1, {total_other} AS c2 FROM {table} GROUP BY k",
        )

    def _same(self, name: str) -> Text:
        return Text(name, name)


def _call(own: str, other: str, array: Text, variable: str, body: Text) -> Text:
    return Text(
        f"{own}({array.own}, {variable} -> {body.own})",
        f"{other}({array.other}, lambda {variable}: {body.other})",
    )


def nested_query(seed: int, form: str = "") -> Text:
    """The query of a seed, of a form or of the form of the seed."""
    return NestedGenerator(Random(seed)).query(form or FORMS[seed % len(FORMS)])
