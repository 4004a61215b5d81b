"""Expressions of SQL by chance, over a table of values at the edges."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

from penstock.scalars.functions import FUNCTIONS, call
from penstock.scalars.resolving import SqlTypeError, cast, try_cast
from penstock.scalars.tree import Column, Literal, Scalar
from penstock.scalars.types import MONTHS, SqlType, from_hint

WHOLE_MAX = (1 << 63) - 1
_FUNCTION_NAMES = {"CAST", "TRY_CAST", *FUNCTIONS}

VALUES: dict[str, list[Any]] = {
    "BIGINT": [
        None,
        0,
        1,
        -1,
        2,
        3,
        -7,
        10,
        1000,
        -45,
        1 << 31,
        1 << 53,
        (1 << 53) + 1,
        WHOLE_MAX,
        -WHOLE_MAX - 1,
    ],
    "DOUBLE": [
        *(None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e10, 1e-5, 2.675, -1234.5, 9.007199254740993e15, 1e300),
        *(5e-324, math.nan, math.inf, -math.inf),
    ],
    "STRING": [
        *(
            None,
            "",
            " ",
            "a",
            "A",
            "abc",
            "Abc b",
            "aé😀",
            "Straße",
            "50%",
            "a_b",
            "x\ny",
            "  padded ",
            "a,b,,c",
        ),
        *(
            "12",
            "-7",
            " 8 ",
            "1.5",
            "1e3",
            "2024-02-29",
            "2023-2-9",
            "true",
            "N",
            "ab12cd",
            "İΣ ΑΣ",
            "\\",
            "$1",
        ),
    ],
    "BOOLEAN": [None, True, False],
    "DATE": [
        None,
        *(date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(2023, 12, 31), date(2021, 1, 3)),
        *(date(1600, 2, 29), date(1, 1, 1), date(9999, 12, 31)),
    ],
    "TIMESTAMP": [
        None,
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
        datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC),
        datetime(2023, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1700, 3, 1, 0, 0, 0, 1, UTC),
        datetime(2100, 6, 15, 6, 0, tzinfo=UTC),
    ],
    "INTERVAL": [
        None,
        *(timedelta(0), timedelta(days=1), timedelta(hours=-25), timedelta(microseconds=1)),
        *(timedelta(microseconds=-3), timedelta(days=400, hours=5, milliseconds=7)),
    ],
    "BINARY": [None, b"", b"\x00\xff", b"abc", b"\x80"],
    "ARRAY<BIGINT>": [None, [], [1], [1, None], [None], [3, 1, 2], [-7, 0]],
    "ARRAY<STRING>": [None, [], ["a"], ["a", None, ""], ["abc", "b"]],
    "ARRAY<DOUBLE>": [None, [], [math.nan], [-0.0, None], [1.5, 2.5]],
}
"""Values of each type, with those at the edges."""

COLUMNS = tuple(
    Column(number, f"{'c' if number % 2 else 'b'}{number}", sql_type)
    for number, sql_type in enumerate(
        SqlType("ARRAY", element=SqlType(name[6:-1])) if name.startswith("ARRAY") else SqlType(name)
        for name in VALUES
        for _ in range(2)
    )
)
"""Two columns of each type."""

_ANY = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "INTERVAL")
_PLAIN = tuple(name for name in VALUES)

PRODUCTIONS: dict[str, list[str]] = {
    "BIGINT": [
        *("+ BIGINT BIGINT", "- BIGINT BIGINT", "* BIGINT BIGINT", "DIV BIGINT BIGINT", "% BIGINT BIGINT"),
        *("PMOD BIGINT BIGINT", "NEGATIVE BIGINT", "ABS BIGINT", "ROUND BIGINT #-1", "ROUND BIGINT #2"),
        *("FLOOR DOUBLE", "CEIL DOUBLE", "LENGTH STRING", "LENGTH BINARY", "LOCATE STRING STRING"),
        *("LOCATE STRING STRING BIGINT", "INSTR STRING STRING", "YEAR DATE", "MONTH DATE", "DAY TIMESTAMP"),
        *("HOUR TIMESTAMP", "MINUTE TIMESTAMP", "SECOND TIMESTAMP", "DAYOFWEEK DATE", "DAYOFYEAR DATE"),
        *("QUARTER TIMESTAMP", "WEEKOFYEAR DATE", "EXTRACT 'YEAROFWEEK' DATE", "EXTRACT 'DOW_ISO' DATE"),
        *("DATEDIFF DATE DATE", "UNIX_TIMESTAMP TIMESTAMP", "UNIX_MICROS TIMESTAMP", "UNIX_TIMESTAMP DATE"),
        *("UNIX_SECONDS TIMESTAMP", "UNIX_MILLIS TIMESTAMP"),
        *(
            "SIZE ARRAY<BIGINT>",
            "ELEMENT_AT ARRAY<BIGINT> BIGINT",
            "CAST DOUBLE",
            "CAST STRING",
            "CAST BOOLEAN",
        ),
        *("CAST TIMESTAMP", "TRY_CAST STRING", "TRY_CAST DOUBLE"),
        *(
            "& BIGINT BIGINT",
            "| BIGINT BIGINT",
            "^ BIGINT BIGINT",
            "~ BIGINT",
            "<< BIGINT #3",
            ">> BIGINT #70",
        ),
        *(">>> BIGINT #1", "BIT_COUNT BIGINT", "TRY_ADD BIGINT BIGINT", "TRY_MULTIPLY BIGINT BIGINT"),
        *(
            "TRY_MOD BIGINT BIGINT",
            "BROUND BIGINT #-1",
            "WIDTH_BUCKET DOUBLE DOUBLE DOUBLE #5",
            "CRC32 STRING",
        ),
        *("TIMESTAMPDIFF 'MONTH' TIMESTAMP TIMESTAMP", "TIMESTAMPDIFF 'HOUR' TIMESTAMP DATE", "WEEKDAY DATE"),
        *(
            "EXTRACT 'HOUR' INTERVAL",
            "UNIX_DATE DATE",
            "LEVENSHTEIN STRING STRING",
            "FIND_IN_SET STRING 'a,b'",
        ),
        *(
            "HASH STRING BIGINT DATE DOUBLE",
            "XXHASH64 BINARY BIGINT TIMESTAMP",
            "REGEXP_COUNT STRING '[a-c]'",
        ),
        *("REGEXP_INSTR STRING 'b'", "OCTET_LENGTH STRING", "UNIX_TIMESTAMP STRING 'yyyy-M-d'"),
    ],
    "DOUBLE": [
        *("+ DOUBLE DOUBLE", "- DOUBLE BIGINT", "* DOUBLE DOUBLE", "/ DOUBLE DOUBLE", "/ BIGINT BIGINT"),
        *(
            "% DOUBLE DOUBLE",
            "PMOD DOUBLE DOUBLE",
            "NEGATIVE DOUBLE",
            "ABS DOUBLE",
            "SIGN DOUBLE",
            "SIGN BIGINT",
        ),
        *("ROUND DOUBLE", "ROUND DOUBLE #2", "ROUND DOUBLE #-2", "SQRT DOUBLE", "CAST BIGINT", "CAST STRING"),
        *("CAST BOOLEAN", "CAST TIMESTAMP", "TRY_CAST STRING", "ELEMENT_AT ARRAY<DOUBLE> #-1"),
        *("RINT DOUBLE", "BROUND DOUBLE #1", "NANVL DOUBLE DOUBLE", "TRY_DIVIDE DOUBLE DOUBLE"),
        *("DEGREES DOUBLE", "RADIANS DOUBLE", "MONTHS_BETWEEN TIMESTAMP TIMESTAMP"),
    ],
    "STRING": [
        *("UPPER STRING", "LOWER STRING", "TRIM STRING", "LTRIM STRING", "RTRIM STRING", "TRIM STRING 'a '"),
        *("SUBSTRING STRING BIGINT", "SUBSTRING STRING BIGINT BIGINT", "CONCAT STRING STRING STRING"),
        *("CONCAT STRING BIGINT", "CONCAT_WS STRING STRING STRING", "CONCAT_WS '-' ARRAY<STRING> STRING"),
        *(
            "REPLACE STRING STRING",
            "REPLACE STRING STRING STRING",
            "LEFT STRING BIGINT",
            "RIGHT STRING BIGINT",
        ),
        *(
            "LPAD STRING #6 STRING",
            "RPAD STRING #6",
            "REPEAT STRING #3",
            "REPEAT STRING #-1",
            "REVERSE STRING",
        ),
        *("REGEXP_EXTRACT STRING '([a-z])([0-9]+)' #2", "REGEXP_EXTRACT STRING '(?i)(B).?' #0"),
        *("REGEXP_REPLACE STRING '[0-9]+' '<$0>'", "REGEXP_REPLACE STRING '(.)b*' '$1-'"),
        *("REGEXP_REPLACE STRING 'b+|1$' '.'", "MD5 STRING", "SHA2 BINARY #256", "SHA2 STRING #100"),
        *("HEX BIGINT", "HEX BINARY", "BIN BIGINT", "BASE64 BINARY", "SHA1 STRING", "CONV STRING #16 #10"),
        *("TRANSLATE STRING STRING STRING", "OVERLAY STRING STRING BIGINT", "SPLIT_PART STRING ',' BIGINT"),
        *(
            "SUBSTRING_INDEX STRING 'b' BIGINT",
            "SOUNDEX STRING",
            "FORMAT_NUMBER DOUBLE #2",
            "URL_ENCODE STRING",
        ),
        *("FORMAT_STRING '%s|%5d|%.1f' STRING BIGINT DOUBLE", "DAYNAME DATE", "MONTHNAME DATE"),
        *("DATE_FORMAT TIMESTAMP 'yyyy-MM-dd hh:mm:ss.SSS a E'", "DATE_FORMAT DATE 'QQQ D MMMM'"),
        *("REGEXP_SUBSTR STRING '[a-b]+'", "ELT #2 STRING STRING", "LPAD BIGINT #6 '0'", "UPPER BOOLEAN"),
        *("CAST BIGINT", "CAST BOOLEAN", "CAST DATE", "CAST TIMESTAMP", "ELEMENT_AT ARRAY<STRING> #1"),
    ],
    "BOOLEAN": [
        *("AND BOOLEAN BOOLEAN", "OR BOOLEAN BOOLEAN", "NOT BOOLEAN", "IS TRUE BOOLEAN", "IS FALSE BOOLEAN"),
        *("AND BOOLEAN BOOLEAN", "OR BOOLEAN BOOLEAN", "IS NOT TRUE BOOLEAN", "= BOOLEAN BOOLEAN"),
        *(f"{test} {name}" for test in ("IS NULL", "IS NOT NULL") for name in _PLAIN),
        *(f"{test} {name} {name}" for test in ("=", "<>", "<", "<=", ">", ">=", "<=>") for name in _PLAIN),
        *(f"{test} BIGINT DOUBLE" for test in ("=", "<", ">=", "<=>", "IS DISTINCT FROM")),
        *(f"{test} DATE TIMESTAMP" for test in ("=", "<", "IS NOT DISTINCT FROM")),
        *(f"BETWEEN {name} {name} {name}" for name in _PLAIN),
        *(f"IN {name} {name} {name} {name}" for name in _PLAIN),
        *(f"NOT IN {name} {name} NULL" for name in _ANY),
        *(
            "LIKE STRING 'a%'",
            "LIKE STRING '%\\_%'",
            "LIKE STRING STRING",
            "ILIKE STRING '_B%'",
            "LIKE STRING '%' '#'",
        ),
        *(
            "RLIKE STRING '^[aA].c?$'",
            "RLIKE STRING '\\d+\\s'",
            "RLIKE STRING '(?:b|é)$'",
            "RLIKE STRING '[^a-z]{2,}'",
        ),
        *("STARTSWITH STRING STRING", "ENDSWITH STRING STRING", "CONTAINS STRING STRING"),
        *("ARRAY_CONTAINS ARRAY<BIGINT> BIGINT", "ARRAY_CONTAINS ARRAY<DOUBLE> DOUBLE"),
        *("CAST BIGINT", "CAST DOUBLE", "CAST STRING", "TRY_CAST STRING"),
    ],
    "DATE": [
        *("DATE_ADD DATE BIGINT", "DATE_SUB DATE #31", "TO_DATE TIMESTAMP", "CAST STRING", "+ DATE I1"),
        *("- DATE I1", "+ DATE #1", "- DATE BIGINT"),
        *("+ DATE M1", "- DATE M1", "+ M1 DATE", "NEXT_DAY DATE 'MON'", "TRUNC DATE 'QUARTER'"),
    ],
    "TIMESTAMP": [
        *(f"DATE_TRUNC '{unit}' TIMESTAMP" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")),
        *(f"DATE_TRUNC '{unit}' TIMESTAMP" for unit in ("MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")),
        *("DATE_TRUNC 'WEEK' DATE", "+ TIMESTAMP INTERVAL", "- TIMESTAMP INTERVAL", "+ INTERVAL TIMESTAMP"),
        *(
            "+ DATE INTERVAL",
            "TIMESTAMP_SECONDS BIGINT",
            "TIMESTAMP_SECONDS DOUBLE",
            "TIMESTAMP_MILLIS BIGINT",
        ),
        *("TIMESTAMP_MICROS BIGINT", "TO_TIMESTAMP DATE", "DATE_BIN I1 TIMESTAMP", "CAST BIGINT"),
        *("+ TIMESTAMP M1", "TIMESTAMPADD 'MONTH' #-1 TIMESTAMP", "TIMESTAMPADD 'DAY' #3 DATE"),
    ],
    "INTERVAL": [
        *(
            "- TIMESTAMP TIMESTAMP",
            "- DATE DATE",
            "- TIMESTAMP DATE",
            "+ INTERVAL INTERVAL",
            "- INTERVAL INTERVAL",
        ),
        *(
            "NEGATIVE INTERVAL",
            "ABS INTERVAL",
            "* INTERVAL #3",
            "* #-2 INTERVAL",
            "/ INTERVAL #7",
            "/ INTERVAL BIGINT",
        ),
        *("* INTERVAL DOUBLE", "/ INTERVAL DOUBLE", "MAKE_DT_INTERVAL #1 #-2 #3"),
    ],
    "BINARY": [
        "SUBSTRING BINARY BIGINT BIGINT",
        "CONCAT BINARY BINARY",
        "CAST STRING",
        "UNHEX STRING",
        "ENCODE STRING 'utf-8'",
    ],
    "ARRAY<BIGINT>": ["ARRAY BIGINT BIGINT"],
    "ARRAY<STRING>": [
        *("ARRAY STRING STRING", "SPLIT STRING ','", "SPLIT STRING ''", "SPLIT STRING '[a-z]' #2"),
        *("SPLIT STRING '[.]|b'", "REGEXP_EXTRACT_ALL STRING '[a-z]' #0"),
    ],
    "ARRAY<DOUBLE>": ["ARRAY DOUBLE BIGINT"],
}
"""Calls that give each type: a function and the types of its arguments; # stands before a number."""

for _name, _calls in PRODUCTIONS.items():
    _calls += [
        *(
            f"COALESCE {_name} {_name}",
            f"CASE BOOLEAN {_name} BOOLEAN {_name} {_name}",
            f"IF BOOLEAN {_name} {_name}",
        ),
        *(f"NULLIF {_name} {_name}", f"GREATEST {_name} {_name} {_name}", f"LEAST {_name} {_name}"),
        *(f"CASE BOOLEAN {_name}", f"COALESCE NULL {_name}"),
    ]


def literal(value: Any) -> Literal:
    return Literal(value, from_hint(type(value)))


def rows(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Rows of the table: first each value once, and then by chance."""
    pools = [VALUES[name] for name in VALUES for _ in range(2)]
    return [
        tuple(
            pool[number % len(pool)] if number < len(pool) and not place % 2 else chance.choice(pool)
            for place, pool in enumerate(pools)
        )
        for number in range(count)
    ]


def scalar_of(name: str, chance: random.Random, depth: int) -> Scalar:
    """An expression of a type, in which calls nest so deep at most."""
    if depth <= 0 or chance.random() < 0.2:
        return leaf(name, chance)
    return made(name, chance.choice(PRODUCTIONS[name]), chance, depth)


def made(name: str, production: str, chance: random.Random, depth: int) -> Scalar:
    """A call by a production, whose arguments nest one call less deep."""
    words = [word for word in _split(production) if word]
    function = words[0]
    parts = [_argument(word, chance, depth - 1) for word in words[1:]]
    target = leaf(name, chance).type.or_null()
    try:
        if function in ("CAST", "TRY_CAST"):
            return (cast if function == "CAST" else try_cast)(parts[0], target)
        return call(function, parts)
    except SqlTypeError as error:
        # Texts by chance do not read as what they are compared with.
        if "read" in error.what or "escape" in error.what or "32 bits" in error.what:
            return leaf(name, chance)
        raise


def _split(production: str) -> list[str]:
    """The function, which may have several words, and the words for its arguments."""
    words = production.split(" ")
    count = next(number for number in range(len(words), 0, -1) if " ".join(words[:number]) in _FUNCTION_NAMES)
    rest = " ".join(words[count:])
    arguments: list[str] = []
    while rest:
        end = rest.index("'", 1) + 1 if rest.startswith("'") else (rest + " ").index(" ")
        arguments.append(rest[:end])
        rest = rest[end:].lstrip(" ")
    return [" ".join(words[:count]), *arguments]


def _argument(word: str, chance: random.Random, depth: int) -> Scalar:
    if word.startswith("#"):
        return literal(int(word[1:]))
    if word.startswith("'"):
        return literal(word[1:-1])
    if word == "I1":
        return literal(chance.choice([timedelta(days=2), timedelta(days=1), timedelta(days=7)]))
    if word == "M1":
        return Literal(chance.choice([1, -1, 13]), MONTHS.or_null(False))
    if word == "NULL":
        return literal(None)
    return scalar_of(word, chance, depth)


def leaf(name: str, chance: random.Random) -> Scalar:
    """A column, or now and then a literal."""
    places = [place for place, each in enumerate(VALUES) if each == name]
    if not name.startswith("ARRAY") and chance.random() < 0.25:
        value = chance.choice(VALUES[name])
        return Literal(value, SqlType(name, value is None))
    return COLUMNS[2 * places[0] + chance.randrange(2)]
