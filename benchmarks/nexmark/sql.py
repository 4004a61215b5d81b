"""The queries in SQL: one text for penstock, in batch and on streams, and for Spark, whose words for windows differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nexmark.settings import (
    AUCTION_STEP,
    CATEGORY,
    EURO_PER_MILLE,
    HOT_PERIOD,
    LAST_AUCTIONS,
    SESSION_GAP,
    STATES,
    TOP_BIDS,
    WINDOW,
    WINNING_PERIOD,
)


@dataclass(frozen=True)
class Words:
    """The spellings of an engine where SQL differs between engines."""

    has_table_functions: bool  # Whether windows are functions in FROM.
    streams: bool = (
        False  # Whether rows arrive at times of the clock, and results are given when they are final.
    )

    def tumble(self, table: str) -> str:
        """The rows of a table in fixed windows."""
        if self.has_table_functions:
            return f"TUMBLE(TABLE {table}, DESCRIPTOR(at), INTERVAL '{WINDOW}' SECONDS)"
        return _windowed(table, f"'{WINDOW} seconds'")

    def hop(self, table: str, period: int) -> str:
        """The rows of a table in sliding windows."""
        if self.has_table_functions:
            lengths = f"INTERVAL '{period}' SECONDS, INTERVAL '{WINDOW}' SECONDS"
            return f"HOP(TABLE {table}, DESCRIPTOR(at), {lengths})"
        return _windowed(table, f"'{WINDOW} seconds', '{period} seconds'")

    def emit(self, clause: str) -> str:
        """When results are given; a table has only the last ones."""
        return f"EMIT {clause}" if self.streams else ""


def _windowed(table: str, lengths: str) -> str:
    bounds = "in_window.start AS window_start, in_window.end AS window_end"
    return f"(SELECT *, {bounds} FROM (SELECT *, window(at, {lengths}) AS in_window FROM {table}))"


BATCH, STREAM, SPARK = Words(True), Words(True, streams=True), Words(False)
_CLOSED = "AFTER WATERMARK"


def q0(words: Words) -> str:
    return "SELECT time, auction, bidder, price, channel, url, extra FROM bid"


def q1(words: Words) -> str:
    return f"SELECT auction, bidder, price * {EURO_PER_MILLE} DIV 1000 AS price, time FROM bid"


def q2(words: Words) -> str:
    return f"SELECT auction, price FROM bid WHERE auction % {AUCTION_STEP} = 0"


def q3(words: Words) -> str:
    return f"""
        SELECT person.name, person.city, person.state, auction.id
        FROM auction JOIN person ON auction.seller = person.id
        WHERE auction.category = {CATEGORY} AND person.state IN {STATES}
    """


def q4(words: Words) -> str:
    return f"""
        SELECT category, {_millis("window_end")} AS end, FLOOR(AVG(price)) AS mean
        FROM {words.hop("winning", WINNING_PERIOD)}
        GROUP BY window_start, window_end, category
        {words.emit(_CLOSED)}
    """


def q5(words: Words) -> str:
    return f"""
        WITH counts AS (
            SELECT window_end, auction, COUNT(*) AS number FROM {words.hop("bids", HOT_PERIOD)}
            GROUP BY window_start, window_end, auction
            {words.emit(_CLOSED)}
        ),
        hottest AS (
            SELECT counts.window_end, auction, number
            FROM counts
            JOIN (SELECT window_end, MAX(number) AS most FROM counts GROUP BY window_end) AS highest
            ON counts.window_end = highest.window_end AND number = most
            {words.emit(_CLOSED)}
        )
        SELECT {_millis("window_end")} AS end, auction, number FROM hottest
    """


def q6(words: Words) -> str:
    return f"""
        WITH last AS (
            SELECT seller, price FROM winning
            QUALIFY ROW_NUMBER() OVER (PARTITION BY seller ORDER BY expires DESC, auction DESC) <= {LAST_AUCTIONS}
        )
        SELECT counts.seller, number, mean
        FROM (SELECT seller, COUNT(*) AS number FROM winning GROUP BY seller) AS counts
        JOIN (SELECT seller, FLOOR(AVG(price)) AS mean FROM last GROUP BY seller) AS means
        ON counts.seller = means.seller
    """


def q7(words: Words) -> str:
    return f"""
        SELECT {_millis("window_end")} AS end, auction, bidder, price, time
        FROM {words.tumble("bids")}
        QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC, time, bidder) = 1
        {words.emit(_CLOSED)}
    """


def q8(words: Words) -> str:
    return f"""
        SELECT person.id, person.name, {_millis("person.window_end")} AS end
        FROM {words.tumble("persons")} AS person
        LEFT SEMI JOIN {words.tumble("sales")} AS sale
        ON person.id = sale.seller AND person.window_end = sale.window_end
    """


def q9(words: Words) -> str:
    return "SELECT auction, seller, category, expires, bidder, price, time FROM winning"


def q11(words: Words) -> str:
    gap = SESSION_GAP * 1_000 - 1  # Sessions that touch are one in SQL, and two for the other contenders.
    if not words.has_table_functions:
        return f"""
            SELECT bidder, COUNT(*) AS number,
                {_millis("session_window.start")} AS start, {_millis("session_window.end")} + 1 AS end
            FROM bids GROUP BY session_window(at, '{gap} milliseconds'), bidder
        """
    return f"""
        SELECT bidder, COUNT(*) AS number,
            {_millis("window_start")} AS start, {_millis("window_end")} + 1 AS end
        FROM SESSION(TABLE bids PARTITION BY bidder, DESCRIPTOR(at), INTERVAL '{gap / 1_000}' SECONDS)
        GROUP BY window_start, window_end, bidder
        {words.emit(_CLOSED)}
    """


def q12(words: Words) -> str:
    if not words.streams:
        # A batch takes place at one time of the clock.
        return "SELECT bidder, COUNT(*) AS number FROM bid GROUP BY bidder"
    return f"""
        SELECT bidder, COUNT(*) AS number FROM {words.tumble("arrivals")}
        GROUP BY window_start, window_end, bidder
        {words.emit(f"AFTER ALIGNED DELAY INTERVAL '{WINDOW}' SECONDS")}
    """


def q19(words: Words) -> str:
    return f"""
        SELECT {_millis("window_end")} AS end, auction,
            ROW_NUMBER() OVER (PARTITION BY window_end, auction ORDER BY price DESC, time, bidder) AS place,
            bidder, price, time
        FROM {words.tumble("bids")}
        QUALIFY place <= {TOP_BIDS}
        {words.emit(_CLOSED)}
    """


def views(words: Words) -> dict[str, str]:
    """The tables of the events with their times, and the winning bids, which several queries read."""
    winning = f"""
        SELECT auction.id AS auction, seller, category, expires, bidder, price, bid.time,
            TIMESTAMP_MILLIS(expires) AS at
        FROM auction JOIN bid ON auction.id = bid.auction AND bid.time BETWEEN auction.time AND expires
        QUALIFY ROW_NUMBER() OVER (PARTITION BY auction.id ORDER BY price DESC, bid.time, bidder) = 1
        {words.emit("WHEN WATERMARK PAST at")}
    """
    arrivals = {"arrivals": "SELECT bidder, Sys.MTime AS at FROM bid"}
    return {
        "persons": "SELECT id, name, TIMESTAMP_MILLIS(time) AS at FROM person",
        "sales": "SELECT seller, TIMESTAMP_MILLIS(time) AS at FROM auction",
        "bids": "SELECT auction, bidder, price, time, TIMESTAMP_MILLIS(time) AS at FROM bid",
        "winning": winning,
        **(arrivals if words.streams else {}),
    }


def _millis(time: str) -> str:
    return f"UNIX_MILLIS({time})"


TEXTS: dict[str, Callable[[Words], str]] = {
    each.__name__: each for each in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12, q19)
}
