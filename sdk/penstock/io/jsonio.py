"""Reads and writes JSON files (Beam's ``ReadFromJson`` and ``WriteToJson``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from penstock.error import refusal
from penstock.io.formats.declared_fields import check_digits
from penstock.io.formats.file_formats import RecordFileSource
from penstock.io.formats.json_values import DeclaredValues, is_decimal
from penstock.io.formats.partition_folders import partition_columns
from penstock.io.formats.text_rows import ReadTextRows, TextRowsSink, WriteTextRows, check_options
from penstock.typehints.constraints import is_consistent_with, show_type
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.signatures import TypeCheckError
from penstock.typehints.unions import without_none

if TYPE_CHECKING:
    from penstock.io.formats.text_rows import ReadWithRejects


@dataclass(frozen=True)
class JsonSource(RecordFileSource):
    """JSON files as rows; see `ReadFromJson`, and `penstock.io.csvio.CsvSource` for `found`."""

    format: ClassVar[str] = "json"
    takes_validate: ClassVar[bool] = False

    lines: bool = True
    encoding: str = "utf-8"
    found: Any = None

    has_fields = True

    @cached_property
    def declared_values(self) -> DeclaredValues:
        """Checks objects by the declared fields."""
        return DeclaredValues(self.declared)

    def with_declared_type(self, row: RowTypeConstraint, found: object, where: str) -> JsonSource:
        """Returns the source with the declared fields, whose values must have these types.

        JSON has its own types: it refuses the ones that its values do not have. Only decimals are made of others.
        """
        known = dict(found.fields) if isinstance(found, RowTypeConstraint) else {}
        for name, hint in row.fields:
            declared, own = without_none(hint), without_none(known.get(name))
            check_digits(name, declared, where)
            if own in (int, float, str) and is_decimal(declared):
                continue
            if own in (str, int, float, bool) and not is_consistent_with(own, declared):
                what = f"the field {name} is declared {show_type(declared)}, but is {own.__name__} in {self.describe()}"
                fix = f"declare {name}: {own.__name__}, and convert the value with beam.Map"
                raise refusal(TypeCheckError, what, where=where, hint=fix)
        return self.with_declared_fields(row)

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.lines:
            return None
        what = "JSON files that are one list or object each cannot be read as a stream"
        return what, "write an object a line, and leave out lines=False"


class JsonSink(TextRowsSink):
    """JSON files."""

    format = "json"


@overload
def ReadFromJson(
    path: str,
    *,
    orient: str = "records",
    lines: bool = True,
    dtype: object = False,
    partition_by: object = (),
    schema: object = None,
    rejects: Literal[True],
    **kwargs: object,
) -> ReadWithRejects: ...


@overload
def ReadFromJson(
    path: str,
    *,
    orient: str = "records",
    lines: bool = True,
    dtype: object = False,
    partition_by: object = (),
    schema: object = None,
    rejects: bool = False,
    **kwargs: object,
) -> ReadTextRows: ...


def ReadFromJson(
    path: str,
    *,
    orient: str = "records",
    lines: bool = True,
    dtype: object = False,
    partition_by: object = (),
    schema: object = None,
    rejects: bool = False,
    **kwargs: object,
) -> ReadTextRows:
    """Returns a transform that reads JSON objects into rows with one attribute per field (Beam's ``ReadFromJson``).

    Every row has all fields of the data, in the order of the first file; a field that an object lacks is None. Values
    are the results of Python's ``json``: nested objects are dicts. A record that is not a JSON object is an error that
    names the file. The element type has the types of the values if the files have at most 4 MB when the transform is
    applied; otherwise it is only known that elements are rows.

    ``.with_output_types(Sale)``, with a NamedTuple ``Sale``, declares the types of fields. A value that is not of a
    declared int, float, bool, str, ``decimal.Decimal`` or ``penstock.typehints.decimal_of(10, 2)`` makes its record an
    error, or a reject. So does a field that is null or absent, unless its type includes None (``float | None``). A
    Decimal has the digits of the text, which may be in a string. Of other types, only None is checked.

    Args:
        path: The path, with wildcards as in ``ReadFromText``.
        orient: Only ``"records"``.
        lines: Whether each line is an object; False means that each file is a list of objects (or one).
        dtype: Only False, Beam's default: no types beyond JSON's own are inferred.
        partition_by: The columns whose values are in the names of folders, as `WriteToJson` writes them. The path is
            then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            strings, integers, booleans or dates; without it, they are strings. The other columns do not need it.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each record that cannot be read; otherwise it is an error.
        kwargs: ``encoding``, of ``pandas.read_json``.

    Raises:
        OSError: If no file matches.
        ValueError: If `schema` lacks a column of `partition_by`.

    >>> ReadFromJson("/data/*.json").source.describe()
    'json /data/*.json'
    >>> ReadFromJson("/visits", partition_by=("country", "day")).source.describe()
    'json /visits/country=*/day=*/*'
    """
    check_options("ReadFromJson", kwargs, frozenset({"encoding"}))
    for name, value, only in (("orient", orient, "records"), ("dtype", dtype, False)):
        if value != only:
            hint = "read the files with ReadFromText or fileio.ReadMatches and parse them in a Map"
            raise refusal(ValueError, f"ReadFromJson takes only {name}={only!r}, not {value!r}", hint=hint)
    encoding = kwargs.get("encoding") or "utf-8"
    source = JsonSource.in_folders(
        path, partition_by, schema, argument="path", lines=lines, encoding=encoding
    )
    return ReadTextRows(source, label="ReadFromJson", rejects=rejects)


def WriteToJson(
    path: object,
    *,
    num_shards: int | None = None,
    file_naming: object = None,
    orient: str = "records",
    lines: bool | None = None,
    partition_by: object = (),
    date_format: str | None = None,
    date_unit: str | None = None,
    double_precision: int | None = None,
    force_ascii: bool = True,
    default_handler: Callable[[Any], Any] | None = None,
    indent: int | None = None,
    **kwargs: object,
) -> WriteTextRows:
    """Returns a transform that writes rows as JSON files (Beam's ``WriteToJson``).

    Values are written without loss, or refused with the name of the field. Floats and integers have all their
    digits; NaN and the infinities, which JSON lacks, become null, and so do the missing values of pandas. A Decimal
    becomes a number if Python reads the same number again. A value of a type that JSON lacks, bytes for example, is
    refused unless `default_handler` converts it. Times, dates and durations are numbers in the unit `date_unit`, times
    since 1970 in UTC; a value that is finer than this unit is refused, and so is a time without a zone. With
    ``date_format="iso"`` they are strings, also times without a zone, and ``date_unit="us"`` keeps the full precision
    of Python times. A ``datetime.time`` is always a string.

    Args:
        path: The beginning of the files' paths.
        num_shards: The number of files; with None, Spark decides.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        orient: Only ``"records"``.
        lines: Whether each row has its own line (the default); False makes each file one list.
        partition_by: The columns whose values divide the files into folders, as in ``WriteToParquet``. The elements
            need a type of rows. A ``FileResult`` then has the file's name with its folders, and counts the files of its
            folder.
        date_format: ``"epoch"`` (the default) for numbers, or ``"iso"`` for strings of ISO 8601: instants in UTC, such
            as ``2026-07-01T12:00:00.000Z``, and durations such as ``P1DT2H0M0.500S``.
        date_unit: ``"s"``, ``"ms"`` (the default), ``"us"`` or ``"ns"``.
        double_precision: The number of digits after the point to which floats and Decimals are rounded, at most 15;
            None keeps all of them (the default of pandas is 10).
        force_ascii: Whether characters beyond ASCII are escaped.
        default_handler: Called for a value of a type that JSON lacks; returns the value to write instead.
        indent: The number of spaces by which each level of a list is indented, with `lines=False`.
        kwargs: Refused: the other arguments of ``pandas.DataFrame.to_json`` define where and how pandas writes a file.

    Raises:
        TypeError: For another argument, or a value that no argument can have.
        ValueError: If `orient` has any other value, or an argument has a value that it cannot have; and for columns of
            `partition_by`, as in `WriteToCsv`. When it runs: for a value that would be changed in the file.

    >>> WriteToJson("/out/a").sink.describe()
    'json /out/a'
    >>> WriteToJson("/out/a", partition_by="day").sink.describe()
    'json /out/a by day'
    """
    if orient != "records":
        what = f"WriteToJson takes only orient='records', not {orient!r}"
        raise refusal(ValueError, what, hint="make the lines in a Map and write them with WriteToText")
    given = {
        "date_format": date_format,
        "date_unit": date_unit,
        "double_precision": double_precision,
        "force_ascii": force_ascii,
        "default_handler": default_handler,
        "indent": indent,
        "lines": lines is not False,
    }
    check_options("WriteToJson", kwargs, frozenset({*given, "orient"}))
    _check_values(given)
    options = tuple(sorted((name, value) for name, value in given.items() if value is not None))
    sink = JsonSink(path, num_shards, file_naming, options, partition_by=partition_columns(partition_by))
    return WriteTextRows(sink, label="WriteToJson")


def _check_values(given: Mapping[str, Any]) -> None:
    """Raises ValueError for a value that an argument of `WriteToJson` cannot have."""
    choices = {
        "date_format": ("epoch", "iso"),
        "date_unit": ("s", "ms", "us", "ns"),
        "force_ascii": (True, False),
    }
    for name, allowed in choices.items():
        if given[name] is not None and given[name] not in allowed:
            what = f"{name} must be {' or '.join(map(repr, allowed))}, but is {given[name]!r}"
            raise refusal(ValueError, what, hint=f"write {name}={allowed[0]!r}, for example")
    for name, largest in (("double_precision", 15), ("indent", 100)):
        value = given[name]
        if value is not None and (type(value) is not int or not 0 <= value <= largest):
            what = f"{name} must be an integer from 0 to {largest}, but is {value!r}"
            raise refusal(ValueError, what, hint=f"write {name}=2, for example")
    if given["indent"] and given["lines"]:
        what = "indent needs lines=False, because each line of a file is one object"
        raise refusal(ValueError, what, hint="leave one of the two out")
    if given["default_handler"] is not None and not callable(given["default_handler"]):
        what = f"default_handler must be a function, but is {given['default_handler']!r}"
        raise refusal(ValueError, what, hint="write default_handler=str, for example")
