"""A user's session with settings of its own: what they mean to Spark changes no result."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.sparkio import ReadFromSpark, WriteToSpark
from penstock.transforms.sql import SqlTransform
from penstock.transforms.window import FixedWindows, TimestampedValue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

SETTINGS = {
    # What Arrow's columns and batches are.
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    # What SQL means.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.crossJoin.enabled": "false",
    # How Spark plans.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.sources.useV1SourceList": "",
    # How streams go on and keep their state.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "1",
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
LINES = ["blue,3,2026-01-01T12:00:01Z", "red,5,2026-01-01T12:00:02Z", "blue,4,2026-01-01T12:01:10Z"]
SCHEMA = "team string, points bigint, at timestamp"


@pytest.fixture(autouse=True)
def odd_settings(spark: SparkSession) -> Iterator[None]:
    """The session of all tests, with settings of a user."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    set_all(spark, SETTINGS)
    yield
    set_all(spark, before)


def set_all(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    with warnings.catch_warnings():
        # A client of Spark Connect warns of settings that are deprecated.
        warnings.filterwarnings("ignore", "The SQL config")
        for name, value in settings.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file, which has the lines."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "in"


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_groups_and_side_inputs_are_the_same(mode: str, folder: Path) -> None:
    sums: list[Any] = []
    pairs: list[Any] = []

    def scored(line: str) -> Any:
        team, points, at = line.split(",")
        return TimestampedValue((team, int(points)), datetime.datetime.fromisoformat(at).timestamp())

    with beam.Pipeline(mode=mode, shuffle_partitions=2) as pipeline:
        read = beam.io.ReadFromText(f"{folder}/*.csv")
        lines = pipeline | (read.as_stream(existing_only=True) if mode == "streaming" else read)
        scores = lines | beam.Map(scored) | beam.WindowInto(FixedWindows(60))
        total = scores | beam.Values() | beam.CombineGlobally(sum).without_defaults()
        _ = scores | beam.CombinePerKey(sum) | "Sums" >> WriteToMemory(sums)
        side = beam.pvalue.AsSingleton(total)
        beside = scores | beam.GroupByKey() | beam.Map(lambda group, all: (group[0], all), side)
        _ = beside | "All" >> WriteToMemory(pairs)
    assert sorted(sums) == [("blue", 3), ("blue", 4), ("red", 5)]
    assert sorted(pairs) == [("blue", 4), ("blue", 8), ("red", 8)]


@pytest.mark.parametrize("count", [3, 300])
def test_elements_of_the_program_are_the_same(count: int) -> None:
    texts = [("a" * number, number) for number in range(count)]
    found: list[Any] = []
    with beam.Pipeline() as pipeline:
        pairs = pipeline | beam.Create(texts) | beam.Reshuffle() | beam.Map(lambda pair: pair)
        grouped = pairs | beam.GroupByKey() | beam.MapTuple(lambda key, values: (key, *values))
        _ = grouped | WriteToMemory(found)
    assert sorted(found) == texts


def test_times_of_tables_are_instants(folder: Path, tmp_path: Path) -> None:
    read = ReadFromSpark("csv", str(folder), SCHEMA)
    times: list[Any] = []
    windows: list[Any] = []
    with beam.Pipeline() as pipeline:
        goals = pipeline | read
        _ = goals | beam.Map(lambda goal: goal.at) | "Times" >> WriteToMemory(times)
        query = (
            "SELECT window_start, team, SUM(points) AS points "
            "FROM TUMBLE(TABLE PCOLLECTION, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, team"
        )
        _ = goals | SqlTransform(query) | "Windows" >> WriteToMemory(windows)
        _ = goals | WriteToSpark("parquet", str(tmp_path / "out"), schema=SCHEMA)
    offsets = [1, 2, 70]
    assert sorted(times) == [NOON + datetime.timedelta(seconds=offset) for offset in offsets]
    expected = [(NOON, "blue", 3), (NOON, "red", 5), (NOON + datetime.timedelta(minutes=1), "blue", 4)]
    assert sorted(tuple(row) for row in windows) == expected
    again: list[Any] = []
    with beam.Pipeline() as pipeline:
        rows = pipeline | beam.io.ReadFromParquet(f"{tmp_path}/out/*.parquet")
        _ = rows | beam.Map(lambda row: row["at"]) | WriteToMemory(again)
    assert sorted(again) == sorted(times)


def test_a_stream_of_a_table_and_of_whole_files_is_the_same(folder: Path) -> None:
    rows: list[Any] = []
    whole: list[Any] = []
    with beam.Pipeline(mode="streaming", shuffle_partitions=2) as pipeline:
        table = ReadFromSpark("csv", str(folder), SCHEMA).as_stream(existing_only=True)
        goals = pipeline | table | beam.Map(lambda goal: (goal.team, goal.points, goal.at))
        _ = goals | "Rows" >> WriteToMemory(rows)
        lines = beam.io.ReadFromText(f"{folder}/*.csv", delimiter=b";").as_stream(existing_only=True)
        _ = pipeline | "Whole" >> lines | "Keep" >> WriteToMemory(whole)
    assert [row[2] - NOON for row in sorted(rows)] == [datetime.timedelta(seconds=s) for s in (1, 70, 2)]
    assert whole == ["".join(f"{line}\n" for line in LINES)]
