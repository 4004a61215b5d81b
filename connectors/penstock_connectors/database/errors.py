"""Errors of a database in three parts: with the step, the table, and the column or constraint, but without values."""

from __future__ import annotations

import re

from penstock.error import RunnerError
from penstock_connectors.database.address import Address
from penstock_spark.connecting.running import current_reporting, find_failure

_SHOWN_CHARACTERS = 1_000
_COPIED_COLUMN = re.compile(r"column (\"[^\"]*\"|[^\s:,]+)")

_AGAIN = ("40001", "40P01", "55P03")

_SAID: dict[str, tuple[str, str]] = {
    "23505": (
        "a row breaks the unique {constraint}",
        'pass mode="upsert" with its columns as key, or drop the duplicates',
    ),
    "23502": (
        "a row has None in {column}, which must not be null",
        "filter such rows, or give the column a default",
    ),
    "23503": ("a row refers to a row that does not exist: {constraint}", "write that table first"),
    "23514": ("a row breaks the {constraint}", "filter such rows, or change the constraint"),
    "23P01": ("a row breaks the exclusion {constraint}", "filter such rows, or change the constraint"),
    "22001": ("a string is too long for {column}", "truncate it, or make the column longer"),
    "22003": ("a number is out of range for {column}", "use a larger type, such as bigint or numeric"),
    "22021": (
        "a string for {column} has a character that the database cannot store",
        "remove NUL characters",
    ),
    "22P05": (
        "a string for {column} has a character that the database cannot store",
        "use the encoding UTF8",
    ),
    "22P02": ("a value for {column} cannot be read as its type", "convert the values, or the column"),
    "22008": ("a time for {column} is out of range", "filter such times"),
    "21000": ("a key has several rows at once", "add what distinguishes the rows to the key"),
    "42P01": ("the table no longer exists", "create it, or pass create=True, and start again"),
    "42703": ("the table has lost a column", "compare the table with the rows, and start again"),
    "42501": (
        "the database user lacks the permission",
        "grant INSERT, UPDATE, DELETE on it, and CREATE on its schema",
    ),
    "53100": ("the disk of the database is full", "free space on it, and start again"),
    "53200": ("the database has no memory left", "give it more memory, or write less at once"),
    "53300": (
        "the database accepts no more connections",
        "run fewer tasks at a time, or allow more connections",
    ),
    "28P01": ("the database does not accept the password", "check the user and the password"),
    "3D000": ("the database does not exist", "create it, or check the url"),
    "25006": ("the database is read-only now", "connect to the primary server"),
}


def may_succeed_again(error: object) -> bool:
    """True if the same transaction may succeed now: it was rolled back because of another one."""
    return getattr(error, "sqlstate", None) in _AGAIN


def to_step_error(error: object, address: Address) -> RunnerError:
    """Converts an error of psycopg to one of the step."""
    state = getattr(error, "sqlstate", None) or ""
    diagnostics = getattr(error, "diag", None)
    said, hint = _SAID.get(
        state, (f"the database refuses it ({type(error).__name__})", "see the log of the database")
    )
    if not state:
        said, hint = "the connection to the database is lost", "start again when the database is back"
    constraint = getattr(diagnostics, "constraint_name", None)
    said = said.format(
        constraint=f"constraint {constraint}" if constraint else "constraint", column=_column(diagnostics)
    )
    return make_write_error(address, said, hint, _show_message(error, diagnostics))


def make_write_error(address: Address, said: str, hint: str, shown: str = "") -> RunnerError:
    what = f"{_cannot_write(address)}: {said}"
    return RunnerError(
        what + (f" ({mask_passwords(shown, address)})" if shown else ""), where=address.where, hint=hint
    )


class RowsLost(RunnerError):
    """The database has crashed and lost the rows of tasks before the transaction that would have written them."""


def make_rows_lost_error(address: Address) -> RowsLost:
    what = f"{_cannot_write(address)}: the database has lost rows because it crashed"
    return RowsLost(what, where=address.where, hint="start again: nothing of the transaction was written")


def are_rows_lost(error: Exception) -> bool:
    """True if an error is a `RowsLost`, or comes from a task that has raised one."""
    if isinstance(error, RowsLost):
        return True
    failed = find_failure(str(error))
    return failed is not None and failed.kind == RowsLost.__qualname__


def _cannot_write(address: Address) -> str:
    return f"cannot write to the table {address.table} of {address.shown}"


def _column(diagnostics: object) -> str:
    name = getattr(diagnostics, "column_name", None)
    if not name:
        # Only the first line of the context is of the server; what it quotes comes after the column.
        found = _COPIED_COLUMN.search((getattr(diagnostics, "context", None) or "").partition(":")[0])
        name = found and found[1].strip('"')
    return f"the column {name}" if name else "a column"


def _show_message(error: object, diagnostics: object) -> str:
    """Returns the database's own words, which may quote a row: only if the user wants to see elements."""
    if not current_reporting().show_elements:
        return ""
    words = (getattr(diagnostics, name, None) for name in ("message_primary", "message_detail", "context"))
    return "; ".join(filter(None, words)) or str(error)


def mask_passwords(text: str, address: Address) -> str:
    """Returns a text without any password of the URL."""
    text = " ".join(text.split())[:_SHOWN_CHARACTERS]
    for secret in sorted(address.passwords(), key=len, reverse=True):
        text = text.replace(secret, "...")
    return text
