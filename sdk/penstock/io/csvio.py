"""Reads and writes CSV files (Beam's ``ReadFromCsv`` and ``WriteToCsv``)."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from penstock.error import refusal
from penstock.io.formats.declared_fields import check_digits, digits_of, show_field_type
from penstock.io.formats.file_formats import RecordFileSource
from penstock.io.formats.partition_folders import partition_columns
from penstock.io.formats.text_rows import ReadTextRows, TextRowsSink, WriteTextRows, check_options
from penstock.transforms.elements.field_checks import check_field_names
from penstock.typehints import typehints
from penstock.typehints.constraints import Hint, show_type
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.signatures import TypeCheckError
from penstock.typehints.unions import without_none

if TYPE_CHECKING:
    from penstock.io.formats.text_rows import ReadWithRejects


CLASSES = (int, float, bool, str, datetime.datetime, datetime.date, decimal.Decimal)
CLASSES_SHOWN = (
    "int, float, bool, str, datetime.datetime, datetime.date, decimal.Decimal or decimal_of(10, 2)"
)
"""The types of values that a program may declare for a column of CSV."""


@dataclass(frozen=True)
class CsvSource(RecordFileSource):
    """CSV files as rows; see `ReadFromCsv`.

    `found` is the type of the rows that was found when the pipeline was built; the data must match it.
    """

    format: ClassVar[str] = "csv"
    takes_validate: ClassVar[bool] = False

    splittable: bool = True
    filename_column: str | None = None
    options: tuple[tuple[str, Any], ...] = ()  # Arguments of ``pandas.read_csv``, as sorted pairs.
    found: Any = None

    has_fields = True
    has_columns = True

    def known_fields(self) -> tuple[str, ...] | None:
        match dict(self.options).get("usecols"):
            case list() | tuple() as names if all(isinstance(name, str) for name in names):
                return tuple(name for name in (*names, self.filename_column) if name is not None)
        return None

    def with_declared_type(self, row: RowTypeConstraint, found: object, where: str) -> CsvSource:
        """Returns the source with the declared columns alone, whose values have the declared types."""
        if found is not None:
            check_field_names([name for name, _ in row.fields], found, where)
        added = {self.filename_column, *self.partition_by}
        options = dict(self.options)
        asked = options.get("dtype")
        kinds: dict[str, Any] = dict(asked) if isinstance(asked, dict) else {}
        for name, hint in row.fields:
            wanted = None if name in added else _type_in_csv(name, hint, where)
            if wanted is None:
                continue
            given = kinds.get(name) if isinstance(asked, dict) or asked is None else asked
            if given not in (None, wanted, show_field_type(wanted)):
                shown = given if isinstance(given, str) else show_field_type(given)
                what = f"the field {name} is declared {show_field_type(wanted)}, but dtype says {shown}"
                raise refusal(ValueError, what, where=where, hint=f"leave {name} out of dtype")
            kinds[name] = wanted
        columns = [name for name, _ in row.fields if name != self.filename_column]
        if options.get("usecols") is None and columns:
            options["usecols"] = columns
        if kinds:
            options["dtype"] = kinds
        typed = replace(self, options=tuple(sorted(options.items())))
        return typed.with_declared_fields(row)


def _type_in_csv(name: str, declared: object, where: str) -> Hint:
    """The type of the values of a declared field; None if any value will do."""
    plain = without_none(declared)
    check_digits(name, plain, where)
    if plain in CLASSES or digits_of(plain) is not None:
        return plain
    if plain in (object, typehints.Any):
        return None
    what = f"the field {name} is declared {show_type(plain)}, and no value of CSV has this type"
    raise refusal(
        TypeCheckError,
        what,
        where=where,
        hint=f"declare {CLASSES_SHOWN}, and convert the value with beam.Map",
    )


class CsvSink(TextRowsSink):
    """CSV files."""

    format = "csv"


_READ_OPTIONS = frozenset(
    [
        "sep",
        "delimiter",
        "header",
        "names",
        "usecols",
        "dtype",
        "na_values",
        "keep_default_na",
        "quotechar",
        "escapechar",
        "comment",
        "encoding",
        "skipinitialspace",
    ]
)


@overload
def ReadFromCsv(
    path: str,
    *,
    splittable: bool = True,
    filename_column: str | None = None,
    partition_by: object = (),
    schema: object = None,
    rejects: Literal[True],
    **kwargs: object,
) -> ReadWithRejects: ...


@overload
def ReadFromCsv(
    path: str,
    *,
    splittable: bool = True,
    filename_column: str | None = None,
    partition_by: object = (),
    schema: object = None,
    rejects: bool = False,
    **kwargs: object,
) -> ReadTextRows: ...


def ReadFromCsv(
    path: str,
    *,
    splittable: bool = True,
    filename_column: str | None = None,
    partition_by: object = (),
    schema: object = None,
    rejects: bool = False,
    **kwargs: object,
) -> ReadTextRows:
    """Returns a transform that reads CSV files into rows with one attribute per column (Beam's ``ReadFromCsv``).

    A first pass over all data finds the types of columns: integers become int, other numbers float, ``true`` and
    ``false`` (in any case) bool, everything else str. What pandas treats as a missing value (an empty field, ``NA``,
    ``null`` ...) is None in columns of every type; unlike in pandas, integers of such a column stay integers. A line
    with more or fewer fields than the header is an error that names the file and the first such line, and so is text in
    a different encoding. With `splittable=False`, or in an encoding other than UTF-8, a stream takes the character
    U+FFFD for such text. A `comment` can begin anywhere except within quotes and directly after a closing quote, as in
    pandas. Within quotes, an `escapechar` escapes a quote and itself; before any other character, and outside of
    quotes, it is an ordinary character, which pandas would drop.

    The element type has these types, from `dtype` and the first 4 MB of the files when the transform is applied. If a
    column turns out to have a different type, it is an error when the files are opened.

    ``.with_output_types(Sale)``, with a NamedTuple ``Sale``, names the columns to read and the types of their values:
    int, float, bool, str, ``datetime.datetime``, ``datetime.date``, ``decimal.Decimal``, which keeps the digits of the
    text, or ``penstock.typehints.decimal_of(10, 2)``, which has two digits after the point. Dates and times are written
    as in ISO 8601 (``2026-01-31``, ``2026-01-31T12:00:00Z``); a time without a zone is in UTC. A value of a different
    type is an error, or a reject, and so is a missing value, unless the type includes None (``float | None``).

    Args:
        path: The path, with wildcards as in ``ReadFromText``.
        splittable: Whether every record is one line; False allows line ends within quotes, which are kept. A task, also
            in a stream, then holds a whole file in memory. A quote that is never closed is an error.
        filename_column: A column to add, with the name of the file.
        partition_by: The columns whose values are in the names of folders, as `WriteToCsv` writes them. The path is
            then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            strings, integers, booleans or dates; without it, they are strings. The other columns do not need it.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each record that cannot be read; otherwise it is an error. A value that does not have the type of its
            column also makes its record a reject. The type is the one in `dtype` or ``with_output_types``, or the one
            that the first 4 MB of the files show: name the types of columns that may contain such values there.
        kwargs: These arguments of ``pandas.read_csv``: sep, delimiter, header (0, None or "infer"), names,
            usecols, dtype (one type, or one for each column: those of ``with_output_types``, above), na_values,
            keep_default_na, quotechar, escapechar, comment, encoding, skipinitialspace.

    Raises:
        OSError: If no file matches.
        ValueError: If `schema` lacks a column of `partition_by`. When the pipeline runs: if a column turns out to have
            a different type.

    >>> ReadFromCsv("/data/*.csv", sep=";").source.describe()
    'csv /data/*.csv'
    >>> ReadFromCsv("/visits", partition_by=("country", "day")).source.describe()
    'csv /visits/country=*/day=*/*'
    """
    check_options("ReadFromCsv", kwargs, _READ_OPTIONS)
    _check_signs(kwargs)
    source = CsvSource.in_folders(
        path,
        partition_by,
        schema,
        argument="path",
        splittable=splittable,
        filename_column=filename_column,
        options=tuple(sorted(kwargs.items())),
    )
    if filename_column in source.partition_by:
        what = f"the column {filename_column!r} is both filename_column and in partition_by"
        raise refusal(ValueError, what, hint="give the file's name another column")
    return ReadTextRows(source, label="ReadFromCsv", rejects=rejects)


def _check_signs(options: Mapping[str, Any]) -> None:
    """Refuses separators, quotes and marks that are not text or are empty; only separators may have more characters."""
    for name in ("sep", "delimiter", "quotechar", "escapechar", "comment"):
        sign = options.get(name)
        if sign is None:
            continue
        is_long = name in ("sep", "delimiter")
        if not isinstance(sign, str) or not (sign if is_long else len(sign) == 1):
            wanted = "a string" if is_long else "one character"
            example = {"sep": ";", "delimiter": ";", "quotechar": "'", "escapechar": "\\", "comment": "#"}[
                name
            ]
            what = f"{name} must be {wanted}, but is {sign!r}"
            raise refusal(ValueError, what, hint=f"write {name}={example!r}, for example")


def WriteToCsv(
    path: object,
    num_shards: int | None = None,
    file_naming: object = None,
    *,
    partition_by: object = (),
    **kwargs: object,
) -> WriteTextRows:
    """Returns a transform that writes rows as CSV files with a header, and returns ``FileResult`` records (Beam's
    ``WriteToCsv``).

    Args:
        path: The beginning of the files' paths.
        num_shards: The number of files; with None, Spark decides.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        partition_by: The columns whose values divide the files into folders, as in ``WriteToParquet``. The elements
            need a type of rows. A ``FileResult`` then has the file's name with its folders, and counts the files of its
            folder.
        kwargs: More arguments of ``pandas.DataFrame.to_csv``, e.g. ``sep``, ``header``, ``columns``.

    Raises:
        ValueError: When it is applied: if the elements lack a column of `partition_by`, or if no other column is left.
            When the pipeline starts: if such a column has a type that the name of a folder cannot hold. When it runs:
            for an empty string in such a column, which readers would read as None.

    >>> WriteToCsv("/out/a", num_shards=1).sink.describe()
    'csv /out/a'
    >>> WriteToCsv("/out/a", partition_by="day").sink.describe()
    'csv /out/a by day'
    """
    options = tuple(sorted(kwargs.items()))
    sink = CsvSink(path, num_shards, file_naming, options, partition_by=partition_columns(partition_by))
    return WriteTextRows(sink, label="WriteToCsv")
