"""Expressions of SQL as a user writes them, by chance, over a table of values at the edges."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.elements.row import Row
from penstock.scalars.functions import FUNCTIONS, call
from penstock.scalars.resolving import SqlTypeError
from penstock.scalars.tree import Scalar
from penstock.scalars.types import BIGINT, INT, REAL, SMALLINT, TINYINT, SqlType, map_of, struct_of
from penstock.scalars.widths import single
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.plan.relations import ColumnDef, Project
from penstock.sql.transform import allow_deep_calls
from tests.sdk.sql.random_scalars import VALUES


def decimals(precision: int, scale: int) -> SqlType:
    """The type of decimals with a number of digits."""
    return SqlType("DECIMAL", precision=precision, scale=scale)


def array(of: str) -> SqlType:
    """The type of lists of values."""
    return SqlType("ARRAY", element=SqlType(of))


def _column(of: str, first: Any) -> tuple[SqlType, list[Any]]:
    """The type and the values of a column with all values at the edges, in their order from the first one on."""
    values = VALUES[of]
    place = values.index(first)
    kind = array(of[6:-1]) if of.startswith("ARRAY") else SqlType(of)
    return kind, values[place:] + values[:place]


ITEM = struct_of([("name", SqlType("STRING")), ("points", BIGINT), ("price", SqlType("DOUBLE"))])

COLUMNS: dict[str, tuple[SqlType, list[Any]]] = {
    "i": _column("BIGINT", 0),
    "Total": (BIGINT, [5, None, 2, 0, -3, 7]),
    "n": (INT, [7, None, 0, 1, -1, 2**31 - 1, -(2**31), 46341, -45, 2**31 - 8, 1000]),
    "small": (SMALLINT, [3, 2**15 - 1, -(2**15), None, 0, -1, 182]),
    "tiny": (TINYINT, [2, 127, -128, None, 0, -1, 12]),
    "f": (
        REAL,
        [
            *(
                1.5,
                single(0.1),
                None,
                -0.0,
                0.0,
                16777216.0,
                -2.5,
                single(3.4028234663852886e38),
                single(1e-45),
            ),
            *(math.nan, math.inf, -math.inf, single(2.675), 4294967296.0, -129.5, single(1e10)),
        ],
    ),
    "x": _column("DOUBLE", 1.0),
    "`The rate`": (SqlType("DOUBLE"), [2.0, 0.25, None, -3.5, math.nan, 0.0, -0.0]),
    "amount": (
        decimals(10, 2),
        [Decimal(each) for each in ("0.00", "1.50", "-2.25", "7.00", "99999999.99", "-0.05", "10.10")]
        + [None],
    ),
    "fine": (
        decimals(20, 6),
        [Decimal(each) for each in ("0.000001", "3.000000", "-1234567.891011", "0.500000", "7.000000")]
        + [None],
    ),
    "wide": (
        decimals(38, 10),
        [Decimal(each) for each in ("1.0000000000", "-99999999999999999999999.9999999999", "0.3333333333")]
        + [None, Decimal("0E-10")],
    ),
    "s": _column("STRING", "abc"),
    "`order`": (SqlType("STRING"), ["b", "0", "a", "", None, "c", "%", "ab", ",", "ß", "12", "00700"]),
    "b": _column("BOOLEAN", True),
    "`End`": (SqlType("BOOLEAN"), [True, True, False, None]),
    "`date`": _column("DATE", date(1970, 1, 1)),
    "day": (SqlType("DATE"), [date(2024, 1, 31), date(2020, 12, 28), None, date(1999, 7, 4)]),
    "at": _column("TIMESTAMP", datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC)),
    "`timestamp`": (
        SqlType("TIMESTAMP"),
        [datetime(2024, 2, 29, tzinfo=UTC), datetime(2000, 1, 1, 1, 1, 1, tzinfo=UTC), None],
    ),
    "clock": (
        SqlType("TIMESTAMP_NTZ"),
        [
            datetime(2024, 2, 29, 12, 34, 56, 789_012),
            datetime(1969, 12, 31, 23, 59, 59, 999_000),
            None,
            datetime(1900, 1, 1),
        ],
    ),
    "gap": _column("INTERVAL", timedelta(days=1)),
    "raw": _column("BINARY", b"abc"),
    "many": _column("ARRAY<BIGINT>", [3, 1, 2]),
    "words": _column("ARRAY<STRING>", ["abc", "b"]),
    "tags": (
        map_of(SqlType("STRING"), BIGINT),
        [{"a": 1, "b": None}, {}, None, {"": 0, "ab": 7}, {"a": 1}, {"b": -3, "a": 1, "c": 2}],
    ),
    "item": (
        ITEM,
        [
            Row(name="abc", points=3, price=1.5),
            Row(name=None, points=None, price=None),
            None,
            Row(name="abc", points=3, price=-0.0),
            Row(name="a", points=-1, price=math.nan),
        ],
    ),
    "items": (
        SqlType("ARRAY", element=ITEM),
        [
            [Row(name="abc", points=3, price=1.5), Row(name="a", points=None, price=0.0)],
            [],
            [None, Row(name="b", points=1, price=math.inf)],
            None,
        ],
    ),
}
"""The columns of the table as a query writes them: their types, and their values."""

ROWS = 28
NAMES = [name.strip("`") for name in COLUMNS]
TYPES = [sql_type for sql_type, _ in COLUMNS.values()]


def table(seed: int = 7) -> list[tuple[Any, ...]]:
    """The rows: each value once, in an order that differs between columns."""
    chance = random.Random(seed)
    columns = []
    for _, values in COLUMNS.values():
        column = list(itertools.islice(itertools.cycle(values), ROWS - 1))
        chance.shuffle(column)
        # The first row has no NULL and nothing that most functions refuse.
        columns.append([values[0], *column])
    return list(zip(*columns, strict=True))


TABLES = Tables({"t": tuple(ColumnDef(*each) for each in zip(NAMES, TYPES, strict=True))}, {}, {})


class Refused(Exception):
    """Penstock refuses a text by name; the message says how."""


def read(text: str) -> Scalar:
    """Returns the expression that a text is in penstock.

    Raises:
        Refused: It says that it means nothing.
    """
    try:
        with allow_deep_calls():
            query = bind(f"SELECT {text}\n AS e FROM t", TABLES)
    except SqlError as error:
        raise Refused(str(error).splitlines()[0]) from None
    assert isinstance(query.relation, Project), query.relation
    return query.relation.scalars[0]


FAMILIES: dict[str, list[str]] = {
    "BIGINT": ["i", "Total", "2", "0", "-1", "3", "1"],
    "INT": ["n", "small", "tiny", "127Y", "-128Y", "32767S", "2147483647", "-2147483648"],
    "FLOAT": ["f", "1.5F", "-0.5F"],
    "DOUBLE": ["x", "`The rate`", "1.5D", "2e0", "-0.0D"],
    "DECIMAL": ["amount", "fine", "wide", "1.5", "-0.25", "3.0BD"],
    "STRING": ["s", "`order`"],
    "'TEXT'": ["'a'", "'0'", "''", "'2024-02-29'", "'12'", "'b,c'", '"a"', "' a '"],
    "BOOLEAN": ["b", "`End`", "TRUE", "false"],
    "DATE": ["`date`", "day", "DATE '2024-02-29'"],
    "TIMESTAMP": ["at", "`timestamp`", "TIMESTAMP '2024-02-29 12:34:56.5'"],
    "TIMESTAMP_NTZ": ["clock", "TIMESTAMP_NTZ '2024-02-29 12:34:56'"],
    "INTERVAL": ["gap", "INTERVAL '2' DAYS", "INTERVAL '90' MINUTE"],
    "BINARY": ["raw", "X'6162'"],
    "ARRAY": ["many", "words", "ARRAY(1, 2)", "ARRAY('a', NULL)"],
    "MAP": ["tags", "MAP('a', Total)", "MAP('b', 1, 'c', NULL)"],
    "STRUCT": ["item", "STRUCT('abc' AS name, i AS points, x AS price)"],
    "NULL": ["NULL"],
}
"""Operands of each family of types."""

PINNED: list[tuple[str, Any, str]] = [
    ("LTRIM('0', '00700')", "700", "STRING"),
    ("RTRIM('0', '00700')", "007", "STRING"),
    ("BTRIM('00700', '0')", "7", "STRING"),
    ("TRIM('0', '00700')", "7", "STRING"),
    ("TRIM(LEADING '0' FROM '00700')", "700", "STRING"),
    ("ARRAY(10, 20)[1]", 20, "INT"),
    ("POSITION('0', '00700', 3)", 4, "INT"),
    ("EXTRACT(SECOND FROM at)", Decimal("56.789012"), "DECIMAL(8, 6)"),
    ("'a' || 'b' = 'ab'", True, "BOOLEAN"),
    ("TRUE = FALSE < TRUE", True, "BOOLEAN"),
    ("FALSE = FALSE < FALSE", False, "BOOLEAN"),
    ("DATE '2024-02-29'::STRING", "2024-02-29", "STRING"),
    ("TIMESTAMP '2024-02-29 12:00:00'::DATE", date(2024, 2, 29), "DATE"),
    ("INTERVAL '1 day 2 hours'", timedelta(hours=26), "INTERVAL"),
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", timedelta(hours=26, minutes=3, seconds=4.5), "INTERVAL"),
    ("1.0 / 3", Decimal("0.333333"), "DECIMAL(7, 6)"),
    ("1.5 * 2.25", Decimal("3.375"), "DECIMAL(6, 3)"),
    ("amount / 3", Decimal("0.000000"), "DECIMAL(14, 6)"),
    ("CAST('1.5' AS DECIMAL)", Decimal(2), "DECIMAL(10, 0)"),
    ("CAST('1.555' AS DECIMAL(5, 2))", Decimal("1.56"), "DECIMAL(5, 2)"),
    ("COALESCE(amount, 0)", Decimal("0.00"), "DECIMAL(12, 2)"),
    ("CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(5, 2))", None, "DECIMAL(5, 2)"),
    ("TRY_CAST(3000000000 AS INT)", None, "INT"),
    ("-0.0", Decimal("0.0"), "DECIMAL(1, 1)"),
    ("-9223372036854775808", -(1 << 63), "BIGINT"),
    ("INT('12')", 12, "INT"),
    ("NVL2(NULL, 1, 2)", 2, "INT"),
    ("ASCII('é')", 233, "INT"),
    ("ADD_MONTHS(DATE '2024-02-29', 12)", date(2025, 2, 28), "DATE"),
    ("LAST_DAY(DATE '2023-02-01')", date(2023, 2, 28), "DATE"),
    ("'it''s' \"say\"", "it'ssay", "STRING"),
    ("5S * amount", Decimal("0.00"), "DECIMAL(12, 2)"),
    ("CAST(5 AS SMALLINT) * amount", Decimal("0.00"), "DECIMAL(16, 2)"),
    ("4Y * amount", Decimal("0.00"), "DECIMAL(14, 2)"),
    ("CAST(5 AS BIGINT) * amount", Decimal("0.00"), "DECIMAL(31, 2)"),
    ("COALESCE(fine, 5S)", Decimal("0.000001"), "DECIMAL(20, 6)"),
    ("COALESCE(amount, CAST(NULL AS BIGINT))", Decimal("0.00"), "DECIMAL(22, 2)"),
    ("COALESCE(amount, NULLIF(10, 3L))", Decimal("0.00"), "DECIMAL(12, 2)"),
    ("COALESCE(amount, ROUND(4Y, 1))", Decimal("0.00"), "DECIMAL(10, 2)"),
    ("LEAST(3L, 1.5)", Decimal("1.5"), "DECIMAL(21, 1)"),
    ("-32768S", -32768, "SMALLINT"),
    ("1 | 2 & 4", 1, "INT"),
    ("12 ^ 4 & 6 >> 1", 12, "INT"),
    ("DATE '2024-01-31' + INTERVAL '1' MONTH", date(2024, 2, 29), "DATE"),
    ("-9223372036854775808L", -(1 << 63), "BIGINT"),
]
"""Texts with their values for the first row, and their types; each once had another one."""

_WRITTEN = {
    **{
        name: f"({{0}} {name} {{1}})"
        for name in (*"+-*/%&|^", "<<", ">>", ">>>", "DIV", "=", "==", "<>", "!=", "||")
    },
    **{
        name: f"({{0}} {name} {{1}})"
        for name in ("<", "<=", ">", ">=", "<=>", "AND", "OR", "RLIKE", "REGEXP")
    },
    **{
        name: f"({{0}} {name} {{1}})"
        for name in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "LIKE", "ILIKE")
    },
    **{name: f"({{0}} {name} {{1}})" for name in ("NOT LIKE", "NOT ILIKE", "NOT RLIKE")},
    **{
        f"IS {name}": f"({{0}} IS {name})"
        for name in ("NULL", "NOT NULL", "TRUE", "FALSE", "NOT TRUE", "NOT FALSE")
    },
    "NOT": "(NOT {0})",
    "~": "(~ {0})",
    "NEGATIVE": "(- {0})",
    "BETWEEN": "({0} BETWEEN {1} AND {2})",
    "NOT BETWEEN": "({0} NOT BETWEEN {1} AND {2})",
    "IN": "({0} IN ({rest}))",
    "NOT IN": "({0} NOT IN ({rest}))",
    "CASE": "CASE WHEN {0} THEN {1} ELSE {2} END",
}
_ARITIES: dict[str, Iterable[int]] = {
    **{name: (2,) for name, text in _WRITTEN.items() if "{1}" in text and "{2}" not in text},
    **{name: (1,) for name, text in _WRITTEN.items() if "{1}" not in text},
    **{name: (3,) for name, text in _WRITTEN.items() if "{2}" in text},
    **dict.fromkeys(("IN", "NOT IN"), (2, 3)),
    **dict.fromkeys(("NVL", "IFNULL"), (2,)),
    **dict.fromkeys(("GREATEST", "LEAST"), (2, 3, 4)),
    # Spark does not have them as functions, or takes a word where it takes no other value.
    **dict.fromkeys(("DATE_BIN", "YEAROFWEEK", "DAYOFWEEK_ISO", "TIMESTAMPADD", "TIMESTAMPDIFF"), ()),
}


_OF_A_LENGTH = ("LPAD", "RPAD", "REPEAT", "SPACE", "FORMAT_NUMBER")
"""The functions that make a string of a length, which an INT at the edge makes too long for the memory."""
_TRIES_FOR_ALL, _LEFT_OUT = 100, 0.7


def signatures(chance: random.Random, tries: int) -> Iterator[str]:
    """Calls of each function with each number of arguments and each family of types that it takes, in each spelling.

    Args:
        chance: What chooses operands.
        tries: How many combinations of families are tried for each number of arguments, besides those of one family.
            With few tries, some of the families that a function takes are left out, by chance.
    """
    scalars = {family: read(texts[0]) for family, texts in FAMILIES.items()}
    for name in FUNCTIONS:
        if name in ("ITEM", "FIELD") or " SECOND" in name:
            # A query writes these otherwise, as `RULES` does.
            continue
        written = _WRITTEN.get(name, f"{name}({{all}})")
        for arity in _ARITIES.get(name, range(5)):
            taken: set[tuple[int, str]] = set()
            for families in _combinations(chance, arity, tries):
                if "INT" in families and name in _OF_A_LENGTH:
                    continue
                places = set(enumerate(families)) or {(0, "")}
                if places <= taken or not _is_taken(name, [scalars[family] for family in families]):
                    continue
                is_first, taken = not taken, taken | places
                if tries < _TRIES_FOR_ALL and not is_first and chance.random() < _LEFT_OUT:
                    continue
                if not is_first and FUNCTIONS[name].name != name:
                    # One call shows what another spelling means.
                    continue
                operands = [chance.choice(FAMILIES[family]) for family in families]
                yield written.format(*operands, all=", ".join(operands), rest=", ".join(operands[1:]))


def _combinations(chance: random.Random, arity: int, tries: int) -> Iterator[tuple[str, ...]]:
    names = list(FAMILIES)
    if len(names) ** arity <= tries:
        found = list(itertools.product(names, repeat=arity))
        chance.shuffle(found)
        yield from found
        return
    yield from ((name,) * arity for name in names)
    for _ in range(tries):
        yield tuple(chance.choice(names) for _ in range(arity))


def _is_taken(name: str, arguments: list[Scalar]) -> bool:
    try:
        call(name, arguments)
    except SqlTypeError:
        return False
    return True


_LEAVES: dict[str, list[str]] = {
    "N": [
        *FAMILIES["BIGINT"],
        *FAMILIES["INT"],
        "Total",
        "t.Total",
        "TOTAL",
        "10",
        "-7",
        "0",
        "4Y",
        "5S",
        "3L",
        "9223372036854775807",
    ],
    "F": [*FAMILIES["FLOAT"], "CAST(0.1 AS FLOAT)", "f"],
    "D": [*FAMILIES["DOUBLE"], "1e-5", ".5e1", "1E3", "-2.5D", "CAST('NaN' AS DOUBLE)", "t.`The rate`"],
    "M": [
        *FAMILIES["DECIMAL"],
        "amount",
        "amount",
        ".5",
        "2.",
        "100.10",
        "0.00",
        "1e-3BD",
        "99999999999999999999",
    ],
    "S": [
        *(
            *FAMILIES["STRING"],
            *FAMILIES["'TEXT'"],
            "'it''s'",
            r"'a\'b'",
            r"'tab\there'",
            r"'\u0041\101'",
            "'é😀'",
        ),
        *(
            "'a' 'b'",
            r"'50\%'",
            r"'a\_b'",
            "r'a\\nb'",
            '"say ""x"""',
            r"'\\'",
            "'new\nline'",
            "s",
            "s",
            "`order`",
        ),
    ],
    "B": [*FAMILIES["BOOLEAN"], "b", "t.b", "NULL"],
    "T": [*FAMILIES["DATE"], "date'2020-12-31'", "DATE '2023-2-9'", "CAST('2024-01-01' AS DATE)", "t.day"],
    "A": [
        *(*FAMILIES["TIMESTAMP"], "TIMESTAMP '2024-02-29T23:59:59.999999+02:00'", "timestamp'2024-01-01'"),
        *("TIMESTAMP '2024-07-01 12:00:00 Europe/Berlin'", "TIMESTAMP_LTZ '2024-01-01 00:00:00.000001Z'"),
    ],
    "K": [*FAMILIES["TIMESTAMP_NTZ"], "CAST('2024-01-01 10:11:12.131415' AS TIMESTAMP_NTZ)"],
    "I": [
        *(
            *FAMILIES["INTERVAL"],
            "INTERVAL 1 HOUR",
            "INTERVAL '1' DAY",
            "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        ),
        *(
            "INTERVAL '1 day 2 hours'",
            "INTERVAL -3 MINUTES",
            "INTERVAL '2:30' HOUR TO MINUTE",
            "INTERVAL '1.5' SECOND",
        ),
        *(
            "INTERVAL 1 DAY 2 HOURS",
            "INTERVAL '-1' WEEK",
            "interval 5 milliseconds",
            "INTERVAL '10:20' MINUTE TO SECOND",
        ),
    ],
    "R": [*FAMILIES["BINARY"], "x'00ff'", "CAST(s AS BINARY)", "X''"],
    "L": ["many", "ARRAY(1, 2, 3)", "array(Total, NULL)", "ARRAY()", "ARRAY(10, 20)"],
    "W": ["words", "ARRAY('a', 'b')", "SPLIT(s, ',')", "array(s, `order`)"],
    "P": ["tags", "MAP('a', i)", "t.tags", "MAP('b', 1, 'c', NULL)"],
    "Q": ["item", "t.item", "STRUCT(s AS name, i AS points, x AS price)", "items[0]"],
    "J": ["items", "ARRAY(item)", "ARRAY(item, NULL)", "t.items"],
}

_RULES: dict[str, str] = {
    "N": """{N} + {N} | {N} - {N} | {N} * {N} | {N} DIV {N} | {N} % {N} | - {N} | +{N} | -{N} | {N} div {N}
        MOD({N}, {N}) | PMOD({N}, {N}) | ABS({N}) | ROUND({N}, -1) | ROUND({N}) | FLOOR({N}) | CEIL({N})
        CAST({F} AS INT) | CAST({F} AS BIGINT) | CAST({N} AS SMALLINT) | TRY_CAST({N} AS TINYINT) | TINYINT({D})
        tiny + tiny | tiny * small | n + small | n * n | small - small | -tiny | ABS(small) | n DIV small
        small % tiny
        PMOD(n, small) | PMOD(tiny, tiny) | n & tiny | ~small | tiny << 1 | ROUND(n, -1) | ROUND(tiny, -1)
        HASH(n, {F})
        XXHASH64(tiny, {F}, small) | TRY_ADD(tiny, small) | TRY_MULTIPLY(n, n) | FLOOR({F})
        CAST({A} AS INT) | SMALLINT({F})
        FLOOR({D}) | CEIL({D}) | LENGTH({S}) | CHAR_LENGTH({S}) | LENGTH({R}) | LOCATE({S}, {S})
        LOCATE({S}, {S}, {N}) | POSITION({S}, {S}) | POSITION({S} IN {S}) | POSITION({S}, {S}, {N})
        INSTR({S}, {S})
        YEAR({T}) | MONTH({A}) | DAY({K}) | HOUR({A}) | MINUTE({K}) | SECOND({A}) | DAYOFWEEK({T})
        QUARTER({T})
        WEEKOFYEAR({T}) | DAYOFYEAR({A}) | EXTRACT(YEAR FROM {T}) | EXTRACT(MONTH FROM {A})
        EXTRACT(DOW FROM {T})
        EXTRACT(ISODOW FROM {T}) | EXTRACT(DOY FROM {A}) | EXTRACT(WEEK FROM {T}) | EXTRACT(HOUR FROM {A})
        EXTRACT(DAYOFWEEK_ISO FROM {T}) | EXTRACT(YEAROFWEEK FROM {T}) | extract(minute from {K})
        EXTRACT(QUARTER FROM {A})
        EXTRACT(DAYS FROM {T}) | EXTRACT(DAY FROM {I}) | EXTRACT(HOUR FROM {I})
        DATEDIFF({T}, {T}) | DATEDIFF(DAY, {T}, {T}) | UNIX_SECONDS({A}) | UNIX_MICROS({A}) | UNIX_MILLIS({A})
        SIZE({P}) | {P}['a'] | {P}[{S}] | ELEMENT_AT({P}, {S}) | {Q}.points | item.points | t.item.points
        {J}[0].points
        AGGREGATE({L}, {N}, (acc, x) -> acc % 99 + x % 99) | REDUCE({L}, 0L, (acc, x) -> acc + 1, acc -> acc * {N})
        AGGREGATE({W}, 0L, (n, word) -> n + LENGTH(word)) | ARRAY_POSITION({L}, {N}) | ARRAY_MIN({L}) | ARRAY_MAX({L})
        GET({L}, {N}) | TRY_ELEMENT_AT({L}, {N}) | ARRAY_SIZE({L}) | JSON_ARRAY_LENGTH(TO_JSON({L})) | SIZE({J})
        SIZE(FILTER({J}, x -> x.name = {S} AND x.points IN (1, {N}))) | tags.a | ARRAY_POSITION({J}, {Q})
        UNIX_TIMESTAMP({A}) | SIZE({L}) | CARDINALITY({W}) | {L}[{N}] | {L}[0] | ELEMENT_AT({L}, {N})
        ARRAY(10, 20)[1]
        CAST({D} AS BIGINT) | CAST({M} AS BIGINT) | CAST({M} AS INT) | CAST({S} AS INT) | CAST({B} AS INT)
        CAST({A} AS BIGINT) | TRY_CAST({S} AS INT) | TRY_CAST({D} AS SMALLINT) | {N}::INT | {S}::BIGINT
        CAST({N} AS TINYINT) | CAST({N} AS INTEGER) | CAST(i AS INT) | CAST({N} AS BIGINT)
        {N} & {N} | {N} | {N} ^ {N} | ~{N} | {N} << 1
        {N} & {N} ^ {N} | {N}|{N} & {N} | {N} >> 2 + {N} | {N} >>> 1 | {N} << {N} | 5S << 33 | BIT_COUNT({N})
        SHIFTRIGHT({N}, 3) | TIMESTAMPDIFF(MONTH, {A}, {A}) | DATEDIFF(HOUR, {A}, {T}) | WEEKDAY({T})
        TIMESTAMPDIFF(QUARTER, {K}, {K}) | DATEDIFF(WEEK, {T}, {A}) | DATE_PART('DAYS', {A})
        DATEPART('QTR', {T}) | UNIX_DATE({T})
        EXTRACT(MINUTE FROM {I}) | UNIX_TIMESTAMP({S}, 'yyyy-M-d') | REGEXP_COUNT({S}, '[a-c]')
        REGEXP_INSTR({S}, 'b') | FIND_IN_SET({S}, 'a,b,0') | LEVENSHTEIN({S}, {S}) | HASH({N}, {S}, {M}, {T})
        XXHASH64({S}, {D}, {A}, {N}) | CRC32({S}) | WIDTH_BUCKET({D}, {D}, {D}, 5) | TRY_ADD({N}, {N})
        TRY_MULTIPLY({N}, {N}) | TRY_MOD({N}, {N}) | FACTORIAL({N} % 25) | ZEROIFNULL({N}) | NULLIFZERO({N})
        BROUND({N}, -1) | OCTET_LENGTH({S}) | DECODE({N}, 1, 10, {N}, 20, {N}) | LENGTH({N}) | EXTRACT(DAY FROM {I})
        {M} DIV {M}
        INT({S}) | BIGINT({D}) | ASCII({S}) | GREATEST({N}, {N}) | LEAST({N}, {N}, {N}) | SIGN({N})""",
    "D": """{D} + {D} | {D} - {N} | {D} * {D} | {D} / {D} | {N} / {N} | {D} % {D} | -{D} | ABS({D})
        SIGN({D}) | SIGNUM({D})
        ROUND({D}) | ROUND({D}, 2) | ROUND({D}, -2) | SQRT({D}) | CAST({N} AS DOUBLE) | CAST({S} AS DOUBLE)
        {M}::DOUBLE
        {F} + {D} | {F} + {N} | {F} / {F} | SQRT({F}) | {F} * {M} | CAST({F} AS DOUBLE) | SIGN({F})
        COALESCE({F}, {N})
        CAST({M} AS DOUBLE) | {M} + {D} | {D} * {M} | {M} / {D} | PMOD({D}, {D}) | MOD({D}, {D})
        POWER({N}, 2) | POW({D}, {N})
        EXP({N}) | LN({D}) | LOG10({D}) | CAST({A} AS DOUBLE) | DOUBLE({S}) | {N} / 2 | {N} / {N} / {N}
        {D} * {N} + {D} | GREATEST({D}, {D}) | SIGN({M})
        CBRT({D}) | HYPOT({D}, {D}) | SIN({D}) | COS({N}) | TAN({D}) | ATAN2({D}, {D}) | TANH({D}) | ASIN({D})
        LOG({D}, {D}) | LOG2({D}) | LOG1P({D}) | EXPM1({N}) | DEGREES({D}) | RADIANS({D}) | RINT({D})
        BROUND({D}, 1) | NANVL({D}, {D}) | MONTHS_BETWEEN({A}, {A}) | MONTHS_BETWEEN({T}, {A}, FALSE)
        TRY_DIVIDE({D}, {N}) | TRY_SUBTRACT({D}, {D}) | ABS({S}) | ACOSH({D}) | COT({D})""",
    "F": """{F} + {F} | {F} - {F} | {F} * {F} | {F} % {F} | PMOD({F}, {F}) | -{F} | ABS({F}) | ROUND({F})
        ROUND({F}, 2)
        BROUND({F}, 1) | CAST({N} AS FLOAT) | CAST({D} AS FLOAT) | CAST({M} AS FLOAT) | CAST({S} AS FLOAT) | +{F}
        TRY_ADD({F}, {F}) | TRY_CAST({S} AS FLOAT) | FLOAT({N}) | NANVL({F}, {F}) | CAST({B} AS FLOAT)
        CAST({A} AS FLOAT)""",
    "M": """{M} + {M} | {M} - {M} | {M} * {M} | {M} / {M} | {M} % {M} | {M} + {N} | {N} * {M} | {M} / {N}
        {N} / {M} | -{M}
        ABS({M}) | ROUND({M}) | ROUND({M}, 1) | ROUND({M}, -2) | FLOOR({M}) | CEIL({M}) | CEILING({M})
        PMOD({M}, {M})
        CAST({F} AS DECIMAL(20, 10)) | n + {M} | tiny * {M} | CAST(small AS DECIMAL(4, 1)) | FLOOR({F}, 1)
        CAST({M} AS DECIMAL(12, 3)) | CAST({N} AS DECIMAL(20, 2)) | CAST({S} AS DECIMAL(10, 2))
        CAST({D} AS DECIMAL(10, 1))
        CAST({M} AS DECIMAL) | CAST({M} AS DECIMAL(4)) | TRY_CAST({M} AS DECIMAL(4, 2))
        CAST({S} AS NUMERIC(6, 4))
        TRY_CAST({S} AS DECIMAL(5, 1)) | {M}::DECIMAL(38, 2) | CAST({B} AS DECIMAL(3, 1))
        CAST({A} AS DECIMAL(20, 6))
        EXTRACT(SECOND FROM {A}) | EXTRACT(SECONDS FROM {K}) | extract(second from {A}) | {M} + 1 | {M} * 1.1
        {M} / 3 | {M} * 100
        MOD({M}, {M}) | {M} % 10 | FLOOR({M}, 1) | CEIL({D}, 2) | FLOOR({N}, -1) | BROUND({M}, 1)
        BROUND({M}) | TRY_ADD({M}, {M}) | TRY_DIVIDE({M}, {M}) | TRY_TO_NUMBER({S}, '999.9')
        TO_NUMBER({S}, '99.99') | ZEROIFNULL({M})
        GREATEST({M}, {M}) | COALESCE({M}, 0) | IF({B}, {M}, {N}) | NULLIF({M}, 0)
        {M} * {M} * {M} | {M} / {M} / {M} | DECIMAL({S}) | EXTRACT(SECOND FROM {I})""",
    "S": """{Q}.name | {J}[0].name | ARRAY_JOIN({W}, {S}) | ARRAY_JOIN({L}, ',', {S}) | ARRAY_MAX({W})
        MAP_KEYS({P})[0]
        TO_VARCHAR({A}, 'yyyy-MM') | TO_JSON({L}) | TO_JSON({P})
        TO_JSON(STRUCT({S}, {T} AS day, {M} AS sum, {A} AS at, {K}, {B})) | TO_JSON({W})
        GET_JSON_OBJECT(TO_JSON({J}), '$[0].name') | GET_JSON_OBJECT(TO_JSON({P}), '$.a') | CAST({L} AS STRING)
        GET_JSON_OBJECT('{"a": [{"b": 1.50}, {"b": "x"}, {}]}', '$.a[*].b') | CAST(STRUCT({S}, {L}) AS STRING)
        AGGREGATE({W}, {S}, (acc, x) -> acc || COALESCE(x, '-')) | CAST({P} AS STRING) | ELEMENT_AT({W}, -1)
        UPPER({S}) | LOWER({S}) | UCASE({S}) | lcase({S}) | TRIM({S}) | LTRIM({S}) | RTRIM({S})
        TRIM({S}, {S}) | LTRIM({S}, {S})
        RTRIM({S}, {S}) | BTRIM({S}) | BTRIM({S}, {S}) | TRIM(BOTH {S} FROM {S}) | TRIM(LEADING {S} FROM {S})
        TRIM(TRAILING FROM {S})
        TRIM(TRAILING {S} FROM {S}) | TRIM({S} FROM {S}) | TRIM(BOTH FROM {S}) | SUBSTRING({S}, {N})
        SUBSTRING({S}, {N}, {N})
        SUBSTRING({S} FROM {N}) | SUBSTRING({S} FROM {N} FOR {N}) | SUBSTR({S}, {N}, {N})
        SUBSTR({S} FROM 2) | CONCAT({S}, {S}, {S})
        {S} || {S} | {S} || {N} | {N} || {S} | {S} || {N} + {N} | {S} || {M} | {S} || {T}
        CONCAT({S}, {N}, {B}, {M}) | CONCAT_WS({S}, {S}, {S})
        CONCAT_WS('-', {W}, {S}) | REPLACE({S}, {S}) | REPLACE({S}, {S}, {S}) | LEFT({S}, {N})
        RIGHT({S}, {N}) | LPAD({S}, 6, {S})
        RPAD({S}, 6) | LPAD({S}, {N} % 50) | REPEAT({S}, 3) | REVERSE({S})
        REGEXP_EXTRACT({S}, '([a-z])([0-9]+)', 2) | OVERLAY({S} PLACING {S} FROM 2)
        REGEXP_REPLACE({S}, '[0-9]+', '<$0>') | REGEXP_EXTRACT({S}, '(\\\\d+)') | MD5({S}) | SHA2({S}, 256)
        CAST({N} AS STRING)
        CAST(f AS STRING) | CONCAT(f, {S}) | FORMAT_STRING('%s', f) | TYPEOF({F}) | TYPEOF({N})
        HEX(tiny) | BIN(n)
        CAST({M} AS STRING) | CAST({D} AS STRING) | CAST({B} AS STRING) | CAST({T} AS STRING)
        CAST({A} AS STRING) | {N}::STRING
        CAST({K} AS VARCHAR(30)) | DATE '2024-02-29'::STRING | CAST({I} AS STRING) | CAST({R} AS STRING)
        STRING({N}) | {W}[0]
        ELEMENT_AT({W}, 1) | SPLIT({S}, ',')[0]
        CAST({L} AS STRING) | DATE_FORMAT({A}, 'yyyy')
        DATE_FORMAT({A}, "yyyy-MM-dd'T'HH:mm:ss.SSS EEE a") | DATE_FORMAT({T}, 'QQQ D d MMMM y')
        DATE_FORMAT({K}, 'hh k K yy MMM XX') | FROM_UNIXTIME({N} % 99999999999, 'yyyy/MM/dd')
        TO_CHAR({T}, 'yyyyMMdd')
        HEX({N}) | HEX({S}) | BASE64({R}) | BIN({N}) | CONV({S}, 16, 10) | CONV({N}, 10, -36) | SHA1({S})
        FORMAT_NUMBER({M}, 2) | FORMAT_NUMBER({D}, 3) | FORMAT_NUMBER({N}, '#,##0.0')
        FORMAT_STRING('%s|%5d|%x', {S}, {N}, {N}) | FORMAT_STRING('%8.2f|%-6s|%b', {D}, {S}, {B})
        SUBSTRING_INDEX({S}, {S}, {N}) | SUBSTRING_INDEX({S}, ',', -2) | SPLIT_PART({S}, {S}, {N}) | SOUNDEX({S})
        OVERLAY({S}, {S}, {N}) | OVERLAY({S} PLACING 'xy' FROM 2 FOR {N}) | URL_ENCODE({S}) | DAYNAME({T})
        MONTHNAME({T}) | REGEXP_SUBSTR({S}, '[a-b]+') | REGEXP_REPLACE({S}, 'a', 'x', 2) | ELT(2, {S}, {S}, {N})
        MASK({S}) | SPACE({N} % 5) | CHR({N}) | TYPEOF({M}) | LPAD({N}, 6, '0') | UPPER({M})
        CONCAT_WS(',', {N}, {T})
        DECODE({S}, 'a', {S}, {S}, 'y') | TRANSLATE({S}, {S}, {S}) | REPLACE({N}, '1') | INITCAP({S})
        SPLIT_PART({S}, ',', 1)
        TRANSLATE({S}, 'ab', 'x')""",
    "B": """{F} = {F} | {F} < {D} | {F} = {N} | {F} IN (0.1, {F}) | {F} <=> {F} | n = tiny | small < {N}
        CAST({F} AS BOOLEAN)
        {B} AND {B} | {B} OR {B} | NOT {B} | !{B} | {B} IS TRUE | {B} IS NOT TRUE | {B} IS FALSE
        {B} IS NOT FALSE | {B} IS UNKNOWN
        {B} IS NOT UNKNOWN | {B} = {B} | {B} <=> {B} | {N} = {N} | {N} <> {N} | {N} != {D} | {N} < {M}
        {M} >= {M} | {M} = {N} | {M} == {D}
        {D} < {D} | {D} = {D} | {D} <=> {D} | {S} = {S} | {S} < {S} | {S} <=> {S} | {T} < {T} | {T} = {A}
        {A} >= {K} | {A} < {T} | {I} > {I}
        {R} = {R} | {R} < {R} | {L} = {L} | {W} <> {W} | {N} IS NULL | {S} IS NOT NULL | {D} IS NULL
        {N} IS DISTINCT FROM {N}
        {M} IS NOT DISTINCT FROM {N} | {N} BETWEEN {N} AND {N} | {N} NOT BETWEEN {N} AND {N}
        {S} BETWEEN {S} AND {S} | {D} BETWEEN {N} AND {D}
        NOT {N} BETWEEN {N} AND {N} | {T} BETWEEN '2024-01-01' AND {T} | {M} BETWEEN {N} AND {M}
        {N} IN ({N}, {N}) | {N} NOT IN ({N}, NULL)
        {S} IN ({S}, {S}, {S}) | {D} IN ({D}, {D}) | {M} IN ({N}, {M}) | {T} IN ('2024-02-29', {T})
        {S} LIKE 'a%' | {S} LIKE '%\\_%' | {S} LIKE {S}
        {S} NOT LIKE '_b%' | {S} LIKE '50#%' ESCAPE '#' | {S} ILIKE '_B%' | {S} NOT ILIKE 'A%'
        {S} RLIKE '^[aA].c?$' | {S} NOT RLIKE 'b'
        {S} REGEXP '[0-9]+' | REGEXP_LIKE({S}, 'a') | {S} RLIKE '\\\\d' | {S} LIKE ANY ('a%', 'b%')
        {S} NOT LIKE ANY ('a%', {S}) | {N} & 1 = 1 | INTERVAL '3' MONTH < INTERVAL 1 YEAR | EQUAL_NULL({D}, {D})
        {S} LIKE ALL ('%a%') | STARTSWITH({S}, {S})
        ENDSWITH({S}, {S}) | CONTAINS({S}, {S}) | ARRAY_CONTAINS({L}, {N}) | ARRAY_CONTAINS({W}, {S})
        CAST({N} AS BOOLEAN) | CAST({S} AS BOOLEAN)
        TRY_CAST({S} AS BOOLEAN) | CAST({M} AS BOOLEAN) | {D}::BOOLEAN | ISNULL({S}) | ISNOTNULL({N})
        ISNAN({D}) | {N} = {N} = {B} | {N} < {N} IS NULL
        {S} || {S} = {S} | {T} = '2024-02-29' | {A} > '2024-01-01' | {N} = '12' | {S} = {N} | {D} > '1.5'
        {N} + {N} > {N} AND {B} OR {B}
        EXISTS({L}, x -> x > {N}) | FORALL({L}, x -> x > {N} OR {B}) | EXISTS({W}, w -> w LIKE '%a%' OR w = {S})
        {Q} = {Q} | {Q} < {Q} | {Q} <=> {Q} | {J} >= {J} | {Q} IN ({Q}, {Q}) | ARRAYS_OVERLAP({L}, {L}) | {L} = {L}
        MAP_CONTAINS_KEY({P}, {S}) | ARRAY_CONTAINS({J}, {Q}) | EXISTS({J}, x -> x IS NULL) | {L} <= {L}
        {Q} BETWEEN {Q} AND {Q}
        NOT {N} = {N} | NOT {B} AND {B} | {N} IN ({D}, {M}) | ({N}, {N}) = ({N}, {N}) | {B} IS NULL""",
    "T": """DATE_ADD({T}, {N}) | DATE_SUB({T}, 31) | DATE_ADD({T}, -1) | {T} + {N} | {T} - {N}
        {T} + INTERVAL '1' DAY | {T} - INTERVAL 2 DAYS
        CAST({S} AS DATE) | CAST({A} AS DATE) | TO_DATE({A}) | TO_DATE({S}) | DATE({A}) | {A}::DATE
        TRY_CAST({S} AS DATE) | {T} + INTERVAL '1' MONTH
        DATEADD(DAY, {N}, {T}) | DATEADD({T}, 1) | DATE_ADD(DAY, 1, {T}) | ADD_MONTHS({T}, 1) | LAST_DAY({T})
        TRUNC({T}, 'MM') | 2 + {T}
        {T} + INTERVAL '13' MONTH | {T} - INTERVAL '1-1' YEAR TO MONTH | {T} + 2 * INTERVAL 1 YEAR
        INTERVAL '5' MONTH / 2 + {T} | {T} + MAKE_YM_INTERVAL(1, {N} % 100) | NEXT_DAY({T}, 'MON')
        TRUNC({T}, 'QUARTER') | TRUNC({A}, 'week') | TRY_TO_DATE({S}, 'yyyy-M-d') | DATE_FROM_UNIX_DATE({N} % 99999)
        DATE_ADD({S}, 1) | {T} + IF({B}, INTERVAL '1' MONTH, INTERVAL '1' YEAR)
        GREATEST({T}, {T}) | CAST({K} AS DATE) | MAKE_DATE({N}, 1, 1) | {T} + INTERVAL '1' WEEK""",
    "A": """DATE_TRUNC('YEAR', {A}) | DATE_TRUNC('week', {A}) | DATE_TRUNC('DAY', {T})
        DATE_TRUNC('HOUR', {A}) | DATE_TRUNC('MM', {A})
        DATE_TRUNC('quarter', {A}) | DATE_TRUNC('SECOND', {A}) | DATE_TRUNC('MILLISECOND', {A})
        DATE_TRUNC('minute', {K}) | {A} + {I} | {A} - {I}
        {I} + {A} | {T} + {I} | {T} - {I} | TIMESTAMP_SECONDS({N}) | TIMESTAMP_SECONDS({D})
        TIMESTAMP_SECONDS({M}) | TIMESTAMP_MILLIS({N})
        TIMESTAMP_MICROS({N}) | TO_TIMESTAMP({S}) | TO_TIMESTAMP({T}) | CAST({S} AS TIMESTAMP)
        CAST({T} AS TIMESTAMP) | CAST({N} AS TIMESTAMP)
        {S}::TIMESTAMP | CAST({K} AS TIMESTAMP) | CAST({M} AS TIMESTAMP) | CAST({D} AS TIMESTAMP)
        TIMESTAMP({S}) | {A} + INTERVAL 1 DAY 2 HOURS
        TIMESTAMPADD(HOUR, 1, {A}) | DATEADD(HOUR, 1, {A}) | {A} + INTERVAL '2' YEAR
        DATEADD(MONTH, {N}, {A}) | DATEADD(WEEK, 2, {T}) | TIMESTAMPADD(QUARTER, -1, {A}) | {A} - INTERVAL 11 MONTHS
        TRY_TO_TIMESTAMP({S}, 'yyyy-MM-dd') | MAKE_TIMESTAMP({N}, 2, 28, 1, 2, {M}) | TRY_ADD({A}, {I})
        TRY_MAKE_TIMESTAMP(2024, {N}, {N}, 1, 2, 3) | TRY_MAKE_TIMESTAMP_LTZ(2024, 2, {N}, 1, 2, 3)
        MAKE_TIMESTAMP_LTZ(2024, 2, 3, 4, 5, {D}) | COALESCE({A}, {T})""",
    "K": """{K} + {I} | {K} - {I} | {K} + INTERVAL '7' MONTH | MAKE_TIMESTAMP_NTZ(2024, 2, 3, {N}, 5, {M})
        TRY_MAKE_TIMESTAMP_NTZ(2024, {N}, 3, 4, 5, 6) | DATEADD(DAY, {N}, {K})
        CAST({A} AS TIMESTAMP_NTZ) | CAST({T} AS TIMESTAMP_NTZ)
        TO_TIMESTAMP_NTZ({T}) | CAST({S} AS TIMESTAMP_NTZ)
        TO_TIMESTAMP_NTZ({S}) | {K} | TIMESTAMP_NTZ '2024-01-01'""",
    "I": """{A} - {A} | {T} - {T} | {A} - {T} | {K} - {K} | {I} + {I} | {I} - {I} | -{I} | ABS({I}) | {I} * 3
        {I} * {N} | -2 * {I} | {I} / 7
        {I} / {N} | {I} * {D} | {I} / {D} | MAKE_DT_INTERVAL({N} % 1000, 1, 2, {M}) | {I} * {M} | {A} - {K}""",
    "R": """SUBSTRING({R}, {N}, {N}) | {R} || {R} | CONCAT({R}, {R}) | CAST({S} AS BINARY) | LEFT({R}, 1)
        UNHEX({S}) | ENCODE({S}, 'utf-8') | TO_BINARY(HEX({N})) | OVERLAY({R}, {R}, {N})
        RPAD({R}, 3) | REVERSE({R})""",
    "L": """ARRAY({N}, {N}) | ARRAY({N}) | IF({B}, {L}, {L}) | COALESCE({L}, {L}) | CONCAT({L}, {L})
        REVERSE({L}) | {L} || {L}
        TRANSFORM({L}, x -> x % 100 + {N} % 7) | TRANSFORM({L}, (x, at) -> IF({B}, x, at)) | FILTER({L}, x -> x > {N})
        TRANSFORM({L}, x -> AGGREGATE({L}, x % 9, (x, y) -> x * 2 % 99 + COALESCE(y, 1) % 9, x -> x % 7))
        TRANSFORM({W}, word -> LENGTH(word || {S})) | FILTER({L}, (x, at) -> at < {N} OR x IS NULL)
        ZIP_WITH({L}, {L}, (x, y) -> COALESCE(x, y, {N})) | ARRAY_SORT({L}, (l, r) -> IF(l < r, 1, IF(l > r, -1, 0)))
        FLATTEN(ARRAY({L}, {L})) | SEQUENCE({N} % 9, {N} % 9) | SLICE({L}, 1, 2) | SLICE({L}, -2, {N} % 5 + 4)
        ARRAY_DISTINCT({L}) | ARRAY_UNION({L}, {L}) | ARRAY_EXCEPT({L}, {L}) | ARRAY_INTERSECT({L}, {L})
        ARRAY_REMOVE({L}, {N}) | ARRAY_REPEAT({N}, 2) | ARRAY_APPEND({L}, {N}) | ARRAY_PREPEND({L}, {N})
        ARRAY_INSERT({L}, 2, {N}) | ARRAY_INSERT({L}, -2, {N}) | ARRAY_COMPACT({L}) | SORT_ARRAY({L})
        SORT_ARRAY({L}, FALSE)
        MAP_VALUES({P}) | {J}.points | TRANSFORM({J}, each -> each.points) | CAST({W} AS ARRAY<BIGINT>)
        TRY_CAST({W} AS ARRAY<BIGINT>) | ARRAY_SORT({L}) | FROM_JSON(TO_JSON({L}), 'ARRAY<BIGINT>')""",
    "W": """SPLIT({S}, ',') | SPLIT({S}, '') | SPLIT({S}, '[a-z]', 2) | ARRAY({S}, {S}) | SPLIT({S}, '[.]|b')
        REGEXP_EXTRACT_ALL({S}, '[a-z]', 0)
        ARRAY({N}, {S}) | MAP_KEYS({P}) | TRANSFORM({W}, x -> UPPER(x)) | FILTER({W}, x -> x < {S}) | {J}.name
        TRANSFORM({L}, x -> CAST(x AS STRING) || {S}) | ARRAY_SORT({W}, (l, r) -> LENGTH(l) - LENGTH(r))
        MAP_KEYS(MAP_FILTER({P}, (k, v) -> v > {N})) | MAP_KEYS(TRANSFORM_KEYS({P}, (k, v) -> k || LENGTH(k)))
        ARRAY_UNION({W}, {W}) | TRANSFORM(MAP_ENTRIES({P}), e -> e.key) | ZIP_WITH({W}, {L}, (s, n) -> s || n)
        JSON_OBJECT_KEYS(TO_JSON({P})) | TRANSFORM(ARRAYS_ZIP({W}, {L}), z -> CAST(z AS STRING))
        JSON_OBJECT_KEYS('{"a": 1, "b": {}}') | TRANSFORM({J}, x -> x.name)""",
    "P": """MAP({S}, {N}) | MAP('a', {N}, 'b', {N}) | MAP_FILTER({P}, (k, v) -> v < {N} OR k = {S})
        TRANSFORM_VALUES({P}, (k, v) -> v % 9 + LENGTH(k)) | TRANSFORM_VALUES({P}, (k, v) -> {N})
        MAP_ZIP_WITH({P}, {P}, (k, v, w) -> COALESCE(v, w, LENGTH(k))) | TRANSFORM_KEYS({P}, (k, v) -> k || {S})
        MAP_FROM_ARRAYS(ARRAY({S}), ARRAY({N})) | MAP_FROM_ENTRIES(ARRAY(STRUCT({S}, {N})))
        MAP_FROM_ENTRIES(MAP_ENTRIES({P})) | MAP_CONCAT({P}, MAP('z', {N}))
        CAST(STR_TO_MAP('a:1,b:2') AS MAP<STRING, BIGINT>)
        MAP_CONCAT({P}, {P}) | STR_TO_MAP({S}) | FROM_JSON(TO_JSON({P}), 'MAP<STRING, BIGINT>')""",
    "Q": """NAMED_STRUCT('name', {S}, 'points', {N}, 'price', {D}) | {J}[0] | ELEMENT_AT({J}, 1) | GET({J}, {N})
        TRY_ELEMENT_AT({J}, {N}) | ARRAY_MIN({J}) | ARRAY_MAX({J}) | STRUCT(i, s, {B})
        STRUCT({Q} AS inner, {L} AS many)
        CAST({Q} AS STRUCT<name: STRING, points: BIGINT, price: DOUBLE>) | ARRAYS_ZIP({L}, {L})[0]
        MAP_ENTRIES({P})[0]
        AGGREGATE({J}, {Q}, (best, x) -> IF(x.points > best.points, x, best))
        FROM_JSON(TO_JSON({Q}), 'name STRING, points BIGINT, price DOUBLE')
        FROM_JSON({S}, 'a BIGINT, b ARRAY<STRING>')
        FROM_JSON('{"name": "x", "points": [1]}', 'name STRING, points BIGINT, price DOUBLE')""",
    "J": """ARRAY({Q}) | ARRAY({Q}, {Q}) | FILTER({J}, x -> x.points > {N}) | SORT_ARRAY({J}) | SORT_ARRAY({J}, FALSE)
        TRANSFORM({L}, x -> STRUCT({S} AS name, x AS points, {D} AS price)) | CONCAT({J}, {J}) | REVERSE({J})
        ARRAY_DISTINCT({J}) | ARRAY_UNION({J}, {J}) | ARRAY_SORT({J}) | ARRAY_REMOVE({J}, {Q})
        ARRAY_APPEND({J}, {Q})""",
}
_OF_EACH = """COALESCE({X}, {X}) | NVL({X}, {X}) | IFNULL({X}, {X})
        CASE WHEN {B} THEN {X} WHEN {B} THEN {X} ELSE {X} END | IF({B}, {X}, {X})
    CASE WHEN {B} THEN {X} END | NULLIF({X}, {X}) | CASE {N} WHEN {N} THEN {X} ELSE {X} END
        CASE {S} WHEN {S} THEN {X} END | NVL2({S}, {X}, {X})
    GREATEST({X}, {X}) | LEAST({X}, {X}, {X}) | COALESCE(NULL, {X}) | ({X}) | (({X})) | {X} /* why */
        CASE WHEN {X} IS NULL THEN {X} END"""


def _split(rules: str) -> list[str]:
    return [each.strip() for line in rules.splitlines() for each in line.split(" | ") if each.strip()]


RULES = {
    name: _split(rules) + _split(_OF_EACH.replace("{X}", f"{{{name}}}")) for name, rules in _RULES.items()
}
"""The ways to write an expression of each type, with the types of its operands in braces."""

_TERMS = [
    "1",
    "2",
    "3",
    "Total",
    "amount",
    "1.5",
    "(1)",
    "2D",
    "- Total",
    "-1",
    "+2",
    "-amount",
    "i",
    "7 DIV 2",
    "5 % 3",
]
_TEXTS = ["'1'", "`order`", "'a'", "s", "UPPER(s)", "'2'"]
_TRUTHS = [
    "b",
    "`End`",
    "TRUE",
    "NOT b",
    "!b",
    "b IS NULL",
    "s IS NOT NULL",
    "Total IN (1, 2)",
    "NOT Total > 1",
    "b IS NOT TRUE",
]
_PREDICATES = [
    " IS NULL",
    " IS NOT NULL",
    " IN (1, 2)",
    " BETWEEN 0 AND 2 + 1",
    " NOT IN (2, 3 * 1)",
    " IS DISTINCT FROM 1 + 1",
    "",
]


def written(rule: str, chance: random.Random, depth: int) -> str:
    """A text by a rule, whose operands nest one level less deep, in parentheses or not."""

    def operand(found: re.Match[str]) -> str:
        text = expression(found[1], chance, depth - 1)
        is_plain = re.fullmatch(r"[\w.`'-]+|[\w]+\([^()]*\)", text)
        return text if is_plain or chance.random() < 0.3 else f"({text})"

    return re.sub(r"\{([A-Z])\}", operand, rule)


def expression(name: str, chance: random.Random, depth: int) -> str:
    """A text of a type, in which calls nest so deep at most."""
    if depth <= 0 or chance.random() < 0.2:
        return chance.choice(_LEAVES[name])
    return written(chance.choice(RULES[name]), chance, depth)


def operators(chance: random.Random) -> str:
    """Operators in a row without parentheses, as their precedence decides."""

    def row(operands: list[str], words: str) -> str:
        found = [chance.choice(operands)]
        for _ in range(chance.randint(1, 3)):
            found += [chance.choice(words.split()), chance.choice(operands)]
        return " ".join(found)

    kind = chance.randrange(7)
    if kind == 0:
        return row(_TERMS, "+ - * / % DIV - *")
    if kind == 1:
        return row(_TEXTS + _TERMS[:7], "|| + || * || - ||")
    if kind == 2:
        return row(_TRUTHS, "AND OR AND OR = <=> <")
    if kind == 6:
        return row(["b", "`End`", "TRUE", "FALSE", "(Total > 1)"], "= < <=> >= <> =")
    if kind == 3:
        return row(_TERMS, "+ - * / %") + chance.choice(_PREDICATES)
    if kind == 4:
        test = f"{row(_TERMS, '+ - *')} {chance.choice(['=', '<', '>=', '<>', '<=>', '=='])} {row(_TERMS, '* + /')}"
        behind = chance.choice(["", " IS NULL", " = b", " IS TRUE"])
        return f"{test}{behind} {chance.choice(['AND', 'OR'])} {row(_TRUTHS, 'OR AND')}"
    return f"{row(_TEXTS, '||')} {chance.choice(['LIKE', 'NOT LIKE', '=', 'RLIKE', '<'])} {row(_TEXTS, '||')}"


_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"[^"]*"|`[^`]*`)""")


def varied(text: str, chance: random.Random) -> str:
    """The same text in other capitals, with comments, and on several lines."""
    parts = _QUOTED.split(text)
    if "r'" in text or chance.random() < 0.7:
        return text
    change = chance.choice([str.lower, str.upper, str.title, lambda each: each.replace(" ", " /* ( */ ", 1)])
    change = chance.choice([change, lambda each: each.replace(" ", "\n-- what '\n", 1)])
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def generated(seed: int, count: int) -> Iterator[str]:
    """Expressions by chance: each rule of a type once, then deep ones, and operators in a row."""
    chance = random.Random(seed)
    for rules in _RULES.values():
        for rule in _split(rules):
            yield varied(written(rule, chance, 1), chance)
    for number in range(count):
        if number % 3:
            yield varied(expression(chance.choice([*RULES, *"NMSB"]), chance, 3), chance)
        else:
            yield operators(chance)
