"""Reading and writing JSON files (Beam's ``ReadFromJson`` and ``WriteToJson``)."""

from __future__ import annotations

from typing import Any

from penstock.error import three_parts
from penstock.io.columnar import JsonSink, JsonSource, ReadColumns, WriteColumns, check_options


def ReadFromJson(
    path: str, *, orient: str = "records", lines: bool = True, dtype: Any = False, **kwargs: Any
) -> ReadColumns:
    """A transform that reads JSON objects into rows with one attribute a field (Beam's ``ReadFromJson``).

    Every row has all fields that occur in the data, in the order in which the first file has them; one that
    an object lacks is None. Values are what Python's ``json`` makes of them: nested objects are dicts. A text
    that is no JSON object is an error that names the file. The element type has the types of the values, if the files
    have no more than 4 MB when the transform is applied; otherwise it only says that there are rows.

    Args:
        path: The path, with wildcards as in ``ReadFromText``.
        orient: Only ``"records"``.
        lines: Whether each line is an object; False means that each file is a list of objects (or one).
        dtype: Only False, Beam's default: types are not inferred beyond JSON's own.
        kwargs: ``encoding``, of ``pandas.read_json``.

    Raises:
        TypeError: Another argument is given.
        ValueError: `orient` or `dtype` is another.
        OSError: No file matches.

    >>> ReadFromJson("/data/*.json").source.describe()
    'json /data/*.json'
    """
    check_options("ReadFromJson", kwargs, frozenset({"encoding"}))
    for name, value, only in (("orient", orient, "records"), ("dtype", dtype, False)):
        if value != only:
            raise ValueError(
                three_parts(
                    f"ReadFromJson takes {name}={only!r} only, not {value!r}",
                    hint="read the files with ReadFromText or fileio.ReadMatches and parse them in a Map",
                )
            )
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
        path: What the files' paths begin with.
        num_shards: How many files; None leaves it to Spark.
        file_naming: A naming of `penstock.io.fileio`; `path` is then the folder.
        orient: Only ``"records"``.
        lines: Whether each row is a line of its own (the default); False makes each file one list.
        kwargs: Further arguments of ``pandas.DataFrame.to_json``, e.g. ``date_format``.

    Raises:
        ValueError: `orient` is another.

    >>> WriteToJson("/out/a").sink.describe()
    'json /out/a'
    """
    if orient != "records":
        raise ValueError(
            three_parts(
                f"WriteToJson takes orient='records' only, not {orient!r}",
                hint="make the text in a Map and write it with WriteToText",
            )
        )
    options = tuple(sorted({**kwargs, "lines": lines is not False}.items()))
    return WriteColumns(JsonSink(path, num_shards, file_naming, options), label="WriteToJson")
