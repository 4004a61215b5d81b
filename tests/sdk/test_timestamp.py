"""Timestamps and durations: exact microseconds, immutable, and Beam's arithmetic."""

import datetime
import operator
import pickle
from decimal import Decimal
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coders.deterministic import decode_key, encode_key
from penstock.transforms.window import TimestampedValue
from penstock.utils.timestamp import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    TIME_GRANULARITY,
    Duration,
    Timestamp,
)
from penstock.utils.windowed_value import WindowedValue

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


PRECISE = [
    *((number, precision) for number in NUMBERS for precision in (0, 3, 6, 9)),
    *((5, 3, 4), (1, 123456789, 9), (-2, 999999999, 9), (0, 1, 9), (0, 1000, 9), (7, 1, 7), (1, 2500, 3)),
]


def test_moments_of_every_precision_calculate_and_compare_as_those_of_beam() -> None:
    beam = pytest.importorskip("apache_beam.utils.timestamp")
    import penstock.utils.timestamp as penstock

    def results(module, first, second):
        def timestamp(described):
            return (
                module.Timestamp(*described) if len(described) == 3 else module.Timestamp(0).of(described[0])
            )

        one, other = timestamp(first), timestamp(second)
        for operation, operand in product(OPERATIONS, (other, module.Duration(0.25), 2.5)):
            for operands in ((one, operand), (operand, one)):
                try:
                    result = operation(*operands)
                except (TypeError, ValueError, ZeroDivisionError) as error:
                    yield type(error)
                else:
                    is_moment = isinstance(result, module.Timestamp)
                    yield is_moment, result.nanos if is_moment else getattr(result, "micros", result)
        yield hash(one) == hash(other), one.seconds(), one.subseconds(), one.precision(), one.nanos
        yield int(one), float(one), one.to_rfc3339(), one.successor().nanos, one.predecessor().nanos
        yield one.to_proto().seconds, one.to_proto().nanos, module.Timestamp.from_proto(one.to_proto()).nanos
        yield [one.to_precision(digits, allow_lossy_conversion=True).nanos for digits in range(10)]

    for first, second in product(PRECISE, PRECISE):
        assert list(results(penstock, first, second)) == list(results(beam, first, second)), (first, second)


def test_a_moment_of_another_precision_is_pickled_and_is_the_key_that_an_equal_moment_is() -> None:
    fine, coarse = Timestamp(1, 123456789, 9), Timestamp(1, 500, 3)
    assert pickle.loads(pickle.dumps(fine)) == fine
    assert pickle.loads(pickle.dumps(coarse)).precision() == 3
    assert decode_key(encode_key(fine)) == fine
    assert encode_key(coarse) == encode_key(Timestamp(1.5)) == encode_key(Timestamp(1.5, precision=9))
    assert (repr(fine), repr(coarse), repr(-1 + coarse)) == (
        *("Timestamp(1.123456789)", "Timestamp(1.500)"),
        "Timestamp(0.5)",
    )


@pytest.mark.parametrize("micros", [0, 1, -1, 1_500_000, -1_500_000, 10**15])
def test_times_become_protocol_messages_and_back(micros: int) -> None:
    for moment in (Timestamp.from_micros(micros), Duration.from_micros(micros)):
        message = moment.to_proto()
        assert message.seconds * 10**9 + message.nanos == micros * 1000
        assert 0 <= message.nanos < 10**9
        assert type(moment).from_proto(message) == moment


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
        ("1970-04-26t17:46:40.5z", 10000000.5),
        ("0001-01-01T00:00:00+01:00", -62135600400),
        ("9999-12-31T23:59:59-01:00", 253402304399),
        ("2016-03-18T23:22:59.123456+04:00", 1458328979.123456),
        ("2016-03-18T23:22:59.123456-04:00", 1458357779.123456),
        ("1969-12-31T23:59:59.500000000Z", -0.5),
        ("1969-12-31T23:59:59,746939251Z", Timestamp(-1, 746939251, 9)),
        ("9999-12-31T23:59:59.3896941Z", Timestamp(253402300799, 3896941, 7)),
    ],
)
def test_strings_with_any_offset_name_a_moment(text: str, seconds: float) -> None:
    assert Timestamp.from_rfc3339(text) == seconds


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: Timestamp("1"), TypeError, "seconds"),
        (lambda: Timestamp(0, "1"), TypeError, "microseconds"),
        (lambda: Timestamp(0, 0, 10), ValueError, "between 0 and 9"),
        (lambda: Timestamp(0, precision=9, micros=1), ValueError, "micros=1 are given"),
        (lambda: Timestamp(0, 1, 9).micros, ValueError, "finer than a microsecond"),
        (lambda: Timestamp(0, 1, 9) - Timestamp(0), ValueError, "finer than a microsecond"),
        (lambda: Timestamp(0) - Timestamp(0, 1, 9), ValueError, "finer than a microsecond"),
        (lambda: Timestamp(0, 1, 9) % 1, ValueError, "finer than a microsecond"),
        (lambda: Timestamp(0, 1, 9).to_utc_datetime(), ValueError, "more digits than"),
        (lambda: TimestampedValue("a", Timestamp(0, 1, 9)), ValueError, "finer than a microsecond"),
        (lambda: WindowedValue("a", Timestamp(0, 1, 9), ()), ValueError, "finer than a microsecond"),
        (lambda: Duration.from_proto(SimpleNamespace(seconds=1, nanos=1)), ValueError, "finer than a micro"),
        (lambda: Timestamp(0, 0, 6.0), TypeError, "precision"),
        (lambda: Timestamp(1.0005).to_precision(3), ValueError, "more digits than"),
        (lambda: Timestamp(1).to_precision(10), ValueError, "between 0 and 9"),
        (lambda: Timestamp(0, subseconds=1, micros=1), ValueError, "both given"),
        (lambda: Timestamp.of(Duration(1)), TypeError, "Timestamp"),
        (lambda: Duration.of(Timestamp(1)), TypeError, "Duration"),
        (lambda: Timestamp.from_rfc3339("not rfc3339"), ValueError, "could not parse"),
        (lambda: Timestamp.from_rfc3339("0000-12-31T23:59:59Z"), ValueError, "no such date"),
        (lambda: Timestamp(10**12).to_utc_datetime(), OverflowError, "years 1 to 9999"),
        (lambda: Timestamp(-(10**12)).to_rfc3339(), OverflowError, "years 1 to 9999"),
        (lambda: Timestamp.from_rfc3339("2016-03-18T23:22:59"), ValueError, "no offset"),
        (lambda: Timestamp.from_rfc3339("2016-03-18T23:22:59.1234567890Z"), ValueError, "finer"),
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
