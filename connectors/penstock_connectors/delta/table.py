"""A Delta table on its store: how it is opened, what cannot be written to, and errors without secrets.

`deltalake` is an optional package: nothing here is imported from it before a table is used.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.delta import TablePlace
from penstock_connectors.packages import DELTALAKE
from penstock_spark.connecting.files import disk_path
from penstock_spark.connecting.running import redact_secrets

if TYPE_CHECKING:
    from deltalake import DeltaTable

_WITH_RULES = {
    "columnMapping": "columns whose names differ from its files'",
    "generatedColumns": "generated columns",
    "identityColumns": "identity columns",
    "checkConstraints": "constraints",
    "rowTracking": "row tracking",
    "icebergCompatV1": "the Iceberg format",
    "icebergCompatV2": "the Iceberg format",
}
"""Features of tables whose rules a writer has to keep, and this one does not know."""

_CAUSE = re.compile(r"\s*\n\s*(?:\x1b\[\d*m)?↳(?:\x1b\[\d*m)?\s*")
"""The separator before the cause of an error; only the last cause may say what has happened."""

_SYSTEM = re.compile(r"\(os error (\d+)\)")
_FULL = {errno.ENOSPC: "No space left on device", errno.EDQUOT: "Disk quota exceeded"}

_RULES_OF_FIELDS = ("delta.invariants", "delta.generationExpression", "delta.identity.start")


def find_table(place: TablePlace, where: str) -> DeltaTable | None:
    """Returns the newest version of a table; None if the table does not exist."""
    package = DELTALAKE.load(where)
    with translate_errors(place, "cannot be opened", where):
        try:
            return package.DeltaTable(make_absolute(place), storage_options=dict(place.options) or None)
        except package.exceptions.TableNotFoundError:
            return None


def open_table(place: TablePlace, where: str) -> DeltaTable:
    """Returns the newest version of a table; FileNotFoundError if the table does not exist."""
    table = find_table(place, where)
    if table is None:
        raise refusal(
            FileNotFoundError,
            f"there is no Delta table at {place.shown}",
            where=where,
            hint="check the path: the folder of a table contains the folder _delta_log",
        )
    return table


@contextmanager
def translate_errors(place: TablePlace, what: str, where: str) -> Iterator[None]:
    """Turns errors of the package into errors in three parts, without its options."""
    package = DELTALAKE.load(where)
    try:
        yield
    except (package.exceptions.TableNotFoundError, package.exceptions.CommitFailedError):
        raise
    except (package.exceptions.DeltaError, OSError) as error:
        found = _SYSTEM.search(str(error))
        number = int(found[1]) if found else 0
        if number in _FULL:
            # The runner knows what to say of full disks.
            raise OSError(number, _FULL[number], place.shown) from None
        raise refusal(
            RuntimeError,
            f"the Delta table {place.shown} {what}: {describe_error(error, place)}",
            where=where,
            hint="check the path, the options of the store, and that it can be reached",
        ) from None


def describe_error(error: object, place: TablePlace) -> str:
    """Returns the first line of a message of the package, with its causes and without the secrets of the store."""
    text = _CAUSE.sub(": ", str(error))
    return redact_secrets(text.replace(place.path, place.shown), place.options)


def make_absolute(place: TablePlace) -> str:
    """Returns the path in a form that does not depend on a process's working folder."""
    folder = local_folder(place)
    return place.path if folder is None else folder


def local_folder(place: TablePlace) -> str | None:
    """Returns the folder on a disk; None for a URL."""
    path = disk_path(place.path)
    return None if path is None else os.path.abspath(path)


def files_of(place: TablePlace, where: str) -> fs.FileSystem:
    """Returns the files of a table, by paths below its own."""
    folder = local_folder(place)
    if folder is not None:
        return fs.SubTreeFileSystem(folder, fs.LocalFileSystem())
    DELTALAKE.check(where)
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler(place.path, dict(place.options)))


def make_folder(place: TablePlace) -> None:
    """Makes the folder of a table on a disk, since tasks write before the first commit."""
    folder = local_folder(place)
    if folder is not None:
        fs.LocalFileSystem().create_dir(folder, recursive=True)


def schema_of_table(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def check_writable(table: DeltaTable, place: TablePlace, is_stream: bool, where: str) -> None:
    """Refuses a table whose rules the data files of tasks might break."""
    features = set(table.protocol().writer_features or ())
    settings = table.metadata().configuration
    found = [text for feature, text in _WITH_RULES.items() if feature in features]
    if settings.get("delta.columnMapping.mode", "none") != "none":
        found.append(_WITH_RULES["columnMapping"])
    if any(name.startswith("delta.constraints.") for name in settings):
        found.append(_WITH_RULES["checkConstraints"])
    if any(rule in (field.metadata or {}) for field in table.schema().fields for rule in _RULES_OF_FIELDS):
        found.append("rules for its columns")
    if is_stream and "delta.setTransactionRetentionDuration" in settings:
        found.append("a limit to how long it remembers what streams have written")
    if found:
        raise UnsupportedByRunner(
            f"the Delta table {place.shown} has {' and '.join(dict.fromkeys(found))}",
            where=where,
            hint="write to a table without it, or use WriteToSpark('delta', path) with Delta's own jar",
        )
