"""The user's own text means in penstock what it means in Spark: expressions, and whole queries."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
import query_texts
import texts
from plain_runner import Settings, collect, run_plain
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from texts import NAMES, TYPES, Refused

import penstock as beam
from penstock.base.row import Row
from penstock.sql import dialect, digits, meanings
from penstock.sql.binding import bound
from penstock.sql.dialect import _Parser
from penstock.sql.errors import SqlError
from penstock.sql.expressions import Tables
from penstock.sql.functions import FUNCTIONS
from penstock.sql.relations import Named
from penstock.sql.scalars import Projection, Scalar, walk
from penstock.sql.spark_query import spark_query
from penstock.sql.spark_text import NotForSpark, spark_text
from penstock.sql.types import SqlType, from_hint, to_hint
from penstock.transforms.sql import SqlTransform
from penstock.typehints.row_type import RowTypeConstraint

_ARROW = {
    "BIGINT": pyarrow.int64(),
    "DOUBLE": pyarrow.float64(),
    "STRING": pyarrow.string(),
    "BOOLEAN": pyarrow.bool_(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pyarrow.timestamp("us"),
    "INTERVAL": pyarrow.duration("us"),
    "BINARY": pyarrow.binary(),
}
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Else Spark computes what an expression has in common with others, where CASE would not compute it.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Else a comparison may leave out a cast that fails.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    ),
    # Hundreds of expressions are computed sooner than their code is compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Some overflows are bare errors of Java.
_FAILURES = (PySparkException, Py4JJavaError)
ROWS = texts.table()
_AT_ONCE = 150


def arrow_type(kind: SqlType) -> pyarrow.DataType:
    if kind.name == "DECIMAL":
        return pyarrow.decimal128(kind.precision, kind.scale)
    return pyarrow.list_(arrow_type(kind.element)) if kind.element else _ARROW[kind.name]


@pytest.fixture(scope="module")
def frame(spark) -> Iterator[Any]:
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    yield frame_of(spark)
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def frame_of(spark: Any) -> Any:
    schema = pyarrow.schema(
        [
            ("id", pyarrow.int64()),
            *((name, arrow_type(kind)) for name, kind in zip(NAMES, TYPES, strict=True)),
        ]
    )
    columns = [list(range(len(ROWS))), *map(list, zip(*ROWS, strict=True))]
    frame = spark.createDataFrame(pyarrow.table(columns, schema=schema))
    # A frame with an exchange is not computed by the optimizer.
    return with_local_times(frame, dict(zip(NAMES, TYPES, strict=True))).repartition(1).cache().alias("t")


def with_local_times(frame: Any, columns: Mapping[str, SqlType]) -> Any:
    """The frame of a table of Arrow, whose times without a zone have become times with one."""
    for name, kind in columns.items():
        if kind.name == "TIMESTAMP_NTZ":
            frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
    return frame


@dataclass
class Found:
    """What penstock makes of a text.

    Attributes:
        text: The text.
        scalar: What it means.
        outcomes: The value for each row, or the error.
    """

    text: str
    scalar: Scalar
    outcomes: list[Any]

    @property
    def failed(self) -> list[int]:
        return [at for at, each in enumerate(self.outcomes) if isinstance(each, ArithmeticError)]

    def leave_out_failing_parts(self) -> bool:
        """True if more rows fail: where one argument is NULL, Spark may compute others that fail."""
        parts = [Projection((part,)).function for part in walk(self.scalar)]
        found = list(map(_fails, itertools.repeat(parts), ROWS))
        more = [at for at, fails in enumerate(found) if fails and at not in self.failed]
        for at in more:
            self.outcomes[at] = ArithmeticError(_OF_A_PART)
        return bool(more)


_OF_A_PART = "a part fails that is not needed"


def _fails(parts: Iterable[Callable[[Any], Any]], row: tuple[Any, ...]) -> bool:
    try:
        for part in parts:
            part(row)
    except ArithmeticError:
        return True
    return False


def computed(text: str) -> Found:
    scalar = texts.read(text)
    function = Projection((scalar,)).function
    outcomes: list[Any] = []
    for row in ROWS:
        try:
            outcomes.append(function(row)[0])
        except ArithmeticError as error:
            outcomes.append(error)
    return Found(text, scalar, outcomes)


def type_of(spark_type: str) -> str:
    """The name in penstock of a type in Spark."""
    if spark_type.startswith("array<"):
        return f"ARRAY<{type_of(spark_type[6:-1])}>"
    if spark_type.startswith("decimal"):
        return spark_type.upper().replace(",", ", ")
    if spark_type.startswith("interval"):
        return "INTERVAL" if "month" not in spark_type and "year" not in spark_type else "MONTHS"
    others = {"int": "BIGINT", "tinyint": "BIGINT", "smallint": "BIGINT", "void": "NULL"}
    return others.get(spark_type, spark_type).upper()


_IN_THE_LAST_BIT = re.compile(r"\b(?:EXP|LN|LOG10|POW|POWER)\(", re.IGNORECASE)
"""The functions whose results Java and Python compute with other last bits."""


def _near(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isfinite(left):
        return math.isclose(left, right, rel_tol=1e-14)
    return identical(left, right)


def identical(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, float) and isinstance(right, float):
        signs = math.copysign(1, left) == math.copysign(1, right)
        return left == right and signs if left == left else right != right
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return type(left) is type(right) and left == right


@dataclass
class Report:
    """How texts compare.

    Attributes:
        equal: How many are equal in value and type.
        refused: The texts that penstock refuses, and its reasons.
        only_here: The texts that Spark refuses, and its reasons.
        differences: Where both answer, and differ; or where one fails for a row.
    """

    equal: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    only_here: list[tuple[str, str]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def reasons(self) -> str:
        """The number of refused texts for each reason."""
        found = Counter(_NAMED.sub("…", message)[:60] for _, message in self.refused)
        return "\n".join(f"{count:5} {reason}" for reason, count in found.most_common())


_NAMED = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|\".*\"|\(.*\)|[0-9]{5,}")
# Python has other years than Spark, no text of bytes that are none, and no groups that a pattern does not have.
_ONLY_IN_PYTHON = (
    "outside of the years",
    "not text in UTF-8",
    "regular expression of an SQL expression cannot be read",
    _OF_A_PART,
)


def compare(frame: Any, given: Iterable[str], fails: float = 1.0) -> Report:
    """Compares penstock's results of expressions with Spark's, of the same text over the same table.

    Args:
        frame: The table.
        given: The texts.
        fails: The part of the texts that fail for a row, for which Spark is asked whether it fails, too.
    """
    report = Report()
    read = []
    for text in dict.fromkeys(given):
        try:
            read.append(computed(text))
        except Refused as refused:
            report.refused.append((text, str(refused)))
        except Exception as error:
            report.differences.append(f"{text}: {type(error).__name__}: {error}")
    known: list[tuple[Found, str, bool]] = []
    for found, kind in _typed(frame, read, report):
        text, shown = f"({found.text}\n)", type_shown(found.scalar.type)
        if type_of(kind) != shown and "NULL" not in shown:
            report.differences.append(f"{found.text}: {shown} here, {type_of(kind)} in Spark")
        elif "void" in kind:
            # Arrow has no such values that are never NULL.
            report.equal += 1
        else:
            known.append((found, text, True))
            with suppress(NotForSpark):
                known.append((found, spark_text(found.scalar, NAMES), False))
    for start in range(0, len(known), _AT_ONCE):
        _compare_values(frame, known[start : start + _AT_ONCE], report)
    chance = random.Random(0)
    for found, text, is_own in known:
        if is_own and found.failed and chance.random() < fails:
            _compare_failure(frame, found, text, chance.choice(found.failed), report)
    return report


def _typed(frame: Any, read: list[Found], report: Report) -> Iterator[tuple[Found, str]]:
    """The texts with their types in Spark, which refuses some."""
    if not read:
        return
    try:
        types = frame.selectExpr(
            *(f"({found.text}\n) AS e{at}" for at, found in enumerate(read[:_AT_ONCE]))
        ).dtypes
    except _FAILURES as error:
        if len(read) == 1:
            report.only_here.append((read[0].text, str(error).splitlines()[0]))
            return
        half = min(len(read), _AT_ONCE) // 2
        yield from _typed(frame, read[:half], report)
        yield from _typed(frame, read[half : 2 * half], report)
        yield from _typed(frame, read[2 * half :], report)
        return
    yield from zip(read, (kind for _, kind in types), strict=False)
    yield from _typed(frame, read[_AT_ONCE:], report)


def _compare_failure(frame: Any, found: Found, text: str, at: int, report: Report) -> None:
    """Checks that Spark fails for a row for which penstock does."""
    what = str(found.outcomes[at]).splitlines()[0]
    if any(each in what for each in _ONLY_IN_PYTHON):
        return
    if "more than 64 bits" in what and re.search(r"\bDIV\b", found.text.upper()):
        # Spark's DIV of decimals keeps the last 64 bits.
        return
    try:
        values = frame.where(f"id = {at}").selectExpr(f"{text} AS e").toArrow().column("e").to_pylist()
    except _FAILURES:
        return
    parts = [Projection((part,)).function for part in walk(found.scalar)][1:]
    is_optional = values[0] is None or re.search(r"\b(?:AND|OR)\b", found.text.upper())
    if is_optional and _fails(parts, ROWS[at]):
        # Another argument is NULL, or decides, and Spark does not compute this one.
        return
    report.differences.append(
        f"{found.text}: fails here ({what}), {values[0]!r} in Spark, where {_of(found.text, at)}"
    )


def _compare_values(frame: Any, known: list[tuple[Found, str, bool]], report: Report) -> None:
    selected = []
    for number, (found, text, _) in enumerate(known):
        failed = ", ".join(map(str, found.failed))
        selected.append(
            f"{f'CASE WHEN id NOT IN ({failed}) THEN {text} END' if failed else text} AS e{number}"
        )
    try:
        result = frame.selectExpr("id", *selected).toArrow().sort_by("id")
    except (*_FAILURES, pyarrow.ArrowException, ValueError) as error:
        if len(known) > 1:
            for half in (known[: len(known) // 2], known[len(known) // 2 :]):
                _compare_values(frame, half, report)
            return
        [(found, text, is_own)] = known
        if found.leave_out_failing_parts():
            _compare_values(frame, known, report)
            return
        what = str(error).splitlines()[0]
        report.differences.append(f"{found.text}: fails in Spark ({what}{'' if is_own else ', as ' + text})")
        return
    for number, (found, text, is_own) in enumerate(known):
        values = result.column(f"e{number}").to_pylist()
        for at, (here, there) in enumerate(zip(found.outcomes, values, strict=True)):
            same = _near if _IN_THE_LAST_BIT.search(found.text) else identical
            if at not in found.failed and not same(here, there):
                name = "Spark" if is_own else f"Spark as {text}"
                report.differences.append(
                    f"{found.text}: {here!r} here, {there!r} in {name}, where {_of(found.text, at)}"
                )
                break
        else:
            report.equal += is_own


def _of(text: str, at: int) -> dict[str, Any]:
    return {name: value for name, value in zip(NAMES, ROWS[at], strict=True) if name.lower() in text.lower()}


def sample() -> list[str]:
    """Each function with each number and each family of arguments, in each spelling, and each rule of the generator."""
    pinned = [text for text, _, _ in texts.PINNED]
    return [*pinned, *texts.signatures(random.Random(1), 12), *texts.generated(1, 150)]


def test_an_expression_means_in_penstock_what_it_means_in_spark(frame):
    report = compare(frame, sample(), fails=0.1)
    assert not report.differences, "\n" + "\n".join(report.differences)
    assert report.equal > 1000
    assert len(report.refused) < 400, report.reasons()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_more_expressions_mean_in_penstock_what_they_mean_in_spark(frame, seed):
    report = compare(frame, [*texts.signatures(random.Random(seed), 150), *texts.generated(seed, 600)])
    assert not report.differences, "\n" + "\n".join(report.differences)
    print(report.equal, "\n", report.reasons())


def test_each_function_is_among_the_texts():
    called = {name for text in sample() for name in re.findall(r"[A-Z_0-9]+(?=\()", text.upper())}
    absent = {name for name in FUNCTIONS if name.isidentifier() and name not in called}
    # Spark does not have them as functions, or a query writes them with words instead of parentheses.
    words = {
        "AND",
        "BETWEEN",
        "CASE",
        "DIV",
        "ILIKE",
        "IN",
        "LIKE",
        "NEGATIVE",
        "NOT",
        "OR",
        "REGEXP",
        "RLIKE",
    }
    assert absent - words == {"DATE_BIN", "DAYOFWEEK_ISO", "ITEM", "YEAROFWEEK"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2147483647 + 1", "whole numbers have 64 bits"),
        ("2147483647 * Total", "no difference: one operand has 64 bits"),
        ("- 1234567890123456789012345678.0123456789", "no difference: a literal is exact"),
        ("- CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38, 10))", "Spark rounds to 34 digits"),
        (
            "ABS(CAST('-1234567890123456789012345678.0123456789' AS DECIMAL(38, 10)))",
            "Spark rounds to 34 digits",
        ),
        ("5S * amount", "Spark counts the digits of the literal"),
        ("LEAST(3L, 1.5)", "a literal is an INT if it fits"),
    ],
)
def test_known_differences_are_still_there(frame, text, why):
    assert bool(compare(frame, [text]).differences) is not why.startswith("no difference")


def _first_is_the_text(position: str) -> Callable[[list[Any]], exp.Expression]:
    return lambda parts: exp.Trim(
        this=parts[0], expression=parts[1] if parts[1:] else None, position=position
    )


BREAKS: dict[str, tuple[str, Any, str, Any]] = {
    "LTRIM takes the text first": ("TRIM(", _Parser.FUNCTIONS, "LTRIM", _first_is_the_text("LEADING")),
    "RTRIM takes the text first": ("TRIM(", _Parser.FUNCTIONS, "RTRIM", _first_is_the_text("TRAILING")),
    "|| binds less than +": ("||", _Parser, "TERM", SparkParser.TERM),
    "comparisons have two precedences": ("<", _Parser, "_parse_equality", SparkParser._parse_equality),
    "a typed literal is cast last": ("::", _Parser, "TYPE_LITERAL_PARSERS", {}),
    "ARRAY takes brackets for its own": ("[", _Parser, "ARRAY_CONSTRUCTORS", SparkParser.ARRAY_CONSTRUCTORS),
    "an index counts from 1": ("[", meanings.MEANINGS, "ITEM", meanings.MEANINGS["ELEMENT_AT"]),
    "seconds have no fraction": (
        "SECOND FROM",
        meanings.MEANINGS,
        "EXTRACT SECOND",
        lambda time: Decimal(time.second).quantize(Decimal("0.000001")),
    ),
    "POSITION looks from the start": (
        "POSITION(",
        meanings.MEANINGS,
        "LOCATE",
        lambda part, text, position=1: None if None in (part, text) else text.find(part) + 1,
    ),
    "INT has 64 bits": ("AS INT", meanings.MEANINGS, "AS INT", lambda value: value),
    "a quotient is cut": (
        "/",
        digits,
        "_decimal",
        lambda value, scale: Decimal(math.trunc(value * 10**scale)).scaleb(-scale),
    ),
    "a product has the scale of one operand": (
        "*",
        digits,
        "result_type",
        lambda name, left, right: left if name == "*" else _result_type(name, left, right),
    ),
    "hours of an interval are minutes": ("INTERVAL", dialect._PERIODS, "HOUR", 60_000_000),
}
_result_type = digits.result_type


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_found(frame, name, monkeypatch):
    word, owner, key, broken = BREAKS[name]
    (monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr)(owner, key, broken)
    chosen = [text for text in sample() if word in text.upper()]
    report = compare(frame, chosen, fails=1.0 if "bits" in name else 0.0)
    assert report.differences, len(chosen)


# Whole queries


def schema_of(fields: Iterable[tuple[str, SqlType]]) -> pyarrow.Schema:
    return pyarrow.schema([(name, arrow_type(kind)) for name, kind in fields])


@pytest.fixture(scope="module")
def tables(spark, frame) -> Iterator[None]:
    show_tables(spark)
    yield
    for name in query_texts.TABLES:
        spark.catalog.dropTempView(name)


def show_tables(spark: Any) -> None:
    for name, columns in query_texts.TABLES.items():
        cells = map(list, zip(*query_texts.rows_of(name), strict=True))
        table = pyarrow.table(list(cells), schema=schema_of(columns.items()))
        with_local_times(spark.createDataFrame(table), columns).repartition(
            1
        ).cache().createOrReplaceTempView(name)


def answer(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The types of the columns of a query's result in penstock, and its rows."""
    pipeline = beam.Pipeline()
    inputs = {}
    for name, columns in query_texts.TABLES.items():
        rows = [Row(**dict(zip(columns, row, strict=True))) for row in query_texts.rows_of(name)]
        hint = RowTypeConstraint.from_fields([(column, to_hint(kind)) for column, kind in columns.items()])
        inputs[name] = pipeline | name >> beam.Create(rows, reshuffle=False).with_output_types(hint)
    try:
        result = inputs | SqlTransform(query)
    except SqlError as error:
        raise Refused(str(error).splitlines()[0]) from None
    kinds = [type_shown(from_hint(hint)) for _, hint in result.element_type.fields]
    found = collect(result)
    run_plain(pipeline, Settings())
    return kinds, [tuple(row) for row in found]


def type_shown(kind: SqlType) -> str:
    return str(kind.or_null()).replace(" NOT NULL", "")


def as_multiset(rows: Iterable[Iterable[Any]]) -> Counter[str]:
    """Rows whose order does not matter; sums of floats depend on their order in the last digits."""
    return Counter(
        repr([format(cell, ".12g") if isinstance(cell, float) else shown(cell) for cell in row])
        for row in rows
    )


def shown(cell: Any) -> Any:
    return cell.timestamp() if isinstance(cell, datetime) and cell.tzinfo else cell


def compare_queries(spark: Any, given: Iterable[str]) -> Report:
    """Compares penstock's results of whole queries with Spark's, of the same text over the same tables."""
    report = Report()
    columns = {
        name: tuple(Named(*each) for each in kinds.items()) for name, kinds in query_texts.TABLES.items()
    }
    for query in dict.fromkeys(given):
        failed, kinds, rows = "", [], []
        try:
            kinds, rows = answer(query)
        except Refused as refused:
            report.refused.append((query, str(refused)))
            continue
        except Exception as error:
            failed = f"{type(error).__name__}: {error}".splitlines()[0]
        asked = {"Spark": query}
        with suppress(NotForSpark):
            plan = bound(query, Tables(columns, {}, {}))
            asked["Spark, whole"] = spark_query(plan, {name: name for name in columns})
        for who, text in asked.items():
            try:
                found = spark.sql(text)
                types = [type_of(kind) for _, kind in found.dtypes]
                there = found.toArrow().to_pylist() if "void" not in str(found.dtypes) else []
                others = (
                    as_multiset(list(row.values()) for row in there)
                    if len(set(found.columns)) == len(types)
                    else None
                )
            except (*_FAILURES, pyarrow.ArrowException) as error:
                if not failed:
                    report.differences.append(
                        f"{query}: answers here, and fails in {who}: {str(error).splitlines()[0]}"
                    )
                continue
            if failed:
                report.differences.append(f"{query}: fails here: {failed}")
            elif types != kinds:
                report.differences.append(f"{query}: {kinds} here, {types} in {who}")
            elif others is not None and as_multiset(rows) != others:
                mine = as_multiset(rows)
                report.differences.append(
                    f"{query}: {dict(mine - others)} here, {dict(others - mine)} in {who}"
                )
            else:
                report.equal += 1
    return report


def test_a_query_means_in_penstock_what_it_means_in_spark(spark, tables):
    report = compare_queries(spark, query_texts.queries(1, 30))
    assert not report.differences, "\n" + "\n".join(report.differences)
    assert report.equal >= 30
    assert not report.refused


def test_spark_has_no_third_truth_value_for_in_with_a_query_that_is_selected(spark, tables):
    query = "SELECT id, team NOT IN (SELECT NULLIF(Customer, 'ann') FROM customers) AS c FROM plain"
    [difference] = compare_queries(spark, [query]).differences
    assert "None" in difference.partition(" here, ")[0]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_more_queries_mean_in_penstock_what_they_mean_in_spark(spark, tables, seed):
    report = compare_queries(spark, query_texts.queries(seed, 200))
    assert not report.differences, "\n" + "\n".join(report.differences)
    refused = {message.partition(",")[0] for _, message in report.refused}
    assert refused <= {"INNER JOIN needs an equality between its tables"}


@pytest.mark.parametrize(
    ("word", "name", "broken"),
    [("AVG(", "mean_type", digits.sum_type), ("SUM(", "sum_type", lambda kind: kind)],
)
def test_a_break_of_an_aggregate_is_found(spark, tables, word, name, broken, monkeypatch):
    monkeypatch.setattr(digits, name, broken)
    chosen = [
        query
        for query in query_texts.queries(1, 30)
        if query.startswith("SELECT") and word in query.split("FROM")[0]
    ]
    assert compare_queries(spark, chosen).differences
