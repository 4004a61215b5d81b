"""Reads from a statement how the rows of its table are in records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import split_hint
from penstock.sql.plan.relations import Columns
from penstock.sql.statements.forms import CreateTable
from penstock.sql.statements.words import Script
from penstock.sql.tables.records import HEADER, KEY_FORMATS, METADATA, Records, RowOfRecord


def make_records(
    declared: CreateTable, script: Script, types: Columns, settings: Mapping[str, Any]
) -> Records:
    """Returns how the rows of a table are in records.

    Args:
        declared: The statement of the table.
        script: The text with the statement.
        types: The columns of the table.
        settings: The settings of records that are given.

    Raises:
        SqlError: A column or a setting does not fit the format.
    """
    options = {each.name.lower(): each for each in declared.options}
    form = options.get("format")
    named = form.value.lower() if form is not None and "connector" in options else "json"
    metadata = []
    for column, typed in zip(declared.columns, types, strict=True):
        if column.metadata is None:
            continue
        wanted = METADATA.get(column.metadata, ("STRING", "BINARY"))
        if column.metadata not in METADATA and not column.metadata.startswith(HEADER):
            known = f"use one of {', '.join(METADATA)}, or {HEADER}NAME"
            what = f"nothing of a record is called {column.metadata!r}"
            script.refuse(what, column.at, hint_at_name(column.metadata, METADATA, known))
        if typed.type.name not in wanted:
            what = f"the {column.metadata} of a record is not {typed.type.or_null()}"
            script.refuse(what, column.at, f"write {column.name} {wanted[0]} METADATA")
        metadata.append((typed.name, column.metadata))
    key_format = options.get("key_format")
    if key_format is not None and key_format.value not in KEY_FORMATS:
        what = f"a key has no format {key_format.value!r}"
        script.refuse(what, key_format.value_at, f"write one of {', '.join(KEY_FORMATS)}")
    if key_format is not None and key_format.value == "raw" and len(declared.key) > 1:
        what = "a raw key is one column, and the primary key has several"
        script.refuse(what, key_format.value_at, "write key_format = 'json'")
    found = Records(types, "raw" if named == "text" else named, tuple(metadata), **settings)
    try:
        found.check()
    except ValueError as error:
        what, hint = split_hint(str(error))
        script.refuse(what.splitlines()[0], declared.at if form is None else form.value_at, hint)
    return found


def refuse_metadata(declared: CreateTable, script: Script, system: str) -> None:
    """Refuses columns with METADATA in a table without records."""
    for column in declared.columns:
        if column.metadata is not None:
            what = f"a table of {system} knows nothing around its rows, and {column.name!r} asks for it"
            script.refuse(what, column.at, "leave METADATA out")


def row_of_record(records: Records) -> RowOfRecord:
    """Returns a function that makes a row of an element."""
    types = {each.name: each.type.name for each in records.columns}
    metadata = tuple((name, what, types[name] == "STRING") for name, what in records.metadata)
    return RowOfRecord(tuple(each.name for each in records.columns), metadata)
