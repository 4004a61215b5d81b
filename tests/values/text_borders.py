"""The borders whose values are text in files: JSON and CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import penstock as beam
from penstock.io.csvio import CsvSink
from penstock.io.jsonio import JsonSink
from penstock.transforms.sql import SqlTransform
from penstock_spark.formats import json_text
from penstock_spark.formats.csv import records
from penstock_spark.formats.csv.scan import missing_texts
from penstock_spark.formats.csv.writer import csv_files
from penstock_spark.formats.json import json_files
from tests.values.arrow_borders import composite
from tests.values.matrix import WHERE, Border, Column, Step, Trip, as_dict, padded, spelled, write_records

# --- JSON.


def fits_json(value: Any, spelling: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def write_json(columns: Sequence[Column], place: Path) -> None:
    write_as_json(padded(columns), place)


def write_as_json(records: Sequence[Any], place: Path) -> None:
    write_records(json_files(JsonSink(str(place / "values")), WHERE), records, place / "values.json")


def through_json(column: Column, element: Any, place: Path) -> Iterator[Any]:
    write_as_json([element], place)
    return parse_json((), place)


def write_other_values_as_text(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(json_text._FORMS, object, lambda text, value, name: str(value))


def parse_json(columns: Sequence[Column], place: Path) -> Iterator[Any]:
    return map(json.loads, (place / "values.json").read_text().splitlines())


def cut_floats(patch: pytest.MonkeyPatch) -> None:
    """Floats have fifteen digits, as in pandas."""
    patch.setattr(json_text, "_AS_THEY_ARE", frozenset({str, int, bool, type(None)}))
    patch.setitem(json_text._FORMS, float, lambda text, value, name: float(f"{value:.15g}"))


JSON = Border(
    "JSON",
    spelled(
        {name: ["JSON"] for name in ("boolean", "integer", "unsigned integer", "float", "text")}, fits_json
    ),
    {
        "written and parsed": parse_json,
        "batch": Step(lambda columns, place: beam.io.ReadFromJson(f"{place}/*.json")),
        "stream": Step(
            lambda columns, place: beam.io.ReadFromJson(f"{place}/*.json").as_stream(existing_only=True), True
        ),
    },
    write_json,
    cut_floats,
    {
        **dict.fromkeys(("decimal", "wide decimal"), "a number, which is read as a float or an int"),
        **dict.fromkeys(
            ("date", "instant", "local time", "duration"), "numbers or text, as date_format says"
        ),
        "time of day": "text",
        "bytes": "refused",
        "null": "has no type of its own",
    },
    Trip(through_json, write_other_values_as_text),
)

# --- CSV.


def fits_csv(value: Any, spelling: Any, *, is_line: bool) -> bool:
    """True for all but what CSV has no text for, or reads as a missing value."""
    if isinstance(value, str):
        is_missing = value in missing_texts("", {})
        # Spark's parser loses U+0000 in quotes at the end of a record: see `test_sources_csv_json.py`.
        return not is_missing and not (is_line and "\n" in value) and (is_line or value != "\x00")
    return value == value


def write_csv(columns: Sequence[Column], place: Path, **options: Any) -> None:
    sink = CsvSink(str(place / "values"), options=tuple(options.items()))
    write_records(csv_files(sink, WHERE), padded(columns), place / "values.csv")


def through_csv(column: Column, element: Any, place: Path) -> Iterator[Any]:
    """CSV has text: a value has arrived if its text has."""
    write_records(csv_files(CsvSink(str(place / "values")), WHERE), [element], place / "values.csv")
    value = element.c if isinstance(element, tuple) else as_dict(element)["c"]
    with (place / "values.csv").open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            yield {**record, "c": value if record["c"] == str(value) else record["c"]}


def replace_what_has_no_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "penstock_spark.formats.csv.writer.encode_rows",
        lambda text, encoding, *_: text.encode(encoding, "replace"),
    )


write_csv_of_windows = partial(write_csv, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
"""Within quotes, some lines end like the lines of the file, and others do not."""


_PARSE: dict[str, Callable[[str], Any]] = {
    "boolean": "True".__eq__,
    "integer": int,
    "unsigned integer": int,
    "float": float,
    "text": str,
}


def _parsed(columns: Sequence[Column], rows: Iterable[list[str]]) -> Iterator[dict[str, Any]]:
    parse = {"n": int, **{each.name: _PARSE[each.type.name] for each in columns}}
    names, *others = rows
    for row in others:
        yield {name: parse[name](text) if text else None for name, text in zip(names, row, strict=True)}


def parse_csv(columns: Sequence[Column], place: Path) -> Iterator[dict[str, Any]]:
    with (place / "values.csv").open(encoding="utf-8", newline="") as file:
        yield from _parsed(columns, csv.reader(file))


def cut_csv(columns: Sequence[Column], place: Path, *, is_line: bool) -> Iterator[dict[str, Any]]:
    """Tasks cut the file, but the fields are parsed as the driver parses headers."""
    cut = records.cut_by_lines if is_line else records.cut
    with (place / "values.csv").open(encoding="utf-8", newline="") as file:
        found = list(cut(file, {}))
    assert not any(each.is_open for each in found)
    yield from _parsed(columns, (records.fields_of(each.text, {}) for each in found))


def read_csv(scheme: str = "", **options: Any) -> Step:
    return Step(lambda columns, place: beam.io.ReadFromCsv(f"{scheme}{place}/*.csv", **options))


def stream_csv(**options: Any) -> Step:
    return Step(
        lambda columns, place: beam.io.ReadFromCsv(f"{place}/*.csv", **options).as_stream(existing_only=True),
        True,
    )


def _csv_query(splittable: bool, begin: Any, place: Path) -> Any:
    rows = begin | beam.io.ReadFromCsv(f"{place}/*.csv", splittable=splittable)
    return rows | SqlTransform("SELECT * FROM PCOLLECTION")


def csv_border(name: str, splittable: bool, break_it: Callable[[pytest.MonkeyPatch], None]) -> Border:
    return Border(
        name,
        spelled({kind: ["CSV"] for kind in _PARSE}, partial(fits_csv, is_line=splittable)),
        {
            "written and parsed": parse_csv,
            "cut by tasks": partial(cut_csv, is_line=splittable),
            "batch": read_csv(splittable=splittable),
            "batch without comments": read_csv(splittable=splittable, comment="~"),
            "Hadoop": read_csv("file://", splittable=splittable),
            "SQL": Step(composite(partial(_csv_query, splittable))),
            "stream": stream_csv(splittable=splittable),
        },
        write_csv if splittable else write_csv_of_windows,
        break_it,
        {
            **dict.fromkeys(("decimal", "wide decimal"), "numbers, which are read as floats or ints"),
            **dict.fromkeys(
                ("date", "time of day", "instant", "local time", "duration", "bytes"),
                "text, as pandas writes it",
            ),
            "null": "has no type of its own",
        },
        Trip(through_csv, replace_what_has_no_bytes) if splittable else None,
    )


def make_columns_of_pandas(patch: pytest.MonkeyPatch) -> None:
    """Columns have pandas' own types, which has no missing integers."""
    frame = pd.DataFrame
    patch.setattr(pd, "DataFrame", lambda rows, columns, dtype: frame(rows, columns=columns))


def forget_quotes(patch: pytest.MonkeyPatch) -> None:
    """Each line is a record."""
    patch.setattr(records, "cut", records.cut_by_lines)


CSV = csv_border("CSV", True, make_columns_of_pandas)
CSV_OF_TEXTS = csv_border("CSV with line ends in quotes", False, forget_quotes)
