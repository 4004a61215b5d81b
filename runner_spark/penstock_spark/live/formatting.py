"""Numbers, times and states as the views of a run write them."""

from __future__ import annotations

from penstock.machines.records import MAX_MICROS
from penstock.utils.timestamp import Timestamp, format_time
from penstock_spark.live.elements import StepElements


def format_count(count: float | None) -> str:
    """Returns a count, shortened if it is ten thousand or more; a dash for an unknown one.

    >>> [format_count(count) for count in (None, 0, 9_999, 12_345, 3_400_000, 2_000_000_000)]
    ['-', '0', '9 999', '12.3 k', '3.4 M', '2.0 G']
    """
    if count is None:
        return "-"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / min(size, {'k': 1e3}.get(unit, size)):.1f} {unit}"
    return f"{round(count):,}".replace(",", " ")


def format_seconds(seconds: float) -> str:
    """Returns a duration in the two units that matter.

    >>> [format_seconds(seconds) for seconds in (0.04, 3.2, 60, 61, 3_700, 200_000)]
    ['0.0 s', '3.2 s', '1 min', '1 min 1 s', '1 h 1 min', '2 d 7 h']
    """
    if seconds < 60:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    for size, unit, part, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def format_moment(micros: int | None) -> str:
    """Returns an event time, to the second.

    >>> format_moment(None), format_moment(1_500_000_000), format_moment(MAX_MICROS)
    ('not known yet', '1970-01-01 00:25:00', 'the end')
    """
    if micros is None:
        return "not known yet"
    if micros >= MAX_MICROS:
        return "the end"
    text = format_time(Timestamp.from_micros(micros // 1_000_000 * 1_000_000))
    return f"{text[:10]} {text[11:19]}" if text.endswith("Z") else text


def format_elements(one: StepElements) -> str:
    """Returns the elements of a step as text, with the rate at which it reads or emits them.

    >>> format_elements(StepElements("Parse", 20_000, 12_000, in_per_second=500.0, out_per_second=300.0))
    '20.0 k in · 12.0 k out · 500 a second'
    >>> format_elements(StepElements("Read", None, 7)), format_elements(StepElements("Write", 7))
    ('7 out', '7 in')
    """
    parts = [
        f"{format_count(count)} {word}"
        for word, count in (("in", one.elements_in), ("out", one.elements_out))
        if count is not None
    ]
    rate = one.out_per_second if one.in_per_second is None else one.in_per_second
    return " · ".join([*parts, *([] if rate is None else [f"{format_count(rate)} a second"])])


def format_lag(micros: int | None) -> str:
    """Returns a lag.

    >>> format_lag(None), format_lag(90_000_000)
    ('-', '1 min 30 s')
    """
    return "-" if micros is None else format_seconds(micros / 1_000_000)


def escape_control_characters(text: str) -> str:
    r"""Returns a text for a terminal: a label may contain what moves the cursor or changes colours.

    >>> escape_control_characters("a\x1b[31mb\nc")
    'a·[31mb·c'
    """
    return "".join(each if each.isprintable() else "·" for each in text)


def shorten_start(text: str, length: int) -> str:
    """Returns a text whose end matters most, cut to a length.

    >>> shorten_start("Read > Sum > Write", 12)
    '…Sum > Write'
    """
    return text if len(text) <= length else f"…{text[max(len(text) - length + 1, 0) :].lstrip()}"
