"""Fields of CSV that a program declares: in batch and in streams, their values have the declared types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import functions as F

import penstock as beam
from penstock.io import ReadFromCsv, WriteToMemory
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock.typehints import decimal_of
from penstock_spark.formats.csv.kinds import fits, fits_text, typed
from penstock_spark.formats.registry import open_source, open_stream
from tests.spark.called import read_all
from tests.spark.scanned import WHERE, elements

_UTC = datetime.UTC
_TEXTS = {
    "datetime": {
        "2026-01-02T03:04:05Z": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=_UTC),
        "2026-01-02 03:04": datetime.datetime(2026, 1, 2, 3, 4, tzinfo=_UTC),
        " 2026-01-02 03:04+01:00 ": datetime.datetime(2026, 1, 2, 2, 4, tzinfo=_UTC),
        "2026-01-02": datetime.datetime(2026, 1, 2, tzinfo=_UTC),
        "2026-01-02T03:04:05.123456789-0030": datetime.datetime(2026, 1, 2, 3, 34, 5, 123456, tzinfo=_UTC),
        "2026-01-02T03:04:05.5 +02": datetime.datetime(2026, 1, 2, 1, 4, 5, 500000, tzinfo=_UTC),
        "0001-01-01T00:00:00Z": datetime.datetime(1, 1, 1, tzinfo=_UTC),
        "1582-10-10T00:00:00Z": datetime.datetime(1582, 10, 10, tzinfo=_UTC),
        **dict.fromkeys(
            ["2026-02-30", "2026-01-02T24:00Z", "0001-01-01T00:00+01:00", "2026", "03:04", "tea"]
        ),
        **dict.fromkeys(["9999-12-31T23:59:59-01:00", "0000-01-01", "2026-01-02T03:04:05 Europe/Paris"]),
    },
    "date": {
        "2026-01-02": datetime.date(2026, 1, 2),
        " 0001-01-01": datetime.date(1, 1, 1),
        **dict.fromkeys(["2026-02-30", "2026-1-2", "2026-01-02T00:00", "0000-01-01", "20260102", "today"]),
    },
    "decimal": {
        "1.50": Decimal("1.5"),
        "-.5 ": Decimal("-0.5"),
        "+007.": Decimal(7),
        "99999999999999999999.999999999999999999": Decimal("9" * 20 + "." + "9" * 18),
        "0.5" + "0" * 18: Decimal("0.5"),
        **dict.fromkeys(["1e3", "1,5", "1" * 21, "0." + "1" * 19, ".", "NaN"]),
    },
    "decimal(4,2)": {
        "12.50": Decimal("12.5"),
        "-.5 ": Decimal("-0.5"),
        "+0012.": Decimal(12),
        "12.5000": Decimal("12.5"),
        **dict.fromkeys(["123", "1.255", "1e1", ".", "-", "NaN"]),
    },
    "decimal(2,2)": {"0.25": Decimal("0.25"), "00": Decimal(0), **dict.fromkeys(["1", "1.25", "0.255", "."])},
}


class Sale(NamedTuple):
    item: str
    at: datetime.datetime
    day: datetime.date | None
    price: Decimal | None
    weight: float


_LINES = [
    "no,weight,price,day,at,item",
    "1,2,1.50,2026-01-02,2026-01-02T03:04:05Z,tea",
    "2,3,,,2026-01-02,007",
    "3,4,1.50,2026-02-30,2026-01-02,cake",
    "4,4,dear,2026-01-02,2026-01-02,cake",
    "5,4,1,2026-01-02,yesterday,cake",
    "6,much,1,2026-01-02,2026-01-02,cake",
]
_GOOD = [
    beam.Row(
        item="tea",
        at=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=_UTC),
        day=datetime.date(2026, 1, 2),
        price=Decimal("1.5"),
        weight=2.0,
    ),
    beam.Row(item="007", at=datetime.datetime(2026, 1, 2, tzinfo=_UTC), day=None, price=None, weight=3.0),
]
_BAD = [
    (4, "day", "the value of day is not of type date"),
    (5, "price", "the value of price is not of type Decimal"),
    (6, "at", "the value of at is not of type datetime"),
    (7, "weight", "the value of weight is not of type float"),
]


@pytest.fixture(params=["America/New_York"])
def in_zone(spark, request) -> Any:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_spark_and_python_agree_on_what_is_a_value_in_any_zone(in_zone) -> None:
    for kind, texts in _TEXTS.items():
        frame = in_zone.createDataFrame([(text,) for text in texts], "t string")
        text = F.col("t")
        value = typed(text, kind)
        # Python has no name for an instant but its microseconds, as Spark's collect is in the zone of the machine.
        shown = F.unix_micros(value) if kind == "datetime" else value
        found = {
            row.t: (row.fits, row.value)
            for row in frame.select(
                "t", fits(text, kind).alias("fits"), F.when(fits(text, kind), shown).alias("value")
            ).collect()
        }
        for each, wanted in texts.items():
            is_value, value_in_spark = found[each]
            assert is_value == fits_text(kind)(each) == (wanted is not None), (kind, each)
            if isinstance(wanted, datetime.datetime):
                since = wanted - datetime.datetime(1970, 1, 1, tzinfo=_UTC)
                wanted = since // datetime.timedelta(microseconds=1)
            assert wanted is None or value_in_spark == wanted, (kind, each)
    nothing = in_zone.range(1).select(F.lit(None).cast("string").alias("t"))
    for kind in _TEXTS:
        assert nothing.select(fits(F.col("t"), kind)).collect() == [(None,)]


def _expanded(read: Any, *, is_stream: bool = False) -> Any:
    """The source of a read after it was applied, which is when its declared type is known."""
    pipeline = beam.Pipeline(mode="streaming" if is_stream else "batch")
    _ = pipeline | read
    return read.source


def test_a_declared_type_is_the_type_of_the_values(in_zone, tmp_path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(_LINES[:3]))
    read = ReadFromCsv(f"{tmp_path}/a.csv").with_output_types(Sale)
    found = elements(open_source(_expanded(read), in_zone, WHERE))
    assert found == _GOOD
    assert [type(value) for value in found[0]] == [str, datetime.datetime, datetime.date, Decimal, float]
    for line, (number, name, why) in zip(_LINES[3:], _BAD, strict=True):
        (tmp_path / "a.csv").write_text("\n".join([*_LINES[:3], line]))
        with pytest.raises(ValueError, match=f"line 4 of .*a.csv cannot be read: {why}") as refused:
            open_source(_expanded(read), in_zone, WHERE)
        assert "correct the type of the field" in str(refused.value), (number, name)


@pytest.mark.parametrize("where", ["on the read", "on the stream"])
def test_a_stream_has_the_values_of_the_batch(spark, tmp_path, where) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("\n".join(_LINES[:3]))
    read = ReadFromCsv(f"{tmp_path}/in/*.csv")
    stream = (
        read.with_output_types(Sale).as_stream()
        if where == "on the read"
        else read.as_stream().with_output_types(Sale)
    )
    source = _expanded(stream, is_stream=True)
    assert isinstance(source, StreamSource)
    scan = open_stream(source, spark, WHERE)
    columns = scan.columns
    assert columns is not None
    assert dict(columns.dtypes) == {
        "item": "string",
        "at": "timestamp",
        "day": "date",
        "price": "decimal(38,18)",
        "weight": "double",
    }
    found: list[Any] = []
    read_all(columns, lambda frame, _: found.extend(frame.toArrow().to_pylist()), tmp_path / "checkpoint")
    assert [beam.Row(**each) for each in found] == _GOOD


@pytest.mark.parametrize("is_stream", [False, True])
def test_dtype_takes_decimals_and_says_nothing_about_none(spark, tmp_path, is_stream) -> None:
    (tmp_path / "a.csv").write_text("n,a,b\n1,12.5,12.50\n2,,\n3,1.255,1\n4,1,x\n")
    types = {"n": int, "a": decimal_of(4, 2), "b": Decimal}
    read = ReadFromCsv(f"{tmp_path}/*.csv", dtype=types, rejects=True)
    good: list[Any] = []
    bad: list[Any] = []
    pipeline = beam.Pipeline(mode="streaming" if is_stream else "batch")
    rows, rejected = pipeline | (read.as_stream(existing_only=True) if is_stream else read)
    _ = rows | "Good" >> WriteToMemory(good)
    _ = rejected | "Bad" >> WriteToMemory(bad)
    pipeline.run().wait_until_finish()
    assert sorted(map(repr, good)) == [
        "Row(n=1, a=Decimal('12.50'), b=Decimal('12.50'))",
        "Row(n=2, a=None, b=None)",
    ]
    assert sorted((record.line, record.reason) for record in bad) == [
        (4, "the value of a is not of type decimal_of(4, 2)"),
        (5, "the value of b is not of type Decimal"),
    ]


@pytest.mark.parametrize("is_stream", [False, True])
def test_rejects_name_the_field_that_cannot_be_read(spark, tmp_path, is_stream) -> None:
    (tmp_path / "a.csv").write_text("\n".join(_LINES))
    read = ReadFromCsv(f"{tmp_path}/a.csv", rejects=True).with_output_types(Sale)
    if is_stream:
        read = read.as_stream(watermark=IngressTime(), existing_only=True)
    pipeline = beam.Pipeline(mode="streaming" if is_stream else "batch")
    good, bad = pipeline | read
    fields = beam.Map(lambda record: repr((record.line, record.field, record.reason)))
    out = f"{tmp_path}/out"
    _ = good | "Good" >> beam.Map(repr) | "Write good" >> beam.io.WriteToText(f"{out}/good")
    _ = bad | "Bad" >> fields | "Write bad" >> beam.io.WriteToText(f"{out}/bad")
    pipeline.run().wait_until_finish()

    def lines(name: str) -> list[str]:
        return sorted(line for path in Path(out).glob(f"{name}*") for line in path.read_text().splitlines())

    assert lines("bad") == [repr(each) for each in _BAD]
    assert len(lines("good")) == len(_GOOD)
    assert "day=datetime.date(2026, 1, 2)" in lines("good")[1]
