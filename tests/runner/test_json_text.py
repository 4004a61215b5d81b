"""The text of JSON: every value is read again from it, exactly, or the write is refused by name."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import random
import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from penstock.utils.timestamp import Duration
from penstock_spark.formats import json_text
from penstock_spark.formats.json_text import JsonText, Unwritable

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MICROS = {"s": 1_000_000, "ms": 1000, "us": 1}
ZONES = [
    *(UTC, datetime.timezone(datetime.timedelta(hours=-9, minutes=-30))),
    datetime.timezone(datetime.timedelta(seconds=-2670)),
    *(ZoneInfo("Africa/Monrovia"), ZoneInfo("Europe/Paris"), ZoneInfo("America/New_York")),
]
EDGES: list[Any] = [
    *(0.1 + 0.2, 1.79e308, -5e-324, -0.0, 1e22, 1e16, 123456789.12345678, 2**63, -(2**70), True, "é\ud800\n"),
    *(datetime.date(9999, 12, 31), datetime.date(1600, 1, 1), datetime.date(1, 1, 1)),
    datetime.datetime(1960, 6, 1, 12, tzinfo=ZoneInfo("Africa/Monrovia")),
    datetime.datetime(1900, 1, 1, tzinfo=ZoneInfo("Europe/Paris")),
    datetime.datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")),
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    *(datetime.timedelta.max, datetime.timedelta.min, datetime.timedelta(microseconds=-1)),
    *map(
        decimal.Decimal,
        ("1.10", "-0.00", "1E+30", "12345678901234567890123", "0.1234567890123456789", "1E-400"),
    ),
    decimal.Decimal("1E+400"),
]


def some_value(chance: random.Random) -> Any:
    match chance.randrange(8):
        case 0:
            return chance.choice(EDGES)
        case 1:
            return math.ldexp(chance.uniform(-1, 1), chance.randint(-1074, 1024))
        case 2:
            exponent = chance.choice([0, -1, -2, -7, 5])
            return decimal.Decimal(chance.randint(-(10**18), 10**18)).scaleb(exponent)
        case 3:
            return datetime.date.fromordinal(chance.randint(1, datetime.date.max.toordinal()))
        case 4:
            micros = chance.randint(-62135596800_000000, 253402300799_999999)
            micros -= micros % chance.choice([1, 1000, 1_000_000])
            return (EPOCH + datetime.timedelta(microseconds=micros)).astimezone(UTC)
        case 5:
            instant = EPOCH + datetime.timedelta(seconds=chance.randint(-6_000_000_000, 6_000_000_000))
            return instant.astimezone(chance.choice(ZONES))
        case 6:
            return datetime.timedelta(
                chance.randint(-(10**6), 10**6), chance.choice([0, 1, 86_399]), chance.choice([0, 1, 5000])
            )
        case _:
            return [some_value(chance), {"in": some_value(chance), "f": 0.1 + 0.2}]


def is_same(value: Any, found: Any, text: JsonText) -> bool:
    """True if what JSON holds says the value."""
    match value:
        case list():
            return len(value) == len(found) and all(map(is_same, value, found, [text] * len(value)))
        case dict():
            return value.keys() == found.keys() and all(
                is_same(value[name], found[name], text) for name in value
            )
        case float():
            return repr(float(found)) == repr(value)
        case decimal.Decimal():
            is_whole = "." not in found and "e" not in found
            return decimal.Decimal(found if is_whole else repr(float(found))) == value
        case datetime.datetime() if text.is_iso:
            return datetime.datetime.fromisoformat(found) == value.astimezone(UTC)
        case datetime.datetime():
            return EPOCH + datetime.timedelta(
                microseconds=int(found) * MICROS[text.unit]
            ) == value.astimezone(UTC)
        case datetime.date() if text.is_iso:
            return datetime.datetime.fromisoformat(found) == datetime.datetime(
                value.year, value.month, value.day
            )
        case datetime.date():
            days, rest = divmod(int(found) * MICROS[text.unit], 86_400_000_000)
            return rest == 0 and days == value.toordinal() - EPOCH.toordinal()
        case datetime.timedelta() if text.is_iso:
            return _length(found) == value
        case datetime.timedelta():
            return datetime.timedelta(microseconds=int(found) * MICROS[text.unit]) == value
        case bool() | str():
            return found is value or found == value
    return int(found) == value


def _length(text: str) -> datetime.timedelta:
    found = re.fullmatch(r"P(-?\d+)DT(\d+)H(\d+)M(\d+)(?:\.(\d{3}|\d{6}))?S", text)
    assert found, text
    days, hours, minutes, seconds, fraction = found.groups()
    micros = int((fraction or "").ljust(6, "0") or 0)
    return datetime.timedelta(int(days), int(seconds), micros, 0, int(minutes), int(hours))


def has_refusable(value: Any, text: JsonText) -> bool:
    """True if a refusal is what the page promises for the value."""
    match value:
        case list():
            return any(has_refusable(each, text) for each in value)
        case dict():
            return any(has_refusable(each, text) for each in value.values())
        case decimal.Decimal():
            is_whole = value == value.to_integral_value() and value.adjusted() < 1000
            return not is_whole and (math.isinf(float(value)) or decimal.Decimal(repr(float(value))) != value)
        case datetime.datetime():
            return bool(value.microsecond % MICROS[text.unit])
        case datetime.timedelta():
            return not text.is_iso and bool(value.microseconds % MICROS[text.unit])
    return False


def law(seed: int) -> bool:
    """Checks a value; False if it is refused, as it must be."""
    chance = random.Random(seed)
    text = JsonText(
        is_iso=chance.random() < 0.5, unit=chance.choice(["s", "ms", "us"]), is_list=chance.random() < 0.3
    )
    value = some_value(chance)
    beside = chance.choice([0.1 + 0.2, float("nan"), None, "x"])
    try:
        written = text.of(["a", "x"], [[beside, value], [1, None]])
    except Unwritable:
        assert has_refusable(value, text), value
        return False
    assert not has_refusable(value, text), value
    records = (
        json.loads(written, parse_float=str, parse_int=str)
        if text.is_list
        else [json.loads(line, parse_float=str, parse_int=str) for line in written.splitlines()]
    )
    assert is_same(value, records[0]["x"], text), (value, records[0]["x"])
    assert records[0]["a"] == (
        None if beside != beside else repr(beside) if isinstance(beside, float) else beside
    )
    assert records[1] == {"a": "1", "x": None}
    return True


@pytest.mark.parametrize("count", [3_000, pytest.param(300_000, marks=pytest.mark.soak)])
def test_a_value_is_read_again_from_its_json_or_refused(count: int) -> None:
    written = sum(law(seed) for seed in range(count))
    assert count / 2 < written < count


def test_the_law_finds_a_time_whose_offset_is_rounded_to_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = JsonText._of_datetime

    def rounded(self: JsonText, value: datetime.datetime, name: str) -> Any:
        seconds = (value.utcoffset() or datetime.timedelta()).seconds % 60
        return exact(self, value + datetime.timedelta(seconds=seconds), name)

    monkeypatch.setitem(json_text._FORMS, datetime.datetime, rounded)
    with pytest.raises(AssertionError):
        test_a_value_is_read_again_from_its_json_or_refused(500)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"x", "has the type bytes, which JSON cannot represent"),
        ({1: "a", "1": "b"}, "a number and a string as keys"),
        ({None: 1}, "a key of the type NoneType"),
        (datetime.datetime(2026, 1, 1), "has no zone"),
        (
            datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "outside of the years",
        ),
    ],
)
def test_what_json_cannot_say_is_refused(value: Any, words: str) -> None:
    text = JsonText(is_iso="years" in words)
    with pytest.raises(Unwritable, match=words):
        text.of(["x"], [[[value]]])


def test_values_of_numpy_and_pandas_are_written_and_a_function_may_convert_others() -> None:
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    at = pd.Timestamp("2026-01-01T00:00:00.000000001", tz="UTC")
    row = [
        np.int64(5),
        np.float64(0.1),
        np.array([1, 2]),
        pd.NA,
        pd.NaT,
        at,
        np.datetime64("1600-01-01"),
        b"x",
        Duration(2),
    ]
    names = [*"abcdefghi"]
    text = JsonText(
        is_iso=True, unit="ns", convert=lambda value: {"bytes": value.decode(), "nan": float("nan")}
    )
    assert list(json.loads(text.of(names, [row])).values()) == [
        *(5, 0.1, [1, 2], None, None, "2026-01-01T00:00:00.000000001Z", "1600-01-01T00:00:00.000000000"),
        *({"bytes": "x", "nan": None}, "P0DT0H0M2S"),
    ]


def test_floats_and_decimals_are_rounded_if_that_is_asked_for() -> None:
    text = JsonText(digits=2, is_list=True)
    assert text.of(["a", "b"], [[2.675, decimal.Decimal("2.675")], [[1e300], {"x": 0.005}]]) == (
        '[{"a":2.67,"b":2.68},{"a":[1e+300],"b":{"x":0.01}}]'
    )
