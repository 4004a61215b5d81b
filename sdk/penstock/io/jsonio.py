"""Reads and writes JSON files (Beam's ``ReadFromJson`` and ``WriteToJson``)."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal
from penstock.io.columnar import JsonSink, JsonSource, ReadColumns, WriteColumns, check_options


def ReadFromJson(
    path: str, *, orient: str = "records", lines: bool = True, dtype: Any = False, **kwargs: Any
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
        kwargs: ``encoding``, of ``pandas.read_json``.

    Raises:
        OSError: If no file matches.

    >>> ReadFromJson("/data/*.json").source.describe()
    'json /data/*.json'
    """
    check_options("ReadFromJson", kwargs, frozenset({"encoding"}))
    for name, value, only in (("orient", orient, "records"), ("dtype", dtype, False)):
        if value != only:
            hint = "read the files with ReadFromText or fileio.ReadMatches and parse them in a Map"
            raise refusal(ValueError, f"ReadFromJson takes only {name}={only!r}, not {value!r}", hint=hint)
    return ReadColumns(JsonSource(path, lines, kwargs.get("encoding") or "utf-8"), label="ReadFromJson")


def WriteToJson(
    path: Any,
    *,
    num_shards: int | None = None,
    file_naming: Any = None,
    orient: str = "records",
    lines: bool | None = None,
    **kwargs: Any,
) -> WriteColumns:
    """A transform that writes rows as JSON files (Beam's ``WriteToJson``).

    Args:
        path: The beginning of the files' paths.
        num_shards: The number of files; None leaves it to Spark.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        orient: Only ``"records"``.
        lines: Whether each row has its own line (the default); False makes each file one list.
        kwargs: More arguments of ``pandas.DataFrame.to_json``, e.g. ``date_format``.

    >>> WriteToJson("/out/a").sink.describe()
    'json /out/a'
    """
    if orient != "records":
        what = f"WriteToJson takes only orient='records', not {orient!r}"
        raise refusal(ValueError, what, hint="make the text in a Map and write it with WriteToText")
    options = tuple(sorted({**kwargs, "lines": lines is not False}.items()))
    return WriteColumns(JsonSink(path, num_shards, file_naming, options), label="WriteToJson")
