"""Functions of Spark that no query of penstock has, each with the reason and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

_NOW = "{0} changes without a change of a row, and a result that changes must follow its rows"
_NOW_HINT = "select Sys.EmitTime in a STREAM, or use Sys.MTime, the time at which a row arrived"
_CHANCE = (
    "{0} returns a different value each time, and a row that is retracted must be the row that was emitted"
)
_CHANCE_HINT = "compute it in Python before the query, with Map, so that the row keeps it"
_PLACE = "{0} depends on how rows are divided, which can differ from run to run"
_PLACE_HINT = "number rows with ROW_NUMBER(), or compute it in Python before the query"
_SESSION = "{0} describes a Spark session, and a query has none"
_SESSION_HINT = "write the value into the query"

REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("CURRENT_DATE", "CURDATE", "NOW", "LOCALTIMESTAMP", "CURRENT_TIME"),
            *("CURRENT_TIMESTAMP", "CURRENT_DATETIME", "GETDATE"),
        ),
        (_NOW, _NOW_HINT),
    ),
    **dict.fromkeys(
        ("RAND", "RANDOM", "RANDN", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"), (_CHANCE, _CHANCE_HINT)
    ),
    **dict.fromkeys(
        (
            *("MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
            *("INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH"),
        ),
        (_PLACE, _PLACE_HINT),
    ),
    **dict.fromkeys(
        (
            *(
                "CURRENT_USER",
                "USER",
                "SESSION_USER",
                "CURRENT_CATALOG",
                "CURRENT_DATABASE",
                "CURRENT_SCHEMA",
            ),
            *("CURRENT_TIMEZONE", "VERSION"),
        ),
        (_SESSION, _SESSION_HINT),
    ),
    **dict.fromkeys(
        ("TIME", "TO_TIME", "TRY_TO_TIME", "MAKE_TIME"),
        (
            "{0} makes a time of day, for which queries have no type",
            "use a TIMESTAMP, or seconds as a number",
        ),
    ),
    "MAKE_INTERVAL": (
        "{0} makes an interval of months and days, which is neither a duration nor a number of months",
        "write MAKE_DT_INTERVAL for days and less, or MAKE_YM_INTERVAL for years and months",
    ),
    "SENTENCES": (
        "{0} depends on the rules of a language in Java",
        "write it in Python, with Catalog.create_function",
    ),
    "JAVA_METHOD": ("{0} calls a class of Java", "write it in Python, with Catalog.create_function"),
    "REFLECT": ("{0} calls a class of Java", "write it in Python, with Catalog.create_function"),
}
"""The reason, with {0} for the name of the function, and the hint, by the names of functions."""
