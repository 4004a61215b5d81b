"""The listings of *Streaming Systems*, chapter 8.

The queries are the book's, where its pseudo-SQL can be parsed. Where the book has a slip, the listing says what it
expects instead.
"""

from __future__ import annotations

import datetime
import re
from typing import NamedTuple

from tests.sql.listings import Arrival, Listing, at


class SmallScore(NamedTuple):
    """A row of the first table; its time is the time of its arrival."""

    Name: str
    Score: int
    Time: datetime.datetime


class Score(NamedTuple):
    """A row of the table of nine scores."""

    Name: str
    Team: str
    Score: int
    EventTime: datetime.datetime


SMALL = {
    "UserScores": [
        Arrival(clock, SmallScore(name, score, at(clock)))
        for name, score, clock in (
            ("Julie", 7, "12:01"),
            ("Frank", 3, "12:03"),
            ("Julie", 1, "12:03"),
            ("Julie", 4, "12:07"),
        )
    ]
}
_NINE = (
    ("Julie", 5, "12:00:26", "12:05:19"),
    ("Ed", 7, "12:02:26", "12:05:39"),
    ("Amy", 3, "12:03:39", "12:06:13"),
    ("Fred", 4, "12:04:19", "12:06:39"),
    ("Julie", 8, "12:03:06", "12:07:06"),
    ("Naomi", 3, "12:06:39", "12:07:19"),
    ("Frank", 9, "12:01:26", "12:08:19"),
    ("Becky", 8, "12:07:26", "12:08:39"),
    ("Naomi", 1, "12:07:46", "12:09:00"),
)
_MOVED = {"12:04:19": "12:06:46", "12:03:06": "12:07:33", "12:07:26": "12:08:13"}
NINE = {
    "UserScores": [
        Arrival(clock, Score(name, "TeamX", score, at(time))) for name, score, time, clock in _NINE
    ]
}
FOR_SESSIONS = {
    "UserScores": [
        Arrival(_MOVED.get(time, clock), Score(name, "TeamX", score, at(time)))
        for name, score, time, clock in _NINE
    ]
}
WATERMARK = (
    ("12:06:00", "12:02:00"),
    ("12:07:30", "12:04:00"),
    ("12:07:41", "12:06:00"),
    ("12:09:22", "12:08:00"),
)

_SUMS = "SELECT {} Name, SUM(Score) AS Total, MAX(Time) AS Time FROM UserScores GROUP BY Name"
_WINDOW = "TUMBLE(EventTime, INTERVAL '2' MINUTES)"
_WINDOWED = f"""SELECT STREAM SUM(Score) AS Total, {_WINDOW} AS Window, {{}}
    FROM UserScores GROUP BY Team, {_WINDOW}"""
_SESSION = "SESSION(EventTime, INTERVAL '1' MINUTE)"
_VIEWS = {
    "TeamAndScoreView": "SELECT Team, Score FROM UserScores",
    "TeamTotals": "SELECT Team, SUM(Score) AS Total FROM TeamAndScoreView GROUP BY Team",
    "LargeTeamTotalsView": """SELECT Team, SUM(Score) AS Total
        FROM TeamAndScoreView GROUP BY Team HAVING SUM(Score) > 100""",
}
_BATCH_SUMS = """
    | 14 | [12:00,12:02) | 12:08:19 |
    | 18 | [12:02,12:04) | 12:07:06 |
    | 4  | [12:04,12:06) | 12:06:39 |
    | 12 | [12:06,12:08) | 12:09    |
"""
_RAW = """
    | 5 | 12:00:26 | 12:05:19 |
    | 7 | 12:02:26 | 12:05:39 |
    | 3 | 12:03:39 | 12:06:13 |
    | 4 | 12:04:19 | 12:06:39 |
    | 8 | 12:03:06 | 12:07:06 |
    | 3 | 12:06:39 | 12:07:19 |
    | 9 | 12:01:26 | 12:08:19 |
    | 8 | 12:07:26 | 12:08:39 |
    | 1 | 12:07:46 | 12:09    |
"""


def _snapshots_of_raw() -> str:
    """Ten snapshots, the first of them empty: each arrival adds a row."""
    lines = [line for line in _RAW.splitlines() if line.strip()]
    return "\n".join(
        "\n".join([lines[at].split("|")[3].strip(), *lines[: at + 1]]) for at in range(len(lines))
    )


LISTINGS = [
    Listing(
        "S8-01 at 12:01",
        "SELECT TABLE * FROM UserScores",
        "| Julie | 7 | 12:01 |",
        SMALL,
        until="12:01",
    ),
    Listing(
        "S8-01 at 12:03",
        "SELECT TABLE * FROM UserScores",
        """
        | Julie | 7 | 12:01 |
        | Frank | 3 | 12:03 |
        | Julie | 1 | 12:03 |
        """,
        SMALL,
        until="12:03",
    ),
    Listing(
        "S8-01 at 12:07",
        "SELECT TABLE * FROM UserScores",
        """
        | Julie | 7 | 12:01 |
        | Frank | 3 | 12:03 |
        | Julie | 1 | 12:03 |
        | Julie | 4 | 12:07 |
        """,
        SMALL,
        until="12:07",
    ),
    Listing(
        "S8-02",
        "SELECT TVR * FROM UserScores",
        """
        12:01
        | Julie | 7 | 12:01 |
        12:03
        | Julie | 7 | 12:01 |
        | Frank | 3 | 12:03 |
        | Julie | 1 | 12:03 |
        12:07
        | Julie | 7 | 12:01 |
        | Frank | 3 | 12:03 |
        | Julie | 1 | 12:03 |
        | Julie | 4 | 12:07 |
        """,
        SMALL,
    ),
    Listing(
        "S8-03",
        "SELECT TVR * FROM UserScores WHERE Name = 'Julie'",
        """
        12:01
        | Julie | 7 | 12:01 |
        12:03
        | Julie | 7 | 12:01 |
        | Julie | 1 | 12:03 |
        12:07
        | Julie | 7 | 12:01 |
        | Julie | 1 | 12:03 |
        | Julie | 4 | 12:07 |
        """,
        SMALL,
    ),
    Listing(
        "S8-04",
        _SUMS.format("TVR"),
        """
        12:01
        | Julie | 7 | 12:01 |
        12:03
        | Julie | 8 | 12:03 |
        | Frank | 3 | 12:03 |
        12:07
        | Julie | 12 | 12:07 |
        | Frank | 3 | 12:03 |
        """,
        SMALL,
    ),
    Listing("S8-05 at 12:01", _SUMS.format("TABLE"), "| Julie | 7 | 12:01 |", SMALL, until="12:01"),
    Listing(
        "S8-05 at 12:03",
        _SUMS.format("TABLE"),
        """
        | Julie | 8 | 12:03 |
        | Frank | 3 | 12:03 |
        """,
        SMALL,
        until="12:03",
    ),
    Listing(
        "S8-05 at 12:07",
        _SUMS.format("TABLE"),
        """
        | Julie | 12 | 12:07 |
        | Frank | 3 | 12:03 |
        """,
        SMALL,
        until="12:07",
    ),
    # The book writes '12:03'; a time of day alone names no moment.
    Listing(
        "S8-05 as of 12:03",
        _SUMS.format("TABLE") + " AS OF SYSTEM TIME '2026-01-01 12:03:00'",
        """
        | Julie | 8 | 12:03 |
        | Frank | 3 | 12:03 |
        """,
        SMALL,
        until="12:07",
    ),
    # E1: the book's rows that undo have the time of the change, so its Time is the time of the emission.
    Listing(
        "S8-06",
        """SELECT STREAM Name, SUM(Score) AS Total, Sys.EmitTime AS Time, Sys.Undo AS Undo
            FROM UserScores GROUP BY Name""",
        """
        | Julie | 7  | 12:01 |      |
        | Frank | 3  | 12:03 |      |
        | Julie | 7  | 12:03 | undo |
        | Julie | 8  | 12:03 |      |
        | Julie | 8  | 12:07 | undo |
        | Julie | 12 | 12:07 |      |
        """,
        SMALL,
    ),
    # E1, read strictly: a row that is undone has the time that it had, here MAX(Time).
    Listing(
        "S8-06 with the rows that were given",
        """SELECT STREAM Name, SUM(Score) AS Total, MAX(Time) AS Time, Sys.Undo AS Undo
            FROM UserScores GROUP BY Name""",
        """
        | Julie | 7  | 12:01 |      |
        | Frank | 3  | 12:03 |      |
        | Julie | 7  | 12:01 | undo |
        | Julie | 8  | 12:03 |      |
        | Julie | 8  | 12:03 | undo |
        | Julie | 12 | 12:07 |      |
        """,
        SMALL,
    ),
    Listing(
        "S8-07",
        _SUMS.format("STREAM"),
        """
        | Julie | 7  | 12:01 |
        | Frank | 3  | 12:03 |
        | Julie | 8  | 12:03 |
        | Julie | 12 | 12:07 |
        """,
        SMALL,
    ),
    Listing(
        "S8-08 in one query",
        "SELECT TABLE Team, SUM(Score) AS Total FROM UserScores GROUP BY Team",
        "| TeamX | 48 |",
        NINE,
        views=_VIEWS,
    ),
    Listing(
        "S8-08 through tables",
        "SELECT TABLE * FROM TeamTotals",
        "| TeamX | 48 |",
        NINE,
        views=_VIEWS,
    ),
    Listing("S8-08 large teams", "SELECT TABLE * FROM LargeTeamTotalsView", "", NINE, views=_VIEWS),
    Listing(
        "S8-09 by event time",
        "SELECT TABLE Score, EventTime, Sys.MTime AS ProcTime FROM UserScores ORDER BY EventTime",
        _RAW,
        NINE,
    ),
    Listing(
        "S8-09 by processing time",
        "SELECT TABLE Score, EventTime, Sys.MTime AS ProcTime FROM UserScores ORDER BY ProcTime",
        _RAW,
        NINE,
    ),
    Listing(
        "S8-09 as snapshots",
        "SELECT TVR Score, EventTime, Sys.MTime AS ProcTime FROM UserScores",
        _snapshots_of_raw(),
        NINE,
    ),
    Listing(
        "S8-09 as a stream",
        "SELECT STREAM Score, EventTime, Sys.MTime AS ProcTime FROM UserScores",
        _RAW,
        NINE,
    ),
    Listing(
        "S8-10",
        "SELECT TABLE SUM(Score) AS Total, MAX(EventTime), MAX(Sys.MTime) FROM UserScores GROUP BY Team",
        "| 48 | 12:07:46 | 12:09 |",
        NINE,
    ),
    Listing(
        "S8-10 ad hoc windows",
        """SELECT TABLE SUM(Score) AS Total,
                FLOOR(EventTime / INTERVAL '2' MINUTES) AS WindowStart, MAX(Sys.MTime)
            FROM UserScores GROUP BY Team, FLOOR(EventTime / INTERVAL '2' MINUTES)""",
        re.sub(r"\[([^,]*),[^)]*\)", r"\1", _BATCH_SUMS),
        NINE,
    ),
    Listing(
        "S8-10 windows",
        f"""SELECT TABLE SUM(Score) AS Total, {_WINDOW} AS Window, MAX(Sys.MTime)
            FROM UserScores GROUP BY Team, {_WINDOW}""",
        _BATCH_SUMS,
        NINE,
    ),
    Listing(
        "S8-11",
        f"""SELECT STREAM SUM(Score) AS Total, WINDOW_START({_WINDOW}), MAX(Sys.MTime)
            FROM UserScores GROUP BY Team, {_WINDOW}""",
        """
        | 5  | 12:00 | 12:05:19 |
        | 7  | 12:02 | 12:05:39 |
        | 10 | 12:02 | 12:06:13 |
        | 4  | 12:04 | 12:06:39 |
        | 18 | 12:02 | 12:07:06 |
        | 3  | 12:06 | 12:07:19 |
        | 14 | 12:00 | 12:08:19 |
        | 11 | 12:06 | 12:08:39 |
        | 12 | 12:06 | 12:09    |
        """,
        NINE,
    ),
    Listing(
        "S8-11 with what is undone",
        f"""SELECT STREAM SUM(Score) AS Total, WINDOW_START({_WINDOW}), Sys.EmitTime, Sys.Undo
            FROM UserScores GROUP BY Team, {_WINDOW}""",
        """
        | 5  | 12:00 | 12:05:19 |      |
        | 7  | 12:02 | 12:05:39 |      |
        | 7  | 12:02 | 12:06:13 | undo |
        | 10 | 12:02 | 12:06:13 |      |
        | 4  | 12:04 | 12:06:39 |      |
        | 10 | 12:02 | 12:07:06 | undo |
        | 18 | 12:02 | 12:07:06 |      |
        | 3  | 12:06 | 12:07:19 |      |
        | 5  | 12:00 | 12:08:19 | undo |
        | 14 | 12:00 | 12:08:19 |      |
        | 3  | 12:06 | 12:08:39 | undo |
        | 11 | 12:06 | 12:08:39 |      |
        | 11 | 12:06 | 12:09    | undo |
        | 12 | 12:06 | 12:09    |      |
        """,
        NINE,
    ),
    Listing(
        "S8-12",
        _WINDOWED.format("CURRENT_TIMESTAMP AS EmitTime") + " EMIT WHEN WATERMARK PAST WINDOW_END(Window)",
        """
        | 5  | [12:00,12:02) | 12:06    |
        | 18 | [12:02,12:04) | 12:07:30 |
        | 4  | [12:04,12:06) | 12:07:41 |
        | 12 | [12:06,12:08) | 12:09:22 |
        """,
        NINE,
        watermark=WATERMARK,
    ),
    Listing(
        "S8-13",
        _WINDOWED.format("CURRENT_TIMESTAMP AS EmitTime, Sys.EmitTiming, Sys.EmitIndex")
        + " EMIT WHEN WATERMARK PAST WINDOW_END(Window) AND THEN AFTER 0 SECONDS",
        """
        | 5  | [12:00,12:02) | 12:06    | on-time | 0 |
        | 18 | [12:02,12:04) | 12:07:30 | on-time | 0 |
        | 4  | [12:04,12:06) | 12:07:41 | on-time | 0 |
        | 14 | [12:00,12:02) | 12:08:19 | late    | 1 |
        | 12 | [12:06,12:08) | 12:09:22 | on-time | 0 |
        """,
        NINE,
        watermark=WATERMARK,
    ),
    # E2: the book has 12:09:22 in the last row, the time of the watermark in the listing before; a minute after the
    # change at 12:08:39 is 12:09:39.
    Listing(
        "S8-14",
        _WINDOWED.format("CURRENT_TIMESTAMP AS EmitTime, Sys.EmitTiming, Sys.EmitIndex")
        + " EMIT AFTER 1 MINUTE",
        """
        | 5  | [12:00,12:02) | 12:06:19 | n/a | 0 |
        | 10 | [12:02,12:04) | 12:06:39 | n/a | 0 |
        | 4  | [12:04,12:06) | 12:07:39 | n/a | 0 |
        | 18 | [12:02,12:04) | 12:08:06 | n/a | 1 |
        | 3  | [12:06,12:08) | 12:08:19 | n/a | 0 |
        | 14 | [12:00,12:02) | 12:09:19 | n/a | 1 |
        | 12 | [12:06,12:08) | 12:09:39 | n/a | 1 |
        """,
        NINE,
        tick_seconds=1,
    ),
    # The book has no listing. At multiples of a minute, for all windows at once: this is what tells aligned delays
    # from the ones above. The score of 12:09:00 comes before the emission of
    # that instant.
    Listing(
        "S8-14 aligned",
        _WINDOWED.format("CURRENT_TIMESTAMP AS EmitTime, Sys.EmitTiming, Sys.EmitIndex")
        + " EMIT AFTER ALIGNED DELAY 1 MINUTE",
        """
        | 5  | [12:00,12:02) | 12:06 | n/a | 0 |
        | 7  | [12:02,12:04) | 12:06 | n/a | 0 |
        | 10 | [12:02,12:04) | 12:07 | n/a | 1 |
        | 4  | [12:04,12:06) | 12:07 | n/a | 0 |
        | 18 | [12:02,12:04) | 12:08 | n/a | 2 |
        | 3  | [12:06,12:08) | 12:08 | n/a | 0 |
        | 14 | [12:00,12:02) | 12:09 | n/a | 1 |
        | 12 | [12:06,12:08) | 12:09 | n/a | 1 |
        """,
        NINE,
    ),
    # The book has no listing of all three. A row that is the same when the watermark passes is not emitted again. The
    # late score of 12:08:19 comes before the early emission that is due at that instant.
    Listing(
        "early, on time and late",
        _WINDOWED.format("CURRENT_TIMESTAMP AS EmitTime, Sys.EmitTiming")
        + " EMIT AFTER DELAY 1 MINUTE AND AFTER WATERMARK AND THEN AFTER 0 SECONDS",
        """
        | 5  | [12:00,12:02) | 12:06    | on-time |
        | 10 | [12:02,12:04) | 12:06:39 | early   |
        | 18 | [12:02,12:04) | 12:07:30 | on-time |
        | 4  | [12:04,12:06) | 12:07:39 | early   |
        | 14 | [12:00,12:02) | 12:08:19 | late    |
        | 3  | [12:06,12:08) | 12:08:19 | early   |
        | 12 | [12:06,12:08) | 12:09:22 | on-time |
        """,
        NINE,
        watermark=WATERMARK,
    ),
    Listing(
        "S8-15",
        f"""SELECT STREAM SUM(Score) AS Total, Sys.EmitTime
            FROM UserScores GROUP BY Team, {_WINDOW} HAVING Total > 10""",
        """
        | 18 | 12:07:06 |
        | 14 | 12:08:19 |
        | 11 | 12:08:39 |
        | 12 | 12:09    |
        """,
        NINE,
    ),
    # E3: the listing is lost; these are the rows of the next one that undo nothing.
    Listing(
        "S8-16",
        f"""SELECT STREAM SUM(Score) AS Total, {_SESSION} AS Window, Sys.EmitTime
            FROM UserScores GROUP BY Team, {_SESSION}""",
        """
        | 5  | [12:00:26,12:01:26) | 12:05:19 |
        | 7  | [12:02:26,12:03:26) | 12:05:39 |
        | 3  | [12:03:39,12:04:39) | 12:06:13 |
        | 7  | [12:03:39,12:05:19) | 12:06:46 |
        | 3  | [12:06:39,12:07:39) | 12:07:19 |
        | 22 | [12:02:26,12:05:19) | 12:07:33 |
        | 11 | [12:06:39,12:08:26) | 12:08:13 |
        | 36 | [12:00:26,12:05:19) | 12:08:19 |
        | 12 | [12:06:39,12:08:46) | 12:09    |
        """,
        FOR_SESSIONS,
    ),
    # E4: sessions that only touch are one, as in the book and in Spark's session_window.
    Listing(
        "S8-17",
        f"""SELECT STREAM SUM(Score) AS Total, {_SESSION} AS Window, Sys.EmitTime, Sys.Undo
            FROM UserScores GROUP BY Team, {_SESSION}""",
        """
        | 5  | [12:00:26,12:01:26) | 12:05:19 |      |
        | 7  | [12:02:26,12:03:26) | 12:05:39 |      |
        | 3  | [12:03:39,12:04:39) | 12:06:13 |      |
        | 3  | [12:03:39,12:04:39) | 12:06:46 | undo |
        | 7  | [12:03:39,12:05:19) | 12:06:46 |      |
        | 3  | [12:06:39,12:07:39) | 12:07:19 |      |
        | 7  | [12:02:26,12:03:26) | 12:07:33 | undo |
        | 7  | [12:03:39,12:05:19) | 12:07:33 | undo |
        | 22 | [12:02:26,12:05:19) | 12:07:33 |      |
        | 3  | [12:06:39,12:07:39) | 12:08:13 | undo |
        | 11 | [12:06:39,12:08:26) | 12:08:13 |      |
        | 5  | [12:00:26,12:01:26) | 12:08:19 | undo |
        | 22 | [12:02:26,12:05:19) | 12:08:19 | undo |
        | 36 | [12:00:26,12:05:19) | 12:08:19 |      |
        | 11 | [12:06:39,12:08:26) | 12:09    | undo |
        | 12 | [12:06:39,12:08:46) | 12:09    |      |
        """,
        FOR_SESSIONS,
    ),
]
