"""Explains why Spark refuses a query: what is wrong, where in the text, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.errors import PySparkException

from penstock.checks.similar_names import find_nearest
from penstock.io.query_source import QueryError
from penstock_spark.reports.spark_conditions import conditions_of

_LINE = re.compile(r"\(line (\d+), pos (\d+)\)")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_QUOTES = '"`'
# Without a table, no column is known.
_VAGUE = frozenset(["MISSING_AGGREGATION", "MISSING_GROUP_BY", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"])
_HINT = "correct the query here"

Explain = Callable[[Mapping[str, str]], tuple[str, str]]
"""Returns what is wrong and what to do, by the parameters of a condition."""


def explain_query_error(
    error: Exception,
    text: str,
    view: str | None,
    tables: Sequence[str],
    functions: Callable[[], Sequence[str]],
) -> Exception:
    """Returns a QueryError for what Spark raised while it read a text; another error unchanged.

    Args:
        error: What Spark raised.
        text: The text.
        view: The view whose text it is; None for the query itself.
        tables: The names of all tables and views.
        functions: Returns the names of all functions.
    """
    if not isinstance(error, PySparkException):
        return error
    condition = next(iter(conditions_of(error)), None)
    what, hint = _sentence(str(error)), _HINT
    is_vague, offset = False, _offset(error, text)
    if condition is not None:
        name, parameters = condition.name, condition.parameters
        kind = name.partition(".")[0]
        is_vague = kind.startswith("PARSE_") or name in _VAGUE
        if kind == "UNRESOLVED_ROUTINE":
            wrong = _names(parameters["routineName"])[-1]
            what, hint = f"unknown function {wrong.upper()}", _function_near(wrong, functions())
        elif kind == "TABLE_OR_VIEW_NOT_FOUND":
            wrong = ".".join(_names(parameters["relationName"]))
            what, hint = f"there is no table {wrong!r}", _did_you_mean(wrong, tables)
        elif kind in _CONDITIONS:
            what, hint = _CONDITIONS[kind](parameters)
        named = parameters.get("expression", "")
        if offset is None and (found := re.search(rf"\b{re.escape(named.strip(_QUOTES))}\b", text)) and named:
            offset = found.start()
    return QueryError(what, offset, view, hint, is_vague)


def _parse_error(parameters: Mapping[str, str]) -> tuple[str, str]:
    word = parameters["error"]
    return "the query ends too early" if word == "end of input" else f"unexpected {word}", _HINT


def _no_column(parameters: Mapping[str, str]) -> tuple[str, str]:
    wrong = ".".join(_names(parameters.get("objectName") or parameters.get("colName") or ""))
    return f"there is no column {wrong!r}", _did_you_mean(
        wrong, _names(parameters.get("proposal") or parameters.get("suggestion") or "")
    )


def _no_field(parameters: Mapping[str, str]) -> tuple[str, str]:
    wrong = ".".join(_names(parameters["fieldName"]))
    return f"there is no field {wrong!r}", _did_you_mean(
        wrong, _names(parameters.get("fields") or parameters.get("proposal") or "")
    )


def _ambiguous(parameters: Mapping[str, str]) -> tuple[str, str]:
    places = " and ".join(_QUOTED.sub(r"\1", parameters["referenceNames"]).strip("[]").split(", "))
    what = f"the column {_names(parameters['name'])[-1]!r} is ambiguous: it may be {places}"
    return what, "qualify it with the name of its table"


def _not_grouped(parameters: Mapping[str, str]) -> tuple[str, str]:
    wrong = parameters["expression"].strip('"')
    what = f"{wrong} is neither a key of the grouping nor aggregated"
    return what, f"add it to GROUP BY, or write ANY_VALUE({wrong})"


def _no_group(parameters: Mapping[str, str]) -> tuple[str, str]:
    return "some columns are aggregated and some are not", "add the others to GROUP BY, or aggregate them"


def _no_type(parameters: Mapping[str, str]) -> tuple[str, str]:
    return (
        f"there is no type {parameters['typeName'].strip(chr(34))}",
        "write a type that Spark has, such as BIGINT",
    )


_CONDITIONS: Mapping[str, Explain] = {
    "PARSE_SYNTAX_ERROR": _parse_error,
    "UNRESOLVED_COLUMN": _no_column,
    "UNRESOLVED_USING_COLUMN_FOR_JOIN": _no_column,
    "FIELD_NOT_FOUND": _no_field,
    "AMBIGUOUS_REFERENCE": _ambiguous,
    "MISSING_AGGREGATION": _not_grouped,
    "MISSING_GROUP_BY": _no_group,
    "UNSUPPORTED_DATATYPE": _no_type,
}
"""Spark's conditions that have words here; for all others, its own sentence."""


def _names(text: str) -> list[str]:
    """The names in backticks."""
    return [name.replace("``", "`") for name in _QUOTED.findall(text)] or [text]


def _function_near(wrong: str, functions: Sequence[str]) -> str:
    found = find_nearest(wrong, functions)
    return "check the name" if found is None else f"did you mean {found.upper()}?"


def _did_you_mean(wrong: str, names: Sequence[str]) -> str:
    found = find_nearest(wrong, names)
    if found is not None:
        return f"did you mean {found!r}?"
    known = ", ".join(name for name in names[:8] if name)
    return f"use one of {known}" if known and len(names) <= 8 else "check the name"


def _sentence(said: str) -> str:
    r"""Spark's own sentence as a clause, without the names and numbers of its conditions and without its plan.

    >>> _sentence('[A.B] Cannot resolve "a + b". SQLSTATE: 42K09; line 1 pos 7;\n\'Project')
    'Spark refuses the query: cannot resolve "a + b"'
    """
    line = re.split(r"\s*SQLSTATE:|;\s*line \d+ pos|\n", said, maxsplit=1)[0]
    if line.startswith("["):
        line = line.partition("] ")[2] or line
    line = line.strip().rstrip(".;")
    return f"Spark refuses the query: {line[:1].lower()}{line[1:]}"


def _offset(error: PySparkException, text: str) -> int | None:
    """The place of the wrong part in characters of the text; None if Spark does not say."""
    for context in error.getQueryContext() or ():
        if context.contextType().name == "SQL":
            return int(context.startIndex())
    found = _LINE.search(str(error))
    if found is None:
        return None
    lines = text.splitlines(keepends=True)[: int(found[1]) - 1]
    return sum(map(len, lines)) + int(found[2])
