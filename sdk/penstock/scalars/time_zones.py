"""The functions that move times between time zones."""

from __future__ import annotations

import datetime

from penstock.scalars.casting import refuse, zone_of_name
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import cast, do_not_fit, takes
from penstock.scalars.spark_forms import ZONES
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import STRING, TIMESTAMP_NTZ


def _moved(time: datetime.datetime, source: datetime.tzinfo, target: datetime.tzinfo) -> datetime.datetime:
    """Returns the local time in a zone when it is another local time in another zone."""
    try:
        return time.replace(tzinfo=source).astimezone(target).replace(tzinfo=None, fold=0)
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


def _from_utc(time: datetime.datetime, zone: str) -> datetime.datetime:
    local = time.astimezone(datetime.UTC)
    return _moved(local, datetime.UTC, zone_of_name(zone)).replace(tzinfo=datetime.UTC)


def _to_utc(time: datetime.datetime, zone: str) -> datetime.datetime:
    local = time.astimezone(datetime.UTC)
    return _moved(local, zone_of_name(zone), datetime.UTC).replace(tzinfo=datetime.UTC)


def _convert(source: str, target: str, time: datetime.datetime) -> datetime.datetime:
    return _moved(time, zone_of_name(source), zone_of_name(target))


def _convert_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 2:
        arguments = (Literal("UTC", STRING.or_null(False)), *arguments)
    if len(arguments) != 3:
        raise do_not_fit(function, arguments, "the name of a time zone, the name of another one, and a time")
    time = arguments[2]
    if time.type.name == "TIMESTAMP":
        time = cast(time, TIMESTAMP_NTZ.or_null(time.type.nullable))
    return takes("STRING STRING TIMESTAMP_NTZ -> TIMESTAMP_NTZ")(function, (*arguments[:2], time))


FUNCTIONS = (
    ScalarFunction(
        name="FROM_UTC_TIMESTAMP",
        resolve=takes("TIMESTAMP STRING -> TIMESTAMP"),
        python=choose_always(_from_utc),
        spark="from_utc_timestamp({all})",
        not_in_spark=ZONES,
    ),
    ScalarFunction(
        name="TO_UTC_TIMESTAMP",
        resolve=takes("TIMESTAMP STRING -> TIMESTAMP"),
        python=choose_always(_to_utc),
        spark="to_utc_timestamp({all})",
        not_in_spark=ZONES,
    ),
    ScalarFunction(
        name="CONVERT_TIMEZONE",
        resolve=_convert_of,
        python=choose_always(_convert),
        spark="convert_timezone({all})",
        not_in_spark=ZONES,
    ),
)
"""The records."""
