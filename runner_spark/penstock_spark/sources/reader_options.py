"""The known options of Spark's stream readers, so that a wrong name is refused and not ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal

_DEFAULTS = {"maxFileAge": "36500d", "recursiveFileLookup": True}
_PARSED = ("csv", "json", "xml")
_MALFORMED = "_corrupt_record"
"""The column for the text of a malformed record, where Spark's settings do not name another."""
_SAYS_WHAT_TO_DO = frozenset({"mode", "columnnameofcorruptrecord"})
# Malformed values count even in a column that is not read.
_STRICT = {"mode": "FAILFAST", "columnPruning": False}
_NUMBERS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "maxOffsetsPerTrigger", "minOffsetsPerTrigger")
_OF_FILES = (
    *("maxFilesPerTrigger", "maxBytesPerTrigger", "maxFileAge", "latestFirst", "fileNameOnly"),
    *("cleanSource", "sourceArchiveDir", "maxCachedFiles", "discardCachedInputRatio", "pathGlobFilter"),
    *("ignoreCorruptFiles", "ignoreMissingFiles"),
)
_OF_FORMAT = {
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "rate-micro-batch": ("rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"),
    "socket": ("host", "port", "includeTimestamp"),
    "kafka": (
        *("assign", "subscribe", "subscribePattern", "startingTimestamp", "startingOffsets"),
        *("startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "failOnDataLoss"),
        *("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
        *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions"),
        *("maxRecordsPerPartition", "groupIdPrefix", "includeHeaders"),
    ),
}


def check_file_options(options: Iterable[tuple[str, Any]], where: str) -> None:
    """Raises ValueError for an unknown option of a stream of files, or for an impossible value.

    >>> check_file_options([("maxFilesPerTrigger", 5), ("latestfirst", True)], "at step 'Read'")
    >>> check_file_options([("maxFilePerTrigger", 5)], "at step 'Read'")
    Traceback (most recent call last):
        ...
    ValueError: a stream of files has no option maxFilePerTrigger
      at step 'Read'
      hint: did you mean 'maxFilesPerTrigger'?
    """
    given = dict(options)
    _check_names("a stream of files", given, _OF_FILES, where)
    _check_numbers(given, where)
    if {"maxfilespertrigger", "maxbytespertrigger"} <= {name.lower() for name in given}:
        what = "maxFilesPerTrigger and maxBytesPerTrigger cannot both limit a micro-batch"
        raise refusal(ValueError, what, where=where, hint="give one of them")


def file_options(given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the options of a stream of files, with our own defaults.

    By default Spark silently skips a file that is a week older than the newest one that it has seen. If the
    path of a file contains a character such as [ or *, Spark 4.3 reads all files of the micro-batch several
    times, unless it searches folders recursively and takes no columns from their names.

    >>> file_options([("maxFilesPerTrigger", 5), ("maxfileage", "1d")])
    {'recursiveFileLookup': True, 'maxFilesPerTrigger': 5, 'maxfileage': '1d'}
    """
    options = dict(given)
    own = {name.lower() for name in options}
    return {name: value for name, value in _DEFAULTS.items() if name.lower() not in own} | options


def strict_options(format: str, given: Iterable[tuple[str, Any]], schema: Any) -> dict[str, Any]:
    """Returns the options of a reader; by default, text that does not fit its columns is an error.

    Spark's own default is to cut such a record, or to fill it with null. So it is here if the user says what to do
    with it: with the option ``mode``, or with a column for the text of such a record.

    >>> strict_options("csv", [("header", True)], None)
    {'mode': 'FAILFAST', 'columnPruning': False, 'header': True}
    >>> strict_options("csv", [("MODE", "PERMISSIVE")], None), strict_options("orc", [], None)
    ({'MODE': 'PERMISSIVE'}, {})
    """
    options = dict(given)
    own = {name.lower() for name in options}
    columns = getattr(schema, "names", schema) or ()
    if format.lower() not in _PARSED or own & _SAYS_WHAT_TO_DO or _MALFORMED in columns:
        return options
    return {name: value for name, value in _STRICT.items() if name.lower() not in own} | options


def check_format_options(format: str, options: Iterable[tuple[str, Any]], where: str) -> None:
    """Raises ValueError for an unknown option of a format that is part of Spark; other formats check theirs.

    >>> check_format_options("rate", [("rowsPerSecond", 5)], "at step 'Read'")
    >>> check_format_options("kafka", [("kafka.bootstrap.servers", "one:9092")], "at step 'Read'")
    >>> check_format_options("company.custom", [("speed", 5)], "at step 'Read'")
    """
    given = {name: value for name, value in options if not (format == "kafka" and name.startswith("kafka."))}
    if format in _OF_FORMAT:
        _check_names(f"Spark's source {format}", given, _OF_FORMAT[format], where)
    _check_numbers(given, where)


def _check_names(what: str, given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    # Spark ignores the case of an option's name.
    spelled = {name.lower() for name in known}
    for name in given:
        if name.lower() not in spelled:
            hint = hint_at_name(name, known, f"it has {', '.join(known)}")
            raise refusal(ValueError, f"{what} has no option {name}", where=where, hint=hint)


def _check_numbers(given: Mapping[str, Any], where: str) -> None:
    numbers = {name.lower() for name in _NUMBERS}
    for name, value in given.items():
        if name.lower() in numbers and (isinstance(value, bool) or not _is_positive(value)):
            what = f"the option {name} is {value!r}, which is not an integer above 0"
            raise refusal(ValueError, what, where=where, hint=f"write {name}=100, for example")


def _is_positive(value: object) -> bool:
    text = str(value)
    return text.isascii() and text.isdigit() and int(text) > 0
