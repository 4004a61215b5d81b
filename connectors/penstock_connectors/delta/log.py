"""The log of a Delta table, commit by commit: which files each version adds, removes, or writes about its changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from penstock.error import UnsupportedByRunner
from penstock.values.types import INSTANT
from penstock_spark.connecting.values import value_of

_FOLDER = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class LogFile:
    """A file that a commit names."""

    path: str
    guarantee: pc.Expression  # Facts about all its rows, among them the values of partition columns.
    rows: int | None  # None if the log does not know.
    kind: str  # ``"add"``, ``"remove"``, or ``"cdc"`` for rows that contain their kind of change.


@dataclass(frozen=True)
class Commit:
    """The work of a version, as far as it has changed rows or the shape of rows."""

    version: int
    added: tuple[LogFile, ...]
    removed: tuple[LogFile, ...]
    changes: tuple[LogFile, ...]
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None


def read_commit(
    files: fs.FileSystem, version: int, schema: pa.Schema, parts: tuple[str, ...]
) -> Commit | None:
    """A commit; None if the log has no file for it.

    Raises:
        ConnectionError: If the store cannot be read.
    """
    path = f"{_FOLDER}/{version:020d}.json"
    try:
        if files.get_file_info(path).type == fs.FileType.NotFound:
            return None
        with files.open_input_stream(path) as stream:
            text = stream.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConnectionError(f"the log cannot be read: {error}") from None
    found: dict[str, list[Any]] = {}
    for line in text.splitlines():
        if line.strip():
            for action, content in json.loads(line).items():
                found.setdefault(action, []).append(content)

    def named(action: str) -> tuple[LogFile, ...]:
        return tuple(
            _file(action, content, schema, parts, version)
            for content in found.get(action, ())
            # An action that only moves rows changes nothing.
            if action == "cdc" or content.get("dataChange", True)
        )

    return Commit(
        version,
        named("add"),
        named("remove"),
        named("cdc"),
        (found.get("metaData") or [None])[-1],
        (found.get("protocol") or [None])[-1],
    )


def find_newest_version(files: fs.FileSystem) -> int | None:
    """The number of the newest commit; None if there is no log."""
    try:
        infos = files.get_file_info(fs.FileSelector(_FOLDER, allow_not_found=True))
    except OSError as error:
        raise ConnectionError(f"the log cannot be listed: {error}") from None
    found = [_COMMIT.fullmatch(info.base_name) for info in infos]
    return max((int(each[1]) for each in found if each), default=None)


def find_trace(files: fs.FileSystem, version: int) -> tuple[int | None, Any]:
    """The size and the time of the file of a version, which distinguish it from another file of that name."""
    try:
        info = files.get_file_info(f"{_FOLDER}/{version:020d}.json")
    except OSError as error:
        raise ConnectionError(f"the log cannot be read: {error}") from None
    return info.size, info.mtime_ns


def _file(
    kind: str, content: Mapping[str, Any], schema: pa.Schema, parts: tuple[str, ...], version: int
) -> LogFile:
    path = unquote(content["path"])
    if content.get("deletionVector") is not None:
        raise _make_unsupported_error(f"version {version} of the table marks rows of a file as deleted")
    if path.startswith("/") or "://" in path:
        raise _make_unsupported_error(f"version {version} of the table names a file outside of its folder")
    values = content.get("partitionValues")
    if values is None and parts:
        raise _make_unsupported_error(
            f"version {version} of the table does not contain the partition of a removed file"
        )
    statistics = json.loads(content.get("stats") or "{}")
    return LogFile(path, _guarantee(values or {}, schema, parts), statistics.get("numRecords"), kind)


def _guarantee(values: Mapping[str, str | None], schema: pa.Schema, parts: tuple[str, ...]) -> pc.Expression:
    known = pc.scalar(True)
    for name in parts:
        text = values.get(name)
        # The log of a table also has an empty text for null.
        if text is None or text == "":
            known = known & pc.field(name).is_null()
        else:
            known = known & (pc.field(name) == _value(text, schema.field(name).type))
    return known


def _value(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value of a partition column; instants are in UTC, with or without a zone."""
    if value_of(kind) is INSTANT and not text.endswith("Z"):
        return pa.scalar(text).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.scalar(text).cast(kind)


def _make_unsupported_error(what: str) -> UnsupportedByRunner:
    return UnsupportedByRunner(
        what, hint="use ReadFromSpark('delta', path) with Delta's own jar, or read the table in batch"
    )
