"""Windows of calendar time: they tile time in every zone, and begin when days do."""

import datetime
import pickle
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checks.time_zones import find_time_zone, local_date, start_of_day
from penstock.transforms.window import CalendarWindows, FixedWindows, IntervalWindow, WindowFn
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp

DAY = datetime.date
HOUR = 3600
ZONES = st.sampled_from(sorted(zoneinfo.available_timezones()))
SECONDS = st.integers(
    *(int(Timestamp.from_rfc3339(f"{year}-01-01T00:00:00Z")) for year in ("1000", "3000"))
) | st.integers(-(2**31), 2**32)
DATES = st.dates(DAY(1000, 1, 1), DAY(3000, 1, 1))
STARTING = DATES | st.just(DAY(1970, 1, 1))
WINDOWS = st.one_of(
    st.builds(CalendarWindows.days, st.integers(1, 500), starting=STARTING, time_zone=ZONES),
    st.builds(
        CalendarWindows.weeks, st.integers(1, 60), st.integers(0, 6), starting=STARTING, time_zone=ZONES
    ),
    st.builds(
        CalendarWindows.months, st.integers(1, 30), st.integers(1, 28), starting=STARTING, time_zone=ZONES
    ),
    st.builds(
        CalendarWindows.years,
        st.integers(1, 9),
        st.sampled_from([1, 3, 7, 12]),
        st.integers(1, 31),
        starting=STARTING,
        time_zone=ZONES,
    ),
)


def window_at(window_fn: CalendarWindows, text: str) -> IntervalWindow:
    (window,) = window_fn.assign(WindowFn.AssignContext(Timestamp.from_rfc3339(text)))
    return window


def bounds(window: IntervalWindow) -> tuple[str, str]:
    return window.start.to_rfc3339(), window.end.to_rfc3339()


@given(WINDOWS, SECONDS, st.integers(0, 999_999))
def test_every_moment_is_in_one_window_which_ends_where_the_next_one_begins(
    window_fn, seconds, micros
) -> None:
    time = seconds * 1_000_000 + micros
    (window,) = window_fn.assign_micros(time)
    assert window.start_micros <= time < window.end_micros
    assert window_fn.assign_micros(window.start_micros) == (window,)
    assert window_fn.assign_micros(window.end_micros - 1) == (window,)
    (before,) = window_fn.assign_micros(window.start_micros - 1)
    (after,) = window_fn.assign_micros(window.end_micros)
    assert (before.end, after.start) == (window.start, window.end)


@given(WINDOWS, SECONDS)
def test_a_window_starts_with_the_first_moment_of_a_day_on_which_it_may(window_fn, seconds) -> None:
    (window,) = window_fn.assign_micros(seconds * 1_000_000)
    zone, start = find_time_zone(window_fn.time_zone), int(window.start)
    assert window.start == start
    first, shown = local_date(start, zone), local_date(start - 1, zone)
    # A zone may skip the day itself, and shows a later one then.
    days = [shown + datetime.timedelta(day) for day in range(1, (first - shown).days + 1)]
    assert [day for day in days if window_fn.cycle.first_day(window_fn.cycle.number_at(day)) == day]


@given(ZONES, DATES)
def test_no_calendar_shows_a_day_before_its_start(name, day) -> None:
    zone = find_time_zone(name)
    start = start_of_day(day, zone)
    assert local_date(start, zone) >= day
    assert all(local_date(start - before, zone) < day for before in (1, 60, HOUR, 12 * HOUR, 30 * HOUR))


@pytest.mark.parametrize(
    ("zone", "day", "start", "hours"),
    [
        ("UTC", "2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", 24),
        ("Asia/Kolkata", "2024-01-01T18:30:00Z", "2024-01-01T18:30:00Z", 24),
        # Clocks are set forward, and back.
        ("Europe/Berlin", "2024-03-31T12:00:00Z", "2024-03-30T23:00:00Z", 23),
        ("Europe/Berlin", "2024-10-27T12:00:00Z", "2024-10-26T22:00:00Z", 25),
        ("America/New_York", "2024-03-10T12:00:00Z", "2024-03-10T05:00:00Z", 23),
        ("Australia/Lord_Howe", "2024-04-07T00:00:00Z", "2024-04-06T13:00:00Z", 24.5),
        # There is no midnight: the day begins at one.
        ("America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", 23),
        ("Asia/Beirut", "2024-03-31T12:00:00Z", "2024-03-30T22:00:00Z", 23),
        # Midnight comes twice, or the hour before it does.
        ("America/Havana", "2024-11-03T12:00:00Z", "2024-11-03T04:00:00Z", 25),
        ("America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-17T02:00:00Z", 25),
        # At one minute past midnight clocks are set back to the day before; the new day had begun.
        ("America/St_Johns", "2006-10-29T12:00:00Z", "2006-10-29T02:30:00Z", 25),
        ("America/St_Johns", "2006-10-29T02:45:00Z", "2006-10-29T02:30:00Z", 25),
        # Midnight is in the middle of what is left out: clocks go from 23:30 to 00:30.
        ("America/Toronto", "1919-03-31T12:00:00Z", "1919-03-31T04:30:00Z", 23.5),
        # A whole day is left out, and one is there twice.
        ("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", 24),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", 24),
        ("Pacific/Kwajalein", "1969-09-30T12:00:00Z", "1969-09-29T13:00:00Z", 47),
        # Local mean time, with seconds.
        ("Europe/Amsterdam", "1800-01-01T12:00:00Z", None, 24),
    ],
)
def test_a_day_lasts_as_long_as_the_clocks_say(zone, day, start, hours) -> None:
    window = window_at(CalendarWindows.days(time_zone=zone), day)
    assert start is None or bounds(window)[0] == start
    assert window.end - window.start == hours * HOUR


@pytest.mark.parametrize(
    ("window_fn", "time", "expected"),
    [
        (CalendarWindows.weeks(), "2024-02-29T00:00:00Z", ("2024-02-26", "2024-03-04")),
        (CalendarWindows.weeks(first_day="Sunday"), "2024-02-29T00:00:00Z", ("2024-02-25", "2024-03-03")),
        (CalendarWindows.weeks(first_day=6), "1969-12-28T00:00:00Z", ("1969-12-28", "1970-01-04")),
        (CalendarWindows.weeks(2), "1970-01-04T00:00:00Z", ("1969-12-22", "1970-01-05")),
        (CalendarWindows.weeks(2), "1970-01-05T00:00:00Z", ("1970-01-05", "1970-01-19")),
        (
            CalendarWindows.weeks(2, starting=DAY(1970, 1, 6)),
            "1970-01-05T00:00:00Z",
            ("1969-12-29", "1970-01-12"),
        ),
        (CalendarWindows.days(3), "1969-12-31T00:00:00Z", ("1969-12-29", "1970-01-01")),
        (
            CalendarWindows.days(10, starting=DAY(2024, 2, 25)),
            "2024-03-05T23:00:00Z",
            ("2024-02-25", "2024-03-06"),
        ),
        (CalendarWindows.months(), "2024-02-29T23:59:59Z", ("2024-02-01", "2024-03-01")),
        (CalendarWindows.months(), "1900-02-28T23:59:59Z", ("1900-02-01", "1900-03-01")),
        (CalendarWindows.months(), "1969-12-31T23:59:59Z", ("1969-12-01", "1970-01-01")),
        (
            CalendarWindows.months(first_day_of_month=28),
            "2023-02-27T00:00:00Z",
            ("2023-01-28", "2023-02-28"),
        ),
        (CalendarWindows.months(3), "1969-12-31T00:00:00Z", ("1969-10-01", "1970-01-01")),
        (CalendarWindows.months(2, 15), "1970-01-14T00:00:00Z", ("1969-11-15", "1970-01-15")),
        (
            CalendarWindows.months(3, starting=DAY(2024, 1, 2)),
            "2024-01-31T00:00:00Z",
            ("2023-11-01", "2024-02-01"),
        ),
        (CalendarWindows.years(), "1600-02-29T00:00:00Z", ("1600-01-01", "1601-01-01")),
        (CalendarWindows.years(month=4, day=6), "2024-04-05T00:00:00Z", ("2023-04-06", "2024-04-06")),
        (CalendarWindows.years(month=1, day=31), "2024-01-30T00:00:00Z", ("2023-01-31", "2024-01-31")),
        (CalendarWindows.years(10), "1969-01-01T00:00:00Z", ("1960-01-01", "1970-01-01")),
        (
            CalendarWindows.years(2, 3, 1, starting=DAY(1971, 3, 1)),
            "1971-03-01T00:00:00Z",
            ("1971-03-01", "1973-03-01"),
        ),
    ],
)
def test_weeks_months_and_years_begin_on_the_days_of_the_calendar(window_fn, time, expected) -> None:
    assert bounds(window_at(window_fn, time)) == tuple(f"{day}T00:00:00Z" for day in expected)


def test_a_month_in_a_zone_begins_and_ends_at_its_midnights() -> None:
    months = CalendarWindows.months(time_zone="Europe/Berlin")
    march = ("2024-02-29T23:00:00Z", "2024-03-31T22:00:00Z")
    assert bounds(window_at(months, "2024-03-31T21:59:59Z")) == march


@given(SECONDS, st.integers(1, 90), DATES)
def test_days_in_utc_are_fixed_windows(seconds, number, starting) -> None:
    offset = (starting - DAY(1970, 1, 1)).days * 24 * HOUR
    calendar = CalendarWindows.days(number, starting=starting)
    fixed = FixedWindows(number * 24 * HOUR, offset)
    assert calendar.assign_micros(seconds * 1_000_000) == fixed.assign_micros(seconds * 1_000_000)


@given(ZONES, st.integers(0, 120), st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]))
def test_only_within_two_days_of_the_ends_of_the_calendar_a_moment_may_have_no_window(
    zone, hours, end
) -> None:
    inwards = hours * HOUR if end.startswith("0") else -hours * HOUR
    moment = Timestamp.from_rfc3339(end) + inwards
    try:
        (window,) = CalendarWindows.days(time_zone=zone).assign_micros(moment.micros)
    except ValueError as error:
        if hours >= 48 or "beyond the range of the calendar" not in str(error):
            raise
    else:
        assert window.start <= moment < window.end


@pytest.mark.parametrize("moment", [MIN_TIMESTAMP, MAX_TIMESTAMP, Timestamp(-62135596801), Timestamp(2**40)])
@pytest.mark.parametrize("window_fn", [CalendarWindows.days(), CalendarWindows.years(time_zone="Asia/Tokyo")])
def test_a_timestamp_beyond_the_calendar_is_refused_by_name(moment, window_fn) -> None:
    with pytest.raises(ValueError, match="timestamp beyond the range of the calendar") as caught:
        window_fn.assign_micros(moment.micros)
    _, where, hint = str(caught.value).split("\n")
    assert repr(window_fn) in where
    assert "1 to 9999" in hint


def test_calendar_windows_are_values() -> None:
    calls = [
        CalendarWindows.days(),
        CalendarWindows.days(2),
        CalendarWindows.days(2, starting=DAY(1970, 1, 2)),
        CalendarWindows.days(time_zone="Europe/Berlin"),
        CalendarWindows.weeks(),
        CalendarWindows.weeks(first_day="sunday"),
        CalendarWindows.weeks(3, "sunday", starting=DAY(2024, 1, 1), time_zone="Asia/Tokyo"),
        CalendarWindows.months(),
        CalendarWindows.months(5, 28, starting=DAY(1900, 1, 31)),
        CalendarWindows.years(),
        CalendarWindows.years(7, 12, 31, starting=DAY(2024, 1, 1)),
    ]
    assert len(set(calls)) == len(set(map(repr, calls))) == len(calls)
    for window_fn in calls:
        again = pickle.loads(pickle.dumps(window_fn))
        assert again == eval(repr(window_fn)) == window_fn
        assert hash(again) == hash(window_fn)
        assert not window_fn.is_merging()
        (window,) = window_fn.assign_micros(0)
        assert window_fn.get_window_coder().decode(window_fn.get_window_coder().encode(window)) == window
    assert CalendarWindows.weeks(1, "Sunday") == CalendarWindows.weeks(1, 6)
    assert CalendarWindows.weeks(2, starting=DAY(1970, 1, 1)) == CalendarWindows.days(
        14, starting=DAY(1970, 1, 5)
    )
    assert CalendarWindows.months(12) == CalendarWindows.years()
    assert CalendarWindows.days(2, starting=DAY(1970, 1, 1)) == CalendarWindows.days(
        2, starting=DAY(2000, 1, 1) - datetime.timedelta(1)
    )


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: CalendarWindows(1), TypeError, "takes a cycle of the calendar, not 1"),
        (lambda: CalendarWindows.days(0), ValueError, "number of days must be from 1 to 365000, but is 0"),
        (lambda: CalendarWindows.weeks(-1), ValueError, "number of weeks must be from 1 to"),
        (lambda: CalendarWindows.months(10**9), ValueError, "number of months must be from 1 to 12000"),
        (lambda: CalendarWindows.years(1.5), TypeError, "number of years must be an int, but is 1.5"),
        (lambda: CalendarWindows.days("UTC"), TypeError, "number of days must be an int"),
        (lambda: CalendarWindows.weeks(first_day=7), ValueError, "not a day of the week: 7"),
        (lambda: CalendarWindows.weeks(first_day="Sonntag"), ValueError, "not a day of the week: 'Sonntag'"),
        (lambda: CalendarWindows.months(1, 29), ValueError, "first_day_of_month parameter must be from 1"),
        (lambda: CalendarWindows.years(1, 2, 29), ValueError, "cannot start with month=2 and day=29"),
        (lambda: CalendarWindows.years(1, 4, 31), ValueError, "cannot start with month=4 and day=31"),
        (lambda: CalendarWindows.years(1, 13), ValueError, "month parameter must be from 1 to 12"),
        (lambda: CalendarWindows.years(day=0), ValueError, "day parameter must be from 1 to 31"),
        (lambda: CalendarWindows.days(starting="1970-01-01"), TypeError, "starting parameter must be a date"),
        (
            lambda: CalendarWindows.days(starting=datetime.datetime(1970, 1, 1)),
            TypeError,
            "starting parameter must be a date",
        ),
        (lambda: CalendarWindows.days(time_zone="Europe/Berlim"), ValueError, "no time zone 'Europe/Berlim'"),
        (lambda: CalendarWindows.days(time_zone="../x"), ValueError, "no time zone '../x'"),
        (lambda: CalendarWindows.days(time_zone=""), ValueError, "no time zone ''"),
        (lambda: CalendarWindows.days(time_zone="America"), ValueError, "no time zone 'America'"),
        (lambda: CalendarWindows.days(time_zone=None), TypeError, "the time zone is None"),
        (lambda: CalendarWindows.days(time_zone=datetime.UTC), TypeError, "the time zone is"),
    ],
)
def test_what_is_refused_is_named_with_its_place_and_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    _, where, hint = str(caught.value).split("\n")
    assert where.startswith("  at test_calendar_windows.py:")
    assert hint.startswith("  hint: ")


def test_a_name_that_is_nearly_right_is_corrected() -> None:
    with pytest.raises(ValueError, match="did you mean 'Europe/Berlin'"):
        CalendarWindows.days(time_zone="Europe/Berlim")


def test_without_a_database_of_time_zones_there_is_still_utc(monkeypatch) -> None:
    def missing(name):
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    assert CalendarWindows.days().assign_micros(5) == (IntervalWindow(0, 86_400),)
    with pytest.raises(ValueError, match="no database of time zones") as caught:
        CalendarWindows.days(time_zone="Europe/Berlin")
    assert "tzdata" in str(caught.value)


def test_elements_of_a_day_share_one_window_object() -> None:
    days = CalendarWindows.days(time_zone="Europe/Berlin")
    assert days.assign_micros(40_000_000_000)[0] is days.assign_micros(40_000_000_001)[0]


def test_durations_of_months_differ() -> None:
    lengths = [window_at(CalendarWindows.months(), f"2023-{month:02}-05T00:00:00Z") for month in (1, 2, 4)]
    assert [window.end - window.start for window in lengths] == [
        Duration(days * 24 * HOUR) for days in (31, 28, 30)
    ]
