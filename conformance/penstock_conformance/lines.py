"""Single lines of a transcript: what happens, and what comes out."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from penstock.machines import records
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind
from penstock_conformance.malformed import Malformed
from penstock_conformance.moments import TIME_PATTERN, micros_of, window_of
from penstock_conformance.scenario import Expected, ExpectedDrop, ExpectedHold, ExpectedPane

_TIME = rf"(?:{TIME_PATTERN})"
_KEY = r"(?:(?P<key>[A-Za-z_]\w*): )?"
_EVENT = re.compile(
    rf"(?:(?P<clock>{_TIME})\s+)?(?P<verb>element|retraction|watermark|clock|signal|end of round)(?:\s+(?P<rest>.*))?"
)
_ARRIVAL = re.compile(rf"{_KEY}(?P<value>.+) at (?P<time>{_TIME})")
_WATERMARK = re.compile(rf"(?P<watermark>{_TIME})(?:; (?P<percentiles>\d+% {_TIME}(?:, \d+% {_TIME})*))?")
_PANE = re.compile(
    rf"(?P<retract>retract )?{_KEY}(?P<value>.+?) in (?P<window>\[[^)\]]*\)|global)(?P<words>.*)"
)
_DROP = re.compile(
    rf"dropped {_KEY}(?P<value>.+?)(?: in (?P<window>\[[^)\]]*\)|global))?(?: (?P<reason>expired|finished))?"
)
_HOLD = re.compile(rf"hold (?P<hold>{_TIME})|no hold")
_WORD = re.compile(rf" +(?:(nonspeculative #|at |not |#)?({_TIME}|[\w-]+))")

_TIMINGS = {
    "early": PaneInfoTiming.EARLY,
    "on-time": PaneInfoTiming.ON_TIME,
    "late": PaneInfoTiming.LATE,
}
_KINDS = {kind.name.lower(): kind for kind in ValueKind}

EVENT_HINT = (
    "write `[TIME] element [KEY: ]VALUE at TIME`, `retraction ...`, `[TIME] watermark TIME[; 90% TIME]`, `TIME clock`, "
    "`[TIME] signal NAME` or `[TIME] end of round`"
)
EXPECTED_HINT = (
    "write `-> [retract ][KEY: ]VALUE in WINDOW [early|on-time|late] [first] [last] [#N] [at TIME]` or "
    "`-> dropped [KEY: ]VALUE [in WINDOW] [expired|finished]`"
)


def event_of(text: str) -> records.Event:
    """The event in a line.

    >>> event_of("12 element game: 5 at 1.5")
    AddElement(value=5, timestamp_micros=1500000, clock_micros=12000000, key='game', kind=<ValueKind.INSERT: 0>)
    """
    match = _EVENT.fullmatch(text)
    if match is None:
        raise Malformed(f"{text!r} is not an event", hint=EVENT_HINT)
    clock_micros = micros_of(match["clock"]) if match["clock"] else None
    match match["verb"], match["rest"]:
        case "element", str(rest):
            return _arrival(rest, clock_micros, ValueKind.INSERT)
        case "retraction", str(rest):
            return _arrival(rest, clock_micros, ValueKind.DELETE)
        case "watermark", str(rest):
            return _watermark(rest, clock_micros)
        case "clock", None if clock_micros is not None:
            return records.AdvanceClock(clock_micros)
        case "signal", str(rest):
            return records.Signal(rest, clock_micros)
        case "end of round", None:
            return records.EndMicroBatch(clock_micros)
    raise Malformed(f"the event {text!r} has missing or additional parts", hint=EVENT_HINT)


def _arrival(rest: str, clock_micros: int | None, kind: ValueKind) -> records.AddElement:
    match = _ARRIVAL.fullmatch(rest)
    if match is None:
        raise Malformed(f"{rest!r} is not an element with its event time", hint=EVENT_HINT)
    return records.AddElement(
        value_of(match["value"]), micros_of(match["time"]), clock_micros, match["key"], kind
    )


def _watermark(rest: str, clock_micros: int | None) -> records.AdvanceWatermark:
    match = _WATERMARK.fullmatch(rest)
    if match is None:
        raise Malformed(f"{rest!r} is not a watermark", hint=EVENT_HINT)
    percentiles = {}
    for pair in (match["percentiles"] or "").split(", "):
        percent, _, time = pair.partition("% ")
        if percent:
            percentiles[int(percent) / 100] = micros_of(time)
    return records.AdvanceWatermark(micros_of(match["watermark"]), clock_micros, percentiles)


def expected_of(text: str) -> Expected:
    """The expectation in a line, after its ``->``.

    >>> pane = expected_of("retract [5, 7] in [0, 10) late #1 at 9.5")
    >>> pane.is_retraction, pane.value, pane.window, pane.index, pane.timestamp_micros
    (True, [5, 7], [0.0, 10.0), 1, 9500000)
    """
    if match := _DROP.fullmatch(text):
        return ExpectedDrop(
            text=text,
            value=value_of(match["value"]),
            key=match["key"],
            window=window_of(match["window"]) if match["window"] else None,
            reason=records.DropReason[match["reason"].upper()] if match["reason"] else None,
        )
    match = _PANE.fullmatch(text)
    if match is None:
        raise Malformed(f"{text!r} is neither a pane nor a dropped element", hint=EXPECTED_HINT)
    pane = ExpectedPane(
        text, value_of(match["value"]), match["key"], window_of(match["window"]), bool(match["retract"])
    )
    words, position = match["words"], 0
    while word := _WORD.match(words, position):
        pane = replace(pane, **_stated(word[1] or "", word[2]))
        position = word.end()
    if position < len(words):
        raise Malformed(f"{words[position:].strip()!r} does not describe a pane", hint=EXPECTED_HINT)
    return pane


def _stated(before: str, word: str) -> dict[str, Any]:
    """The attribute of a pane that a word describes."""
    match before, word:
        case "", ("early" | "on-time" | "late"):
            return {"timing": _TIMINGS[word]}
        case (("" | "not "), ("first" | "last")):
            return {f"is_{word}": not before}
        case "", kind if kind in _KINDS:
            return {"kind": _KINDS[kind]}
        case "#", number if number.isdigit():
            return {"index": int(number)}
        case "nonspeculative #", number if number.isdigit() or number == "-1":
            return {"nonspeculative_index": int(number)}
        case "at ", time:
            return {"timestamp_micros": micros_of(time)}
    raise Malformed(f"{before + word!r} does not describe a pane", hint=EXPECTED_HINT)


def hold_of(text: str) -> ExpectedHold | None:
    """The hold of the output watermark in a line; None if the line is about something else.

    >>> hold_of("hold 9.5"), hold_of("no hold"), hold_of("element 5 at 3")
    (ExpectedHold(micros=9500000), ExpectedHold(micros=None), None)
    """
    match = _HOLD.fullmatch(text)
    if match is None:
        return None
    return ExpectedHold(micros_of(match["hold"]) if match["hold"] else None)


def value_of(text: str) -> object:
    """A value, as a Python literal.

    >>> value_of("[1, 'a']")
    [1, 'a']
    """
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        raise Malformed(f"{text!r} is not a value", hint="write it in Python: 5, 'a', [1, 2]") from None
