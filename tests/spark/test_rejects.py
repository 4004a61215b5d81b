"""What rejects=True keeps: generated files of every format, in a batch and in a stream, against what was damaged."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as beam
from penstock.coders import coders
from penstock.elements.row import Row
from penstock.io import ReadFromCsv, ReadFromJson, ReadFromSpark, ReadFromText, WriteToMemory
from penstock.io.rejects import Rejected, RejectedRecord
from penstock.io.streaming.stream_sources import SourceWithRejects, StreamSource
from penstock.io.watermarks import IngressTime
from penstock.metrics.metric import MetricsFilter
from penstock_spark.formats.registry import open_source, open_stream
from penstock_spark.reports.reporting import current_reporting, report_with
from penstock_spark.session.backends import backend_of
from penstock_spark.sources.scan import Scan, StreamScan
from tests.spark.called import read_all

WHERE = "at step 'Read' (game.py:41)"
SCHEMA = "n long, s string"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


class UpperCoder(coders.Coder):
    """Refuses some lines with an error of its own."""

    def decode(self, encoded: bytes) -> str:
        if b"bad" in encoded:
            raise LookupError("no such line")
        return encoded.decode("latin-1").upper()


@dataclass
class Case:
    """A folder of files, how it is read, and what is known of it."""

    name: str
    read: Callable[[str], Any]
    good: list[Any] = field(default_factory=list)
    bad: list[tuple[str, int | None, bytes, str | None]] = field(default_factory=list)

    def expect(self) -> tuple[list[str], list[Any]]:
        return sorted(map(repr, self.good)), sorted(self.bad, key=repr)


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


TEXTS = ["x", "a,b", 'a "word"', "  ", "ends \\", "tab\there", "'"]


def csv_of(fields: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(fields)
    return line.getvalue().removesuffix("\r\n")


def csv_case(chance: random.Random, folder: Path, kind: str) -> Case:
    """Records of CSV: by lines or as whole files, in an encoding, read by our columns or by those of Spark."""
    by_spark, multi = kind == "spark csv", "multi" in kind
    encoding = {"csv latin-1": "latin-1", "csv utf-16": "utf-16"}.get(kind, "utf-8")
    ends = "\r\n" if chance.random() < 0.4 else "\n"
    # A file of UTF-16 begins with its mark anyway.
    mark = "\ufeff" if encoding == "utf-8" and not by_spark and chance.random() < 0.3 else ""
    ending = chance.choice(["", "", ".gz"])
    comment = not by_spark and not multi and encoding == "utf-8" and chance.random() < 0.3

    def read(pattern: str) -> Any:
        if by_spark:
            return ReadFromSpark("csv", pattern, SCHEMA, header=True, escape='"')
        options: dict[str, Any] = {"comment": "#"} if comment else {}
        if encoding != "utf-8":
            options["encoding"] = encoding
        return ReadFromCsv(pattern, splittable=not multi, dtype={"n": int, "s": str}, **options)

    case = Case(kind, read)
    texts = [*TEXTS, "é", "日本"] if encoding != "latin-1" else [*TEXTS, "é"]
    if by_spark or comment:
        # Spark's own reader has another escape, and # begins a comment anywhere.
        texts = ["x", "a,b", "é", "日本"]
    damages = ["few", "many", "type"]
    if encoding == "utf-8":
        damages.append("bytes")
    if kind == "csv" and not comment:
        damages.append("quote")
    for number in range(3):
        file = folder / f"{number}.csv{ending}"
        lines: list[bytes] = []
        line = 1

        def add(text: str | bytes) -> None:
            nonlocal line
            lines.append(text if isinstance(text, bytes) else text.encode(encoding))
            line += 1 + (text.count("\n") if isinstance(text, str) else 0)

        add("n,s")
        for place in range(chance.randint(1, 12)):
            at = line
            if chance.random() < 0.15:
                add("")
                continue
            if comment and chance.random() < 0.2:
                add("# nothing")
                continue
            text = chance.choice(texts)
            if multi and chance.random() < 0.3:
                text += ends + "more"
            if chance.random() < 0.65:
                add(csv_of([str(place), text]))
                case.good.append(Row(n=place, s=text))
                continue
            damage = chance.choice(damages)
            wrong = {
                "few": str(place),
                "many": csv_of([str(place), text, "z"]),
                "type": csv_of(["word", text]),
                "quote": f'{place},"open',
                "bytes": b"%d,caf\xe9" % place,
            }[damage]
            add(wrong)
            raw = wrong if isinstance(wrong, bytes) else wrong.encode()
            case.bad.append((str(file), at, raw, "n" if damage == "type" else None))
        end = ends.encode(encoding)
        if encoding == "utf-16":
            # Only the beginning of the file has a mark.
            content = (ends.join(each.decode("utf-16") for each in lines) + ends).encode("utf-16")
        else:
            content = mark.encode() + end.join(lines) + (end if chance.random() < 0.7 else b"")
        put(file, PACKERS[ending](content))
    return case


def json_case(chance: random.Random, folder: Path, kind: str) -> Case:
    by_spark = kind == "spark json"
    ending = chance.choice(["", "", ".gz"])
    ends = b"\r\n" if chance.random() < 0.4 else b"\n"
    case = Case(
        kind, lambda pattern: ReadFromSpark("json", pattern, SCHEMA) if by_spark else ReadFromJson(pattern)
    )
    for number in range(3):
        file, lines = folder / f"{number}.json{ending}", [b'{"n": 0, "s": "first"}']
        case.good.append(Row(n=0, s="first"))
        for place in range(chance.randint(1, 12)):
            if chance.random() < 0.15:
                lines.append(b"")
            elif chance.random() < 0.65:
                text = chance.choice(["x", "é", "日本", "a\nb"])
                lines.append(json.dumps({"n": place, "s": text}, ensure_ascii=chance.random() < 0.5).encode())
                case.good.append(Row(n=place, s=text))
            else:
                wrong = [b'{"n": ', b"[3]", b'{"n": 1, "s": "caf\xe9"}', b"7"]
                wrong += [b'{"n": "word", "s": "x"}'] if by_spark else []
                lines.append(chance.choice(wrong))
                of = "n" if b"word" in lines[-1] else None
                case.bad.append((str(file), len(lines), lines[-1], of))
        put(file, PACKERS[ending](ends.join(lines) + ends))
    return case


def text_case(chance: random.Random, folder: Path, kind: str) -> Case:
    ending = chance.choice(list(PACKERS)) if kind != "text coder" else ""
    delimiter = b"|" if kind == "text delimiter" else None
    header = chance.randint(0, 2)
    options: dict[str, Any] = {"skip_header_lines": header}
    if delimiter:
        options["delimiter"] = delimiter
    if kind == "text coder":
        options["coder"] = UpperCoder()
    case = Case(f"{kind} {ending}", lambda pattern: ReadFromText(f"{pattern}{ending}", **options))
    end = delimiter or (b"\r\n" if chance.random() < 0.4 else b"\n")
    for number in range(3):
        file, lines = folder / f"{number}.txt{ending}", [b"header"] * header
        for _ in range(chance.randint(1, 12)):
            if chance.random() < 0.7:
                text = chance.choice(["", "x", "é 日本", " x "])
                lines.append(text.encode())
                upper = text.encode().decode("latin-1").upper()
                case.good.append(upper if kind == "text coder" else text)
            else:
                lines.append(b"bad \xff" + chance.choice([b"", b" more"]))
                case.bad.append((str(file), len(lines), lines[-1], None))
        put(file, PACKERS[ending](end.join(lines) + end))
    return case


MAKERS: dict[str, Callable[[random.Random, Path, str], Case]] = {
    **dict.fromkeys(["csv", "csv multi", "csv latin-1", "csv utf-16", "spark csv"], csv_case),
    **dict.fromkeys(["json", "spark json"], json_case),
    **dict.fromkeys(["text", "text delimiter", "text coder"], text_case),
}


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session as the runner's, which cuts files into splits of some lines."""
    split = {"spark.sql.files.maxPartitionBytes": "60b", "spark.sql.files.openCostInBytes": "1b"}
    return backend_of(spark).clone({"spark.sql.ansi.enabled": "true", **split})


def make_cases(seed: int, folder: Path) -> list[tuple[Case, Path]]:
    found = []
    for number, (kind, make) in enumerate(MAKERS.items()):
        chance, own = random.Random(f"{seed} {kind}"), folder / f"{seed}-{number}"
        found.append((make(chance, own, kind), own))
    return found


def decoded(number: int, frame: DataFrame, make_reader: Callable[[], Any]) -> DataFrame:
    """The values of all batches, pickled, with the number of their case."""
    reporting = current_reporting()

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(reporting)
        read = make_reader()
        for batch in batches:
            values = [cloudpickle.dumps(list(values)) for values in read(batch)]
            yield pa.RecordBatch.from_arrays(
                [pa.array([number] * len(values), pa.int64()), pa.array(values, pa.binary())],
                ["case", "values"],
            )

    return frame.mapInArrow(decode, "case long, values binary")


def outcomes(rows: list[Any], count: int) -> list[tuple[list[str], list[Any]]]:
    good: list[list[str]] = [[] for _ in range(count)]
    bad: list[list[Any]] = [[] for _ in range(count)]
    for row in rows:
        for value in cloudpickle.loads(row["values"]):
            if isinstance(value, Rejected):
                found = value.record
                bad[row["case"]].append((found.source, found.line, found.content, found.field))
                assert found.reason
                assert "word" not in found.reason
            else:
                good[row["case"]].append(repr(value))
    return [(sorted(one), sorted(other, key=repr)) for one, other in zip(good, bad, strict=True)]


def found_in_batch(session: SparkSession, cases: list[tuple[Case, Path]]) -> list[Any]:
    frames = []
    for number, (case, folder) in enumerate(cases):
        read = case.read(f"{folder}/*")
        scan: Scan = open_source(SourceWithRejects(read.source), session, WHERE)
        frames.append(decoded(number, scan.frame, scan.make_reader))
    return outcomes(reduce(DataFrame.unionAll, frames).collect(), len(cases))


def found_in_stream(session: SparkSession, cases: list[tuple[Case, Path]], checkpoint: Path) -> list[Any]:
    frames = []
    for number, (case, folder) in enumerate(cases):
        read = case.read(f"{folder}/*")
        scan: StreamScan = open_stream(
            StreamSource(read.source, IngressTime(), has_rejects=True), session, WHERE
        )
        make_decoder = scan.make_decoder

        def make_reader(make_decoder: Any = make_decoder) -> Any:
            decode = make_decoder()
            return lambda batch: (part.values for part in decode(batch))

        frames.append(decoded(number, scan.frame, make_reader))
    rows: list[Any] = []
    read_all(
        reduce(DataFrame.unionAll, frames), lambda batch, _: rows.extend(batch.collect()), str(checkpoint)
    )
    return outcomes(rows, len(cases))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 12))])
def test_every_record_is_read_or_rejected_with_its_line(
    session: SparkSession, tmp_path: Path, seed: int
) -> None:
    cases = make_cases(seed, tmp_path)
    expected = [case.expect() for case, _ in cases]
    assert sum(len(bad) for _, bad in expected) > 20
    batch = found_in_batch(session, cases)
    stream = found_in_stream(session, cases, tmp_path / "checkpoint")
    for (case, _), wanted, once, streamed in zip(cases, expected, batch, stream, strict=True):
        assert once == wanted, f"{case.name} in a batch"
        assert streamed == wanted, f"{case.name} in a stream"


@pytest.mark.parametrize("mode", ["batch", "micro_batch", "streaming"])
def test_a_pipeline_has_two_outputs_and_counts_what_is_rejected(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    put(tmp_path / "a.csv", b"n,s\n1,x\n\nword,y\n3\n")
    good: list[Any] = []
    bad: list[RejectedRecord] = []
    read: Any = ReadFromCsv(f"{tmp_path}/*.csv", dtype={"n": int, "s": str}, rejects=True)
    pipeline = beam.Pipeline(mode=mode)
    rows, rejected = pipeline | (read.as_stream(existing_only=True) if mode == "streaming" else read)
    _ = rows | "Good" >> WriteToMemory(good)
    _ = rejected | "Bad" >> WriteToMemory(bad)
    result = pipeline.run()
    result.wait_until_finish()
    assert good == [Row(n=1, s="x")]
    file = f"{tmp_path}/a.csv"
    assert sorted(bad) == [
        RejectedRecord(
            *(file, 4, None, None, "n", "the value of n is not of type int", "ValueError", "word,y", False)
        ),
        RejectedRecord(
            *(file, 5, None, None, None, "the record has 1 field instead of 2", "ValueError", "3", False)
        ),
    ]
    counted = result.metrics().query(MetricsFilter().with_name("elements_rejected"))["counters"]
    assert [each.committed for each in counted] == [2]
