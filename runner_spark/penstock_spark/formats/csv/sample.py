"""The types of the columns of CSV files by their first megabytes, as a hint for the rows."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from penstock.io.csvio import CsvSource
from penstock.typehints import typehints
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import column_of
from penstock_spark.formats.csv.kinds import asked_kinds, fits_text, hint_of
from penstock_spark.formats.csv.records import (
    UNDECODED,
    cut,
    cut_by_lines,
    fields_of,
    has_plain_lines,
    names_in,
)
from penstock_spark.formats.csv.scan import has_header, missing_texts
from penstock_spark.sources.file_samples import FileSample, read_samples
from penstock_spark.sources.partition_values import partition_values

_TESTS = tuple((kind, fits_text(kind)) for kind in ("int", "float", "bool"))


def type_of_csv(source: CsvSource, paths: Sequence[str]) -> RowTypeConstraint | None:
    """The type of the rows; None if this sample does not show where records end.

    Any value may be missing, even if no sampled one is. A column without values has no known type, unless the
    files were read to their ends.
    """
    options = dict(source.options)
    if not paths or len(str(options.get("sep") or options.get("delimiter") or ",")) != 1:
        return None
    begun = list(read_samples(paths))
    tables = [_records(each, source, options) for each in begun]
    names = options.get("names") or (names_in(tables[0][0], has_header(options)) if tables[0] else None)
    if names is None:
        return None
    rows = [row for table in tables for row in table[has_header(options) :] if len(row) == len(names)]
    is_all = len(begun) == len(paths) and all(each.is_all for each in begun)
    asked = asked_kinds(list(names), options, "")
    folders = partition_values(source.partition_by, source.schema, "")
    wanted = options.get("usecols")
    fields: list[tuple[str, Any]] = []
    for name in folders.others(wanted or names):
        missing = missing_texts(name, options)
        at = list(names).index(name)
        values = {row[at] for row in rows if row[at] not in missing}
        kind = asked[name] or _kind(values, "str" if is_all else None)
        fields.append((name, typehints.Any if kind is None else column_of(hint_of(kind))))
    if source.filename_column is not None:
        fields.append((source.filename_column, str))
    fields += [(name, hint) for name, hint in folders.hints() if wanted is None or name in wanted]
    return RowTypeConstraint.from_fields(fields)


def _kind(values: set[str], of_nothing: str | None) -> str | None:
    if not values:
        return of_nothing
    return next((kind for kind, matches in _TESTS if all(map(matches, values))), "str")


def _records(begun: FileSample, source: CsvSource, options: dict[str, Any]) -> list[list[str]]:
    # Bytes without a meaning in the encoding are an error or a reject of the run, and show no types here.
    errors = "surrogateescape" if has_plain_lines(options) else "strict" if begun.is_all else "ignore"
    text = begun.content.decode(options.get("encoding") or "utf-8", errors).removeprefix("\ufeff")
    lines = io.StringIO(text, newline=None if source.splittable else "")
    cut_into = cut_by_lines if source.splittable else cut
    found = [record for record in cut_into(lines, options) if not record.is_open]
    # The last record of a part of a file may be a part of one.
    whole = found if begun.is_all else found[:-1]
    return [fields_of(record.text, options) for record in whole if not UNDECODED.search(record.text)]
