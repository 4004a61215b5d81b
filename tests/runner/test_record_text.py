"""CSV and JSON files whose columns no type tells: every value stands below its own name, and none is lost."""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import io
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.elements.row import Row
from penstock.io.csvio import CsvSink
from penstock.io.files.shards import Shards
from penstock.io.formats.text_sink import TextFileSink
from penstock.io.jsonio import JsonSink
from penstock_spark.formats.csv.writer import csv_files
from penstock_spark.formats.json import json_files
from penstock_spark.formats.json_text import JsonText
from penstock_spark.formats.text.writer import text_files
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.record_text import RecordText, TextOfFile

WHERE = "at step 'Write' (game.py:41)"


def as_csv(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def csv_text() -> TextOfFile:
    return TextOfFile(
        RecordText(
            lambda names, rows, first: as_csv([names, *rows] if first else rows),
            None,
            WHERE,
            has_header=True,
        )
    )


def json_text() -> TextOfFile:
    return TextOfFile(RecordText(lambda names, rows, first: JsonText().of(names, rows).encode(), None, WHERE))


def test_fields_in_another_order_go_below_their_own_names_also_in_later_batches() -> None:
    text = csv_text()
    written = text.of([Row(a=1, b=2), Row(b=4, a=3)]) + text.of([Row(b=6, a=5)]) + text.of([Row(a=7)])
    assert written.decode().splitlines() == ["a,b", "1,2", "3,4", "5,6", "7,"]


@pytest.mark.parametrize("batches", [[[Row(a=1), Row(a=1, b=2)]], [[Row(a=1)], [Row(b=2)]]])
def test_a_field_that_the_header_lacks_is_refused(batches: list[list[Row]]) -> None:
    text = csv_text()
    *earlier, last = batches
    for batch in earlier:
        text.of(batch)
    with pytest.raises(
        ValueError, match=r"an element has the field 'b', and the first element(.|\n)*hint: declare"
    ):
        text.of(last)


@pytest.mark.parametrize("has_header", [True, False])
def test_a_field_that_the_declared_type_lacks_is_refused(has_header: bool) -> None:
    text = TextOfFile(RecordText(lambda names, rows, first: b"", ("a", "b"), WHERE, has_header))
    text.of([Row(a=1, b=2), {"a": 1}])
    with pytest.raises(ValueError, match="an element has the field 'c', which the schema lacks") as caught:
        text.of([Row(a=1, b=2), {"a": 1, "c": 2}])
    assert WHERE in str(caught.value)


def test_each_object_of_json_has_the_fields_of_its_batch() -> None:
    text = json_text()
    written = text.of([Row(a=1), Row(b=2)]) + text.of([Row(c=3)])
    assert written.decode().splitlines() == ['{"a":1,"b":null}', '{"a":null,"b":2}', '{"c":3}']


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: csv_files(CsvSink("out", options=(("seperator", ";"),)), WHERE), "pandas.DataFrame.to_csv"),
        (lambda: csv_files(CsvSink("out", options=(("colums", ["a"]),)), WHERE), "did you mean 'columns'?"),
    ],
)
def test_an_argument_that_pandas_does_not_have_is_refused(make, hint: str) -> None:
    with pytest.raises(TypeError, match="of pandas has no argument") as caught:
        make()
    assert WHERE in str(caught.value)
    assert hint in str(caught.value)
    csv_files(CsvSink("out", options=(("sep", ";"),)), WHERE)


def written(sink: FileSink, folder: Path, records: list[Any]) -> str:
    with contextlib.closing(sink.open_shard(str(folder / "shard"))) as shard:
        shard.write(records)
    return (folder / "shard").read_bytes().decode()


def test_json_has_all_digits_of_floats_and_the_forms_of_pandas_for_other_values(tmp_path: Path) -> None:
    floats = [0.1 + 0.2, 1.2345678901234567e-12, 123456.78901234567, 5e-324, -0.0, 1e22]
    at = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    others = {
        "n": float("nan"),
        "at": at,
        "d": decimal.Decimal("1.25"),
        "in": {"f": [0.1 + 0.2, float("inf")]},
    }
    text = written(
        json_files(JsonSink("out"), WHERE),
        tmp_path,
        [{"f": each, "text": "é/\ud83d", "big": 2**70} for each in floats] + [{"f": 0.1 + 0.2, **others}],
    )
    *first, last = map(json.loads, text.splitlines())
    assert [repr(each["f"]) for each in first] == list(map(repr, floats))
    assert {(each["text"], each["big"]) for each in first} == {("é/\ud83d", 2**70)}
    expected = {"n": None, "at": 1704153600000, "d": 1.25, "in": {"f": [0.1 + 0.2, None]}}
    assert {name: last[name] for name in others} == expected
    text = written(
        json_files(JsonSink("out", options=(("date_format", "iso"),)), WHERE), tmp_path, [{"f": 1e-12}]
    )
    assert json.loads(text) == {"f": 1e-12}


@pytest.mark.parametrize(
    ("sink", "element"),
    [
        (csv_files(CsvSink("out"), WHERE), {"text": "a secret\ud83d"}),
        (csv_files(CsvSink("out", options=(("encoding", "latin-1"),)), WHERE), {"text": "a secret€"}),
        (json_files(JsonSink("out", options=(("force_ascii", False),)), WHERE), {"text": "a secret\ud83d"}),
        (text_files(TextFileSink(Shards("out")), WHERE), "a secret\ud83d"),
    ],
)
def test_a_text_that_the_encoding_does_not_have_stays_out_of_the_error(
    sink: FileSink, element: Any, tmp_path: Path
) -> None:
    with pytest.raises(UnicodeEncodeError, match="hint: replace such characters") as caught:
        written(sink, tmp_path, [element])
    assert "secret" not in repr(caught.value)


NOON = datetime.datetime(2026, 7, 1, 12, 0, 0, 123456, datetime.UTC)
ISO, IN_MICROS = ("date_format", "iso"), ("date_unit", "us")


@pytest.mark.parametrize(
    ("options", "value", "words"),
    [
        ((), NOON, "has microseconds, and times are written in the unit 'ms'"),
        ((ISO,), {"inner": [NOON]}, "has microseconds, and times are written in the unit 'ms'"),
        ((IN_MICROS,), NOON.replace(tzinfo=None), "has no zone"),
        ((), decimal.Decimal("1.1234567890123456"), "has more digits"),
    ],
)
def test_a_value_that_json_would_cut_is_refused(options: Any, value: Any, words: str, tmp_path: Path) -> None:
    sink = json_files(JsonSink("out", options=options), WHERE)
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        written(sink, tmp_path, [{"x": None}, {"x": value}])
    assert WHERE in str(caught.value)
    assert "hint: " in str(caught.value)


def test_json_keeps_times_whose_form_is_chosen(tmp_path: Path) -> None:
    records = [{"x": NOON}, {"x": NOON.replace(tzinfo=None)}, {"x": [decimal.Decimal("0.1")]}]
    text = written(json_files(JsonSink("out", options=(ISO, IN_MICROS)), WHERE), tmp_path, records)
    times = ["2026-07-01T12:00:00.123456Z", "2026-07-01T12:00:00.123456", [0.1]]
    assert [json.loads(line)["x"] for line in text.splitlines()] == times


def test_a_return_within_a_value_of_csv_is_in_quotes_and_ends_no_record(tmp_path: Path) -> None:
    records = [{"a": "x\ry", "b": 1}, {"a": "z", "b": None}]
    text = written(csv_files(CsvSink("out"), WHERE), tmp_path, records)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], ["x\ry", "1"], ["z", ""]]
