"""The types of the fields of JSON files, if there are few megabytes of them, as a hint for the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.io.columnar import JsonSource
from penstock.typehints import typehints
from penstock.typehints.column_types import RecordConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock_spark.sources.beginnings import all_content
from penstock_spark.sources.json_files import objects_in


def type_of_json(source: JsonSource, paths: Sequence[str]) -> RowTypeConstraint | None:
    """The type of the rows; None if the files are larger: any object may have a field that no other has.

    Args:
        source: What is read.
        paths: The files.

    Raises:
        OSError: A file cannot be read.
        ValueError: A text is no JSON object.
    """
    contents = all_content(paths)
    if contents is None:
        return None
    found: list[dict[str, Any]] = []
    for content in contents:
        for text in content.split(b"\n") if source.lines else [content]:
            found += objects_in(text, source)
    return RowTypeConstraint.from_fields(_fields(found)) if found else None


def _fields(objects: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    values: dict[str, list[Any]] = {}
    for each in objects:
        for name, value in each.items():
            values.setdefault(name, []).append(value)
    return [(name, _type_of(of_name)) for name, of_name in values.items()]


def _type_of(values: Iterable[Any]) -> Any:
    """The type of values of one field, which may also be absent; text where there is none."""
    some = [value for value in values if value is not None]
    objects = [value for value in some if isinstance(value, dict)]
    lists = [value for value in some if isinstance(value, list)]
    kinds = {type(value) for value in some} - {dict, list}
    hints: list[Any] = [*kinds]
    if objects:
        hints.append(RecordConstraint(_fields(objects)))
    if lists:
        hints.append(typehints.List[_type_of(value for each in lists for value in each)])
    return typehints.Union[(*(hints or [str]), type(None))]
