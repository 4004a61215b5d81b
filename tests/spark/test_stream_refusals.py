"""What the runner cannot be read as a stream: refused when it is opened, by name, with a hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import InlineValues
from penstock.io import ReadFromCsv, ReadFromJson, ReadFromParquet, ReadFromSpark, ReadFromText
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock_spark.formats.registry import open_stream
from penstock_spark.sources.scan import StreamScan

WHERE = "at step 'Read' (game.py:41)"


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def opened(spark: SparkSession, transform: Any, **options: Any) -> StreamScan:
    stream = StreamSource(transform.source, IngressTime(), options=tuple(options.items()))
    return open_stream(stream, spark, WHERE)


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("transform", "options", "what", "hint"),
    [
        (lambda at: ReadFromText(f"{at}/**.txt", validate=False), {}, r"because of its \*\*", "each level"),
        (
            lambda at: ReadFromText(f"{at}/[[]*", validate=False),
            {},
            r"because of its \[\[\]",
            "a \\? instead",
        ),
        (lambda at: ReadFromText(f"{at}/_a.txt", validate=False), {}, "begins with _", "rename"),
        (lambda at: ReadFromText("nosuch://a/*", validate=False), {}, "No FileSystem", "packages"),
        (
            lambda at: ReadFromText(f"{at}/*", validate=False),
            {"maxFilePerTrigger": 1},
            "no option",
            "maxFilesPer",
        ),
        (
            lambda at: ReadFromText(f"{at}/*", validate=False),
            {"maxFilesPerTrigger": "x"},
            "not an integer",
            "100",
        ),
        (
            lambda at: ReadFromText(f"{at}/*", validate=False),
            {"maxFilesPerTrigger": 1, "maxBytesPerTrigger": 1},
            "cannot both",
            "one of them",
        ),
        (lambda at: ReadFromSpark("nosuch"), {}, "Failed to find the data source: nosuch", "check the name"),
        (lambda at: ReadFromSpark("kafka", subscribe="a"), {}, "kafka", "spark-sql-kafka-0-10_2.13:4"),
        (
            lambda at: ReadFromSpark("kafka", subscibe="a"),
            {},
            "no option subscibe",
            "did you mean 'subscribe'?",
        ),
        (lambda at: ReadFromSpark("rate", rowPerSecond=5), {}, "no option", "rowsPerSecond"),
        (lambda at: ReadFromSpark("rate", rowsPerSecond=0), {}, "must be positive", "options"),
        (
            lambda at: ReadFromSpark("rate", schema="a int"),
            {},
            "user-specified schema",
            "leave the schema out",
        ),
        (lambda at: ReadFromSpark("socket", host="localhost"), {}, "port", "options"),
        (lambda at: ReadFromSpark("jdbc", url="a"), {}, "streamed reading", "without as_stream"),
        (lambda at: ReadFromSpark("orc", f"{at}/none"), {}, "Path does not exist", "create the folder"),
        (
            lambda at: ReadFromSpark("json", f"{at}/empty"),
            {},
            "(?i)infer schema|are unknown",
            "pass a schema",
        ),
        (lambda at: ReadFromSpark("orc", f"{at}/a.txt", schema="a int"), {}, "is one file", "folder"),
        (lambda at: ReadFromSpark("orc", schema="a int"), {}, "no path", "pass the path"),
        (lambda at: ReadFromSpark("json", f"{at}/empty", schema="a inty"), {}, "(?i)inty", "schema"),
    ],
)
def test_what_cannot_be_streamed_is_refused_before_the_query_starts(
    tmp_path: Path,
    spark: SparkSession,
    transform: Callable[[Path], Any],
    options: dict[str, Any],
    what: str,
    hint: str,
) -> None:
    put(tmp_path / "a.txt", "x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=what) as caught:
        opened(spark, transform(tmp_path), **options)
    _, *others = str(caught.value).split("\n  ")
    assert others[0] == WHERE
    assert others[1].startswith("hint: ")
    assert hint.replace("\\", "") in others[1]


@pytest.mark.parametrize("read", [ReadFromParquet, ReadFromJson, ReadFromCsv])
def test_a_schema_that_nothing_tells_is_refused(tmp_path: Path, spark: SparkSession, read: Any) -> None:
    file = put(tmp_path / "in/1", "")
    transform = read(f"{tmp_path}/in/*")
    file.unlink()
    with pytest.raises(ValueError, match="are unknown: no file there") as caught:
        opened(spark, transform)
    assert WHERE in str(caught.value)
    assert "put a file there" in str(caught.value)


def test_a_stream_of_json_that_begins_with_something_else_says_so(
    tmp_path: Path, spark: SparkSession
) -> None:
    put(tmp_path / "1.json", '[{"a": 1}]')
    with pytest.raises(
        ValueError, match=r"line 1 of .*1\.json cannot be read: the record is not a JSON object\n  at step"
    ):
        opened(spark, ReadFromJson(f"{tmp_path}/*"))


def test_a_source_that_is_no_stream_is_refused_by_name(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedByRunner, match="cannot be read as a stream"):
        opened(spark, SourceTransform(InlineValues((1,)), "Read"))


def test_opening_streams_leaves_the_session_as_it_is(tmp_path: Path, spark: SparkSession) -> None:
    before = spark.conf.getAll
    put(tmp_path / "csv/1.csv", "a,b\n1,x\n")
    opened(spark, ReadFromCsv(f"{tmp_path}/csv/*"))
    opened(spark, ReadFromText(f"{tmp_path}/csv/*"), maxFilesPerTrigger=1)
    opened(spark, ReadFromSpark("rate"))
    assert spark.conf.getAll == before
