"""The command ``state``: prints what each step of a stream keeps for each key and window."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from penstock.elements.bounded_window import BoundedWindow, GlobalWindow
from penstock.error import refusal
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp, format_time
from penstock_conformance.subcommands import Commands
from penstock_spark.checkpoints.contract.kept_cells import Unreadable
from penstock_spark.checkpoints.state_table import StateRow, state_rows

FORMS = ("table", "csv", "json")
_ROWS = 100
_CELL_MAX = 40
_LONGER_CELLS = {"key": 60, "timers": 100}
_COLUMNS = ("key", "window", "state", "new", "panes", "next pane", "by the clock", "timers")

Cells = dict[str, str]
"""The cells of a row, by column."""


def add_command(commands: Commands) -> None:
    """Adds the command to a parser's."""
    state = commands.add_parser(
        "state",
        help="print what the steps of a stream keep for each key and window",
        description="Prints the state in a checkpoint after the last finished micro-batch: for each step the keys and "
        "windows, what is kept for them, and when they are due, in UTC. It starts Spark, and shows keys and values. "
        "Modules of your own are found in the working folder.",
        epilog="Example: penstock state /checkpoints/scores --step Sum --key red",
    )
    state.set_defaults(run=_state)
    state.add_argument("checkpoint", help="the folder of the checkpoint")
    state.add_argument(
        "--step", metavar="LABEL", help="only the state of this step, or of the steps in this composite"
    )
    state.add_argument(
        "--key", metavar="KEY", help="only this key, as the table shows it, or without its quotes or window"
    )
    state.add_argument(
        "--limit", type=int, default=_ROWS, metavar="N", help="how many rows; default: %(default)s"
    )
    form = state.add_mutually_exclusive_group()
    form.add_argument("--to", choices=FORMS, default="table", help="the form; default: %(default)s")
    form.add_argument(
        "--json", dest="to", action="store_const", const="json", help="a line of JSON for each row"
    )


def _state(options: argparse.Namespace) -> int:
    if options.limit < 1:
        what = f"--limit is {options.limit}"
        raise refusal(ValueError, what, where="", hint="use an integer above 0")
    # A script finds modules beside itself only.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    rows = state_rows(options.checkpoint, label=options.step, shows_unreadable=True)
    if options.key is not None:
        rows = (row for row in rows if has_key(row.key, options.key))
    found = list(islice(rows, options.limit + 1))
    shown = sorted(found[: options.limit], key=lambda row: (row.level, row.grouping))
    match options.to:
        case "json":
            for row in shown:
                print(json.dumps(_fields(row), ensure_ascii=False))
        case "csv":
            writer = csv.DictWriter(sys.stdout, ("step", *_COLUMNS))
            writer.writeheader()
            writer.writerows({"step": row.grouping, **_cells(row)} for row in shown)
        case _:
            print("\n".join(_tables(shown)) if shown else _describe_nothing(options))
    _say_unreadable(shown)
    if len(found) > len(shown):
        print(f"there are more rows than {options.limit}; --limit shows more", file=sys.stderr)
    return 0


def has_key(key: object, asked: str) -> bool:
    """True if a key is the one that a user has written; also if it is the pair of that key and a window.

    >>> from penstock.transforms.window import IntervalWindow
    >>> has_key("amy", "amy"), has_key(("amy", IntervalWindow(60, 120)), "amy"), has_key(("amy", 1), "amy")
    (True, True, False)
    """
    if asked in (format_key(key), str(key)):
        return True
    match key:
        case tuple((own, BoundedWindow())):
            return has_key(own, asked)
    return False


def _describe_nothing(options: argparse.Namespace) -> str:
    of_step = f" of {options.step!r}" if options.step is not None else ""
    of_key = f" with the key {options.key}" if options.key is not None else ""
    return f"there is no state{of_step}{of_key}"


def _say_unreadable(rows: Sequence[StateRow]) -> None:
    reasons = dict.fromkeys(
        each.reason
        for row in rows
        for each in (row.key, *(row.value.values() if isinstance(row.value, dict) else ()))
        if isinstance(each, Unreadable)
    )
    if reasons:
        said = f"some state cannot be read: {'; '.join(reasons)}"
        hint = "run this in the folder of the stream's program, where its modules can be imported"
        print(f"{said}\n  hint: {hint}", file=sys.stderr)


def _tables(rows: Sequence[StateRow]) -> Iterator[str]:
    """A table for each step, without columns that are empty."""
    by_step: dict[tuple[int, str], list[Cells]] = {}
    for row in rows:
        by_step.setdefault((row.level, row.grouping), []).append(_cells(row))
    for number, ((_, step), cells) in enumerate(by_step.items()):
        if number:
            yield ""
        yield step
        columns = [name for name in _COLUMNS if any(each[name] for each in cells)]
        yield from (f"  {line}" for line in format_table(columns, cells))


def format_table(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Returns rows as text in columns, shortened.

    >>> list(format_table(["key", "panes"], [{"key": "'a'", "panes": "2"}]))
    ['key  panes', "'a'  2"]
    """
    cells = [
        list(columns),
        *([_cell(name, row[name]) for name in columns] for row in rows),
    ]
    widths = [max(len(row[number]) for row in cells) for number in range(len(columns))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(column: str, text: str) -> str:
    length = _LONGER_CELLS.get(column, _CELL_MAX)
    printable = "".join(each if each.isprintable() else "·" for each in islice(text, length + 1))
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"


def _cells(row: StateRow) -> Cells:
    value = row.value
    if isinstance(value, dict) and row.new_elements == row.panes == 0:
        state = ", ".join(f"{name} = {each!r}" for name, each in value.items())
    else:
        state = "" if value is None else repr(value)
    return {
        "key": "" if row.key is None else format_key(row.key),
        "window": format_window(row.window),
        "state": state,
        "new": str(row.new_elements or ""),
        "panes": str(row.panes or ""),
        # The timers of a DoFn say more.
        "next pane": "" if row.timers else format_moment(row.next_alarm),
        "by the clock": "" if row.timers else format_moment(row.next_clock_alarm),
        "timers": ", ".join(
            f"{each.name}{f'[{each.tag}]' if each.tag else ''} at {format_moment(each.time)}"
            f" ({'event time' if each.is_event_time else 'clock'})"
            for each in row.timers
        ),
    }


def format_key(key: object) -> str:
    """Returns a key as Python writes it, with the windows in it in UTC.

    >>> from penstock.transforms.window import IntervalWindow
    >>> format_key("amy"), format_key(("amy", IntervalWindow(60, 120)))
    ("'amy'", "('amy', 1970-01-01 00:01:00 to 00:02:00)")
    """
    if isinstance(key, BoundedWindow):
        return format_window(key)
    if type(key) is tuple and any(isinstance(each, BoundedWindow) for each in key):
        return f"({', '.join(map(format_key, key))})"
    return repr(key)


def format_window(window: BoundedWindow) -> str:
    """Returns a window with its bounds in UTC; the second bound has a date if it is on another day.

    >>> from penstock.transforms.window import IntervalWindow
    >>> format_window(IntervalWindow(60, 120)), format_window(GlobalWindow())
    ('1970-01-01 00:01:00 to 00:02:00', 'global')
    >>> format_window(IntervalWindow(86_399, 86_401))
    '1970-01-01 23:59:59 to 1970-01-02 00:00:01'
    """
    if isinstance(window, GlobalWindow):
        return "global"
    end = format_moment(window.end)
    start = getattr(window, "start", None)
    if start is None:
        return f"{window!r}"
    begin = format_moment(start)
    same_day = begin[:10] == end[:10] and end[10:11] == " "
    return f"{begin} to {end[11:] if same_day else end}"


def format_moment(time: Timestamp | None) -> str:
    """Returns a time in UTC; nothing for no time, and for the ends of time.

    >>> from penstock.utils.timestamp import MAX_TIMESTAMP
    >>> format_moment(Timestamp(90)), format_moment(MAX_TIMESTAMP), format_moment(None)
    ('1970-01-01 00:01:30', '', '')
    """
    if time is None or not MIN_TIMESTAMP < time < GlobalWindow().end:
        return ""
    return format_time(time).replace("T", " ").removesuffix("Z")


def _fields(row: StateRow) -> dict[str, object]:
    """A row as JSON has it; what JSON does not know is text as Python writes it."""
    return {
        "step": row.grouping,
        "level": row.level,
        "key": _plain(row.key),
        "window": _window(row.window),
        "state": _plain(row.value),
        "new_elements": row.new_elements,
        "panes": row.panes,
        "hold": _moment(row.hold),
        "next_pane": _moment(row.next_alarm),
        "next_pane_by_clock": _moment(row.next_clock_alarm),
        "timers": [
            {
                "name": each.name,
                "tag": each.tag,
                "domain": "event time" if each.is_event_time else "processing time",
                "at": _moment(each.time),
            }
            for each in row.timers
        ],
    }


def _moment(time: Timestamp | None) -> str | None:
    return None if time is None or not format_moment(time) else format_time(time)


def _window(window: BoundedWindow) -> dict[str, str | None] | None:
    if isinstance(window, GlobalWindow):
        return None
    return {"start": _moment(getattr(window, "start", None)), "end": _moment(window.end)}


def _plain(value: object) -> object:
    if isinstance(value, BoundedWindow):
        return _window(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    return repr(value)
