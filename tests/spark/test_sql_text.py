"""The user's own text means in penstock what it means in Spark: expressions, and whole queries."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField
from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

import penstock as beam
from penstock.elements.row import Row
from penstock.runners.runner import PipelineRunner
from penstock.scalars import decimals, python_writer
from penstock.scalars.function import Choose, ScalarFunction, choose_always
from penstock.scalars.functions import FUNCTIONS, RECORDS
from penstock.scalars.row_functions import Projection
from penstock.scalars.spark_forms import LAST_BIT, NotForSpark
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import Call, Lambda, Scalar, free_parameters, walk
from penstock.scalars.types import SqlType, from_hint, to_hint
from penstock.scalars.widths import bounds_of
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.execution import equality
from penstock.sql.execution.spark_query import spark_query
from penstock.sql.language import dialect, month_intervals
from penstock.sql.language.dialect import _Parser
from penstock.sql.plan.relations import ColumnDef
from penstock.transforms.sql import SqlTransform
from penstock.typehints.row_type import RowTypeConstraint
from tests.runner.plain_runner import Settings, collect, run_plain
from tests.sdk.sql import query_texts, texts
from tests.sdk.sql.texts import NAMES, TYPES, Refused
from tests.spark.sql_values import AS_WRITTEN, arrow_type, arrow_value, identical, with_settings

_SETTINGS = {
    **AS_WRITTEN,
    # Else a comparison may leave out a cast that fails.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    ),
    # Hundreds of expressions are computed sooner than their code is compiled.
    "spark.sql.codegen.wholeStage": "false",
    # A table has one partition, so that a query without broadcasts is one stage.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Some overflows are bare errors of Java.
_FAILURES = (PySparkException, Py4JJavaError)
ROWS = texts.table()
_AT_ONCE = 150


@pytest.fixture(scope="module")
def frame(spark) -> Iterator[Any]:
    with with_settings(spark, _SETTINGS):
        yield frame_of(spark)


def frame_of(spark: Any) -> Any:
    schema = pyarrow.schema(
        [
            ("id", pyarrow.int64()),
            *((name, arrow_type(kind)) for name, kind in zip(NAMES, TYPES, strict=True)),
        ]
    )
    columns = [list(range(len(ROWS))), *(list(map(arrow_value, each)) for each in zip(*ROWS, strict=True))]
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

    def leave_out_needless_failures(self) -> int:
        """Leaves out the rows for which a part fails that is not needed, and returns how many there are."""
        more = [at for at in needless_failures(self.scalar, ROWS) if at not in self.failed]
        for at in more:
            self.outcomes[at] = ArithmeticError(_OF_A_PART)
        return len(more)


_OF_A_PART = "a part fails that is not needed"
_FAILED = object()
_OF_NULL = frozenset(["IS NULL", "IS NOT NULL"])
_KEEP_NULL = _OF_NULL | {"CASE", "COALESCE", "GREATEST", "LEAST", "CONCAT_WS", "ARRAY", "<=>"}
"""The functions that compute another argument though one is NULL."""


def needless_failures(scalar: Scalar, rows: Iterable[tuple[Any, ...]]) -> list[int]:
    """Returns the places of the rows for which a part fails that Spark or penstock may leave out.

    Of arguments beside one that is NULL, or decides AND or OR, they may compute others first. And Spark knows without
    computing it whether a value that has no NULL in its type is NULL, and what a value of the type VOID is.
    """
    all_parts = [*walk(scalar)]
    # A part that reads the parameter of a lambda has no value of its own; any other in it may be computed or not.
    parts = [each for each in all_parts if not free_parameters(each) and not isinstance(each, Lambda)]
    inside = [part for each in all_parts if isinstance(each, Lambda) for part in walk(each.body)]
    asked = [
        each for part in parts if isinstance(part, Call) and part.name in _OF_NULL for each in part.arguments
    ]
    asked += [part for part in parts if isinstance(part, Call) and part.type.name == "NULL"]
    asked += [each for each in inside if not free_parameters(each) and not isinstance(each, Lambda)]
    known = [Projection((each,)).function for each in asked]
    calls = [
        (part.name, [Projection((each,)).function for each in part.arguments])
        for part in parts
        if isinstance(part, Call) and len(part.arguments) > 1 and part.name not in _KEEP_NULL
    ]

    def find(row: tuple[Any, ...]) -> bool:
        if any(_value(each, row) is _FAILED for each in known):
            return True
        for name, arguments in calls:
            values = [_value(each, row) for each in arguments]
            decisive = {"AND": False, "OR": True}.get(name)
            if _FAILED in values and any(each is None or each is decisive for each in values):
                return True
        return False

    return [at for at, row in enumerate(rows) if find(row)]


def _value(function: Callable[[Any], Any], row: tuple[Any, ...]) -> Any:
    try:
        return function(row)[0]
    except ArithmeticError:
        return _FAILED


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
    if spark_type.startswith(("array<", "map<")):
        name, _, inner = spark_type.partition("<")
        return f"{name.upper()}<{', '.join(map(type_of, _parts_of(inner[:-1])))}>"
    if spark_type.startswith("struct<"):
        fields = [each.partition(":") for each in _parts_of(spark_type[7:-1])]
        return f"STRUCT<{', '.join(f'{name}: {type_of(kind)}' for name, _, kind in fields)}>"
    if spark_type.startswith("decimal"):
        return spark_type.upper().replace(",", ", ")
    if spark_type.startswith("interval"):
        return "INTERVAL" if "month" not in spark_type and "year" not in spark_type else "MONTHS"
    return "NULL" if spark_type == "void" else spark_type.upper()


def _parts_of(types: str) -> list[str]:
    """The types that stand between commas, which may be inside others."""
    found, depth = [""], 0
    for character in types:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


_LAST_BITS = 4
_IN_THE_LAST_BITS = frozenset(name for name, function in RECORDS.items() if function.not_in_spark == LAST_BIT)
"""The functions whose results Java and Python compute with other last bits."""


def is_near(found: Found, left: Any, right: Any) -> bool:
    """True if two floats, of an expression with such a function, differ in few of the last bits."""
    if not (isinstance(left, float) and isinstance(right, float) and math.isfinite(left)):
        return False
    inside = [
        each for each in walk(found.scalar) if isinstance(each, Call) and each.name in _IN_THE_LAST_BITS
    ]
    if inside and inside != [found.scalar]:
        # Other functions may make a small difference greater.
        return math.isclose(left, right, rel_tol=1e-6)
    return bool(inside) and abs(left - right) <= _LAST_BITS * math.ulp(left)


@dataclass
class Report:
    """How texts compare.

    Attributes:
        equal: How many are equal in value and type.
        refused: The texts that penstock refuses, and its reasons.
        only_here: The texts that Spark refuses, and its reasons.
        differences: Where both answer, and differ; or where one fails for a row.
        left_out: How many values are not compared, or not equal to the last bit, and why.
    """

    equal: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    only_here: list[tuple[str, str]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def counts(self) -> str:
        """How many texts compare how."""
        refused = f"{len(self.refused)} refused here, {len(self.only_here)} refused by Spark"
        return f"{self.equal} equal, {refused}; values left out: {dict(self.left_out)}"

    def reasons(self) -> str:
        """The number of refused texts for each reason."""
        found = Counter(_NAMED.sub("…", message)[:60] for _, message in self.refused)
        return "\n".join(f"{count:5} {reason}" for reason, count in found.most_common())


_NAMED = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|\".*\"|\(.*\)|[0-9]{5,}")
# Python has other years than Spark, no text of bytes that are none, and no groups that a pattern does not have.
_ONLY_IN_PYTHON = (
    "outside of the years",
    "are not UTF-8",
    "regular expression of an SQL expression cannot be read",
    _OF_A_PART,
)


def compare(frame: Any, given: Iterable[str], fails: float = 1.0, as_sent: float = 0.0) -> Report:
    """Compares penstock's results of expressions with Spark's, of the same text over the same table.

    Args:
        frame: The table.
        given: The texts.
        fails: The part of the texts that fail for a row, for which Spark is asked whether it fails, too.
        as_sent: The part of the texts of which Spark is asked for the text that penstock has it compute, too.
    """
    report, chance = Report(), random.Random(0)
    read: list[Asked] = []
    for text in dict.fromkeys(given):
        try:
            found = computed(text)
        except Refused as refused:
            report.refused.append((text, str(refused)))
            continue
        except Exception as error:
            report.differences.append(f"{text}: {type(error).__name__}: {error}")
            continue
        read.append(Asked(found, f"({text}\n)"))
        if chance.random() < as_sent:
            with suppress(NotForSpark):
                read.append(Asked(found, write_scalar(found.scalar, NAMES), is_own=False))
    known: list[Asked] = []
    for start in range(0, len(read), _AT_ONCE):
        known += _compare_values(frame, read[start : start + _AT_ONCE], report)
    for asked in known:
        if asked.is_own and asked.found.failed and chance.random() < fails:
            _compare_failure(frame, asked, chance.choice(asked.found.failed), report)
    return report


@dataclass(frozen=True, eq=False)
class Asked:
    """What Spark is asked for.

    Attributes:
        found: What penstock makes of the text.
        text: The text as Spark gets it.
        is_own: Whether that is the user's own text.
    """

    found: Found
    text: str
    is_own: bool = True


def _compare_failure(frame: Any, asked: Asked, at: int, report: Report) -> None:
    """Checks that Spark fails for a row for which penstock does."""
    found, text = asked.found, asked.text
    what = str(found.outcomes[at]).splitlines()[0]
    if any(each in what for each in _ONLY_IN_PYTHON):
        report.left_out["fails in Python only"] += 1
        return
    if "more than 64 bits" in what and any(map(_is_quotient_of_decimals, walk(found.scalar))):
        # Spark's DIV of decimals keeps the last 64 bits.
        report.left_out["fails here: DIV of decimals"] += 1
        return
    try:
        values = frame.where(f"id = {at}").selectExpr(f"{text} AS e").toArrow().column("e").to_pylist()
    except _FAILURES:
        return
    if needless_failures(found.scalar, [ROWS[at]]):
        report.left_out[f"fails here: {_OF_A_PART}"] += 1
        return
    report.differences.append(
        f"{found.text}: fails here ({what}), {values[0]!r} in Spark, where {_of(found.text, at)}"
    )


def _is_quotient_of_decimals(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.name == "DIV" and scalar.arguments[0].type.name == "DECIMAL"


def _compare_values(frame: Any, given: list[Asked], report: Report) -> list[Asked]:
    """Compares types and values, and returns what Spark has a value of."""
    try:
        selected = frame.selectExpr("id", *_columns(given))
    except _FAILURES as error:
        accepted = _accepted_parts(frame, given, report, error)
        return _compare_values(frame, accepted, report) if accepted else []
    known = [
        (name, each)
        for (name, kind), each in zip(selected.dtypes[1:], given, strict=True)
        if _has_type(each, kind, report)
    ]
    try:
        columns = [_of_any_null(selected, name) for name, _ in known]
        result = selected.select("id", *columns).toArrow().sort_by("id")
    except (*_FAILURES, pyarrow.ArrowException, ValueError) as error:
        asked = [each for _, each in known]
        if len(asked) > 1:
            # Spark fails where it computes a part that is not needed, most often.
            suspects = [each for each in asked if needless_failures(each.found.scalar, ROWS)]
            others = [each for each in asked if each not in suspects]
            if not suspects or not others:
                suspects, others = asked[::2], asked[1::2]
            return [*_compare_values(frame, suspects, report), *_compare_values(frame, others, report)]
        if more := asked[0].found.leave_out_needless_failures():
            report.left_out[f"a row fails in Spark: {_OF_A_PART}"] += more
            return _compare_values(frame, asked, report)
        what = str(error).splitlines()[0]
        report.differences.append(f"{asked[0].found.text}: fails in Spark ({what}), as {asked[0].text}")
        return []
    for name, asked in known:
        _compare_column(asked, list(map(_as_python, result.column(name))), report)
    return [asked for _, asked in known]


def _of_any_null(frame: Any, name: str) -> Any:
    """A column whose parts may be NULL: PyArrow reads no NULL whose parts may not be."""
    told = re.sub(
        r'"(nullable|containsNull|valueContainsNull)":false', r'"\1":true', frame.schema[name].json()
    )
    return frame[name].cast(StructField.fromJson(json.loads(told)).dataType)


_BEYOND = object()
"""A time in a year that Python does not have."""


def _as_python(value: Any) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _BEYOND


def _accepted(frame: Any, given: list[Asked], report: Report) -> list[Asked]:
    """Returns the texts that Spark does not refuse."""
    try:
        frame.selectExpr(*_columns(given))
    except _FAILURES as error:
        if len(given) > 1:
            return _accepted_parts(frame, given, report, error)
        [asked], what = given, str(error).splitlines()[0]
        if asked.is_own:
            report.only_here.append((asked.found.text, what))
        else:
            report.differences.append(f"{asked.found.text}: Spark refuses {asked.text} ({what})")
        return []
    return given


def _accepted_parts(frame: Any, given: list[Asked], report: Report, error: Exception) -> list[Asked]:
    """Returns the same of texts of which Spark refuses one, most likely one with the words that its error names."""
    if len(given) == 1:
        return _accepted(frame, given, report)
    contexts = error.getQueryContext() if isinstance(error, PySparkException) else []
    named = contexts[0].fragment() if contexts else ""
    suspects = [each for each in given if named in each.text]
    others = [each for each in given if named not in each.text]
    if not suspects or not others:
        suspects, others = given[::2], given[1::2]
    return _accepted(frame, suspects, report) + _accepted(frame, others, report)


def _columns(given: list[Asked]) -> list[str]:
    return [f"{_where_it_is_computed(each)} AS e{at}" for at, each in enumerate(given)]


def _where_it_is_computed(asked: Asked) -> str:
    """The text for the rows for which it does not fail.

    Spark says of some values that they are never NULL, and they are: of an element of an array at a place that is NULL.
    So a text for all rows has a condition, too.
    """
    failed = ", ".join(map(str, asked.found.failed))
    return f"CASE WHEN id NOT IN ({failed or -1}) THEN {asked.text} END"


def _has_type(asked: Asked, kind: str, report: Report) -> bool:
    """True if the values can be compared, since the type is penstock's; another type is a difference."""
    shown = type_shown(asked.found.scalar.type)
    if asked.is_own and type_of(kind) != shown and "NULL" not in shown:
        report.differences.append(f"{asked.found.text}: {shown} here, {type_of(kind)} in Spark")
        return False
    # Arrow has no such values that are never NULL.
    report.equal += asked.is_own and "void" in kind
    return "void" not in kind


def _compare_column(asked: Asked, values: list[Any], report: Report) -> None:
    found = asked.found
    for at, (here, there) in enumerate(zip(found.outcomes, values, strict=True)):
        if at in found.failed or identical(here, there):
            continue
        if here is None and there is _BEYOND:
            report.left_out["is in a year that Python does not have"] += 1
            continue
        if is_near(found, here, there):
            report.left_out["differs in the last bits"] += 1
            continue
        name = "Spark" if asked.is_own else f"Spark as {asked.text}"
        report.differences.append(
            f"{found.text}: {here!r} here, {there!r} in {name}, where {_of(found.text, at)}"
        )
        return
    report.equal += asked.is_own


def _of(text: str, at: int) -> dict[str, Any]:
    return {name: value for name, value in zip(NAMES, ROWS[at], strict=True) if name.lower() in text.lower()}


def sample() -> list[str]:
    """Each function with each number and each family of arguments, in each spelling, and each rule of the generator."""
    pinned = [text for text, _, _ in texts.PINNED]
    return [*pinned, *texts.signatures(random.Random(1), 12), *texts.generated(1, 150)]


def test_an_expression_means_in_penstock_what_it_means_in_spark(frame):
    report = compare(frame, sample(), fails=0.1, as_sent=0.1)
    assert not report.differences, "\n" + "\n".join(report.differences)
    assert report.equal > 1000
    assert len(report.refused) < 400, report.reasons()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_more_expressions_mean_in_penstock_what_they_mean_in_spark(frame, seed):
    report = compare(
        frame, [*texts.signatures(random.Random(seed), 150), *texts.generated(seed, 2_000)], as_sent=1.0
    )
    print(
        f"expressions {seed}: {report.counts()}", *report.differences, report.reasons(), sep="\n", flush=True
    )
    assert not report.differences, "\n" + "\n".join(report.differences)


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
    assert absent - words == {"DATE_BIN", "DAYOFWEEK_ISO", "FIELD", "ITEM", "YEAROFWEEK"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2147483647 + tiny", "no difference: both have 32 bits"),
        ("2147483647 * Total", "no difference: one operand has 64 bits"),
        ("- 1234567890123456789012345678.0123456789", "no difference: a literal is exact"),
        ("- CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38, 10))", "Spark rounds to 34 digits"),
        (
            "ABS(CAST('-1234567890123456789012345678.0123456789' AS DECIMAL(38, 10)))",
            "Spark rounds to 34 digits",
        ),
    ],
)
def test_known_differences_are_still_there(frame, text, why):
    assert bool(compare(frame, [text]).differences) is not why.startswith("no difference")


def _first_is_the_text(position: str) -> Callable[[list[Any]], exp.Expression]:
    return lambda parts: exp.Trim(
        this=parts[0], expression=parts[1] if parts[1:] else None, position=position
    )


def _concatenate_last(parser: Any, parse_mod: bool = True) -> Any:
    parser.TERM = SparkParser.TERM
    this = SparkParser._parse_term(parser, parse_mod)
    while parser._match(TokenType.DPIPE):
        this = exp.DPipe(this=this, expression=SparkParser._parse_term(parser, parse_mod))
    return this


def _with(name: str, choose: Choose | None) -> ScalarFunction:
    """The record of a function that something else computes in Python."""
    return replace(RECORDS[name], python=choose)


BREAKS: dict[str, tuple[str, Any, str, Any]] = {
    "LTRIM takes the text first": ("TRIM(", _Parser.FUNCTIONS, "LTRIM", _first_is_the_text("LEADING")),
    "RTRIM takes the text first": ("TRIM(", _Parser.FUNCTIONS, "RTRIM", _first_is_the_text("TRAILING")),
    "|| binds less than +": ("||", _Parser, "_parse_term", _concatenate_last),
    "| binds closer than &": ("|", dialect, "_BITS", dialect._BITS[::-1]),
    "a year has ten months": ("YEAR", month_intervals, "_MONTHS", {"MONTH": 1, "YEAR": 10}),
    "comparisons have two precedences": ("<", _Parser, "_parse_equality", SparkParser._parse_equality),
    "a typed literal is cast last": ("::", _Parser, "TYPE_LITERAL_PARSERS", {}),
    "ARRAY takes brackets for its own": ("[", _Parser, "ARRAY_CONSTRUCTORS", SparkParser.ARRAY_CONSTRUCTORS),
    "an index counts from 1": ("[", RECORDS, "ITEM", _with("ITEM", RECORDS["ELEMENT_AT"].python)),
    "seconds have no fraction": (
        "SECOND FROM",
        RECORDS,
        "EXTRACT SECOND",
        _with(
            "EXTRACT SECOND", choose_always(lambda time: Decimal(time.second).quantize(Decimal("0.000001")))
        ),
    ),
    "POSITION looks from the start": (
        "POSITION(",
        RECORDS,
        "LOCATE",
        _with(
            "LOCATE",
            choose_always(
                lambda part, text, position=1: None if None in (part, text) else text.find(part) + 1
            ),
        ),
    ),
    "INT has 64 bits": ("TINY", python_writer, "bounds_of", lambda bits: bounds_of(64)),
    "FLOAT has 64 bits": ("F", python_writer, "single", lambda value: value),
    "a quotient is cut": (
        "/",
        decimals,
        "_decimal",
        lambda value, scale: Decimal(math.trunc(value * 10**scale)).scaleb(-scale),
    ),
    "a product has the scale of one operand": (
        "*",
        decimals,
        "result_type",
        lambda name, left, right: left if name == "*" else _result_type(name, left, right),
    ),
    "hours of an interval are minutes": ("INTERVAL", dialect._PERIODS, "HOUR", 60_000_000),
}
_result_type = decimals.result_type


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
    # Without Spark, the transforms compute it, or refuse it.
    pipeline = beam.Pipeline(runner=PipelineRunner())
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


_IN_ROWS = {**dict.fromkeys(("INT", "SMALLINT", "TINYINT"), "BIGINT"), "FLOAT": "DOUBLE"}
"""The types of rows in Python for the types of Spark: numbers have no width."""


def compare_queries(spark: Any, given: Iterable[str]) -> Report:
    """Compares penstock's results of whole queries with Spark's, of the same text over the same tables."""
    report = Report()
    columns = {
        name: tuple(ColumnDef(*each) for each in kinds.items()) for name, kinds in query_texts.TABLES.items()
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
            plan = bind(query, Tables(columns, {}, {}))
            asked["Spark, whole"] = spark_query(plan, {name: name for name in columns})
        for who, text in asked.items():
            try:
                found = spark.sql(text)
                types = [_IN_ROWS.get(type_of(kind), type_of(kind)) for _, kind in found.dtypes]
                there = found.toArrow().to_pylist() if "void" not in str(found.dtypes) else []
                others = (
                    as_multiset(list(row.values()) for row in there)
                    if len(set(found.columns)) == len(types)
                    else None
                )
            except (*_FAILURES, pyarrow.ArrowException) as error:
                if failed:
                    report.left_out[f"fails here and in {who}"] += 1
                else:
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


def sample_queries() -> list[str]:
    """Queries whose equal keys have several forms, and queries by chance."""
    return [*query_texts.PINNED, *query_texts.queries(1, 25)]


def test_a_query_means_in_penstock_what_it_means_in_spark(spark, tables):
    report = compare_queries(spark, sample_queries())
    assert not report.differences, "\n" + "\n".join(report.differences)
    assert report.equal >= 30
    assert not report.refused


def test_spark_has_no_third_truth_value_for_in_with_a_query_that_is_selected(spark, tables):
    query = "SELECT id, team NOT IN (SELECT NULLIF(Customer, 'ann') FROM customers) AS c FROM plain"
    [difference] = compare_queries(spark, [query]).differences
    assert "None" in difference.partition(" here, ")[0]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(15))
def test_more_queries_mean_in_penstock_what_they_mean_in_spark(spark, tables, seed):
    report = compare_queries(spark, query_texts.queries(seed, 200))
    print(f"queries {seed}: {report.counts()}", *report.differences, flush=True)
    assert not report.differences, "\n" + "\n".join(report.differences)
    assert not report.refused


def test_a_break_of_equality_is_found(spark, tables, monkeypatch):
    monkeypatch.setitem(equality._CANONICAL, "DOUBLE", lambda value: value)
    assert compare_queries(spark, query_texts.PINNED).differences


@pytest.mark.parametrize(
    ("word", "name", "broken"),
    [("AVG(", "mean_type", decimals.sum_type), ("SUM(", "sum_type", lambda kind: kind)],
)
def test_a_break_of_an_aggregate_is_found(spark, tables, word, name, broken, monkeypatch):
    monkeypatch.setattr(decimals, name, broken)
    chosen = [
        query for query in sample_queries() if query.startswith("SELECT") and word in query.split("FROM")[0]
    ]
    chosen.append(f"SELECT {word}amount) AS total FROM orders")
    assert compare_queries(spark, chosen).differences
