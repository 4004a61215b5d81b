"""CSV and JSON files whose columns no type tells: every value stands below its own name, and none is lost."""

from __future__ import annotations

import pytest

from penstock.base.row import Row
from penstock.io.columnar import CsvSink, JsonSink
from penstock_spark.formats.csv.writer import csv_files
from penstock_spark.formats.json import json_files
from penstock_spark.sinks.record_text import RecordText, TextOfFile, check_arguments

WHERE = "at step 'Write' (game.py:41)"


def csv_text() -> TextOfFile:
    return TextOfFile(
        RecordText(
            lambda table, first: table.to_csv(index=False, header=first).encode(),
            None,
            WHERE,
            has_header=True,
        )
    )


def json_text() -> TextOfFile:
    return TextOfFile(
        RecordText(lambda table, first: table.to_json(orient="records", lines=True).encode(), None, WHERE)
    )


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


def test_each_object_of_json_has_the_fields_of_its_batch() -> None:
    text = json_text()
    written = text.of([Row(a=1), Row(b=2)]) + text.of([Row(c=3)])
    assert written.decode().splitlines() == ['{"a":1,"b":null}', '{"a":null,"b":2}', '{"c":3}']


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: csv_files(CsvSink("out", options=(("seperator", ";"),)), WHERE), "pandas.DataFrame.to_csv"),
        (lambda: csv_files(CsvSink("out", options=(("colums", ["a"]),)), WHERE), "did you mean columns?"),
        (
            lambda: json_files(JsonSink("out", options=(("date_formt", "iso"),)), WHERE),
            "did you mean date_format?",
        ),
    ],
)
def test_an_argument_that_pandas_does_not_have_is_refused(make, hint: str) -> None:
    with pytest.raises(TypeError, match="of pandas has no argument") as caught:
        make()
    assert WHERE in str(caught.value)
    assert hint in str(caught.value)
    check_arguments("to_csv", CsvSink("out", options=(("sep", ";"),)), WHERE)
