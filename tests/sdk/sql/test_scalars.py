"""Expressions of SQL: their types, three truth values, each function, and the code that is compiled from them."""

from __future__ import annotations

import math
import pickle
import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.scalars import conditions
from penstock.scalars.functions import RECORDS, call
from penstock.scalars.resolving import SqlTypeError, cast, try_cast
from penstock.scalars.row_functions import Predicate, Projection
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import (
    Call,
    Column,
    Literal,
    Scalar,
    UserCall,
    columns_of,
    replace_scalars,
    shift_columns,
)
from penstock.scalars.types import (
    ANY,
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
    decimal_type,
    find_common_type,
    from_hint,
    to_hint,
)
from penstock.sql.errors import SqlError, make_sql_error
from penstock.utils.timestamp import Timestamp
from tests.sdk.sql.random_scalars import COLUMNS, PRODUCTIONS, literal, made, rows, scalar_of

TRUTHS = (True, False, None)
MOMENT = datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC)


def value_of(scalar: Scalar, row: tuple[Any, ...] = ()) -> Any:
    return Projection((scalar,))(row)[0]


def of(name: str, *values: Any) -> Any:
    """What a function gives for values of the program, read from columns and so not known when it is called."""
    columns = [
        Column(place, f"c{place}", from_hint(type(value)).or_null())
        if not isinstance(value, Literal)
        else value
        for place, value in enumerate(values)
    ]
    return value_of(call(name, columns), tuple(values))


# Types


def test_a_hint_and_its_type_belong_together() -> None:
    for hint in (int, float, str, bytes, bool, Decimal, date, datetime, timedelta, list[int]):
        assert to_hint(from_hint(hint)) == to_hint(from_hint(to_hint(from_hint(hint))))
        assert not from_hint(hint).nullable
        assert from_hint(Optional[hint]) == from_hint(hint).or_null()
    assert from_hint(Timestamp).name == "TIMESTAMP"
    assert from_hint(to_hint(TIMESTAMP_NTZ)) == TIMESTAMP_NTZ
    assert from_hint(dict) == from_hint(int | str) == from_hint(Any) == ANY
    assert from_hint(type(None)) == from_hint(None) == NULL


def test_whole_numbers_of_numpy_are_bigints() -> None:
    numpy = pytest.importorskip("numpy")
    assert from_hint(numpy.int32).name == from_hint(numpy.uint8).name == "BIGINT"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([BIGINT, DECIMAL], DECIMAL),
        ([BIGINT, DECIMAL, DOUBLE], DOUBLE),
        ([DATE, TIMESTAMP], TIMESTAMP),
        ([NULL, STRING.or_null(False)], STRING),
        ([NULL, NULL], NULL),
        ([ANY, STRING], ANY),
        ([STRING, BIGINT], None),
        ([BOOLEAN, BIGINT], None),
        ([BIGINT.or_null(False), DOUBLE.or_null(False)], DOUBLE.or_null(False)),
        ([SqlType("ARRAY", True, BIGINT), SqlType("ARRAY", True, DOUBLE)], SqlType("ARRAY", True, DOUBLE)),
        ([SqlType("ARRAY", True, BIGINT), BIGINT], None),
    ],
)
def test_types_have_a_common_type_or_none(types: list[SqlType], expected: SqlType | None) -> None:
    assert find_common_type(types) == expected
    assert find_common_type(reversed(types)) == expected


# Errors


def test_an_error_shows_the_line_and_a_caret_below_the_place() -> None:
    query = "SELECT a,\n\tb +\nFROM t"
    assert str(make_sql_error("what", query, query.index("b"), "do it")).splitlines() == [
        "what",
        "  line 2, column 2 of the query",
        "     b +",
        "     ^",
        "  hint: do it",
    ]
    assert str(make_sql_error("what")) == "what"
    assert isinstance(make_sql_error("what", query, 99), SqlError)


def test_a_long_line_is_cut_around_the_caret() -> None:
    query = "x" * 500 + "!" + "y" * 500
    _, _, shown, caret = str(make_sql_error("what", query, 500)).splitlines()
    assert len(shown) < 100
    assert shown[caret.index("^")] == "!"


def test_an_unknown_function_names_the_nearest() -> None:
    with pytest.raises(SqlTypeError, match="unknown function uper") as raised:
        call("uper", [literal("a")])
    assert raised.value.hint == "did you mean UPPER?"
    assert pickle.loads(pickle.dumps(raised.value)).hint == raised.value.hint


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("+", ["a", 1]),
        ("UPPER", [[1]]),
        ("AND", [1, True]),
        ("SUBSTRING", ["a"]),
        ("<", [True, 1]),
        ("DIV", [1.5, 2]),
        ("COALESCE", ["a", 1]),
        ("CASE", [True, "a", 1]),
        ("*", [MOMENT, 2]),
        ("ELEMENT_AT", [1, 1]),
        ("DATE_TRUNC", ["EON", MOMENT]),
        ("EXTRACT", ["EON", MOMENT]),
        ("REPEAT", ["a", 1 << 40]),
        ("RLIKE", ["a", "("]),
        ("LIKE", ["a", "a\\b"]),
        ("TO_DATE", ["2024", "YYYY"]),
        (">", [date(2024, 1, 1), "2024-13-01"]),
        ("IN", [1]),
    ],
)
def test_arguments_that_do_not_fit_are_refused_when_the_call_is_made(name: str, values: list[Any]) -> None:
    with pytest.raises(SqlTypeError) as raised:
        call(name, [literal(value) for value in values])
    assert raised.value.what
    assert raised.value.hint


def test_a_cast_between_types_that_have_none_is_refused() -> None:
    for given_type, target in ((DATE, BIGINT), (BOOLEAN, TIMESTAMP), (BIGINT, SqlType("BINARY"))):
        with pytest.raises(SqlTypeError, match="no CAST"):
            cast(Column(0, "a", given_type), target)


# Three truth values


def test_and_or_and_not_have_three_values() -> None:
    columns = [Column(0, "a", BOOLEAN), Column(1, "b", BOOLEAN)]
    for left in TRUTHS:
        for right in TRUTHS:
            both = False if left is False or right is False else None if None in (left, right) else True
            either = True if True in (left, right) else None if None in (left, right) else False
            row = (left, right)
            for name, expected in (("AND", both), ("OR", either)):
                scalar = call(name, columns)
                assert value_of(scalar, row) is expected
                assert Predicate(scalar)(row) is (expected is True)
        assert of("NOT", Literal(left, BOOLEAN)) is (None if left is None else not left)


def test_an_undecided_condition_is_neither_true_nor_false() -> None:
    null = Literal(None, BOOLEAN)
    assert of("IS TRUE", null) is of("IS FALSE", null) is False
    assert of("IS NOT TRUE", null) is of("IS NULL", null) is True
    assert value_of(call("CASE", [null, literal(1), literal(2)])) == 2


@pytest.mark.parametrize(
    ("items", "expected"),
    [((1, 2), True), ((2, 3), False), ((2, None), None), ((1, None), True), ((None,), None)],
)
def test_a_list_with_null_leaves_open_what_is_not_found(
    items: tuple[Any, ...], expected: bool | None
) -> None:
    columns = [Column(place, f"c{place}", BIGINT) for place in range(len(items) + 1)]
    literals = [Literal(item, BIGINT) for item in items]
    for scalars in (columns, [columns[0], *literals]):
        assert value_of(call("IN", scalars), (1, *items)) is expected
        assert value_of(call("IN", scalars), (None, *items)) is None


def test_conditions_stop_at_what_decides() -> None:
    fails = call(">", [call("/", [literal(1), Column(0, "a", BIGINT)]), literal(0)])
    no, yes = literal(False), literal(True)
    assert value_of(call("AND", [no, fails]), (0,)) is False
    assert value_of(call("OR", [yes, fails]), (0,)) is True
    assert value_of(call("CASE", [yes, literal(1), fails, literal(2)]), (0,)) == 1
    assert (
        value_of(call("COALESCE", [literal(1), call("DIV", [literal(1), Column(0, "a", BIGINT)])]), (0,)) == 1
    )
    assert Predicate(call("AND", [no, fails]))((0,)) is False
    with pytest.raises(ArithmeticError, match="divides by zero"):
        value_of(call("AND", [yes, fails]), (0,))


# Functions; function_cases.txt has the values of each


def test_functions_that_take_null() -> None:
    assert of("COALESCE", None, 2) == 2
    assert of("GREATEST", None, 1, 3) == 3
    assert of("LEAST", None, 1, 3) == 1
    assert of("CONCAT_WS", ",", "a", Literal(None, STRING), "b") == "a,b"
    assert of("ARRAY", 1, Literal(None, BIGINT)) == [1, None]
    assert of("<=>", 1, Literal(None, BIGINT)) is False
    assert of("<=>", Literal(None, BIGINT), Literal(None, BIGINT)) is True
    assert of("IS DISTINCT FROM", 1, Literal(None, BIGINT)) is True
    assert of("IF", Literal(None, BOOLEAN), 1, 2) == 2


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("REGEXP_REPLACE", ("abc", "x*", "-"), "-a-b-c-"),
        ("REGEXP_REPLACE", ("axb", "x*", "-"), "-a--b-"),
        ("REGEXP_REPLACE", ("abc", "(b)", "$12"), "ab2c"),
        ("REGEXP_REPLACE", ("abc", "b", "\\$"), "a$c"),
        ("REGEXP_EXTRACT", ("a", "(a)|(b)", 2), ""),
        ("SPLIT", ("abc", "x*"), ["a", "b", "c", ""]),
        ("SPLIT", ("abc", ""), ["a", "b", "c"]),
        ("SPLIT", ("", ""), [""]),
        ("SPLIT", ("a,b,,", ",", 0), ["a", "b", "", ""]),
        ("SUBSTRING", ("abc", -5, 3), "a"),
        ("SUBSTRING", ("abc", 0, 2), "ab"),
        ("SUBSTRING", ("abc", -(1 << 31)), "ab"),
        ("PMOD", (-45, -(1 << 63)), (1 << 63) - 45),
        ("PMOD", (-7, -3), -1),
        ("LOCATE", ("", "abc", 9), 1),
        ("LOCATE", ("b", "abc", Literal(None, BIGINT)), 0),
        ("LPAD", ("abc", 5, ""), "abc"),
        ("REPLACE", ("abc", "", "x"), "abc"),
        ("ROUND", (2.675, literal(2)), 2.68),
        ("ROUND", ((1 << 63) - 1, literal(-25)), 0),
        ("ROUND", (7, literal(-2_000_000_000)), 0),
        ("ROUND", (1e300, literal(-2_000_000_000)), 0.0),
        ("ROUND", (0.1, literal(2_000_000_000)), 0.1),
        ("FLOOR", (math.nan,), 0),
        ("LIKE", ("a%c", literal("a\\%_")), True),
        ("LIKE", ("a%c", literal("a#%c"), literal("#")), True),
        ("RLIKE", ("12\n", literal("^\\d+$")), True),
        ("RLIKE", ("a\u2028", literal(".$")), True),
        ("POWER", (0.0, -1.0), math.inf),
        ("EXP", (1000.0,), math.inf),
        ("LN", (0.0,), None),
        ("UNIX_TIMESTAMP", (datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),), 0),
        ("/", (timedelta(microseconds=3), 2), timedelta(microseconds=2)),
        ("/", (timedelta(microseconds=-1), 2), timedelta(microseconds=-1)),
    ],
)
def test_edges_are_those_of_spark(name: str, values: tuple[Any, ...], expected: Any) -> None:
    # What Spark 4.3 gave for each of these calls.
    assert of(name, *values) == expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("\t7\n", BIGINT, 7),
        ("1.5", BIGINT, None),
        ("\u0663", BIGINT, None),
        ("1_000", BIGINT, None),
        ("1.5d", DOUBLE, 1.5),
        ("0x1p3", DOUBLE, 8.0),
        ("-Infinity", DOUBLE, -math.inf),
        ("1e400", DOUBLE, math.inf),
        (" T ", BOOLEAN, True),
        ("on", BOOLEAN, None),
        ("2020-2", DATE, date(2020, 2, 1)),
        ("2020-02-03 abc", DATE, date(2020, 2, 3)),
        ("2020-02-03abc", DATE, None),
        ("2020-", DATE, None),
        ("20-02-03", DATE, None),
        ("2020-02-03T", TIMESTAMP, None),
        ("2020-02-03 01:02:03.1234567", TIMESTAMP, datetime(2020, 2, 3, 1, 2, 3, 123_456, UTC)),
        ("2020-02-03 01:02:03.", TIMESTAMP, datetime(2020, 2, 3, 1, 2, 3, 0, UTC)),
        ("2020-02-03 01:02:03+1:3", TIMESTAMP, datetime(2020, 2, 2, 23, 59, 3, 0, UTC)),
        ("2020-02-03 01:02:03-0130", TIMESTAMP, datetime(2020, 2, 3, 2, 32, 3, 0, UTC)),
        ("2020-02-03 01:02:03+01:30:15", TIMESTAMP, datetime(2020, 2, 2, 23, 31, 48, 0, UTC)),
        ("2020-02-03 01:02:03 UTC+1", TIMESTAMP, datetime(2020, 2, 3, 0, 2, 3, 0, UTC)),
        ("2020-02-03 01:02:03 utc", TIMESTAMP, None),
        ("2020-02-03 01:02:03+19:00", TIMESTAMP, None),
        ("2020-02-03 24:00:00", TIMESTAMP, None),
        ("2020-02-03 01:02Z", TIMESTAMP, None),
        ("2020-02-03 01:02:03Z", TIMESTAMP_NTZ, datetime(2020, 2, 3, 1, 2, 3)),
    ],
)
def test_texts_are_read_as_spark_reads_them(text: str, target: SqlType, expected: Any) -> None:
    # What Spark 4.3 gave for each of these texts.
    assert value_of(try_cast(Column(0, "s", STRING), target), (text,)) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e10, "1.0E10"),
        (1e-4, "1.0E-4"),
        (0.001, "0.001"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (4.9e-324, "4.9E-324"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (Decimal("1E+3"), "1000"),
        (datetime(2020, 2, 3, 1, 2, 3, 500_000, UTC), "2020-02-03 01:02:03.5"),
    ],
)
def test_values_are_written_as_spark_writes_them(value: Any, text: str) -> None:
    assert value_of(cast(Column(0, "v", from_hint(type(value))), STRING), (value,)) == text


def test_arrays() -> None:
    array = Column(0, "a", SqlType("ARRAY", True, BIGINT))
    row = ([5, None, 7],)
    assert value_of(call("ELEMENT_AT", [array, literal(-1)]), row) == 7
    assert value_of(call("ELEMENT_AT", [array, literal(2)]), row) is None
    assert value_of(call("ARRAY_CONTAINS", [array, literal(5)]), row) is True
    assert value_of(call("ARRAY_CONTAINS", [array, literal(6)]), row) is None
    for index in (0, 4, -4):
        with pytest.raises(ArithmeticError, match="does not have"):
            value_of(call("ELEMENT_AT", [array, literal(index)]), row)


def test_times_are_read_in_utc() -> None:
    tokyo = datetime(2024, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=9)))
    assert of("HOUR", tokyo) == 16
    assert of("DAY", tokyo) == 29
    assert of("DATE_TRUNC", literal("day"), tokyo) == datetime(2024, 2, 29, tzinfo=UTC)
    assert of("EXTRACT", literal("dow"), tokyo) == 5
    assert value_of(cast(Column(0, "t", TIMESTAMP), STRING), (tokyo,)) == "2024-02-29 16:30:00"


def test_a_date_stays_a_date_if_whole_days_are_added() -> None:
    day = Column(0, "d", DATE)
    row = (date(2024, 2, 28),)
    assert value_of(call("+", [day, literal(timedelta(days=1))]), row) == date(2024, 2, 29)
    assert value_of(call("+", [literal(timedelta(hours=1)), day]), row) == datetime(
        2024, 2, 28, 1, tzinfo=UTC
    )
    assert value_of(
        call("-", [day, literal("2024-02-01")]) if False else call("-", [day, day]), row
    ) == timedelta(0)
    assert call("-", [literal(MOMENT), day]).type.name == "INTERVAL"


def test_a_text_of_the_query_is_read_as_what_it_is_compared_with() -> None:
    assert str(call(">", [Column(0, "d", DATE), literal("2024-02-29")])) == "(d > DATE '2024-02-29')"
    assert str(call("IN", [Column(0, "n", BIGINT), literal("7"), literal("8")])) == "IN(n, 7, 8)"
    with pytest.raises(SqlTypeError):
        call("=", [Column(0, "n", BIGINT), Column(1, "s", STRING)])


@pytest.mark.parametrize(
    ("scalar", "what"),
    [
        (call("+", [Column(0, "a", BIGINT), literal((1 << 63) - 1)]), "64 bits"),
        (call("NEGATIVE", [literal(-(1 << 63))]), "64 bits"),
        (call("%", [literal(5.0), call("-", [Column(0, "a", BIGINT), literal(7)])]), "by zero"),
        (cast(literal("12345 x"), BIGINT), "casts a text to BIGINT"),
        (call("*", [literal(Decimal(10) ** 30), literal(Decimal(10) ** 30)]), "38 digits"),
        (call("DATE_ADD", [literal(date(9999, 12, 31)), Column(0, "a", BIGINT)]), "years 1 to 9999"),
        (call("REGEXP_EXTRACT", [literal("12345"), literal("1"), Column(0, "a", BIGINT)]), "0 groups"),
    ],
)
def test_an_error_names_no_value_and_has_a_hint(scalar: Scalar, what: str) -> None:
    with pytest.raises(ArithmeticError, match=what) as raised:
        value_of(scalar, (7,))
    assert "hint: " in str(raised.value)
    assert "12345" not in str(raised.value)


def test_try_cast_gives_null_where_a_cast_fails_and_hides_no_other_error() -> None:
    assert value_of(try_cast(literal("x"), BIGINT)) is None
    assert value_of(try_cast(Column(0, "a", STRING), DOUBLE), (" 1e3 ",)) == 1000.0
    with pytest.raises(ArithmeticError, match="by zero"):
        value_of(try_cast(call("DIV", [literal(1), Column(0, "a", BIGINT)]), STRING), (0,))


def test_nan_equals_itself_and_is_above_all_numbers() -> None:
    numbers = [-math.inf, -1.0, 0.0, 2.0, math.inf, math.nan]
    for left_place, left in enumerate(numbers):
        for right_place, right in enumerate(numbers):
            for name, expected in (
                ("=", left_place == right_place),
                ("<>", left_place != right_place),
                ("<", left_place < right_place),
                ("<=", left_place <= right_place),
                (">", left_place > right_place),
                (">=", left_place >= right_place),
                ("<=>", left_place == right_place),
            ):
                assert of(name, left, right) is expected
                assert of(name, left, literal(right)) is expected
                assert of(name, literal(left), right) is expected
    assert of("=", -0.0, 0.0) is True


def test_decimals_have_38_digits() -> None:
    assert of("/", Decimal(1), Decimal(3)) == Decimal("0." + "3" * 38)
    assert of("+", Decimal("0.1"), 1) == Decimal("1.1")
    assert of("+", Decimal("0.5"), 1.0) == 1.5


def test_columns_of_any_type_are_read_when_their_values_are_known() -> None:
    columns = [Column(0, "a", ANY), Column(1, "b", ANY)]
    assert value_of(call("+", columns), (1, 2.5)) == 3.5
    assert value_of(call("<", columns), (1, Decimal(2))) is True
    assert value_of(call("=", columns), (None, 1)) is None
    assert value_of(call("UPPER", columns[:1]), ("a",)) == "A"
    assert value_of(cast(columns[0], STRING), (True,)) == "true"
    assert [value_of(call("ABS", columns[:1]), (value,)) for value in (-1, -1.5, None)] == [1, 1.5, None]
    assert value_of(call("NEGATIVE", columns[:1]), (Decimal(1),)) == Decimal(-1)
    assert [value_of(call("YEAR", columns[:1]), (value,)) for value in (MOMENT, MOMENT.date())] == [
        2024,
        2024,
    ]
    assert value_of(call("ROUND", [columns[0], literal(1)]), (0.25,)) == 0.3
    assert value_of(call("-", columns), (MOMENT, timedelta(1))) == MOMENT - timedelta(1)
    wrong = [("+", ("a", 1)), ("-", (1, "a")), ("<", ("a", 1)), ("DIV", (1.5, 1)), ("-", (MOMENT, 1))]
    for name, row in [*wrong, ("UPPER", (1,)), ("ABS", ("a",)), ("YEAR", (1,))]:
        with pytest.raises(TypeError, match="hint: "):
            value_of(call(name, columns[: len(row)]), row)


# Expressions as values


def test_columns_are_found_renumbered_and_replaced() -> None:
    first, second = Column(0, "a", BIGINT), Column(4, "b", BIGINT)
    scalar = UserCall("f", max, (call("+", [first, second]), first), BIGINT)
    assert columns_of(scalar) == {0, 4}
    assert columns_of(shift_columns(scalar, {0: 4, 4: 1})) == {4, 1}
    assert str(replace_scalars(scalar, [second, first, first, first, literal(9)])) == "f((b + 9), b)"


def test_compiled_functions_travel() -> None:
    projection = Projection(
        (call("UPPER", [Column(0, "a", STRING)]), UserCall("f", _twice, (literal(4),), BIGINT))
    )
    predicate = Predicate(call("LIKE", [Column(0, "a", STRING), literal("a%")]))
    assert projection(("a",)) == ("A", 8)
    assert predicate(("ab",)) is True
    for copied in (pickle.loads(pickle.dumps(projection)), Projection(projection.scalars)):
        assert copied == projection
        assert copied((None,)) == (None, 8)
    assert pickle.loads(pickle.dumps(predicate))(("b",)) is False


def _twice(value: int) -> int:
    return 2 * value


def test_expressions_nest_deep_and_have_many_branches() -> None:
    column = Column(0, "a", BIGINT)
    total: Scalar = column
    for _ in range(150):
        total = call("+", [total, column])
    assert value_of(total, (2,)) == 302
    branches: list[Scalar] = []
    for number in range(500):
        branches += [call("=", [column, literal(number)]), literal(number * 2)]
    assert value_of(call("CASE", branches), (499,)) == 998
    assert value_of(call("CASE", branches), (500,)) is None


def test_the_own_function_of_a_query_gets_null_as_none() -> None:
    scalar = UserCall("f", lambda value: value is None, (Column(0, "a", BIGINT),), BOOLEAN)
    assert value_of(scalar, (None,)) is True


# The compiled function against the meaning, one call after the other


def interpreted(scalar: Scalar, row: tuple[Any, ...]) -> Any:
    """The value of an expression, without any code that is compiled from it."""
    if isinstance(scalar, Column):
        return row[scalar.index]
    if isinstance(scalar, Literal):
        return scalar.value
    assert isinstance(scalar, Call)
    parts = scalar.arguments
    name = scalar.name

    def part(place: int) -> Any:
        return interpreted(parts[place], row)

    match name:
        case "AND" | "OR":
            decides = name == "OR"
            left = part(0)
            right = decides if left is decides else part(1)
            return decides if decides in (left, right) else None if None in (left, right) else not decides
        case "NOT":
            return None if part(0) is None else not part(0)
        case "IS NULL" | "IS NOT NULL":
            return (part(0) is None) == (name == "IS NULL")
        case "IS TRUE" | "IS FALSE":
            return part(0) is (name == "IS TRUE")
        case "CASE":
            for place in range(0, len(parts) - 1, 2):
                if part(place):
                    return part(place + 1)
            return part(-1)
        case "COALESCE":
            return next((value for value in map(part, range(len(parts))) if value is not None), None)
        case "<=>":
            return conditions.same(part(0), part(1))
        case "BETWEEN":
            low = Call(">=", (parts[0], parts[1]), BOOLEAN)
            return interpreted(Call("AND", (low, Call("<=", (parts[0], parts[2]), BOOLEAN)), BOOLEAN), row)
        case "IN":
            found = False
            for place in range(1, len(parts)):
                equal = interpreted(Call("=", (parts[0], parts[place]), BOOLEAN), row)
                if equal:
                    return True
                found = None if equal is None else found
            return found
        case "NULLIF":
            equal = interpreted(Call("=", parts, BOOLEAN), row)
            return None if equal else part(0)
    values = []
    for each in parts:
        values.append(interpreted(each, row))
        if values[-1] is None and not RECORDS[name].takes_null:
            return None
    if name in ("=", "<>", "<", "<=", ">", ">="):
        found = conditions.order(*values)
        return {"=": found == 0, "<>": found != 0, "<": found < 0, "<=": found <= 0, ">": found > 0}.get(
            name, found >= 0
        )
    if name in ("+", "-", "*") and scalar.type.name == "BIGINT":
        exact = {"+": values[0] + values[-1], "-": values[0] - values[-1], "*": values[0] * values[-1]}[name]
        if not -(1 << 63) <= exact < 1 << 63:
            raise ArithmeticError
        return exact
    if name == "NEGATIVE" and scalar.type.name in ("BIGINT", "DOUBLE"):
        if values[0] == -(1 << 63) and scalar.type.name == "BIGINT":
            raise ArithmeticError
        return -values[0]
    choose = RECORDS[name].python
    assert choose is not None
    return choose(scalar.type, [each.type for each in parts])(*values)


def outcome(compute: Any) -> Any:
    try:
        return repr(compute())
    except ArithmeticError:
        return ArithmeticError


@settings(max_examples=400)
@given(st.integers(0, 1 << 60))
def test_the_compiled_function_computes_what_each_call_means(seed: int) -> None:
    chance = random.Random(seed)
    name = chance.choice(list(PRODUCTIONS))
    scalar = scalar_of(name, chance, chance.randrange(1, 6))
    function = Projection((scalar,)).function
    predicate = Predicate(scalar) if name == "BOOLEAN" else None
    for row in rows(chance, 12):
        expected = outcome(lambda row=row: interpreted(scalar, row))
        # A conjunction of a predicate may stop at NULL, and so before an error.
        assert outcome(lambda row=row: function(row)[0]) == expected
        if predicate and expected is not ArithmeticError:
            assert repr(predicate(row)) == str(expected == "True")


def test_every_production_but_those_of_case_has_a_text_in_spark() -> None:
    chance = random.Random(2)
    names = [column.name for column in COLUMNS]
    for name, productions in PRODUCTIONS.items():
        for production in productions:
            scalar = made(name, production, chance, 1)
            if isinstance(scalar, Call) and scalar.name in ("UPPER", "LOWER", "ILIKE"):
                with pytest.raises(NotForSpark, match="Unicode"):
                    write_scalar(scalar, names)
            else:
                assert write_scalar(scalar, names)


@pytest.mark.parametrize(
    ("scalar", "reason"),
    [
        (UserCall("f", _twice, (literal(1),), BIGINT), "function of the user"),
        (call("+", [Column(0, "a", ANY), literal(1)]), "not known"),
        (call("RLIKE", [Column(0, "a", STRING), literal(r"\bx")]), "Java"),
        (call("RLIKE", [Column(0, "a", STRING), Column(0, "a", STRING)]), "Java"),
        (call("REGEXP_REPLACE", [Column(0, "a", STRING), literal("x*"), literal("-")]), "stores as two"),
        (call("SPLIT", [Column(0, "a", STRING), literal("(?=x)")]), "stores as two"),
        (call("EXP", [literal(1.0)]), "last bit"),
        (cast(Column(0, "a", DOUBLE), STRING), "digits"),
        (cast(Column(0, "a", STRING), TIMESTAMP), "time zone"),
        (call("*", [Column(0, "a", DECIMAL), literal(2)]), "decimals"),
        (call("DIV", [Column(0, "a", decimal_type(10, 2)), literal(2)]), "last 64 bits"),
        (call("NEGATIVE", [Column(0, "a", decimal_type(35, 2))]), "34 digits"),
        (cast(Column(0, "a", DOUBLE), decimal_type(10, 2)), "digits"),
    ],
)
def test_what_spark_computes_differently_is_not_for_spark(scalar: Scalar, reason: str) -> None:
    with pytest.raises(NotForSpark, match=reason):
        write_scalar(scalar, ["a"])


def test_texts_of_spark_keep_names_and_literals() -> None:
    assert write_scalar(Column(0, "a", STRING), ["we`ird"]) == "`we``ird`"
    assert write_scalar(literal("it's \\ \n"), []) == "'it\\'s \\\\ \\u000a'"
    assert write_scalar(literal(-5), []) == "(-5L)"
    assert write_scalar(Literal(Decimal("-1.50"), decimal_type(3, 2)), []) == "(-1.50BD)"
    assert write_scalar(Literal(Decimal("0.05"), decimal_type(2, 2)), []) == "0.05BD"
    assert write_scalar(Literal(Decimal("2"), decimal_type(12, 0)), []) == "CAST(2BD AS DECIMAL(12, 0))"
    product = call("*", [Column(0, "a", decimal_type(10, 2)), literal(2)])
    assert (write_scalar(product, ["a"]), str(product.type.or_null())) == ("(`a` * 2BD)", "DECIMAL(12, 2)")
    assert write_scalar(literal(math.nan), []) == "CAST('NaN' AS DOUBLE)"
    assert write_scalar(literal(MOMENT), []) == "TIMESTAMP'2024-02-29 12:34:56.789012Z'"
    assert write_scalar(call("LEFT", [Column(0, "a", STRING), literal(2)]), ["a"]) == "left(`a`, 2)"
    assert write_scalar(call("=", [Column(0, "n", BIGINT), literal("7")]), ["n"]) == "(`n` = 7L)"
