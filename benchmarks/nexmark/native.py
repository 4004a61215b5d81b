"""The queries in PySpark by hand, the same in batch and on streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nexmark.settings import (
    AUCTION_LENGTH_MAX,
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
from nexmark.tables import Tables


def q0(tables: Tables) -> DataFrame:
    names = ("time", "auction", "bidder", "price", "channel", "url", "extra")
    [bids] = tables({"bid": names})
    return bids.select(*names)


def q1(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("auction", "bidder", "price", "time")})
    return bids.select(
        "auction", "bidder", F.expr(f"price * {EURO_PER_MILLE} div 1000").alias("price"), "time"
    )


def q2(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("auction", "price", "time")})
    return bids.where(F.col("auction") % AUCTION_STEP == 0).select("auction", "price")


def q3(tables: Tables) -> DataFrame:
    persons, auctions = tables(
        {"person": ("id", "name", "city", "state", "time"), "auction": ("id", "seller", "category", "time")}
    )
    near = persons.where(F.col("state").isin(*STATES)).drop("time", "at").withColumnRenamed("id", "person")
    some = auctions.where(F.col("category") == CATEGORY).drop("time", "at")
    joined = near.join(some, F.col("person") == F.col("seller"))
    return joined.select("name", "city", "state", "id")


def q4(tables: Tables) -> DataFrame:
    windows = F.window("at", f"{WINDOW} seconds", f"{WINNING_PERIOD} seconds").alias("window")
    means = winning_bids(tables).groupBy("category", windows).agg(F.avg("price").alias("mean"))
    return means.select("category", end_millis(), F.floor("mean").alias("mean"))


def q5(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("auction", "time")})
    windows = F.window("at", f"{WINDOW} seconds", f"{HOT_PERIOD} seconds").alias("window")
    counts = bids.groupBy(windows, "auction").count().withColumn("end", end_millis())
    # The last moments of two windows are in two of these.
    each = F.window(F.window_time("window"), f"{HOT_PERIOD} seconds")
    gathered = counts.groupBy(each, "end").agg(
        F.max("count").alias("most"), F.collect_list(F.struct("auction", "count")).alias("counts")
    )
    hottest = gathered.select("end", "most", F.explode("counts").alias("counted"))
    return hottest.where("counted.count = most").select("end", "counted.auction", "counted.count")


def q6(tables: Tables) -> DataFrame:
    closed = Window.partitionBy("seller").orderBy("expires", "auction")
    mean = F.floor(F.avg("price").over(closed.rowsBetween(1 - LAST_AUCTIONS, 0)))
    return winning_bids(tables).select(
        "seller", F.row_number().over(closed).alias("count"), mean.alias("mean")
    )


def q7(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("auction", "bidder", "price", "time")})
    highest = bids.groupBy(_window()).agg(F.max_by(_bid(), _rank()).alias("bid"))
    return highest.select(end_millis(), "bid.auction", "bid.bidder", "bid.price", "bid.time")


def q8(tables: Tables) -> DataFrame:
    persons, auctions = tables({"person": ("id", "name", "time"), "auction": ("seller", "time")})
    joined = persons.withColumn("window", _window()).alias("persons")
    sellers = auctions.withColumn("window", _window()).alias("sellers")
    match = "persons.id = sellers.seller and persons.window = sellers.window"
    return joined.join(sellers, F.expr(match), "left_semi").select("id", "name", end_millis())


def q9(tables: Tables) -> DataFrame:
    return winning_bids(tables).drop("at")


def q11(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("bidder", "time")})
    # Spark's sessions continue if a bid comes exactly at their end; the other contenders' sessions do not.
    sessions = F.session_window("at", f"{SESSION_GAP * 1000 - 1} milliseconds").alias("window")
    counts = bids.groupBy("bidder", sessions).count()
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end") + 1
    return counts.select("bidder", "count", start.alias("start"), end.alias("end"))


def q12(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("bidder", "time")})
    # A batch takes place at one time of the clock.
    windows = (
        [F.window(F.current_timestamp(), f"{WINDOW} seconds").alias("window")] if bids.isStreaming else []
    )
    return bids.groupBy("bidder", *windows).count()


def q19(tables: Tables) -> DataFrame:
    [bids] = tables({"bid": ("auction", "bidder", "price", "time")})
    best = bids.groupBy("auction", _window()).agg(F.max_by(_bid(), _rank(), TOP_BIDS).alias("bids"))
    places = best.select(end_millis(), "auction", F.posexplode("bids").alias("place", "bid"))
    return places.select(
        "end", "auction", (F.col("place") + 1).alias("place"), "bid.bidder", "bid.price", "bid.time"
    )


def winning_bids(tables: Tables) -> DataFrame:
    """The winning bid of each auction, with the time ``at`` which it expired.

    On a stream an aggregate can end with a time that a watermark follows. So the watermark of auctions follows their
    ends, and what is joined belongs to an end.
    """
    auctions, bids = tables(
        {
            "auction": ("id", "seller", "category", "time", "expires"),
            "bid": ("auction", "bidder", "price", "time"),
        },
        {"auction": "expires"},
    )
    opened = auctions.withColumnRenamed("time", "opened").alias("auctions")
    # A bid counts from the first to the last millisecond; the rest tells Spark how long to wait for its auction.
    valid = f"""
        bids.auction = auctions.id
        and bids.time >= auctions.opened and bids.at <= auctions.at
        and bids.at >= auctions.at - interval {AUCTION_LENGTH_MAX} seconds
    """
    joined = bids.alias("bids").join(opened, F.expr(valid))
    of_auction = joined.groupBy("auction", "seller", "category", "expires", "auctions.at")
    best = of_auction.agg(F.max_by(_bid(), _rank()).alias("bid"))
    won = ("bid.bidder", "bid.price", "bid.time")
    return best.select("auction", "seller", "category", "expires", *won, "at")


def _window() -> Column:
    return F.window("at", f"{WINDOW} seconds").alias("window")


def _bid() -> Column:
    return F.struct("auction", "bidder", "price", "time")


def _rank() -> Column:
    """The higher the better, as in the pipelines."""
    return F.struct("price", -F.col("time"), -F.col("bidder"))


def end_millis() -> Any:
    return F.unix_millis("window.end").alias("end")


NATIVE: dict[str, Callable[[Tables], DataFrame]] = {
    each.__name__: each for each in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12, q19)
}
