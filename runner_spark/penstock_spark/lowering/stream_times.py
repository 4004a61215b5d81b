"""The times of a stream's elements as columns, and the watermark that Spark keeps of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.io.streaming.stream_times import MicrosOf
from penstock.scalars.expressions import Expression
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.windows.windowing import Windowing
from penstock_spark.lowering.column_expressions import ColumnMaker, raise_in_column
from penstock_spark.plan.column_kinds import name_kind
from penstock_spark.plan.column_plan import Table
from penstock_spark.plan.spark_watermark import (
    AHEAD_METRIC,
    END_MICROS,
    FIRST_MICROS,
    LAST_MICROS,
    LATENESS_MICROS_MAX,
    SHIFT_MICROS,
    make_unsupported_by_spark_error,
)

_DELAY = "spark.watermarkDelayMs"
"""The key of a column's metadata by which Spark knows that the watermark passes the column's values."""

_MICROS_PER_MILLI = 1_000
_MICROS_PER_SECOND = 1_000_000
_FIRST_SECOND = -(-MIN_TIMESTAMP.micros // _MICROS_PER_SECOND)
_LAST_SECOND = (MAX_TIMESTAMP.micros - 1) // _MICROS_PER_SECOND
_KINDS = {"dict": "dict", "row": "Row"}


@dataclass(frozen=True, eq=False)
class Watermark:
    """The watermark of a source whose elements arrive at most some time out of order, as Spark keeps it.

    The column ``e`` moves it. A grouping has a key with the time at which its window is over, and Spark takes the
    watermark for that of this key by its metadata alone. So elements that are too far ahead of the clock, whose ``e``
    is null, stay in their windows and do not move the watermark.
    """

    delay_micros: int
    size_micros: int  # The size of a window,
    lateness_micros: int  # and how long after its end it takes elements.
    max_ahead_micros: int | None  # Later elements than this after the clock do not move it.
    now_micros: Column
    ends: DataFrame  # A stream of rows, each of which says that the source has ended.
    reach_micros: int  # How long after an element the windows of all groupings behind it may be over.

    def of_windows(self, windowing: Windowing) -> Watermark:
        """The watermark for the windows of another grouping."""
        size_micros, lateness_micros = windowing.windowfn.size_micros, windowing.allowed_lateness.micros
        return replace(self, size_micros=size_micros, lateness_micros=lateness_micros)

    def kept_over(self, frame: DataFrame, names: list[str], where: str) -> DataFrame:
        """A stream of the columns `names` and ``t``, with ``e``, whose watermark Spark keeps."""
        shifted = F.col("t") + F.lit(SHIFT_MICROS)
        last_over = END_MICROS - self._delay_millis * _MICROS_PER_MILLI - self.reach_micros - SHIFT_MICROS
        is_known = F.col("t").between(FIRST_MICROS, min(LAST_MICROS, last_over))
        at = F.timestamp_micros(
            F.when(is_known, shifted).otherwise(
                raise_in_column(make_unsupported_by_spark_error(), where, "bigint")
            )
        )
        if self.max_ahead_micros is not None:
            at = F.when(F.col("t") <= self.now_micros + F.lit(self.max_ahead_micros), at)
        rows = frame.withColumn("e", at)
        if self.max_ahead_micros is not None:
            rows = rows.observe(AHEAD_METRIC, F.count_if(F.col("e").isNull()).alias(AHEAD_METRIC))
        kinds = {field.name: field.dataType for field in rows.schema}
        last = [F.lit(None).cast(kinds[name]).alias(name) for name in (*names, "t")]
        both = rows.unionAll(self.ends.select(*last, _end().alias("e")))
        kept = both.withWatermark("e", f"{self._delay_millis} milliseconds")
        return kept.where(F.coalesce(F.col("e") < _end(), F.lit(True)))

    def kept_over_parts(self, rows: DataFrame) -> DataFrame:
        """Rows of parts of sums, with the time ``x`` at which their windows are over, and the watermark of ``e``.

        Their column ``first`` is the end of a window, not its start.
        """
        kinds = {field.name: field.dataType for field in rows.schema}
        last = [F.lit(None).cast(kind).alias(name) for name, kind in kinds.items() if name != "e"]
        both = rows.unionAll(self.ends.select(*last, F.lit(END_MICROS).alias("e")))
        timed = both.withColumn("e", F.timestamp_micros("e"))
        kept = timed.withWatermark("e", f"{self._delay_millis} milliseconds")
        over = F.timestamp_micros(F.expr(f"first + {self._from_start - self.size_micros}L"))
        # On a server of Spark Connect, withColumn would drop what Spark knows of the column.
        return kept.select("*", over.alias("x", metadata={_DELAY: self._delay_millis}))

    def over(self) -> Column:
        """The time at which a window is over, as a column ``x`` to group by."""
        moved = F.expr(f"w + {self._from_start}L")
        return F.timestamp_micros(moved).alias("x", metadata={_DELAY: self._delay_millis})

    def start(self) -> Column:
        """The start of a window, of ``x``."""
        return F.expr(f"unix_micros(x) - {self._from_start}L").alias("w")

    @property
    def _delay_millis(self) -> int:
        return -(-self.delay_micros // _MICROS_PER_MILLI)

    @property
    def _from_start(self) -> int:
        return self.size_micros + min(self.lateness_micros, LATENESS_MICROS_MAX) + SHIFT_MICROS


def _end() -> Column:
    return F.expr(f"timestamp_micros({END_MICROS}L)")


@dataclass(frozen=True, eq=False)
class StreamTimes:
    """The times of a stream's elements."""

    where: str  # The step that reads the stream.
    stamp: Expression | None  # The event time of an element; None if it is the time of its arrival.
    watermark: Watermark | None  # For windows of event time.


def make_event_time_column(make: ColumnMaker, stamp: Expression, table: Table, where: str) -> Column:
    """An element's event time in microseconds, with the errors of `MicrosOf`."""
    of_element = MicrosOf("event_time", "")
    missing = raise_in_column(of_element.missing(_KINDS[table.records], None), where, "bigint")
    column = make.column(stamp)
    if name_kind(stamp, table.fields) == "instant":
        return F.coalesce(F.unix_micros(column), missing)
    known = F.when(column.between(_FIRST_SECOND, _LAST_SECOND), column * _MICROS_PER_SECOND)
    beyond = raise_in_column(of_element.beyond(), where, "bigint")
    return known.when(column.isNull(), missing).otherwise(beyond)


def pin_condition(condition: Column) -> Column:
    """A filter's condition in a form that Spark does not move, neither in front of a grouping nor of the watermark.

    Elements that are filtered out also move the watermark, and so does the row at the end of time. Spark moves only
    deterministic conditions.
    """
    return condition.eqNullSafe(F.spark_partition_id() >= 0)
