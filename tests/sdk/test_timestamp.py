"""Timestamps and durations: exact microseconds, immutable, and Beam's arithmetic."""

import datetime
import operator
import pickle
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.utils.timestamp import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    TIME_GRANULARITY,
    Duration,
    Timestamp,
)

MICROS = st.integers(-(2**70), 2**70)
NUMBERS = (0, 1, -1, 7, 0.1, -0.1, 1.5, -2.75, 1458343379.123456, 9.9999999, -9.9999999, True)


@given(MICROS, MICROS)
def test_arithmetic_is_that_of_the_integers_of_microseconds(first: int, second: int) -> None:
    moment, length = Timestamp.from_micros(first), Duration.from_micros(second)
    assert (moment + length).micros == (length + moment).micros == first + second
    assert (moment - length).micros == (moment - Timestamp.from_micros(second)).micros == first - second
    assert (length + length - length, -length) == (length, Duration(micros=-second))
    assert (moment < length, moment == length) == (first < second, first == second)
    assert (moment.predecessor().micros, moment.successor().micros) == (first - 1, first + 1)
    assert moment.seconds() * 10**6 + moment.subseconds() == first
    assert 0 <= moment.subseconds() < 10**6
    if second:
        assert (moment % length).micros == (Duration(micros=first) % length).micros == first % second


@given(MICROS)
def test_equal_values_hash_equal_and_survive_pickling_and_show_every_digit(micros: int) -> None:
    moment = Timestamp(micros=micros)
    assert hash(moment) == hash(Timestamp.from_micros(micros)) == hash(Duration(micros=micros))
    assert pickle.loads(pickle.dumps(moment)) == moment
    assert type(pickle.loads(pickle.dumps(Duration(micros=micros)))) is Duration
    assert Decimal(repr(moment).removeprefix("Timestamp(").removesuffix(")")).scaleb(6) == micros


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_datetimes_and_strings_round_trip_to_the_microsecond(moment: datetime.datetime) -> None:
    timestamp = Timestamp.from_utc_datetime(moment)
    assert timestamp.to_utc_datetime(has_tz=True) == moment
    assert timestamp.to_utc_datetime() == moment.replace(tzinfo=None)
    assert Timestamp.from_rfc3339(timestamp.to_rfc3339()) == timestamp == Timestamp.of(moment)


OPERATIONS = (
    *(operator.add, operator.sub, operator.mul, operator.mod, operator.truediv),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
)


def _outcome(module, operation, first, second):
    """What an operation gives with one library's classes, in a form that compares across libraries."""

    def build(described):
        kind, number = described
        return number if kind == "number" else getattr(module, kind)(number)

    try:
        result = operation(build(first), build(second))
    except (TypeError, ZeroDivisionError) as error:
        return type(error)
    return (type(result).__name__, getattr(result, "micros", result))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_operators_give_what_beam_gives(operation) -> None:
    beam = pytest.importorskip("apache_beam.utils.timestamp")
    import penstock.utils.timestamp as penstock

    operands = [(kind, number) for kind in ("Timestamp", "Duration", "number") for number in NUMBERS]
    for first, second in product(operands, operands):
        if (first[0], second[0]) != ("number", "number"):
            ours = _outcome(penstock, operation, first, second)
            assert ours == _outcome(beam, operation, first, second), (first, second)


@pytest.mark.parametrize("number", NUMBERS)
def test_conversions_give_what_beam_gives(number) -> None:
    beam = pytest.importorskip("apache_beam.utils.timestamp")
    ours, theirs = Timestamp(number), beam.Timestamp(number)
    for of in (
        float,
        int,
        lambda moment: (moment.micros, moment.nanos, moment.seconds(), moment.subseconds()),
    ):
        assert of(ours) == of(theirs)
    assert (ours.to_rfc3339(), ours.to_utc_datetime()) == (theirs.to_rfc3339(), theirs.to_utc_datetime())
    assert float(Duration(number, 3)) == float(beam.Duration(number, 3))
    assert Timestamp(number, 2.5).micros == beam.Timestamp(number, 2.5).micros


def test_the_bounds_are_those_of_beam() -> None:
    beam = pytest.importorskip("apache_beam.utils.timestamp")
    assert MIN_TIMESTAMP.micros == beam.MIN_TIMESTAMP.micros
    assert MAX_TIMESTAMP.micros == beam.MAX_TIMESTAMP.micros
    assert TIME_GRANULARITY.micros == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-04-26T17:46:40Z", 10000000),
        ("2016-03-18T23:22:59.123456+04:00", 1458328979.123456),
        ("2016-03-18T23:22:59.123456-04:00", 1458357779.123456),
        ("1969-12-31T23:59:59.500000000Z", -0.5),
    ],
)
def test_strings_with_any_offset_name_a_moment(text: str, seconds: float) -> None:
    assert Timestamp.from_rfc3339(text) == seconds


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: Timestamp("1"), TypeError, "seconds"),
        (lambda: Timestamp(0, "1"), TypeError, "microseconds"),
        (lambda: Timestamp(0, 0, 9), ValueError, "precision 9 is not supported"),
        (lambda: Timestamp(0, 0, 6.0), TypeError, "precision"),
        (lambda: Timestamp(1).to_precision(3), ValueError, "precision 3 is not supported"),
        (lambda: Timestamp(0, subseconds=1, micros=1), ValueError, "both given"),
        (lambda: Timestamp.of(Duration(1)), TypeError, "Timestamp"),
        (lambda: Duration.of(Timestamp(1)), TypeError, "Duration"),
        (lambda: Timestamp.from_rfc3339("not rfc3339"), ValueError, "could not parse"),
        (lambda: Timestamp.from_rfc3339("2016-03-18T23:22:59"), ValueError, "no offset"),
        (lambda: Timestamp.from_rfc3339("2016-03-18T23:22:59.1234567Z"), ValueError, "finer"),
        (lambda: Timestamp.of(datetime.datetime(1970, 1, 1)), ValueError, "dt has no timezone info"),
        (
            lambda: Timestamp.of(
                datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
            ),
            ValueError,
            "not in UTC",
        ),
        (lambda: setattr(Timestamp(1), "micros", 2), AttributeError, "immutable"),
        (lambda: delattr(Duration(1), "micros"), AttributeError, "immutable"),
    ],
)
def test_what_is_refused_is_named_and_comes_with_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    assert "\n  hint: " in str(caught.value)


def test_now_is_between_two_looks_at_the_clock() -> None:
    before = datetime.datetime.now(datetime.UTC)
    now = Timestamp.now().to_utc_datetime(has_tz=True)
    assert before <= now <= datetime.datetime.now(datetime.UTC)
