"""Queries of SQL as a user writes them, by chance, over tables of decimals, times, NULL, NaN and reserved words."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.scalars.types import BIGINT, SqlType
from tests.sdk.sql.texts import decimals

_TEXT, _DAY, _TIME = SqlType("STRING"), SqlType("DATE"), SqlType("TIMESTAMP")

TABLES: dict[str, dict[str, SqlType]] = {
    "orders": {
        "id": BIGINT,
        "Customer": _TEXT,
        "amount": decimals(10, 2),
        "order": BIGINT,
        "placed": _DAY,
        "at": _TIME,
        "x": SqlType("DOUBLE"),
        "ok": SqlType("BOOLEAN"),
    },
    "visits": {"id": BIGINT, "from": _TIME, "gap": SqlType("INTERVAL"), "clock": SqlType("TIMESTAMP_NTZ")},
    "customers": {"Customer": _TEXT, "select": BIGINT, "rate": decimals(5, 3), "since": _DAY},
    "plain": {
        "id": BIGINT,
        "team": _TEXT,
        "points": BIGINT,
        "weight": SqlType("DOUBLE"),
        "at": _TIME,
        "day": _DAY,
    },
}
"""The tables: the last one may be computed by Spark whole."""

_POOLS: dict[str, list[Any]] = {
    "STRING": ["ann", "Bob", None, "", "eve", "ann", "é"],
    "BIGINT": [1, 2, None, 3, 0, -1, 2, 10],
    "DATE": [date(2024, 1, 31), date(2024, 2, 29), None, date(1969, 12, 31), date(2023, 12, 31)],
    "TIMESTAMP": [
        datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC),
        None,
        datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
    ],
    "TIMESTAMP_NTZ": [datetime(2024, 2, 29, 12, 34, 56, 789_012), None, datetime(1900, 1, 1)],
    "INTERVAL": [timedelta(hours=1), timedelta(days=-1, microseconds=5), None, timedelta(0)],
    "DOUBLE": [1.5, -0.0, 0.0, None, math.nan, -2.25, 1e10, 0.1],
    "BOOLEAN": [True, False, None],
}


def rows_of(name: str, count: int = 14) -> list[tuple[Any, ...]]:
    """The rows of a table, which are the same in every run."""
    chance = random.Random(name)
    return [
        tuple(_cell(column, kind, at, chance) for column, kind in TABLES[name].items()) for at in range(count)
    ]


def _cell(column: str, kind: SqlType, at: int, chance: random.Random) -> Any:
    if column == "id":
        return at
    if kind.name == "DECIMAL":
        unit = Decimal(1).scaleb(-(kind.scale or 0))
        return chance.choice([None, *((Decimal(each) * unit) for each in (0, 150, -225, 7000, 150, 33, 999))])
    return chance.choice(_POOLS[kind.name])


_VALUES: dict[str, dict[str, list[str]]] = {
    "orders": {
        "STRING": [
            "Customer",
            "UPPER(customer)",
            "Customer || '!'",
            "LTRIM('a', Customer)",
            "COALESCE(Customer, 'none')",
        ],
        "BIGINT": [
            "id",
            "`order`",
            "`order` + 1",
            "YEAR(placed)",
            "LENGTH(Customer)",
            "POSITION('n', Customer, 2)",
            "-id % 3",
        ],
        "DECIMAL": [
            "amount",
            "amount * 2",
            "amount / 3",
            "ROUND(amount, 1)",
            "amount + `order`",
            "EXTRACT(SECOND FROM at)",
            "1.10",
        ],
        "DATE": ["placed", "placed + 1", "CAST(at AS DATE)", "placed + INTERVAL '1' DAY"],
        "TIMESTAMP": ["at", "DATE_TRUNC('HOUR', at)", "at + INTERVAL '1 02:00:00' DAY TO SECOND"],
        "DOUBLE": ["x", "x * 2", "-x", "amount * x", "`order` / 2"],
        "BOOLEAN": [
            *(
                "ok",
                "amount > 1.5",
                "Customer LIKE 'a%'",
                "placed >= '2024-01-01'",
                "x > 0 OR ok",
                "`order` IN (1, 2)",
            ),
            *("amount BETWEEN 0 AND 2.50", "Customer IS NOT NULL", "NOT ok", "x = x", "id < 9"),
            *("`order` NOT IN (1, NULL)", "amount = 1.5 AND ok IS NOT FALSE", "ARRAY(1, 2)[0] = `order`"),
        ],
    },
    "visits": {
        "BIGINT": ["id", "HOUR(`from`)", "EXTRACT(MINUTE FROM clock)", "UNIX_SECONDS(`from`)"],
        "DECIMAL": ["EXTRACT(SECOND FROM `from`)", "EXTRACT(SECONDS FROM clock) * 2"],
        "INTERVAL": [
            "gap",
            "gap * 2",
            "`from` - TIMESTAMP '2024-01-01 00:00:00'",
            "INTERVAL '1 day 2 hours'",
            "-gap",
        ],
        "TIMESTAMP": ["`from`", "`from` + gap", "`from` - gap * 2"],
        "TIMESTAMP_NTZ": ["clock", "clock + gap", "clock - INTERVAL 5 MINUTES"],
        "BOOLEAN": [
            "gap > INTERVAL '1' MINUTE",
            "clock > TIMESTAMP_NTZ '2000-01-01 00:00:00'",
            "gap IS NULL OR id > 4",
        ],
    },
    "customers": {
        "STRING": ["Customer", "LOWER(CUSTOMER)", "TRIM(BOTH 'a' FROM Customer)"],
        "BIGINT": ["`select`", "`select` * 2", "DAY(since)"],
        "DECIMAL": ["rate", "rate * rate", "rate / `select` + 1"],
        "DATE": ["since", "DATE_SUB(since, 1)"],
        "BOOLEAN": [
            "rate > 0",
            "`select` > 1",
            "since < DATE '2024-02-01'",
            "Customer <> ''",
            "rate IS NULL OR `select` = 2",
        ],
    },
    "plain": {
        "STRING": ["team", "UPPER(team)", "team || points", "SUBSTRING(team, 2)"],
        "BIGINT": ["id", "points", "points * 2 - id", "MONTH(day)", "EXTRACT(DOW FROM at)"],
        "DATE": ["day", "day - 1"],
        "TIMESTAMP": ["at", "at - INTERVAL '1' HOUR"],
        "DOUBLE": ["weight", "weight + points", "points / 4"],
        "BOOLEAN": [
            "points > 1",
            "weight > 0",
            "team = 'ann'",
            "day IS NULL",
            "points BETWEEN 1 AND 3",
            "weight <=> weight",
        ],
    },
}
_KEYS = ("STRING", "BIGINT", "DATE", "DECIMAL", "TIMESTAMP", "DOUBLE", "TIMESTAMP_NTZ", "INTERVAL")
_JOINS: list[tuple[str, str, list[tuple[str, str]], list[str]]] = [
    (
        "orders",
        "plain",
        [
            *(("l.x", "r.weight"), ("-l.x", "r.weight"), ("l.x", "r.points"), ("l.`order`", "r.weight")),
            *(
                ("l.amount", "r.weight"),
                ("l.at", "r.at"),
                ("ROUND(l.amount)", "r.points"),
                ("l.placed", "r.day"),
            ),
        ],
        ["r.team", "l.amount"],
    ),
    (
        "orders",
        "customers",
        [
            *(("l.amount", "r.rate"), ("l.amount", "r.rate * 10"), ("ROUND(l.amount)", "r.`select`")),
            *(("l.`order`", "r.rate"), ("l.amount * 2", "r.`select`"), ("l.x", "r.rate * 10")),
        ],
        ["r.since", "l.x"],
    ),
    (
        "visits",
        "visits",
        [
            ("l.gap", "r.gap"),
            ("l.gap * 2", "r.gap"),
            ("l.id", "r.id"),
            ("l.clock", "r.clock"),
            ("l.`from`", "r.`from`"),
        ],
        ["l.gap", "r.clock", "l.gap + r.gap"],
    ),
]
"""Tables to join, with pairs of keys, and other columns of the result."""


class Queries:
    """Makes queries.

    Args:
        chance: Where chances come from.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def query(self) -> str:
        """A query of any kind."""
        kinds = [
            self._plain,
            self._grouped,
            self._joined,
            self._combined,
            self._named,
            self._nested,
            self._top,
            self._in,
            self._joined_by_values,
            self._over,
            self._correlated,
            self._sets,
            self._lateral,
            self._joined_by_order,
        ]
        return self._chance.choice([*kinds, self._grouped, self._joined])()

    def _pick(self, *options: str) -> str:
        return self._chance.choice(options)

    def _table(self) -> str:
        return self._pick("orders", "orders", "customers", "plain", "visits")

    def _value(self, table: str, kind: str | None = None) -> str:
        values = _VALUES[table]
        return self._chance.choice(values[kind or self._chance.choice(list(values))])

    def _where(self, table: str) -> str:
        test = self._value(table, "BOOLEAN")
        more = (
            f" {self._pick('AND', 'OR')} {self._value(table, 'BOOLEAN')}"
            if self._chance.random() < 0.3
            else ""
        )
        return f" WHERE {test}{more}" if self._chance.random() < 0.6 else ""

    def _plain(self) -> str:
        table = self._table()
        values = [f"{self._value(table)} AS c{at}" for at in range(self._chance.randint(1, 3))]
        distinct = ""
        if self._chance.random() < 0.3:
            distinct, values = (
                "DISTINCT ",
                [f"{self._value(table, self._kind_of_key(table))} AS c{at}" for at in range(2)],
            )
        star = self._pick("*", "*", ", ".join(values), ", ".join(values), ", ".join(values))
        return (
            f"SELECT {distinct}{star if not distinct else ', '.join(values)} FROM {table}{self._where(table)}"
        )

    def _kind_of_key(self, table: str) -> str:
        return self._chance.choice([kind for kind in _KEYS if kind in _VALUES[table]])

    def _aggregate(self, table: str) -> str:
        numbers = [kind for kind in ("BIGINT", "DECIMAL", "DECIMAL", "DOUBLE") if kind in _VALUES[table]]
        any_kind = self._chance.choice([kind for kind in _VALUES[table] if kind != "BOOLEAN"])
        number = self._value(table, self._chance.choice(numbers))
        distinct = self._value(table, self._kind_of_key(table))
        calls = [
            *(
                "COUNT(*)",
                "COUNT(1)",
                f"COUNT({self._value(table)})",
                f"COUNT(DISTINCT {distinct})",
                f"sum({number})",
            ),
            *(
                f"SUM({number})",
                f"AVG({number})",
                f"MIN({self._value(table, any_kind)})",
                f"MAX({self._value(table, any_kind)})",
            ),
            *(
                f"SUM(DISTINCT {self._value(table, 'BIGINT')})",
                f"COUNT_IF({self._value(table, 'BOOLEAN')})",
                f"MEAN({number})",
            ),
            *(
                f"SUM({number}) / COUNT(*)",
                f"SUM({number}) + 1",
                f"AVG({number}) * 2",
                f"COALESCE(SUM({number}), 0)",
            ),
            *(
                f"MAX({number}) - MIN({number})",
                f"SUM({number}) FILTER (WHERE {self._value(table, 'BOOLEAN')})",
            ),
        ]
        return self._chance.choice(calls)

    def _grouped(self) -> str:
        table = self._table()
        calls = [f"{self._aggregate(table)} AS a{at}" for at in range(self._chance.randint(1, 3))]
        if self._chance.random() < 0.25:
            return f"SELECT {', '.join(calls)} FROM {table}{self._where(table)}"
        keys = [self._value(table, self._kind_of_key(table)) for _ in range(self._chance.randint(1, 2))]
        keys = [key for key in dict.fromkeys(keys) if key != "1.10"] or [
            {"plain": "team", "visits": "id"}.get(table, "Customer")
        ]
        shown = [f"{key} AS k{at}" for at, key in enumerate(keys)]
        by = self._chance.choice(
            [keys, [f"k{at}" for at in range(len(keys))], [str(at + 1) for at in range(len(keys))]]
        )
        having = (
            f" HAVING {self._pick('COUNT(*) > 1', 'MIN(id) > 0' if table != 'customers' else 'COUNT(*) < 4')}"
        )
        having = having if self._chance.random() < 0.3 else ""
        return f"SELECT {', '.join(shown + calls)} FROM {table}{self._where(table)} GROUP BY {', '.join(by)}{having}"

    def _joined(self) -> str:
        kind = self._pick(
            "JOIN",
            "INNER JOIN",
            "LEFT JOIN",
            "RIGHT OUTER JOIN",
            "FULL JOIN",
            "LEFT SEMI JOIN",
            "LEFT ANTI JOIN",
        )
        on = self._pick(
            "ON o.Customer = c.Customer",
            "ON c.customer = O.CUSTOMER AND o.`order` > c.`select`",
            "ON o.`order` = c.`select`",
            "ON o.placed = c.since AND c.rate > 0",
            "ON o.Customer <=> c.Customer",
        )
        left = ["o.id", "o.amount", "o.Customer", "o.x", "o.placed", "o.amount * 2"]
        both = [
            *left,
            "c.rate",
            "c.`select`",
            "o.amount * c.rate",
            "COALESCE(c.rate, o.amount)",
            "c.Customer",
            "o.amount / c.rate",
        ]
        pool = left if "SEMI" in kind or "ANTI" in kind else both
        values = ", ".join(f"{self._chance.choice(pool)} AS c{at}" for at in range(3))
        where = self._pick("", "", " WHERE o.id < 10", " WHERE o.ok")
        if "o.amount / c.rate" in values:
            where = " WHERE c.rate <> 0" if pool is both else where
        return f"SELECT {values} FROM orders o {kind} customers AS c {on}{where}"

    def _joined_by_values(self) -> str:
        """A join of rows of which equal keys have several forms: zeros, NaN, and numbers of several types."""
        left, right, keys, shown = self._chance.choice(_JOINS)
        kind = self._pick("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        one, other = self._chance.choice(keys)
        is_half = "SEMI" in kind or "ANTI" in kind
        values = [one] if is_half else [one, other, *shown]
        columns = ", ".join(f"{value} AS c{at}" for at, value in enumerate(["l.id", *values]))
        return f"SELECT {columns} FROM {left} l {kind} {right} r ON {one} = {other}"

    def _combined(self) -> str:
        tables, first = self._chance.choice(
            [
                (("orders", "customers"), self._pick("STRING", "BIGINT", "DATE", "DECIMAL")),
                (("orders", "plain"), self._pick("DOUBLE", "TIMESTAMP", "BIGINT")),
                (("visits", "visits"), self._pick("INTERVAL", "TIMESTAMP_NTZ", "DECIMAL")),
            ]
        )
        kinds = first, self._pick("BIGINT", "BIGINT", first)
        word = self._pick(
            "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "UNION ALL", "EXCEPT ALL", "INTERSECT ALL"
        )
        sides = []
        for table in tables:
            values = ", ".join(f"{self._value(table, kind)} AS c{at}" for at, kind in enumerate(kinds))
            sides.append(f"SELECT {values} FROM {table}{self._where(table)}")
        return f" {word} ".join(sides)

    def _named(self) -> str:
        inner = self._grouped_by_customer()
        return (
            f"WITH totals AS ({inner}) SELECT c.Customer, t.total * {self._pick('2', '1.5', 'c.rate')} AS more, t.n "
            f"FROM customers c {self._pick('JOIN', 'LEFT JOIN')} totals t ON t.name = c.Customer"
        )

    def _grouped_by_customer(self) -> str:
        values = "Customer AS name, SUM(amount) AS total, COUNT(*) AS n"
        return f"SELECT {values} FROM orders{self._where('orders')} GROUP BY Customer"

    def _nested(self) -> str:
        inner, few = self._grouped_by_customer(), self._pick("col1 > 1", "TRUE")
        return self._pick(
            f"SELECT AVG(total) AS a, MAX(n) AS m, SUM(total) AS s FROM ({inner}) AS t",
            f"SELECT name, total FROM ({inner}) WHERE total > (SELECT AVG(amount) FROM orders)",
            f"SELECT id, amount - (SELECT MAX(amount) FROM orders) AS less FROM orders{self._where('orders')}",
            f"SELECT col1 * 2 AS a, col2 FROM VALUES (1.5, 'a'), (2, 'b'), (NULL, 'c') WHERE {few}",
            "SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM plain GROUP BY team UNION ALL SELECT 1.5)",
        )

    def _top(self) -> str:
        table = self._pick("orders", "plain")
        order = self._value(table, self._pick("STRING", "BIGINT", "DATE", "DOUBLE"))
        how = self._pick("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST")
        if self._chance.random() < 0.3:
            by = self._value(table, "STRING")
            over = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {order}{how}, id)"
            return f"SELECT id, {by} AS k FROM {table} QUALIFY {over} <= {self._pick('1', '2')}"
        tail = f"LIMIT {self._chance.randint(1, 5)}{self._pick('', ' OFFSET 2')}"
        return f"SELECT id, {self._value(table)} AS c FROM {table}{self._where(table)} ORDER BY {order}{how}, id {tail}"

    def _in(self) -> str:
        word = self._pick("IN", "NOT IN")
        table, key, inner = self._chance.choice(
            [
                ("orders", "Customer", "SELECT Customer FROM customers"),
                ("orders", "Customer", "SELECT Customer FROM customers WHERE Customer IS NOT NULL"),
                ("orders", "Customer", "SELECT UPPER(customer) FROM orders WHERE amount > 1"),
                ("orders", "amount", "SELECT rate * 10 FROM customers WHERE rate IS NOT NULL"),
                ("orders", "ROUND(amount)", "SELECT points FROM plain WHERE points > 0"),
                ("orders", "x", "SELECT -weight FROM plain WHERE weight IS NOT NULL"),
                ("plain", "points", "SELECT x FROM orders WHERE id > 3 AND x IS NOT NULL"),
                ("plain", "at", "SELECT at FROM orders"),
                ("visits", "gap", "SELECT -gap FROM visits WHERE gap IS NOT NULL"),
                ("visits", "clock", "SELECT clock FROM visits WHERE id > 5 AND clock IS NOT NULL"),
            ]
        )
        more = self._pick("", "", f" AND {self._value(table, 'BOOLEAN')}")
        exists = f"EXISTS (SELECT 1 FROM customers{self._where('customers')})"
        return self._pick(
            f"SELECT id, {key} AS k FROM {table} WHERE {key} {word} ({inner}){more}",
            f"SELECT id FROM orders WHERE {self._pick('', 'NOT ')}{exists}",
        )

    def _over(self) -> str:
        table = self._pick("orders", "plain")
        kinds = ("BIGINT", "DECIMAL", "DOUBLE") if table == "orders" else ("BIGINT", "DOUBLE")
        number, value = self._value(table, self._pick(*kinds)), self._value(table)
        frame = self._pick(
            "",
            " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            " rows between 1 preceding and 2 following",
            " ROWS 1 PRECEDING",
        )
        call, has_frame = self._chance.choice(
            [
                *(
                    (each, False)
                    for each in ("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)", "CUME_DIST()")
                ),
                *((f"{each}({value}{self._pick('', ', 2')})", False) for each in ("LAG", "LEAD")),
                *(
                    (f"{each}({value})", True)
                    for each in ("FIRST_VALUE", "LAST_VALUE", "COUNT", "MIN", "MAX")
                ),
                *((f"{each}({number})", True) for each in ("SUM", "AVG", "SUM")),
            ]
        )
        by = (
            f"PARTITION BY {self._value(table, self._kind_of_key(table))} "
            if self._chance.random() < 0.6
            else ""
        )
        order = self._value(table, self._pick("STRING", "BIGINT", "DATE", "DOUBLE"))
        how = self._pick("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
        over = f"{call} OVER ({by}ORDER BY {order}{how}, id{frame if has_frame else ''})"
        qualify = f" QUALIFY {self._pick('c IS NOT NULL', 'ROW_NUMBER() OVER (ORDER BY id) <= 9')}"
        qualify = qualify if self._chance.random() < 0.3 else ""
        return f"SELECT id, {over} AS c FROM {table}{self._where(table)}{qualify}"

    def _correlated(self) -> str:
        link = self._pick("c.Customer = o.Customer", "o.`order` = c.`select`", "c.since = o.placed")
        more = self._pick("", "", " AND c.rate > 0", " AND c.`select` IS NOT NULL")
        value = self._pick("MAX(c.rate)", "COUNT(*)", "SUM(c.`select`)", "AVG(c.rate)", "COUNT(c.rate) + 1")
        scalar = f"(SELECT {value} FROM customers AS c WHERE {link}{more})"
        exists = f"{self._pick('', 'NOT ')}EXISTS (SELECT 1 FROM customers AS c WHERE {link}{more})"
        among = f"o.`order` {self._pick('IN', 'NOT IN')} (SELECT c.`select` FROM customers AS c WHERE {link}{more})"
        compared = f"o.amount {self._pick('>', '<=', '<>')} {scalar}"
        where = self._pick(exists, among, compared, f"{exists} AND {compared}", f"{compared} OR o.id < 4")
        return self._pick(
            f"SELECT o.id, {scalar} AS m FROM orders AS o{self._pick('', ' WHERE o.ok')}",
            f"SELECT o.id, o.amount FROM orders AS o WHERE {where}",
            f"SELECT o.Customer, COUNT(*) AS n FROM orders AS o WHERE {where} GROUP BY o.Customer",
        )

    def _sets(self) -> str:
        table = self._pick("orders", "plain")
        keys = self._chance.sample(
            ["Customer", "`order`", "ok"] if table == "orders" else ["team", "points", "day"], 2
        )
        sets = self._pick(
            f"ROLLUP ({', '.join(keys)})",
            f"CUBE ({', '.join(keys)})",
            f"GROUPING SETS (({keys[0]}), ({', '.join(keys)}), ())",
            f"{keys[0]}, ROLLUP ({keys[1]})",
        )
        shown = f"{keys[0]} AS k0, {keys[1]} AS k1, GROUPING({keys[1]}) AS g, {self._aggregate(table)} AS a"
        return f"SELECT {shown} FROM {table}{self._where(table)} GROUP BY {sets}"

    def _lateral(self) -> str:
        inner = self._pick(
            "SELECT MAX(c.rate) AS m FROM customers AS c WHERE c.Customer = o.Customer",
            "SELECT COUNT(*) AS m FROM customers AS c WHERE c.`select` = o.`order`",
            "SELECT c.rate AS m FROM customers AS c WHERE c.Customer = o.Customer AND c.rate > 0",
            "SELECT o.amount + 1 AS m",
        )
        joined = self._pick(
            "o, LATERAL ({}) AS l", "o LEFT JOIN LATERAL ({}) AS l ON TRUE", "o CROSS JOIN LATERAL ({}) AS l"
        )
        return f"SELECT o.id, l.m FROM orders AS {joined.format(inner)}{self._pick('', ' WHERE o.ok')}"

    def _joined_by_order(self) -> str:
        kind = self._pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        on = self._pick(
            "o.`order` > c.`select`",
            "o.placed <= c.since AND o.ok",
            "o.amount < c.rate",
            "o.Customer <> c.Customer OR c.rate = 0",
        )
        values = "o.id" if "SEMI" in kind or "ANTI" in kind else "o.id, c.rate, c.Customer"
        return f"SELECT {values} FROM orders AS o {kind} customers AS c ON {on}"


PINNED = [
    "SELECT l.id, l.x, r.weight FROM orders l JOIN plain r ON l.x = r.weight",
    "SELECT l.id, l.amount, r.rate FROM orders l FULL JOIN customers r ON l.amount = r.rate * 10",
    "SELECT l.id, r.`select` FROM orders l JOIN customers r ON ROUND(l.amount) = r.`select`",
    "SELECT x, COUNT(*) AS n FROM orders GROUP BY x",
    "SELECT gap FROM visits EXCEPT SELECT -gap FROM visits",
]
"""Queries whose equal keys have several forms."""


def queries(seed: int, count: int) -> Iterator[str]:
    """Queries by chance."""
    maker = Queries(random.Random(seed))
    for _ in range(count):
        yield maker.query()
