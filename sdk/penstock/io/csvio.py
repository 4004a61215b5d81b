"""Reads and writes CSV files, with the arguments of pandas that matter (Beam's ``ReadFromCsv``, ``WriteToCsv``)."""

from __future__ import annotations

from typing import Any

from penstock.io.columnar import CsvSink, CsvSource, ReadColumns, WriteColumns, check_options

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


def ReadFromCsv(
    path: str, *, splittable: bool = True, filename_column: str | None = None, **kwargs: Any
) -> ReadColumns:
    """A transform that reads CSV files into rows with one attribute per column (Beam's ``ReadFromCsv``).

    A first pass over all data finds the types of columns: integers become int, other numbers float, ``true`` and
    ``false`` (in any case) bool, everything else str. What pandas takes for a missing value (an empty field, ``NA``,
    ``null`` ...) is None in columns of every type; unlike pandas, this does not turn such integers into floats. A line
    with more or fewer fields than the header is an error that names the file.

    The element type has these types too, from `dtype` and the first 4 MB of the files when the transform is applied. A
    column whose type turns out to be different is an error when the files are opened.

    Args:
        path: The path, with wildcards as in ``ReadFromText``.
        splittable: Whether every record is one line; False allows line ends within quotes.
        filename_column: A column to add, with the name of the file.
        kwargs: These arguments of ``pandas.read_csv``: sep, delimiter, header (0, None or "infer"), names,
            usecols, dtype (one type, or one for each column: int, float, bool, str), na_values,
            keep_default_na, quotechar, escapechar, comment, encoding, skipinitialspace.

    Raises:
        OSError: If no file matches.
        ValueError: If a column does not have the type that it seemed to have (when the pipeline runs).

    >>> ReadFromCsv("/data/*.csv", sep=";").source.describe()
    'csv /data/*.csv'
    """
    check_options("ReadFromCsv", kwargs, _READ_OPTIONS)
    return ReadColumns(
        CsvSource(path, splittable, filename_column, tuple(sorted(kwargs.items()))), label="ReadFromCsv"
    )


def WriteToCsv(
    path: Any, num_shards: int | None = None, file_naming: Any = None, **kwargs: Any
) -> WriteColumns:
    """A transform that writes rows as CSV files with a header, and returns ``FileResult`` records (Beam's
    ``WriteToCsv``).

    Args:
        path: The beginning of the files' paths.
        num_shards: The number of files; None leaves it to Spark.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        kwargs: More arguments of ``pandas.DataFrame.to_csv``, e.g. ``sep``, ``header``, ``columns``.

    >>> WriteToCsv("/out/a", num_shards=1).sink.describe()
    'csv /out/a'
    """
    return WriteColumns(
        CsvSink(path, num_shards, file_naming, tuple(sorted(kwargs.items()))), label="WriteToCsv"
    )
