"""Folders of rows by partition, such as ``country=DE/day=2026-01-02``, as Hive and Spark name them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

from penstock.checks.similar_names import find_nearest, hint_at_name
from penstock.error import refusal
from penstock.io.argument_checks import check_column_names
from penstock.io.formats.record_types import column_names_of

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The value in a folder's name that stands for None."""

_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_WILDCARD = re.compile(r"[*?\[]")


def partition_columns(given: object) -> tuple[str, ...]:
    """Returns the names of ``partition_by``, each once.

    >>> partition_columns("day"), partition_columns(("country", "day")), partition_columns(None)
    (('day',), ('country', 'day'), ())
    """
    names = () if given is None else check_column_names("partition_by", given, may_be_empty=True)
    if not all(names):
        what = "partition_by has an empty name"
        raise refusal(ValueError, what, hint="write partition_by='day', for example")
    return names


def check_partitions_to_read(given: object, schema: object) -> tuple[str, ...]:
    """Returns the names of ``partition_by`` of a read; ValueError if a schema does not have their types."""
    columns = partition_columns(given)
    if schema is not None and not columns:
        what = "schema has the types of the columns of partition_by, which is missing"
        raise refusal(ValueError, what, hint="pass partition_by=, or leave schema out")
    if schema is None:
        return columns
    names = None if isinstance(schema, dict) else column_names_of(schema)
    if names is None:
        what = f"schema must be a pyarrow.Schema or a type of rows, but is {schema!r}"
        raise refusal(TypeError, what, hint="write schema=pyarrow.schema([...]), or pass a NamedTuple")
    for name in columns:
        if name not in names:
            what = f"the schema has no column {name!r}, which partition_by has"
            hint = hint_at_name(name, names, f"its columns are {', '.join(names)}")
            raise refusal(ValueError, what, hint=hint)
    return columns


def pattern_of_table(pattern: object, columns: Sequence[str]) -> Any:
    """Returns the pattern of the files of a read; a path that is an option has to wait for its value."""
    if not columns:
        return pattern
    if not isinstance(pattern, str):
        what = "the folder of a table with partitions is not yet known"
        raise refusal(ValueError, what, hint="pass the path as a string, not as an option")
    return partition_pattern(pattern, columns)


def describe_partitions(columns: Sequence[str]) -> str:
    """Returns what the description of a source or a sink says about ``partition_by``.

    >>> describe_partitions(("country", "day")), describe_partitions(())
    (' by country, day', '')
    """
    return f" by {', '.join(columns)}" if columns else ""


def check_columns_of_sink(
    columns: Sequence[str],
    names: Sequence[str] | None,
    where: str | None,
    hint: str = "pass schema=pyarrow.schema([...])",
) -> None:
    """Refuses a sink whose elements do not have the columns of ``partition_by``; see `check_partition_columns`.

    The names of the elements' columns are None if they are unknown; the hint says how to make them known.
    """
    if columns and names is None:
        what = "partition_by needs the columns of the elements"
        raise refusal(ValueError, what, where=where, hint=hint)
    check_partition_columns(columns, names or (), where)


def check_partition_columns(columns: Sequence[str], names: Sequence[str], where: str | None) -> None:
    """Refuses columns of ``partition_by`` that the elements lack, or that leave none for the files.

    >>> check_partition_columns(["dya"], ["team", "day"], "at step 'Write' (game.py:41)")
    Traceback (most recent call last):
        ...
    ValueError: partition_by has the column 'dya', which the elements lack
      at step 'Write' (game.py:41)
      hint: did you mean 'day'? The columns are: team, day
    """
    for name in columns:
        if name not in names:
            near = find_nearest(name, names)
            question = f"did you mean {near!r}? " if near else ""
            what = f"partition_by has the column {name!r}, which the elements lack"
            hint = f"{question}The columns are: {', '.join(names)}"
            raise refusal(ValueError, what, where=where, hint=hint)
        if sum(name.lower() == other.lower() for other in names) > 1:
            what = (
                f"partition_by has the column {name!r}, and the name of another column differs only in case"
            )
            raise refusal(ValueError, what, where=where, hint="rename one of them: readers take both for one")
    if columns and len(columns) == len(names):
        what = "partition_by has all columns, so that none is left for the files"
        raise refusal(ValueError, what, where=where, hint="leave a column out of partition_by")


def escape_value(text: str) -> str:
    """Escapes the characters of a string that have a meaning in names of folders.

    >>> escape_value("a/b=c: 100 % é")
    'a%2Fb%3Dc%3A 100 %25 é'
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


def unescape_value(text: str) -> str:
    """Returns the inverse of `escape_value`; a percent sign without two digits stays.

    >>> unescape_value("a%2Fb%3Dc%3A 100 %25 é"), unescape_value("100%")
    ('a/b=c: 100 % é', '100%')
    """
    return _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), text)


def folder_of_value(column: str, value: object) -> str:
    """Returns the name of the folder for a string, an integer, a boolean, a date or None.

    >>> folder_of_value("day", datetime.date(2026, 1, 2)), folder_of_value("new", True), folder_of_value("day", None)
    ('day=2026-01-02', 'new=true', 'day=__HIVE_DEFAULT_PARTITION__')
    """
    if value is None:
        text = NOTHING
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    return f"{escape_value(column)}={escape_value(text)}"


def is_lost(value: object) -> bool:
    """True if a string would be read back as None.

    >>> is_lost(""), is_lost("DE"), is_lost(None)
    (True, False, False)
    """
    return value in ("", NOTHING)


def partition_pattern(pattern: str, columns: Sequence[str]) -> str:
    """Returns the pattern of the files in the folders of partitions.

    The last part of a pattern without folders is the pattern of the files' names if it has wildcards; otherwise the
    whole is the folder of the table.

    >>> partition_pattern("/out/visits*.parquet", ("country", "day"))
    '/out/country=*/day=*/visits*.parquet'
    >>> partition_pattern("s3://lake/out/", ("day",))
    's3://lake/out/day=*/*'
    """
    if not columns:
        return pattern
    folder, name = table_and_names(pattern)
    if _WILDCARD.search(folder):
        what = f"the folder {folder} of a table with partitions has wildcards"
        hint = "write the folder, and a pattern of the files' names after it if you want one"
        raise refusal(ValueError, what, hint=hint)
    return "/".join(
        [*([folder.rstrip("/")] if folder else []), *(f"{escape_value(each)}=*" for each in columns), name]
    )


def table_and_names(pattern: str) -> tuple[str, str]:
    """Returns the folder of a table, and the pattern of the names of its files.

    >>> table_and_names("/out/visits*"), table_and_names("/out/"), table_and_names("visits*")
    (('/out', 'visits*'), ('/out', '*'), ('', 'visits*'))
    """
    folder, slash, name = pattern.rpartition("/")
    if not _WILDCARD.search(name):
        return pattern.rstrip("/") or slash, "*"
    return folder or slash, name


def table_of_pattern(pattern: str, columns: Sequence[str]) -> str:
    """Returns the folder of the table in a `partition_pattern`.

    >>> table_of_pattern("/out/country=*/day=*/visits*", ("country", "day"))
    '/out'
    """
    folder = "/".join(pattern.split("/")[: -1 - len(columns)])
    return folder or ("/" if pattern.startswith("/") else ".")


def values_of_path(path: str, columns: Sequence[str]) -> list[str | None]:
    """Returns the strings of the columns in the path of a file that a `partition_pattern` matches; None for no value.

    >>> values_of_path("/out/country=a%2Fb/day=__HIVE_DEFAULT_PARTITION__/visits-0", ("country", "day"))
    ['a/b', None]
    """
    folders = path.split("/")[-1 - len(columns) : -1]
    values = [folder.partition("=")[2] for folder in folders]
    return [None if text in ("", NOTHING) else unescape_value(text) for text in values]


def move_into_folders(path: str, folders: str) -> str:
    """Returns the path of a file, moved to folders below its own.

    >>> [move_into_folders(path, "day=1") for path in ("/out/visits-0", "visits-0", "/visits-0")]
    ['/out/day=1/visits-0', 'day=1/visits-0', '/day=1/visits-0']
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{folders}/{name}" if folders else path
