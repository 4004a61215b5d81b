"""Reads and writes JSON files (Beam's ``ReadFromJson`` and ``WriteToJson``)."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal
from penstock.io.columnar import JsonSink, JsonSource, ReadColumns, WriteColumns, check_options
from penstock.io.partition_folders import partition_columns, partitions_to_read, pattern_of_table
from penstock.io.paths import check_path


def ReadFromJson(
    path: str,
    *,
    orient: str = "records",
    lines: bool = True,
    dtype: Any = False,
    partition_by: Any = (),
    schema: Any = None,
    **kwargs: Any,
) -> ReadColumns:
    """A transform that reads JSON objects into rows with one attribute per field (Beam's ``ReadFromJson``).

    Every row has all fields of the data, in the order of the first file; a field that an object lacks is None. Values
    are the ones of Python's ``json``: nested objects are dicts. A text that is not a JSON object is an error that
    names the file. The element type has the types of the values if the files have at most 4 MB when the transform is
    applied; otherwise it only says that elements are rows.

    Args:
        path: The path, with wildcards as in ``ReadFromText``.
        orient: Only ``"records"``.
        lines: Whether each line is an object; False means that each file is a list of objects (or one).
        dtype: Only False, Beam's default: no types beyond JSON's own are inferred.
        partition_by: The columns whose values are in the names of folders, as `WriteToJson` writes them. The path is
            then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            text, whole numbers, truth values or dates; without it, they are text. The other columns do not need it.
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
    check_path(path, "path")
    parts = partitions_to_read(partition_by, schema)
    encoding = kwargs.get("encoding") or "utf-8"
    pattern = pattern_of_table(path, parts)
    source = JsonSource(pattern, lines, encoding, partition_by=parts, schema=schema)
    return ReadColumns(source, label="ReadFromJson")


def WriteToJson(
    path: Any,
    *,
    num_shards: int | None = None,
    file_naming: Any = None,
    orient: str = "records",
    lines: bool | None = None,
    partition_by: Any = (),
    **kwargs: Any,
) -> WriteColumns:
    """A transform that writes rows as JSON files (Beam's ``WriteToJson``).

    Args:
        path: The beginning of the files' paths.
        num_shards: The number of files; None leaves it to Spark.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        orient: Only ``"records"``.
        lines: Whether each row has its own line (the default); False makes each file one list.
        partition_by: The columns by whose values the files are kept apart, as in ``WriteToParquet``. The elements need
            a type of rows. A ``FileResult`` then has the file's name with its folders, and counts the files of its
            folder.
        kwargs: More arguments of ``pandas.DataFrame.to_json``, e.g. ``date_format``. Without any, floats keep all their
            digits; with some, pandas keeps 15 behind the point, or as many as ``double_precision`` says. Times are
            milliseconds since 1970 unless ``date_unit`` or ``date_format`` says otherwise; a time that this would cut
            is refused, and with ``date_format="iso", date_unit="us"`` all times stay as they are.

    Raises:
        ValueError: If `orient` is another one; and for columns of `partition_by`, as in `WriteToCsv`.

    >>> WriteToJson("/out/a").sink.describe()
    'json /out/a'
    >>> WriteToJson("/out/a", partition_by="day").sink.describe()
    'json /out/a by day'
    """
    if orient != "records":
        what = f"WriteToJson takes only orient='records', not {orient!r}"
        raise refusal(ValueError, what, hint="make the text in a Map and write it with WriteToText")
    options = tuple(sorted({**kwargs, "lines": lines is not False}.items()))
    sink = JsonSink(path, num_shards, file_naming, options, partition_by=partition_columns(partition_by))
    return WriteColumns(sink, label="WriteToJson")
