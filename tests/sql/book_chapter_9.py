"""The listings of *Streaming Systems*, chapter 9, as queries."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from tests.sql.listings import Arrival, Listing, at


class Numbered(NamedTuple):
    """A row of the tables that are joined."""

    Num: str
    Id: str
    Time: datetime.datetime


class Rate(NamedTuple):
    """Yen for one unit of a currency."""

    Curr: str
    Rate: int
    EventTime: datetime.datetime


class Order(NamedTuple):
    """An order of Yen, paid in another currency."""

    Curr: str
    Amount: int
    EventTime: datetime.datetime


def _numbered(*rows: tuple[str, str, str]) -> list[Arrival]:
    return [Arrival(clock, Numbered(number, name, at(clock))) for number, name, clock in rows]


ONE = {
    "Left": _numbered(("1", "L1", "12:02"), ("2", "L2", "12:06"), ("3", "L3", "12:03")),
    "Right": _numbered(("2", "R2", "12:01"), ("3", "R3", "12:04"), ("4", "R4", "12:05")),
}
UPDATED = {
    "LeftV2": [
        *ONE["Left"],
        Arrival("12:07", Numbered("3", "L3", at("12:03")), undone=True),
        *_numbered(("3", "L3v2", "12:07")),
    ],
    "Right": ONE["Right"],
}
MANY = {
    "LeftNM": _numbered(
        ("1:0", "L2", "12:07"),
        ("1:1", "L3", "12:01"),
        ("1:2", "L4", "12:05"),
        ("2:1", "L5A", "12:09"),
        ("2:1", "L5B", "12:08"),
        ("2:2", "L6A", "12:12"),
        ("2:2", "L6B", "12:10"),
    ),
    "RightNM": _numbered(
        ("0:1", "R1", "12:02"),
        ("1:1", "R3", "12:14"),
        ("1:2", "R4A", "12:03"),
        ("1:2", "R4B", "12:04"),
        ("2:1", "R5", "12:06"),
        ("2:2", "R6A", "12:11"),
        ("2:2", "R6B", "12:13"),
    ),
}
# E5: the book shows the first Euro rate, of 12:00:30, at 12:00 wherever it is joined; nothing lies between.
_RATES = (
    ("USD", 102, "12:00:00", "12:04:13"),
    ("Euro", 114, "12:00:00", "12:06:23"),
    ("Yen", 1, "12:01:00", "12:05:18"),
    ("Euro", 116, "12:03:00", "12:09:07"),
    ("Euro", 119, "12:06:00", "12:07:33"),
)
_ORDERS = (
    ("Euro", 2, "12:02:00", "12:05:07"),
    ("USD", 1, "12:03:00", "12:03:44"),
    ("Euro", 5, "12:05:00", "12:08:00"),
    ("Yen", 50, "12:07:00", "12:10:11"),
    ("Euro", 3, "12:08:00", "12:09:33"),
    ("USD", 5, "12:10:00", "12:10:59"),
)
MONEY = {
    "YenRates": [Arrival(clock, Rate(name, rate, at(time))) for name, rate, time, clock in _RATES],
    "YenOrders": [Arrival(clock, Order(name, amount, at(time))) for name, amount, time, clock in _ORDERS],
}
EURO_RATES = {"YenRates": [arrival for arrival in MONEY["YenRates"] if arrival.row.Curr == "Euro"]}
EURO = {
    **EURO_RATES,
    "YenOrders": [arrival for arrival in MONEY["YenOrders"] if arrival.row.Curr == "Euro"],
}


def _joined(kind: str, left: str = "Left", key: str = "Num") -> str:
    right = "RightNM" if left == "LeftNM" else "Right"
    return f"FROM {left} {kind} JOIN {right} ON {left}.{key} = {right}.{key}"


def _table(name: str, kind: str, expected: str, left: str = "Left") -> Listing:
    right = "RightNM" if left == "LeftNM" else "Right"
    tables = {"Left": ONE, "LeftV2": UPDATED, "LeftNM": MANY}[left]
    query = f"SELECT TABLE {left}.Id AS L, {right}.Id AS R {_joined(kind, left)}"
    return Listing(f"{name} table", query, expected, tables, until="12:15")


def _stream(name: str, kind: str, expected: str, left: str = "Left") -> Listing:
    right = "RightNM" if left == "LeftNM" else "Right"
    tables = {"Left": ONE, "LeftV2": UPDATED, "LeftNM": MANY}[left]
    query = (
        f"SELECT STREAM {left}.Id AS L, {right}.Id AS R, Sys.EmitTime AS Time, Sys.Undo {_joined(kind, left)}"
    )
    return Listing(f"{name} stream", query, expected, tables, until="12:15")


# Windows are compared like keys; the window of the result is that of the side that is there (C9-07).
_TUMBLED = "SELECT *, window_start AS w FROM TUMBLE(TABLE {}, DESCRIPTOR(Time), INTERVAL '5' MINUTES)"
_IN_WINDOWS = (
    f"FROM ({_TUMBLED.format('Left')}) AS l {{}} JOIN ({_TUMBLED.format('Right')}) AS r "
    "ON l.Num = r.Num AND l.w = r.w"
)


def _windowed(name: str, kind: str, expected: str, columns: str = "l.Id AS L, r.Id AS R") -> list[Listing]:
    window = "COALESCE(l.w, r.w) AS Window"
    rows = [line.strip() for line in expected.strip().splitlines()]
    final = [line.split("|") for line in rows]
    undone = [tuple(cells[1:3]) for cells in final if "undo" in cells[5]]
    table = []
    for cells in final:
        if "undo" in cells[5]:
            continue
        if tuple(cells[1:3]) in undone:
            undone.remove(tuple(cells[1:3]))
            continue
        table.append("|" + "|".join(cells[1:3]) + "|" + cells[4] + "|")
    tail = _IN_WINDOWS.format(kind)
    return [
        Listing(f"{name} table", f"SELECT TABLE {columns}, {window} {tail}", "\n".join(table), ONE),
        Listing(
            f"{name} stream",
            f"SELECT STREAM {columns}, Sys.EmitTime AS Time, {window}, Sys.Undo {tail}",
            expected,
            ONE,
        ),
    ]


_VALID_RATES = """SELECT Curr, MAX(Rate) AS Rate, VALIDITY_WINDOW(EventTime) AS Window
    FROM YenRates GROUP BY Curr, VALIDITY_WINDOW(EventTime)"""
_VIEWS = {"ValidRates": _VALID_RATES}
_VALID_JOIN = """FROM YenOrders {} JOIN ValidRates
    ON YenOrders.Curr = ValidRates.Curr
    AND WINDOW_START(ValidRates.Window) <= YenOrders.EventTime
    AND YenOrders.EventTime < WINDOW_END(ValidRates.Window)"""
_VALUES = "Amount AS E, Rate AS `Y/E`, Amount * Rate AS Y, YenOrders.EventTime AS OrderTime"

LISTINGS = [
    _table("S9-01", "FULL OUTER", "| L1 | - |\n| L2 | R2 |\n| L3 | R3 |\n| - | R4 |"),
    Listing(
        "S9-01 snapshots",
        f"SELECT TVR Left.Id AS L, Right.Id AS R {_joined('FULL OUTER')}",
        """
        12:01
        | - | R2 |
        12:02
        | L1 | - |
        | - | R2 |
        12:03
        | L1 | - |
        | - | R2 |
        | L3 | - |
        12:04
        | L1 | - |
        | - | R2 |
        | L3 | R3 |
        12:05
        | L1 | - |
        | - | R2 |
        | L3 | R3 |
        | - | R4 |
        12:06
        | L1 | - |
        | L2 | R2 |
        | L3 | R3 |
        | - | R4 |
        """,
        ONE,
    ),
    _stream(
        "S9-01",
        "FULL OUTER",
        """
        | -  | R2 | 12:01 |      |
        | L1 | -  | 12:02 |      |
        | L3 | -  | 12:03 |      |
        | L3 | -  | 12:04 | undo |
        | L3 | R3 | 12:04 |      |
        | -  | R4 | 12:05 |      |
        | -  | R2 | 12:06 | undo |
        | L2 | R2 | 12:06 |      |
        """,
    ),
    _table("S9-02", "LEFT OUTER", "| L1 | - |\n| L2 | R2 |\n| L3 | R3 |"),
    _stream(
        "S9-02",
        "LEFT OUTER",
        """
        | L1 | -  | 12:02 |      |
        | L3 | -  | 12:03 |      |
        | L3 | -  | 12:04 | undo |
        | L3 | R3 | 12:04 |      |
        | L2 | R2 | 12:06 |      |
        """,
    ),
    _table("S9-03", "RIGHT OUTER", "| L2 | R2 |\n| L3 | R3 |\n| - | R4 |"),
    _stream(
        "S9-03",
        "RIGHT OUTER",
        """
        | -  | R2 | 12:01 |      |
        | L3 | R3 | 12:04 |      |
        | -  | R4 | 12:05 |      |
        | -  | R2 | 12:06 | undo |
        | L2 | R2 | 12:06 |      |
        """,
    ),
    _table("S9-04", "INNER", "| L2 | R2 |\n| L3 | R3 |"),
    _stream("S9-04", "INNER", "| L3 | R3 | 12:04 | |\n| L2 | R2 | 12:06 | |"),
    _table("S9-05", "INNER", "| L2 | R2 |\n| L3v2 | R3 |", "LeftV2"),
    _stream(
        "S9-05",
        "INNER",
        """
        | L3   | R3 | 12:04 |      |
        | L2   | R2 | 12:06 |      |
        | L3   | R3 | 12:07 | undo |
        | L3v2 | R3 | 12:07 |      |
        """,
        "LeftV2",
    ),
    # E19: the book's anti join gives the rows of both sides that have no partner; LEFT ANTI is Spark's.
    _table("S9-06", "ANTI", "| L1 | - |\n| - | R4 |"),
    _stream(
        "S9-06",
        "ANTI",
        """
        | -  | R2 | 12:01 |      |
        | L1 | -  | 12:02 |      |
        | L3 | -  | 12:03 |      |
        | L3 | -  | 12:04 | undo |
        | -  | R4 | 12:05 |      |
        | -  | R2 | 12:06 | undo |
        """,
    ),
    Listing("S9-06 of Spark", f"SELECT TABLE Left.Id {_joined('LEFT ANTI')}", "| L1 |", ONE),
    Listing("S9-06b", f"SELECT TABLE Left.Id {_joined('LEFT SEMI')}", "| L2 |\n| L3 |", ONE),
    Listing(
        "a cross join",
        "SELECT TABLE Left.Id AS L, Right.Id AS R FROM Left CROSS JOIN Right",
        "\n".join(f"| L{left} | R{right} |" for left in (1, 2, 3) for right in (2, 3, 4)),
        ONE,
    ),
    _table(
        "S9-07",
        "FULL OUTER",
        """
        | -   | R1  |
        | L2  | -   |
        | L3  | R3  |
        | L4  | R4A |
        | L4  | R4B |
        | L5A | R5  |
        | L5B | R5  |
        | L6A | R6A |
        | L6A | R6B |
        | L6B | R6A |
        | L6B | R6B |
        """,
        "LeftNM",
    ),
    # E10: these are the plain listings; the grey copies have slips. The order of the rows of 12:05 that undo, of those
    # that follow them, and of the two rows of 12:13, is free.
    _stream(
        "S9-07",
        "FULL OUTER",
        """
        | L3  | -   | 12:01 |      |
        | -   | R1  | 12:02 |      |
        | -   | R4A | 12:03 |      |
        | -   | R4B | 12:04 |      |
        | -   | R4A | 12:05 | undo |
        | -   | R4B | 12:05 | undo |
        | L4  | R4A | 12:05 |      |
        | L4  | R4B | 12:05 |      |
        | -   | R5  | 12:06 |      |
        | L2  | -   | 12:07 |      |
        | -   | R5  | 12:08 | undo |
        | L5B | R5  | 12:08 |      |
        | L5A | R5  | 12:09 |      |
        | L6B | -   | 12:10 |      |
        | L6B | -   | 12:11 | undo |
        | L6B | R6A | 12:11 |      |
        | L6A | R6A | 12:12 |      |
        | L6B | R6B | 12:13 |      |
        | L6A | R6B | 12:13 |      |
        | L3  | -   | 12:14 | undo |
        | L3  | R3  | 12:14 |      |
        """,
        "LeftNM",
    ),
    Listing(
        "S9-08 table",
        f"SELECT TABLE LeftNM.Id {_joined('INNER', 'LeftNM')}",
        "\n".join(f"| {row} |" for row in ["L3", "L4", "L4", "L5A", "L5B", "L6A", "L6A", "L6B", "L6B"]),
        MANY,
        until="12:15",
    ),
    # E11: the tenth row of the book's text is a slip of its layout. The order of the rows of one instant is free.
    Listing(
        "S9-08 stream",
        f"SELECT STREAM LeftNM.Id, Sys.EmitTime AS Time, Sys.Undo {_joined('INNER', 'LeftNM')}",
        """
        | L4  | 12:05 | |
        | L4  | 12:05 | |
        | L5B | 12:08 | |
        | L5A | 12:09 | |
        | L6B | 12:11 | |
        | L6A | 12:12 | |
        | L6B | 12:13 | |
        | L6A | 12:13 | |
        | L3  | 12:14 | |
        """,
        MANY,
        until="12:15",
    ),
    Listing(
        "S9-09 table",
        f"SELECT TABLE LeftNM.Id {_joined('LEFT SEMI', 'LeftNM')}",
        "\n".join(f"| {row} |" for row in ["L3", "L4", "L5A", "L5B", "L6A", "L6B"]),
        MANY,
        until="12:15",
    ),
    Listing(
        "S9-09 stream",
        f"SELECT STREAM LeftNM.Id, Sys.EmitTime AS Time, Sys.Undo {_joined('LEFT SEMI', 'LeftNM')}",
        """
        | L4  | 12:05 | |
        | L5B | 12:08 | |
        | L5A | 12:09 | |
        | L6B | 12:11 | |
        | L6A | 12:12 | |
        | L3  | 12:14 | |
        """,
        MANY,
        until="12:15",
    ),
    *_windowed(
        "S9-10 full",
        "FULL OUTER",
        """
        | -  | R2 | 12:01 | 12:00 |      |
        | L1 | -  | 12:02 | 12:00 |      |
        | L3 | -  | 12:03 | 12:00 |      |
        | L3 | -  | 12:04 | 12:00 | undo |
        | L3 | R3 | 12:04 | 12:00 |      |
        | -  | R4 | 12:05 | 12:05 |      |
        | L2 | -  | 12:06 | 12:05 |      |
        """,
    ),
    *_windowed(
        "S9-10 left",
        "LEFT OUTER",
        """
        | L1 | -  | 12:02 | 12:00 |      |
        | L3 | -  | 12:03 | 12:00 |      |
        | L3 | -  | 12:04 | 12:00 | undo |
        | L3 | R3 | 12:04 | 12:00 |      |
        | L2 | -  | 12:06 | 12:05 |      |
        """,
    ),
    *_windowed(
        "S9-10 right",
        "RIGHT OUTER",
        """
        | -  | R2 | 12:01 | 12:00 |      |
        | L3 | R3 | 12:04 | 12:00 |      |
        | -  | R4 | 12:05 | 12:05 |      |
        """,
    ),
    *_windowed("S9-10 inner", "INNER", "| L3 | R3 | 12:04 | 12:00 | |"),
    *_windowed(
        "S9-10 anti",
        "ANTI",
        """
        | -  | R2 | 12:01 | 12:00 |      |
        | L1 | -  | 12:02 | 12:00 |      |
        | L3 | -  | 12:03 | 12:00 |      |
        | L3 | -  | 12:04 | 12:00 | undo |
        | -  | R4 | 12:05 | 12:05 |      |
        | L2 | -  | 12:06 | 12:05 |      |
        """,
    ),
    Listing("S9-10 semi", f"SELECT TABLE l.Id {_IN_WINDOWS.format('LEFT SEMI')}", "| L3 |", ONE),
    # The prose's timeout: rows are final when the watermark passes the end of their window, and nothing is undone.
    Listing(
        "S9-10 when the watermark passes",
        f"""SELECT STREAM l.Id AS L, r.Id AS R, COALESCE(l.window_end, r.window_end) AS WindowEnd,
                Sys.EmitTime AS Time, Sys.Undo {_IN_WINDOWS.format("FULL OUTER")}
            EMIT WHEN WATERMARK PAST WindowEnd""",
        """
        | -  | R2 | 12:05 | 12:08 | |
        | L1 | -  | 12:05 | 12:08 | |
        | L3 | R3 | 12:05 | 12:08 | |
        | -  | R4 | 12:10 | 12:12 | |
        | L2 | -  | 12:10 | 12:12 | |
        """,
        ONE,
        until="12:15",
        watermark=(("12:08", "12:05"), ("12:12", "12:10")),
    ),
    Listing(
        "S9-11 table",
        "SELECT TABLE Rate, Window FROM ValidRates",
        "| 114 | [12:00,12:03) |\n| 116 | [12:03,12:06) |\n| 119 | [12:06,inf) |",
        EURO_RATES,
        views=_VIEWS,
    ),
    Listing(
        "S9-11 snapshots",
        "SELECT TVR Rate, Window FROM ValidRates",
        """
        12:06:23
        | 114 | [12:00,inf) |
        12:07:33
        | 114 | [12:00,12:06) |
        | 119 | [12:06,inf) |
        12:09:07
        | 114 | [12:00,12:03) |
        | 116 | [12:03,12:06) |
        | 119 | [12:06,inf) |
        """,
        EURO_RATES,
        views=_VIEWS,
    ),
    Listing(
        "S9-11 stream",
        "SELECT STREAM Rate, Window, Sys.EmitTime AS Time, Sys.Undo FROM ValidRates",
        """
        | 114 | [12:00,inf)   | 12:06:23 |      |
        | 114 | [12:00,inf)   | 12:07:33 | undo |
        | 114 | [12:00,12:06) | 12:07:33 |      |
        | 119 | [12:06,inf)   | 12:07:33 |      |
        | 114 | [12:00,12:06) | 12:09:07 | undo |
        | 114 | [12:00,12:03) | 12:09:07 |      |
        | 116 | [12:03,12:06) | 12:09:07 |      |
        """,
        EURO_RATES,
        views=_VIEWS,
    ),
    # The same in plain SQL (C9-10): the next rate is the one between which and this one there is none.
    Listing(
        "S9-11 in plain SQL",
        """SELECT TABLE r1.Rate, r1.EventTime, r2.EventTime AS NextTime
            FROM YenRates r1
            LEFT JOIN YenRates r2 ON r1.Curr = r2.Curr AND r1.EventTime < r2.EventTime
            LEFT JOIN YenRates r3
                ON r1.Curr = r3.Curr AND r1.EventTime < r3.EventTime AND r3.EventTime < r2.EventTime
            WHERE r3.EventTime IS NULL""",
        "| 114 | 12:00 | 12:03 |\n| 116 | 12:03 | 12:06 |\n| 119 | 12:06 | - |",
        EURO_RATES,
    ),
    Listing(
        "S9-12",
        f"SELECT TABLE {_VALUES}, ValidRates.Window AS RateWindow {_VALID_JOIN.format('INNER')}",
        """
        | 2 | 114 | 228 | 12:02 | [12:00,12:03) |
        | 5 | 116 | 580 | 12:05 | [12:03,12:06) |
        | 3 | 119 | 357 | 12:08 | [12:06,inf)   |
        """,
        EURO,
        views=_VIEWS,
    ),
    # E9: two orders come after 12:10, so the table is that of 12:11.
    Listing(
        "S9-12 of all currencies",
        f"SELECT TABLE YenOrders.Curr, Amount, Amount * Rate AS Y {_VALID_JOIN.format('INNER')}",
        """
        | Euro | 2  | 228 |
        | Euro | 5  | 580 |
        | Euro | 3  | 357 |
        | USD  | 1  | 102 |
        | USD  | 5  | 510 |
        | Yen  | 50 | 50  |
        """,
        MONEY,
        until="12:11",
        views=_VIEWS,
    ),
    # E6: the rate without an order has no time of an order.
    Listing(
        "S9-13 snapshots",
        f"SELECT TVR {_VALUES}, ValidRates.Window AS RateWindow {_VALID_JOIN.format('FULL OUTER')}",
        """
        12:05:07
        | 2 | -   | -   | 12:02 | -             |
        12:06:23
        | 2 | 114 | 228 | 12:02 | [12:00,inf)   |
        12:07:33
        | 2 | 114 | 228 | 12:02 | [12:00,12:06) |
        | - | 119 | -   | -     | [12:06,inf)   |
        12:08
        | 2 | 114 | 228 | 12:02 | [12:00,12:06) |
        | 5 | 114 | 570 | 12:05 | [12:00,12:06) |
        | - | 119 | -   | -     | [12:06,inf)   |
        12:09:07
        | 2 | 114 | 228 | 12:02 | [12:00,12:03) |
        | 5 | 116 | 580 | 12:05 | [12:03,12:06) |
        | - | 119 | -   | -     | [12:06,inf)   |
        12:09:33
        | 2 | 114 | 228 | 12:02 | [12:00,12:03) |
        | 5 | 116 | 580 | 12:05 | [12:03,12:06) |
        | 3 | 119 | 357 | 12:08 | [12:06,inf)   |
        """,
        EURO,
        views=_VIEWS,
    ),
    Listing(
        "S9-13 stream",
        f"""SELECT STREAM {_VALUES}, ValidRates.Window AS RateWindow, Sys.EmitTime AS Time, Sys.Undo
            {_VALID_JOIN.format("FULL OUTER")}""",
        """
        | 2 | -   | -   | 12:02 | -             | 12:05:07 |      |
        | 2 | -   | -   | 12:02 | -             | 12:06:23 | undo |
        | 2 | 114 | 228 | 12:02 | [12:00,inf)   | 12:06:23 |      |
        | 2 | 114 | 228 | 12:02 | [12:00,inf)   | 12:07:33 | undo |
        | 2 | 114 | 228 | 12:02 | [12:00,12:06) | 12:07:33 |      |
        | - | 119 | -   | -     | [12:06,inf)   | 12:07:33 |      |
        | 5 | 114 | 570 | 12:05 | [12:00,12:06) | 12:08    |      |
        | 2 | 114 | 228 | 12:02 | [12:00,12:06) | 12:09:07 | undo |
        | 5 | 114 | 570 | 12:05 | [12:00,12:06) | 12:09:07 | undo |
        | 2 | 114 | 228 | 12:02 | [12:00,12:03) | 12:09:07 |      |
        | 5 | 116 | 580 | 12:05 | [12:03,12:06) | 12:09:07 |      |
        | - | 119 | -   | -     | [12:06,inf)   | 12:09:33 | undo |
        | 3 | 119 | 357 | 12:08 | [12:06,inf)   | 12:09:33 |      |
        """,
        EURO,
        views=_VIEWS,
    ),
    # E7: the window is not selected, and so what stays the same without it is not seen.
    Listing(
        "S9-14",
        f"SELECT STREAM {_VALUES}, Sys.EmitTime AS Time, Sys.Undo {_VALID_JOIN.format('INNER')}",
        """
        | 2 | 114 | 228 | 12:02 | 12:06:23 |      |
        | 5 | 114 | 570 | 12:05 | 12:08    |      |
        | 5 | 114 | 570 | 12:05 | 12:09:07 | undo |
        | 5 | 116 | 580 | 12:05 | 12:09:07 |      |
        | 3 | 119 | 357 | 12:08 | 12:09:33 |      |
        """,
        EURO,
        views=_VIEWS,
    ),
    # E8: the times of the book are those at which the watermark passes the orders, not the ends of the rates' windows.
    Listing(
        "S9-15",
        f"""SELECT STREAM {_VALUES}, Sys.EmitTime, Sys.Undo {_VALID_JOIN.format("INNER")}
            EMIT WHEN WATERMARK PAST OrderTime""",
        """
        | 2 | 114 | 228 | 12:02 | 12:08:52 | |
        | 5 | 116 | 580 | 12:05 | 12:10:04 | |
        | 3 | 119 | 357 | 12:08 | 12:10:13 | |
        """,
        EURO,
        until="12:11",
        watermark=(("12:08:52", "12:02"), ("12:10:04", "12:05"), ("12:10:13", "12:08")),
        views=_VIEWS,
    ),
]
