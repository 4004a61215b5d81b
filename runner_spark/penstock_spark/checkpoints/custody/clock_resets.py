"""Keeps Spark's sources that count seconds going when the clock was set back between two runs.

Such a source counts the seconds since the query first started. Spark keeps the time of that start in the checkpoint, in
``sources/2/0`` for the third source. When the clock is set back, fewer seconds have passed than were counted: Spark
would plan a micro-batch that ends before it begins, note it down, and fail at it in each later run. So before a query
starts, that file gets another time, since which as many seconds have passed as were counted. ``eras.json`` beside it
says which seconds began when, since a micro-batch that runs again must have the same times.

Within a run, Spark's own count does not advance until the clock has made up for what it was set back.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from penstock.error import refusal
from penstock.utils import clock
from penstock_spark.checkpoints.spark_logs import (
    ends_of_sources,
    last_micro_batch,
    make_damaged_log_error,
    make_unknown_format_error,
)
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import ERAS as ERAS_FORMAT
from penstock_spark.sources.heartbeats import ClockPeriod

ERAS = "eras.json"
_START = "0"
_VERSION = "v1"
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class CountedSeconds:
    """The seconds that a source has counted in earlier runs."""

    planned: int = 0  # How many seconds, up to the last micro-batch that was planned.
    eras: tuple[ClockPeriod, ...] = ()  # Which seconds began when; empty if the clock was never set back.


def read_counted_seconds(spark_place: Place, slot: int) -> CountedSeconds:
    """The seconds that a source has counted, once it can continue by today's clock.

    Args:
        spark_place: Spark's checkpoint folder.
        slot: The number of the source among all sources of the query.
    """
    planned = _read_planned(spark_place, slot)
    return CountedSeconds(planned, _eras_from_now_on(spark_place, slot, planned))


def _read_planned(spark_place: Place, slot: int) -> int:
    if (last := last_micro_batch(spark_place.inside("offsets"))) < 0:
        return 0
    end = ends_of_sources(spark_place, last, slot + 1)[slot]
    if not isinstance(end, int | None):
        raise make_damaged_log_error(
            spark_place, f"offsets/{last}", f"it has no seconds for the source {slot}"
        )
    return end or 0


def _eras_from_now_on(spark_place: Place, slot: int, planned: int) -> tuple[ClockPeriod, ...]:
    place = spark_place.inside("sources").inside(str(slot))
    start_millis, eras = _start_millis(spark_place, slot), _eras(place)
    if start_millis is None:
        if not eras:
            return ()
        # A run has died while it replaced Spark's file.
        start_millis = eras[-1].start_millis
        _start_at(place, start_millis)
    # A run may also have died before that, when it had written the eras.
    while eras and eras[-1].start_millis != start_millis:
        eras.pop()
    now_millis = clock.micros() // 1_000
    if now_millis >= start_millis + planned * 1_000:
        return tuple(eras)
    behind_seconds = planned - (now_millis - start_millis) / 1_000
    _LOGGER.warning(
        "%s: the clock is %.1f s behind the last run; whatever follows the clock waits until it catches up",
        place.location,
        behind_seconds,
    )
    earlier = [era for era in eras or [ClockPeriod(0, start_millis)] if era.first < planned]
    eras = [*earlier, ClockPeriod(planned, now_millis - planned * 1_000)]
    place.replace(ERAS, json.dumps({"format": ERAS_FORMAT.number, "eras": eras}).encode())
    _start_at(place, eras[-1].start_millis)
    return tuple(eras)


def _start_at(place: Place, start_millis: int) -> None:
    place.replace(_START, f"{_VERSION}\n{start_millis}".encode())


def _start_millis(spark_place: Place, slot: int) -> int | None:
    """The time from which Spark counts; None before it has begun."""
    place = spark_place.inside("sources").inside(str(slot))
    try:
        version, *lines = place.read(_START).decode().split("\n")
        if version == _VERSION:
            [start] = lines
            return int(start)
    except FileNotFoundError:
        return None
    except ValueError:
        raise make_damaged_log_error(spark_place, f"sources/{slot}/{_START}", "it has no time") from None
    raise make_unknown_format_error(spark_place, f"sources/{slot}/{_START}", version, _VERSION)


def _eras(place: Place) -> list[ClockPeriod]:
    if ERAS not in place.names():
        return []
    try:
        noted = json.loads(place.read(ERAS))
        eras = [ClockPeriod(int(first), int(start)) for first, start in noted["eras"]]
    except (LookupError, RecursionError, TypeError, ValueError):
        hint = "restore the file, or start again in another folder"
        raise refusal(ValueError, f"{ERAS} is damaged", where=f"in {place.location}", hint=hint) from None
    ERAS_FORMAT.check(noted.get("format"), f"in {place.location}")
    return eras
