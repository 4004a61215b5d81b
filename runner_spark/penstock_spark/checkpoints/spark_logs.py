"""Reads the logs in which Spark records the micro-batches of a query and the files that it has read.

If a file of them is damaged, the error names it.

Each file is named after a micro-batch. ``offsets/3`` says what the micro-batch 3 reads: a line about the format, a line
about the micro-batch, and one for each source, which is a dash for a source without an offset.
``commits/3`` says that it is finished.

``sources/1/3`` lists the files that the second source of the query has found in its fourth look: a line about the
format, and a JSON object for each file. Every tenth list, such as ``sources/1/9.compact``, has all files up to then.
Spark reads the latest of these and the lists behind it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.error import refusal
from penstock_spark.files.place import Place

_NOTHING = "-"
_KNOWN_FORMAT = "v1"
_COMPACT = ".compact"


def last_micro_batch(log: Place) -> int:
    """Returns the last micro-batch in a log of planned or of finished ones; -1 without one."""
    return max((int(name) for name in log.names() if name.isdecimal()), default=-1)


def check_logs(spark_place: Place, sources: int) -> None:
    """Raises ValueError if a file is damaged that Spark reads before it continues a query.

    Args:
        spark_place: The folder in which Spark has its checkpoint.
        sources: The number of sources of the query.
    """
    offsets, commits = spark_place.inside("offsets"), spark_place.inside("commits")
    planned, finished = last_micro_batch(offsets), last_micro_batch(commits)
    if "metadata" in spark_place.names():
        _object_of(spark_place, "metadata", _text_of(spark_place, "metadata"))
    if finished > planned:
        raise make_damaged_log_error(
            spark_place, f"offsets/{finished}", "it is missing, and commits has this micro-batch"
        )
    if finished >= 0:
        _lines_of(spark_place, f"commits/{finished}")
    for number in {planned, planned - 1} if planned > finished else {planned}:
        if number >= 0:
            version, ends = _lines_of(spark_place, f"offsets/{number}")
            if version == _KNOWN_FORMAT:
                for source, end in enumerate(_parse_ends(spark_place, number, ends, sources)):
                    if number == planned and isinstance(end, dict) and type(end.get("logOffset")) is int:
                        _check_lists_of_files(spark_place, f"sources/{source}", end["logOffset"])


def _check_lists_of_files(spark_place: Place, folder: str, end: int) -> None:
    """Raises ValueError if a list of files is damaged that Spark reads; the source has read up to the list `end`."""
    names = spark_place.inside(folder).names()
    lists = {int(name.removesuffix(_COMPACT)): name for name in names if _is_list_of_files(name)}
    number = max([end, *lists])
    while number >= 0:
        name = f"{folder}/{lists.get(number, number)}"
        version, *lines = _text_of(spark_place, name).split("\n")
        if re.fullmatch(r"v\d+", version) is None:
            raise make_damaged_log_error(spark_place, name, "it does not begin with its format")
        if version == _KNOWN_FORMAT:
            for line in lines:
                _object_of(spark_place, name, line)
        if name.endswith(_COMPACT):
            return
        number -= 1


def _is_list_of_files(name: str) -> bool:
    return name.removesuffix(_COMPACT).isdecimal()


def ends_of_sources(spark_place: Place, number: int, sources: int) -> list[Any]:
    """Returns the offsets at which a micro-batch stops reading the sources; None for a source without an offset.

    Args:
        spark_place: The folder in which Spark has its checkpoint.
        number: The micro-batch.
        sources: The number of sources of the query.
    """
    version, ends = _lines_of(spark_place, f"offsets/{number}")
    if version != _KNOWN_FORMAT:
        raise make_unknown_format_error(spark_place, f"offsets/{number}", version, _KNOWN_FORMAT)
    return _parse_ends(spark_place, number, ends, sources)


def make_damaged_log_error(spark_place: Place, name: str, why: str) -> ValueError:
    return refusal(
        ValueError,
        f"the checkpoint is damaged: Spark's file {name} cannot be read ({why})",
        where=f"in the checkpoint {spark_place.location}",
        hint="restore the folder from a copy, or start again with another checkpoint_location",
    )


def make_unknown_format_error(spark_place: Place, name: str, found: str, known: str) -> ValueError:
    """Returns the error of a file that a version of Spark has written that this penstock does not know."""
    if re.fullmatch(r"v\d+", found) is None:
        return make_damaged_log_error(spark_place, name, "it does not begin with its format")
    what = f"Spark's file {name} has the format {found}; penstock reads {known}"
    hint = "continue with the version of Spark that has written the checkpoint"
    return refusal(ValueError, what, where=f"in the checkpoint {spark_place.location}", hint=hint)


def _lines_of(spark_place: Place, name: str) -> tuple[str, list[str]]:
    """Returns the format of a file of a log, and its lines behind the one about the micro-batch."""
    version, *lines = _text_of(spark_place, name).split("\n")
    if re.fullmatch(r"v\d+", version) is None:
        raise make_damaged_log_error(spark_place, name, "it does not begin with its format")
    if not lines:
        raise make_damaged_log_error(spark_place, name, "it is truncated")
    _object_of(spark_place, name, lines[0])
    return version, lines[1:]


def _parse_ends(spark_place: Place, number: int, ends: list[str], sources: int) -> list[Any]:
    name = f"offsets/{number}"
    if len(ends) < sources:
        raise make_damaged_log_error(
            spark_place, name, f"it has {len(ends)} sources, and the stream has {sources}"
        )
    return [None if end == _NOTHING else _json_of(spark_place, name, end) for end in ends]


def _text_of(spark_place: Place, name: str) -> str:
    folder, _, file = name.rpartition("/")
    place = spark_place.inside(folder) if folder else spark_place
    try:
        return place.read(file).decode()
    except FileNotFoundError:
        raise make_damaged_log_error(spark_place, name, "it is missing") from None
    except UnicodeDecodeError:
        raise make_damaged_log_error(spark_place, name, "it is not text") from None


def _object_of(spark_place: Place, name: str, text: str) -> None:
    if not isinstance(_json_of(spark_place, name, text), dict):
        raise make_damaged_log_error(spark_place, name, "it has an unexpected structure")


def _json_of(spark_place: Place, name: str, text: str) -> object:
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        raise make_damaged_log_error(spark_place, name, "it is not JSON" if text else "it is empty") from None
