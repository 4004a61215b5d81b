"""Declared types of fields: each type with and without None, in each format, in a batch and a stream."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import penstock as beam
from penstock import field
from penstock.io import ReadFromCsv, ReadFromJson, ReadFromOrc, ReadFromParquet, WriteToMemory
from penstock.io.rejects import Rejected
from penstock.io.streaming.stream_sources import SourceWithRejects, StreamSource
from penstock.io.watermarks import IngressTime
from penstock.typehints import Optional, decimal_of
from penstock.typehints.row_type import RowTypeConstraint
from penstock_spark.formats.registry import open_source, open_stream
from penstock_spark.reports.failure import find_failure, to_exception
from tests.spark.called import read_all
from tests.spark.scanned import WHERE, elements
from tests.spark.test_rejects import decoded

CSV, CSV_OF_TEXTS, CSV_OF_EMPTY_TEXTS, JSON = "csv", "csv with line ends", "csv with empty texts", "json"


class Kind(NamedTuple):
    """A type, values with the text of each in a file, and the text of values of other types."""

    hint: Any
    good: dict[str, Any]
    bad: list[str]


IN_CSV = {
    "int": Kind(int, {"3": 3, "99999999999999999999": 10**20 - 1}, ["x", "1.5"]),
    "float": Kind(float, {"2.50": 2.5, "3": 3.0}, ["x", "2.5.1"]),
    "bool": Kind(bool, {"true": True, "FALSE": False}, ["1", "yes"]),
    "str": Kind(str, {"tea": "tea", "3": "3"}, []),
    "datetime": Kind(
        datetime.datetime, {"2026-01-02": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)}, ["today"]
    ),
    "date": Kind(datetime.date, {"2026-01-02": datetime.date(2026, 1, 2)}, ["2026-02-30"]),
    "Decimal": Kind(Decimal, {"12.50": Decimal("12.50"), "7": Decimal(7)}, ["x", "1e3", "1" * 21]),
    "decimal_of(4, 2)": Kind(
        decimal_of(4, 2),
        {"12.5": Decimal("12.50"), "7": Decimal("7.00"), "1.500": Decimal("1.50")},
        ["x", "123", "1.255"],
    ),
}
IN_JSON = {
    "int": Kind(int, {"3": 3, "99999999999999999999": 10**20 - 1}, ['"3"', "1.0", "true"]),
    "float": Kind(float, {"2.50": 2.5, "3": 3.0}, ['"2.5"', "false", "9007199254740993", "[1]"]),
    "bool": Kind(bool, {"true": True}, ["1", '"true"']),
    "str": Kind(str, {'"tea"': "tea", '""': ""}, ["3", '{"a": 1}']),
    "Decimal": Kind(
        Decimal,
        {"12.50": Decimal("12.50"), "7": Decimal(7), '"0.10"': Decimal("0.10"), "1e3": Decimal("1E+3")},
        ['"x"', "true", "1e20", "1e-19", "NaN"],
    ),
    "decimal_of(4, 2)": Kind(
        decimal_of(4, 2),
        {"12.5": Decimal("12.50"), "7": Decimal("7.00"), '"1.500"': Decimal("1.50")},
        ['"x"', "123", "1.255", "Infinity"],
    ),
    # Of types that JSON does not have itself, only None is checked.
    "list[int]": Kind(list[int], {"[1, 2]": [1, 2]}, []),
    "object": Kind(object, {"[1]": [1], "3": 3}, []),
}


class Case(NamedTuple):
    """A file whose records differ from a good one in one field, how it is read, and what is known of its records."""

    name: str
    read: Any
    good: list[str]
    bad: list[tuple[str, int, str, str, str]]  # Of each reject its file, line, field, reason and record.


def make_case(format: str, is_optional: bool, folder: Path, kinds: Collection[str] | None = None) -> Case:
    """The file of all pairs of a type and an Optional: good values, missing ones and values of another type."""
    table = IN_JSON if format == JSON else IN_CSV
    chosen = {f"f{place}": kind for place, kind in enumerate(table) if kinds is None or kind in kinds}
    base = {name: next(iter(table[kind].good.items())) for name, kind in chosen.items()}
    file, lines = folder / "a.txt", [] if format == JSON else [",".join(["n", *chosen])]
    fields: list[tuple[str, Any]] = [("n", int)]
    found = Case(f"{format}, optional {is_optional}", None, [], [])
    for name, kind in chosen.items():
        hint, good, bad = table[kind]
        fields.append((name, Optional[hint] if is_optional else hint))
        for text, value, wrong in _texts(kind, good, bad, format, is_optional):
            record = {"n": (str(len(lines)), len(lines)), **base, name: (text, value)}
            given = {each: text for each, (text, _) in record.items() if text is not None}
            lines.append(
                "{" + ", ".join(f'"{each}": {text}' for each, text in given.items()) + "}"
                if format == JSON
                else ",".join(given.values())
            )
            if wrong is None:
                found.good.append(shown({each: value for each, (_, value) in record.items()}))
            else:
                reason = f"the value of {name} {wrong}"
                found.bad.append((str(file), len(lines), name, reason, lines[-1]))
    folder.mkdir(parents=True)
    file.write_text("\n".join(lines) + "\n")
    if format == JSON:
        read = ReadFromJson(f"{folder}/*")
    else:
        options: dict[str, Any] = {"keep_default_na": False} if format == CSV_OF_EMPTY_TEXTS else {}
        read = ReadFromCsv(f"{folder}/*", splittable=format != CSV_OF_TEXTS, **options)
    return found._replace(read=read.with_output_types(RowTypeConstraint.from_fields(fields)))


def _texts(
    kind: str, good: dict[str, Any], bad: list[str], format: str, is_optional: bool
) -> Iterator[tuple[str | None, Any, str | None]]:
    """Texts of a type with their values, or with what is wrong with them; None for a field that is not there."""
    for text, value in good.items():
        yield text, value, None
    for text in bad:
        yield text, None, f"is not of type {kind}"
    for missing in [None, "null"] if format == JSON else ["", "NA", "null"]:
        if format == CSV_OF_EMPTY_TEXTS:
            yield missing, missing, None if kind == "str" else f"is not of type {kind}"
        elif is_optional or kind == "object":
            yield missing, None, None
        else:
            yield missing, None, f"is missing, and its type {kind} excludes None"


def shown(fields: dict[str, Any]) -> str:
    """A row in a text that shows the digits of its numbers."""
    moments = {
        name: value.astimezone(datetime.UTC)
        for name, value in fields.items()
        if isinstance(value, datetime.datetime)
    }
    return repr(sorted({**fields, **moments}.items()))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("declared")
    return [
        make_case(format, is_optional, folder / f"{format} {is_optional}")
        for format in (CSV, CSV_OF_TEXTS, CSV_OF_EMPTY_TEXTS, JSON)
        for is_optional in (False, True)
    ]


def source_of(read: Any) -> Any:
    """The source of a read after it was applied, which is when its declared type is known."""
    _ = beam.Pipeline(pipeline_type_check=False) | read
    return read.source


def check(cases: list[Case], rows: list[Any]) -> None:
    good: list[list[str]] = [[] for _ in cases]
    bad: list[list[Any]] = [[] for _ in cases]
    for row in rows:
        for value in cloudpickle.loads(row["values"]):
            if isinstance(value, Rejected):
                found = value.record
                bad[row["case"]].append((found.source, found.line, found.field, found.reason, found.record))
            else:
                good[row["case"]].append(shown(value._asdict()))
    for number, case in enumerate(cases):
        assert sorted(good[number]) == sorted(case.good), case.name
        assert sorted(bad[number]) == sorted(case.bad), case.name


def test_a_batch_rejects_what_the_declared_type_excludes(spark: SparkSession, cases: list[Case]) -> None:
    assert sum(len(case.bad) for case in cases) > 150
    frames = []
    for number, case in enumerate(cases):
        scan = open_source(SourceWithRejects(source_of(case.read)), spark, WHERE)
        frames.append(decoded(number, scan.frame, scan.make_reader))
    check(cases, reduce(DataFrame.unionAll, frames).collect())


def test_a_stream_rejects_the_same(spark: SparkSession, cases: list[Case], tmp_path: Path) -> None:
    frames = []
    for number, case in enumerate(cases):
        stream = StreamSource(source_of(case.read), IngressTime(), has_rejects=True)
        scan = open_stream(stream, spark, WHERE)
        frames.append(decoded(number, scan.frame, partial(reader_of, scan.make_decoder)))
    rows: list[Any] = []
    together = reduce(DataFrame.unionAll, frames)
    read_all(together, lambda batch, _: rows.extend(batch.collect()), tmp_path / "checkpoint")
    check(cases, rows)


def reader_of(make_decoder: Callable[[], Any]) -> Callable[[Any], Iterator[list[Any]]]:
    decode = make_decoder()
    return lambda batch: (part.values for part in decode(batch))


@pytest.mark.parametrize("format", [CSV, JSON])
@pytest.mark.parametrize("kind", ["str", "Decimal"])
def test_without_rejects_the_first_missing_value_is_an_error_with_its_line(
    spark: SparkSession, tmp_path: Path, kind: str, format: str
) -> None:
    case = make_case(format, False, tmp_path / "in", [kind])
    path = tmp_path / "in" / "a.txt"
    [*good, gap, _] = [
        line for line in path.read_text().splitlines() if line not in _wrong(case, "not of type")
    ]
    path.write_text("\n".join([*good[:2], gap, gap]))
    reason = next(reason for *_, reason, _ in case.bad if "missing" in reason)
    source = source_of(case.read)
    with pytest.raises(ValueError, match=re.escape(f"line 3 of {path} cannot be read: {reason}")) as batch:
        open_source(source, spark, WHERE)
    assert f": {kind} | None, " in str(batch.value)
    assert "or pass rejects=True, which keeps such records apart" in str(batch.value)
    scan = open_stream(StreamSource(source, IngressTime()), spark, WHERE)
    frame = decoded(0, scan.frame, partial(reader_of, scan.make_decoder))
    with pytest.raises(StreamingQueryException) as stream:
        read_all(frame, lambda batch, _: batch.collect(), tmp_path / "checkpoint")
    found = find_failure(str(stream.value))
    assert found is not None
    assert str(to_exception(found)) == str(batch.value)


def _wrong(case: Case, reason: str) -> set[str]:
    return {record for *_, why, record in case.bad if reason in why}


@pytest.mark.parametrize("format", [CSV, JSON])
def test_without_rejects_good_records_have_the_same_values(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    case = make_case(format, True, tmp_path / "in")
    path = tmp_path / "in" / "a.txt"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if line not in _wrong(case, "")))
    found = elements(open_source(source_of(case.read), spark, WHERE))
    assert sorted(shown(value._asdict()) for value in found) == sorted(case.good)


class Sale(NamedTuple):
    n: int
    euros: float | None


class NeededSale(NamedTuple):
    n: int
    euros: float


def write_parquet(table: pa.Table, path: Path, **options: Any) -> None:
    pq.write_table(table, path, **options)


def write_parquet_without_statistics(table: pa.Table, path: Path) -> None:
    write_parquet(table, path, write_statistics=False)


def write_orc(table: pa.Table, path: Path) -> None:
    orc.write_table(table, path)


READS: dict[str, tuple[Any, Callable[[pa.Table, Path], None]]] = {
    "parquet": (ReadFromParquet, write_parquet),
    "parquet without statistics": (ReadFromParquet, write_parquet_without_statistics),
    "orc": (ReadFromOrc, write_orc),
}


@pytest.mark.parametrize("as_columns", [False, True])
@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("format", READS)
def test_a_null_in_a_file_with_types_is_an_error_that_names_the_file(
    spark: SparkSession, tmp_path: Path, format: str, mode: str, as_columns: bool
) -> None:
    make_read, write = READS[format]
    (tmp_path / "in").mkdir()
    write(pa.table({"n": [1, 2], "euros": [1.5, 2.5]}), tmp_path / "in" / "a")
    write(pa.table({"n": [3, 4], "euros": [None, 4.5]}), tmp_path / "in" / "b")

    def run(declared: type) -> list[Any]:
        found: list[Any] = []
        pipeline = beam.Pipeline(mode=mode)
        read = make_read(f"{tmp_path}/in/*", as_rows=True).with_output_types(declared)
        rows = pipeline | (read.as_stream(existing_only=True) if mode == "streaming" else read)
        if as_columns:
            rows = rows | beam.Filter(field("n") > 0) | beam.Select("n", more=field("euros") + 1.0)
        _ = rows | WriteToMemory(found)
        pipeline.run().wait_until_finish()
        return found

    assert len(run(Sale)) == 4
    with pytest.raises(ValueError, match="cannot be read: the value of euros is missing, and its") as refused:
        run(NeededSale)
    names_file = f"{tmp_path}/in/b cannot be read" in str(refused.value)
    assert names_file or format == "parquet without statistics", str(refused.value)
    assert "declare euros: float | None" in str(refused.value)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_null_in_orc_is_a_reject_of_its_record(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    write_orc(pa.table({"n": [3, 4, 5], "euros": [None, 4.5, None]}), tmp_path / "a.orc")
    good: list[Any] = []
    bad: list[Any] = []
    pipeline = beam.Pipeline(mode=mode)
    read = ReadFromOrc(f"{tmp_path}/*.orc", as_rows=True, rejects=True).with_output_types(NeededSale)
    rows, rejected = pipeline | (read.as_stream(existing_only=True) if mode == "streaming" else read)
    _ = rows | "Good" >> WriteToMemory(good)
    _ = rejected | "Bad" >> WriteToMemory(bad)
    pipeline.run().wait_until_finish()
    assert good == [beam.Row(n=4, euros=4.5)]
    why = "the value of euros is missing, and its type float excludes None"
    assert sorted((record.source, record.field, record.reason, record.record) for record in bad) == [
        (f"{tmp_path}/a.orc", "euros", why, '{"n": 3, "euros": null}'),
        (f"{tmp_path}/a.orc", "euros", why, '{"n": 5, "euros": null}'),
    ]
