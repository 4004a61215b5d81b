"""Unbounded sources opened by the runner: which elements come out of which files, once each, and what is refused."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import cycle
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.coders import coders
from penstock.elements.row import Row
from penstock.error import UnsupportedByRunner
from penstock.io import (
    ReadFromCsv,
    ReadFromJson,
    ReadFromOrc,
    ReadFromParquet,
    ReadFromSpark,
    ReadFromText,
    ReadFromTextWithFilename,
)
from penstock.io.rejects import Rejected
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock_spark.formats.registry import open_stream
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from penstock_spark.reports.reporting import current_reporting, report_with, reports_of
from penstock_spark.session.backends import backend_of
from penstock_spark.sources.scan import StreamScan
from penstock_spark.sources.stream_files import SURVEYED_FILES
from tests.spark.called import read_all
from tests.spark.readable import assert_readable

WHERE = "at step 'Read' (game.py:41)"
Parts = list[tuple[str, list[Any]]]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session as the runner's: strict about casts."""
    return backend_of(spark).clone({"spark.sql.ansi.enabled": "true"})


class Streams:
    """Streams that one query reads, time and again, on one checkpoint."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self._checkpoint = str(folder)

    def open(self, transform: Any, rejects: bool = False, **options: Any) -> StreamScan:
        stream = StreamSource(
            transform.source, IngressTime(), has_rejects=rejects, options=tuple(sorted(options.items()))
        )
        return open_stream(stream, self.session, WHERE)

    def read(self, *scans: StreamScan) -> list[Parts]:
        """What is new of each, in the order of the micro-batches."""
        rows: list[Any] = []
        try:
            self._run(scans, lambda batch: rows.extend(batch.collect()))
        except StreamingQueryException as error:
            failure = find_failure(str(error))
            raise (error if failure is None else to_exception(failure)) from None
        read: list[Parts] = [[] for _ in scans]
        for row in rows:
            place, values = cloudpickle.loads(row.part)
            read[row.scan].append((place[1] if place else "", values))
        return read

    def errors(self, *scans: StreamScan) -> dict[int, BaseException]:
        """The first error of each scan that has one, by their numbers, from one run, which fails because of them."""
        found: dict[int, BaseException] = {}
        reporting = current_reporting()

        def look(batch: DataFrame) -> None:
            rows = batch.where("error IS NOT NULL").collect()
            # Spark calls from a thread of its own.
            with reports_of(reporting):
                for row in rows:
                    failure = find_failure(row.error)
                    assert failure is not None, row.error
                    found.setdefault(row.scan, to_exception(failure))
            if found:
                # So the micro-batch is not done, and the next run begins with it.
                raise ValueError("a scan has failed")

        with pytest.raises(StreamingQueryException, match="a scan has failed"):
            self._run(scans, look, tell_errors=True)
        return found

    def _run(
        self, scans: tuple[StreamScan, ...], take: Callable[[DataFrame], None], tell_errors: bool = False
    ) -> None:
        union = reduce(
            DataFrame.unionAll, [_decoded(scan, number, tell_errors) for number, scan in enumerate(scans)]
        )
        read_all(union, lambda batch, _: take(batch), self._checkpoint)


def _decoded(scan: StreamScan, number: int, tell_errors: bool) -> DataFrame:
    make_decoder, reporting = scan.make_decoder, current_reporting()

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(reporting)
        decoder = make_decoder()
        for batch in batches:
            parts, error = [], None
            try:
                parts = [cloudpickle.dumps((part.place, part.values)) for part in decoder(batch)]
            except StepFailure as failed:
                if not tell_errors:
                    raise
                parts, error = [None], str(failed)
            columns = [pa.array([number] * len(parts), pa.int64()), pa.array(parts, pa.binary())]
            columns.append(pa.array([error] * len(parts), pa.string()))
            yield pa.RecordBatch.from_arrays(columns, ["scan", "part", "error"])

    return scan.frame.mapInArrow(decode, "scan long, part binary, error string")


@pytest.fixture
def streams(session: SparkSession, tmp_path: Path) -> Streams:
    return Streams(session, tmp_path / "checkpoint")


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TEXT = b"a\r\nb\rc\n\n last"


@pytest.mark.every_spark
def test_a_stream_of_text_files_gives_the_records_that_the_same_files_give_at_once(
    tmp_path: Path, streams: Streams
) -> None:
    cases: list[tuple[str, bytes, dict[str, Any], list[Any]]] = [
        ("a.txt", TEXT, {}, ["a", "b\rc", "", " last"]),
        ("b.txt", TEXT, {"strip_trailing_newlines": False}, ["a\r\n", "b\rc\n", "\n", " last"]),
        ("c.txt", TEXT, {"skip_header_lines": 2}, ["", " last"]),
        ("d.txt", b"a|#b|c|#d\n|#", {"delimiter": b"|#"}, ["a", "b|c", "d\n"]),
        ("e.txt", b"a\xffb", {"delimiter": b"\xff"}, ["a", "b"]),
        ("f.gz", gzip.compress(b"a\n") + gzip.compress(b"b\n"), {}, ["a", "b"]),
        ("g.xz", lzma.compress(b"a\nb"), {}, ["a", "b"]),
        ("h.txt", gzip.compress(b"a\nb"), {"compression_type": "gzip"}, ["a", "b"]),
        ("i.txt", "é\n".encode("latin-1"), {"coder": coders.BytesCoder()}, [b"\xe9"]),
        # Hadoop has forms of its own for these endings, and makes nothing of other files.
        ("j.snappy", b"a\nb", {}, ["a", "b"]),
        ("k.LZ4", b"a\nb", {}, ["a", "b"]),
    ]
    scans = []
    for name, content, arguments, _ in cases:
        folder = put(tmp_path / name[0] / name, content).parent
        scans.append(streams.open(ReadFromTextWithFilename(f"{folder}/*{name[1:]}", **arguments)))
    for (name, _, _, expected), parts in zip(cases, streams.read(*scans), strict=True):
        path = str(tmp_path / name[0] / name)
        assert parts == [(path, [(path, each) for each in expected])]


def test_headers_are_left_out_of_every_file_and_parts_tell_the_files_apart(
    tmp_path: Path, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(tmp_path / "logs" / f"{number}.txt", f"head\n{number}\n" + "more\n" * (number % 2))
    monkeypatch.chdir(tmp_path)
    [parts] = streams.read(streams.open(ReadFromText("logs/*", skip_header_lines=1)))
    assert sorted(parts) == [
        (f"logs/{number}.txt", [str(number), *["more"] * (number % 2)]) for number in range(5)
    ]


def test_wildcards_mean_what_they_mean_in_beam_and_nothing_need_be_there_yet(
    tmp_path: Path, streams: Streams
) -> None:
    for name in (
        *("top.txt", "tip.log", "in dir%20/inner.txt", "in dir%20/more/deep.txt", "odd/x{a,b}[1].log"),
        *("day=1/part.txt", "day=1/hour=2/part.txt", "_hidden.txt", ".hidden.txt"),
    ):
        put(tmp_path / "logs" / name, name)
    patterns = {
        "*": ["tip.log", "top.txt"],
        "*.txt": ["top.txt"],
        "t?p.*": ["tip.log", "top.txt"],
        "[!a-s]o*": ["top.txt"],
        "*/*.txt": ["day=1/part.txt", "in dir%20/inner.txt"],
        "day=1": ["day=1/part.txt"],
        "in dir%20/": ["in dir%20/inner.txt"],
        "top.txt": ["top.txt"],
        "odd/x{a,b}?1?.log": ["odd/x{a,b}[1].log"],
        "later/*": [],
        "later/a,{b}.txt": [],
        "later": [],
    }
    # A path becomes a URL before anything else is done with it: half of the patterns are given as each.
    schemes = dict(zip(patterns, cycle(["", "file://"]), strict=False))
    scans = {
        pattern: streams.open(ReadFromText(f"{scheme}{tmp_path}/logs/{pattern}", validate=False))
        for pattern, scheme in schemes.items()
    }
    there = [pattern for pattern in patterns if not pattern.startswith("later")]
    for pattern, parts in zip(there, streams.read(*(scans[pattern] for pattern in there)), strict=True):
        found = sorted((file, values[0]) for file, values in parts)
        folder = f"{schemes[pattern]}{tmp_path}/logs"
        assert found == [(f"{folder}/{name}", name) for name in patterns[pattern]], pattern
    later = [scans[pattern] for pattern in patterns if pattern not in there]
    others = Streams(streams.session, tmp_path / "another checkpoint")
    assert others.read(*later) == [[], [], []]
    put(tmp_path / "logs/later/a,{b}.txt", "at last")
    assert [[values for _, values in parts] for parts in others.read(*later)] == [[["at last"]]] * 3


def test_what_was_read_does_not_come_again_and_files_that_are_old_when_they_appear_are_not_lost(
    tmp_path: Path, streams: Streams
) -> None:
    source = ReadFromText(f"{tmp_path}/logs/*", validate=False)
    put(tmp_path / "logs/new.txt", "new")
    assert streams.read(streams.open(source)) == [[(f"{tmp_path}/logs/new.txt", ["new"])]]
    old = put(tmp_path / "logs/old.txt", "old")
    month_ago = time.time() - 30 * 86400
    os.utime(old, (month_ago, month_ago))
    assert streams.read(streams.open(source)) == [[(str(old), ["old"])]]


def test_a_limit_of_files_a_batch_reads_them_in_the_order_of_their_times(
    tmp_path: Path, streams: Streams
) -> None:
    for number, name in enumerate("cabd"):
        put(tmp_path / "logs" / name, name)
        os.utime(tmp_path / "logs" / name, (1_000_000 + number, 1_000_000 + number))
    scan = streams.open(ReadFromText(f"{tmp_path}/logs/*"), maxFilesPerTrigger=1)
    assert [values for _, values in streams.read(scan)[0]] == [["c"], ["a"], ["b"], ["d"]]


CSV = "i,f,b,s\n1,1.5,true,x\n\n-2,NA,False,\n"


def test_csv_columns_have_the_types_of_the_files_that_are_there(tmp_path: Path, streams: Streams) -> None:
    put(tmp_path / "a/1.csv", CSV)
    put(tmp_path / "b/1.csv", "a;b\n#no\n1;x\n")
    put(tmp_path / "c/1.csv", b'a,b\r\n#no\r\n1,"x\r\ny" #no\r\n')
    scans = [
        streams.open(ReadFromCsv(f"{tmp_path}/a/*")),
        streams.open(
            ReadFromCsv(f"{tmp_path}/b/*", sep=";", comment="#", usecols=["b"], filename_column="f")
        ),
        streams.open(ReadFromCsv(f"{tmp_path}/c/*", splittable=False, comment="#")),
    ]
    put(tmp_path / "a/2.csv", f"i,f,b,s\n{10**20},2,FALSE,7\n")
    put(tmp_path / "b/2.csv", "\na;b\n2;y\n")
    first, second, third = map(sorted, streams.read(*scans))
    assert first == [
        (f"{tmp_path}/a/1.csv", [Row(i=1, f=1.5, b=True, s="x"), Row(i=-2, f=None, b=False, s=None)]),
        (f"{tmp_path}/a/2.csv", [Row(i=10**20, f=2.0, b=False, s="7")]),
    ]
    assert second == [
        (f"{tmp_path}/b/{number}.csv", [Row(b=b, f=f"{tmp_path}/b/{number}.csv")])
        for number, b in ((1, "x"), (2, "y"))
    ]
    assert third == [(f"{tmp_path}/c/1.csv", [Row(a=1, b="x\r\ny")])]


def test_csv_needs_no_file_where_names_and_types_are_given(tmp_path: Path, streams: Streams) -> None:
    transform = ReadFromCsv(f"{tmp_path}/none/*", names=["a", "value"], dtype={"a": int, "value": str})
    with pytest.raises(ValueError, match=r"the columns of .* are unknown") as caught:
        streams.open(ReadFromCsv(f"{tmp_path}/none/*", names=["a", "b"], dtype={"a": int}))
    assert WHERE in str(caught.value)
    assert "dtype" in str(caught.value)
    scan = streams.open(transform)
    put(tmp_path / "none/1.csv", "1,x\n")
    assert streams.read(scan) == [[(f"{tmp_path}/none/1.csv", [Row(a=1, value="x")])]]


def rejects(parts: Parts) -> tuple[list[Any], list[tuple[int | None, bytes, str]]]:
    """The elements of the parts, and of what was rejected the line, the record and the reason."""
    # Spark reads the largest file of a micro-batch first.
    values = [value for _, own in sorted(parts, key=lambda part: part[0]) for value in own]
    bad = [value for value in values if isinstance(value, Rejected)]
    found = [(each.record.line, each.record.content, each.record.reason) for each in bad]
    return [value for value in values if value not in bad], found


def test_rows_that_do_not_parse_are_rejected_with_their_text(tmp_path: Path, streams: Streams) -> None:
    put(tmp_path / "csv/1.csv", "a,b\n1,x\n2\n")
    put(tmp_path / "multi/1.csv", "a,b\n1,x\n")
    put(tmp_path / "json/1.json", '{"a": 1}\n')
    scans = [
        streams.open(ReadFromCsv(f"{tmp_path}/csv/*"), rejects=True),
        streams.open(ReadFromCsv(f"{tmp_path}/multi/*", splittable=False), rejects=True),
        streams.open(ReadFromJson(f"{tmp_path}/json/*"), rejects=True),
        streams.open(ReadFromText(f"{tmp_path}/text/*", validate=False), rejects=True),
        streams.open(ReadFromText(f"{tmp_path}/packed/*.xz", validate=False), rejects=True),
    ]
    put(tmp_path / "csv/2.csv", b'a,b\n2,y\n3,"z\n4\nfive,"v,w"\n6,\xff\n')
    put(tmp_path / "multi/2.csv", b'a,b\n2,"y\ny"\n4\nfive,"v,w"\n6,\xff\n')
    put(tmp_path / "json/2.json", b'{"b": 2}\n\n{"a": \n[3]\n\xff\n')
    put(tmp_path / "text/1.txt", b"fine\nbad\xff\n")
    put(tmp_path / "packed/1.xz", "damaged")
    csv, multi, json_lines, text, packed = map(rejects, streams.read(*scans))
    count, kind = "the record has 1 field instead of 2", "the value of a is not of type int"
    encoding = "the record has bytes that are not valid in the encoding utf-8"
    assert csv == (
        [Row(a=1, b="x"), Row(a=2, b="y")],
        [
            (3, b"2", count),
            (3, b'3,"z', "the record leaves a quote open; splittable=False allows line ends in quotes"),
            (4, b"4", count),
            (5, b'five,"v,w"', kind),
            (6, b"6,\xff", encoding),
        ],
    )
    assert multi == (
        [Row(a=1, b="x"), Row(a=2, b="y\ny")],
        [(4, b"4", count), (5, b'five,"v,w"', kind), (6, b"6,\xff", encoding)],
    )
    assert json_lines == (
        [Row(a=1), Row(a=None, b=2)],
        [
            (3, b'{"a": ', "the record is not JSON (Expecting value at column 7)"),
            (4, b"[3]", "the record is not a JSON object"),
            (5, b"\xff", "the record is not utf-8 (byte 1)"),
        ],
    )
    assert text == (["fine"], [(2, b"bad\xff", "the record is not utf-8 (byte 4)")])
    assert packed == ([], [(None, b"", "the file is not a complete lzma file")])


def test_without_rejects_a_row_that_does_not_parse_is_an_error_of_the_step(
    tmp_path: Path, streams: Streams
) -> None:
    cases: list[tuple[Any, str, Any, type[Exception], str]] = [
        (ReadFromCsv, "a,b\n1,x\n", "a,b\n1\n", ValueError, "the record has 1 field instead of 2"),
        (
            ReadFromCsv,
            "a,b\n1,x\n",
            "a,b\nsecret,x\n",
            ValueError,
            "line 2 of .* cannot be read: the value of a is not of type int",
        ),
        (ReadFromCsv, "a,b\n1,x\n", "b,a\nx,1\n", ValueError, "has different columns"),
        (
            ReadFromCsv,
            "a,b\n1,x\n",
            b"a,b\n2,secret\xff\n",
            ValueError,
            "line 2 of .* cannot be read: the record has bytes that are not valid in the encoding utf-8",
        ),
        (
            ReadFromJson,
            '{"a": 1}\n',
            '{"secret"\n',
            ValueError,
            "line 1 of .* cannot be read: the record is not JSON",
        ),
        (ReadFromText, "a\n", b"secret\xff\n", UnicodeDecodeError, "line 1 of(?s:.*)coder"),
        (ReadFromText, "a\n", lzma.compress(b"a"), ValueError, r"2\.xz is compressed in a format"),
    ]
    scans = []
    for number, (transform, first, second, _, _) in enumerate(cases):
        folder = tmp_path / str(number)
        put(folder / "1.txt", first)
        scans.append(streams.open(transform(f"{folder}/*")))
        put(folder / ("2.xz" if second[:1] == b"\xfd" else "2.txt"), second)
    errors = streams.errors(*scans)
    for number, (*_, kind, what) in enumerate(cases):
        error = errors.get(number)
        assert type(error) is kind, (what, error)
        assert re.search(what, str(error))
        assert WHERE in str(error), what
        assert f"{tmp_path}/{number}/2." in str(error), what
        assert "secret" not in str(error), what


@pytest.mark.parametrize("scheme", ["", "file://"], ids=["a disk", "Hadoop"])
def test_a_quote_that_a_file_leaves_open_stops_a_stream_with_rejects_too(
    tmp_path: Path, streams: Streams, scheme: str
) -> None:
    put(tmp_path / "1.csv", "a,b\n1,x\n")
    scan = streams.open(ReadFromCsv(f"{scheme}{tmp_path}/*", splittable=False), rejects=True)
    put(tmp_path / "2.csv", 'a,b\n1,"x\n2,secret\n')
    with pytest.raises(ValueError, match=r"2\.csv ends within quotes") as caught:
        streams.read(scan)
    assert WHERE in str(caught.value)
    assert "secret" not in str(caught.value)


def test_parquet_has_the_columns_of_the_files_that_are_there(tmp_path: Path, streams: Streams) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"a": [1], "o": [{"p": 1, "q": 2}]}), tmp_path / "in/1.parquet")
    scans = [
        streams.open(ReadFromParquet(f"{tmp_path}/in/*", columns=["a", "o"])),
        streams.open(ReadFromParquet(f"{tmp_path}/in/*", columns=["o.q"], as_rows=True)),
    ]
    pq.write_table(pa.table({"a": [2], "z": ["more"]}), tmp_path / "in/2.parquet")
    whole, pruned = streams.read(*scans)
    assert sorted(whole) == [
        (f"{tmp_path}/in/1.parquet", [{"a": 1, "o": {"p": 1, "q": 2}}]),
        (f"{tmp_path}/in/2.parquet", [{"a": 2, "o": None}]),
    ]
    assert sorted(pruned) == [
        (f"{tmp_path}/in/1.parquet", [Row(o=Row(q=2))]),
        (f"{tmp_path}/in/2.parquet", [Row(o=None)]),
    ]


POINT, POINT_IN_SPACE = {"x": 1, "y": 2}, {"x": 1, "y": 2, "z": 3}


def test_a_column_that_only_a_later_file_has_stops_the_stream_which_reads_it_when_it_is_started_again(
    tmp_path: Path, streams: Streams
) -> None:
    cases: list[tuple[Any, Any, str, dict[str, Any], str]] = [
        (ReadFromParquet, pq.write_table, "", {"a": 2, "points": 3}, "points"),
        (ReadFromOrc, orc.write_table, "", {"a": 2, "points": 3}, "points"),
        (ReadFromParquet, pq.write_table, "", {"a": 2, "at": [POINT_IN_SPACE]}, "at.z"),
        (ReadFromParquet, pq.write_table, "file://", {"a": 2, "points": 3}, "points"),
    ]

    def put_row(number: int, name: str, row: dict[str, Any]) -> None:
        (tmp_path / str(number)).mkdir(exist_ok=True)
        cases[number][1](pa.Table.from_pylist([row]), f"{tmp_path}/{number}/{name}")

    patterns = [f"{scheme}{tmp_path}/{number}/*" for number, (_, _, scheme, _, _) in enumerate(cases)]

    def opened() -> list[StreamScan]:
        return [
            streams.open(read(pattern), rejects=read is ReadFromOrc)
            for pattern, (read, *_) in zip(patterns, cases, strict=True)
        ]

    for number in range(len(cases)):
        put_row(number, "1", {"a": 1, "at": [POINT]})
    scans = opened()
    named = [
        streams.open(read(patterns[number], columns=["a"])) for number, (read, *_) in enumerate(cases[:2])
    ]
    for number, (*_, columns, _) in enumerate(cases):
        put_row(number, "2", columns)
    errors = streams.errors(*scans, *named)
    assert sorted(errors) == [*range(len(cases))]
    for number, (*_, told) in enumerate(cases):
        what = f"{tmp_path}/{number}/2 has columns that no file had when the stream started: {told}\n"
        assert_readable(errors[number], what, WHERE, "start the pipeline again", "columns=[...]")
    read = [[row for _, own in parts for row in own] for parts in streams.read(*opened(), *named)]
    for number, (*_, columns, _) in enumerate(cases):
        assert {**columns, "at": columns.get("at")} in read[number], number
    for number, rows in enumerate(read[len(cases) :]):
        assert sorted(row["a"] for row in rows) == [1, 2], number


def test_fields_that_only_a_later_orc_file_has_in_a_struct_are_read(tmp_path: Path, streams: Streams) -> None:
    (tmp_path / "in").mkdir()
    orc.write_table(pa.Table.from_pylist([{"at": POINT}]), f"{tmp_path}/in/1")
    scan = streams.open(ReadFromOrc(f"{tmp_path}/in/*"))
    orc.write_table(pa.Table.from_pylist([{"at": POINT_IN_SPACE}]), f"{tmp_path}/in/2")
    (rows,) = streams.read(scan)
    assert [row for _, own in sorted(rows) for row in own] == [{"at": POINT}, {"at": POINT_IN_SPACE}]


@pytest.mark.every_spark
def test_a_parquet_file_with_another_type_stops_the_stream_which_goes_on_when_it_is_started_again(
    tmp_path: Path, streams: Streams
) -> None:
    def put_numbers(name: str, kind: pa.DataType, number: Any) -> None:
        columns = {"a": pa.array([number], kind), "s": pa.array([{"x": number}], pa.struct({"x": kind}))}
        pq.write_table(pa.table(columns), tmp_path / "in" / name)

    (tmp_path / "in").mkdir()
    put_numbers("1.parquet", pa.int32(), 1)
    scan = streams.open(ReadFromParquet(f"{tmp_path}/in/*"))
    put_numbers("2.parquet", pa.int64(), 2**40)
    with pytest.raises(ValueError, match="the column a") as caught:
        streams.read(scan)
    assert_readable(
        caught.value,
        f"the column a of {tmp_path}/in/2.parquet has the type bigint",
        "reads it as int",
        "start",
    )
    (read,) = streams.read(streams.open(ReadFromParquet(f"{tmp_path}/in/*")))
    assert [values for _, values in sorted(read)] == [
        [{"a": number, "s": {"x": number}}] for number in (1, 2**40)
    ]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_parquet_file_without_values_in_a_column_is_read_when_it_comes_later_and_when_it_was_first(
    tmp_path: Path, streams: Streams, scheme: str
) -> None:
    def put_texts(name: str, column: Any) -> None:
        pq.write_table(
            pa.table({"a": column, "s": pa.array([{"x": column[0].as_py()}])}), tmp_path / "in" / name
        )

    (tmp_path / "in").mkdir()
    path = f"{scheme}{tmp_path}/in/*"
    put_texts("1.parquet", pa.array(["x"]))
    scan = streams.open(ReadFromParquet(path))
    put_texts("2.parquet", pa.nulls(1))
    first = streams.read(scan)[0]
    assert [values for _, values in sorted(first)] == [
        [{"a": each, "s": {"x": each}}] for each in ("x", None)
    ]
    # The stream continues among files of both kinds.
    scan = streams.open(ReadFromParquet(path))
    put_texts("3.parquet", pa.array(["y"]))
    put_texts("4.parquet", pa.nulls(1))
    assert sorted(values[0]["a"] or "" for _, values in streams.read(scan)[0]) == ["", "y"]


def test_a_stream_of_parquet_files_whose_types_have_none_in_common_is_refused(
    tmp_path: Path, streams: Streams
) -> None:
    (tmp_path / "in").mkdir()
    for number, kind in enumerate((pa.int64(), pa.string()), 1):
        pq.write_table(pa.table({"a": [number], "b": pa.nulls(1, kind)}), f"{tmp_path}/in/{number}.parquet")
    shown = "different types in the files: int64 in .*1.parquet, string in .*2.parquet"
    with pytest.raises(UnsupportedByRunner, match=f"the column b has {shown}") as caught:
        streams.open(ReadFromParquet(f"{tmp_path}/in/*"))
    assert WHERE in str(caught.value)
    (read,) = streams.read(streams.open(ReadFromParquet(f"{tmp_path}/in/*", columns=["a"])))
    assert [values for _, values in sorted(read)] == [[{"a": 1}], [{"a": 2}]]


def test_the_columns_of_a_stream_are_also_those_of_the_last_files_of_many(
    tmp_path: Path, streams: Streams
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(SURVEYED_FILES):
        pq.write_table(pa.table({"a": [number]}), f"{tmp_path}/in/z{number}.parquet")
    # Its name is in the middle.
    pq.write_table(pa.table({"a": [-1], "b": [-1]}), f"{tmp_path}/in/z55x.parquet")
    read: Any = streams.open(ReadFromParquet(f"{tmp_path}/in/*")).make_decoder()
    assert "b" in read.records.schema.names


@pytest.mark.parametrize("options", [{}, {"recursiveFileLookup": True}])
def test_files_with_odd_names_are_read_once_or_not_at_all(
    tmp_path: Path, streams: Streams, options: dict[str, Any]
) -> None:
    for name in ("1[x].txt", "2{x}.txt", "3.txt"):
        put(tmp_path / "in" / name, name)
    assert len(streams.read(streams.open(ReadFromText(f"{tmp_path}/in/*")))[0]) == 3
    for name in ("4[x].txt", "5.txt"):
        put(tmp_path / "in" / name, name)
    own = Streams(streams.session, tmp_path / "own")
    scan = own.open(ReadFromSpark("text", f"{tmp_path}/in", **options))
    if options:
        assert sorted(rows[0].value[0] for _, rows in own.read(scan)[0]) == list("12345")
        return
    with pytest.raises(ValueError, match="more than once"):
        own.read(scan)


def test_any_streaming_source_of_spark_can_be_read_by_name(
    tmp_path: Path, session: SparkSession, streams: Streams
) -> None:
    session.range(3).coalesce(1).write.orc(f"{tmp_path}/orc")
    put(tmp_path / "json/1.json", '{"a": 1}')
    options = {"rowsPerBatch": 2, "numPartitions": 1, "startTimestamp": 5000}
    orc, lines, rate = streams.read(
        streams.open(ReadFromSpark("orc", f"{tmp_path}/orc")),
        streams.open(ReadFromSpark("json", f"{tmp_path}/json", schema="a int"), maxFilesPerTrigger=1),
        streams.open(ReadFromSpark("rate-micro-batch", **options)),
    )
    [(file, rows)] = orc
    assert file.startswith(f"file://{tmp_path}/orc/part-")
    assert rows == [Row(id=0), Row(id=1), Row(id=2)]
    assert lines == [(f"file://{tmp_path}/json/1.json", [Row(a=1)])]
    assert [(name, [(row.timestamp.timestamp(), row.value) for row in own]) for name, own in rate] == [
        ("", [(5.0, 0), (5.0, 1)])
    ]
