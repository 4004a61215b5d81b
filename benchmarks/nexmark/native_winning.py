"""Which bid wins each auction, on a stream: state and timers by hand, since Spark's own operators do not tell.

Spark's join of streams gives all bids of an auction, but no aggregate of them can end with the auction: in append mode
it ends with a window. So this is `transformWithState`, keyed by auction.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from nexmark.native import mean_prices
from nexmark.settings import WATERMARK_DELAY
from nexmark.tables import parsed_columns

_COLUMNS = {
    "auction": ("id", "seller", "category", "time", "expires"),
    "bid": ("auction", "bidder", "price", "time"),
}
_WINNING = ("auction", "seller", "category", "expires", "bidder", "price", "time")
_ROW = Row(*_WINNING, "at")


def q4(lines: DataFrame) -> DataFrame:
    return mean_prices(winning_bids(lines))


def q9(lines: DataFrame) -> DataFrame:
    return winning_bids(lines).drop("at")


def winning_bids(lines: DataFrame) -> DataFrame:
    """The winning bid of each auction, with the time ``at`` which it expired."""
    events = parsed_columns(lines, _COLUMNS)
    timed = events.select(
        "*",
        F.coalesce("auction_id", "bid_auction").alias("key"),
        F.timestamp_millis(F.coalesce("auction_time", "bid_time")).alias("at"),
    )
    keyed = timed.withWatermark("at", f"{WATERMARK_DELAY} seconds").groupBy("key")
    return keyed.transformWithState(
        CloseAuction(),
        outputStructType=", ".join([*(f"{name} long" for name in _WINNING), "at timestamp"]),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="at",
    )


class CloseAuction(StatefulProcessor):
    """As in the pipeline; the state is one value: the auction, its best bid, and bids that came before it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("state", "pickled binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        found = self._state.get()
        auction, best, bids = pickle.loads(found[0]) if found else (None, None, [])
        if bids:
            self._handle.deleteTimer(_latest(bids))
        for row in rows:
            if row.auction_id is None:
                bids.append((row.bid_price, row.bid_time, row.bid_bidder))
            else:
                auction = (row.auction_seller, row.auction_category, row.auction_time, row.auction_expires)
                self._handle.registerTimer(row.auction_expires)
        if auction is None:
            self._handle.registerTimer(_latest(bids))
        else:
            _, _, opened, expires = auction
            valid = [bid for bid in bids if opened <= bid[1] <= expires]
            best = max([best, *valid] if best else valid, key=_rank, default=None)
            bids = []
        self._state.update((pickle.dumps((auction, best, bids)),))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        auction, best, _ = pickle.loads(self._state.get()[0])
        self._state.clear()
        if best is not None:
            seller, category, _, expires = auction
            price, time, bidder = best
            at = datetime.fromtimestamp(expires / 1_000, UTC)
            yield _ROW(key[0], seller, category, expires, bidder, price, time, at)


def _latest(bids: list[tuple[int, int, int]]) -> int:
    return max(time for _, time, _ in bids)


def _rank(bid: tuple[int, int, int]) -> tuple[int, int, int]:
    price, time, bidder = bid
    return price, -time, -bidder
