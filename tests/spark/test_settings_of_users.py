"""A user's session with settings of its own: what they mean to Spark changes no result."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
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
    "large columns of Arrow": {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    "local times": {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "Asia/Kolkata"},
    "small batches": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    "names with capitals": {"spark.sql.caseSensitive": "true"},
    "old SQL": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.legacy.sizeOfNull": "true",
    },
    "careful joins": {"spark.sql.crossJoin.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"},
    "plans that change": {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.sources.useV1SourceList": "",
    },
    "impatient streams": {
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "1",
        "spark.sql.streaming.stateStore.encodingFormat": "avro",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
LINES = ["blue,3,2026-01-01T12:00:01Z", "red,5,2026-01-01T12:00:02Z", "blue,4,2026-01-01T12:01:10Z"]
SCHEMA = "team string, points bigint, at timestamp"


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """The session of all tests, with settings of a user."""
    mine = SETTINGS[request.param]
    before = {name: spark.conf.get(name, None) for name in mine}
    for name, value in mine.items():
        spark.conf.set(name, value)
    yield request.param
    for name, earlier in before.items():
        if earlier is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, earlier)


def kept(into: list[Any]) -> WriteToMemory:
    return WriteToMemory(into)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_elements_groups_side_inputs_and_state_are_the_same(setting: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line}\n" for line in LINES))
    sums: list[Any] = []
    pairs: list[Any] = []

    def scored(line: str) -> Any:
        team, points, at = line.split(",")
        return TimestampedValue((team, int(points)), datetime.datetime.fromisoformat(at).timestamp())

    with beam.Pipeline(mode=mode, shuffle_partitions=2) as pipeline:
        read = beam.io.ReadFromText(f"{tmp_path}/in/*.txt")
        lines = pipeline | (read.as_stream(ends=True) if mode == "streaming" else read)
        scores = lines | beam.Map(scored) | beam.WindowInto(FixedWindows(60))
        total = scores | beam.Values() | beam.CombineGlobally(sum).without_defaults()
        _ = scores | beam.CombinePerKey(sum) | "Sums" >> kept(sums)
        side = beam.pvalue.AsSingleton(total)
        _ = (
            scores
            | beam.GroupByKey()
            | beam.Map(lambda group, all: (group[0], all), side)
            | "All" >> kept(pairs)
        )
    assert sorted(sums) == [("blue", 3), ("blue", 4), ("red", 5)]
    assert sorted(pairs) == [("blue", 4), ("blue", 8), ("red", 8)]


@pytest.mark.parametrize("count", [3, 300])
def test_elements_of_the_program_are_the_same(setting: str, count: int) -> None:
    texts = [("a" * number, number) for number in range(count)]
    found: list[Any] = []
    with beam.Pipeline() as pipeline:
        pairs = pipeline | beam.Create(texts) | beam.Reshuffle() | beam.Map(lambda pair: pair)
        _ = pairs | beam.GroupByKey() | beam.MapTuple(lambda key, values: (key, *values)) | kept(found)
    assert sorted(found) == texts


def test_times_of_tables_are_moments(setting: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{line}\n" for line in LINES))
    read = ReadFromSpark("csv", str(tmp_path / "in"), SCHEMA)
    times: list[Any] = []
    windows: list[Any] = []
    with beam.Pipeline() as pipeline:
        goals = pipeline | read
        _ = goals | beam.Map(lambda goal: goal.at) | "Times" >> kept(times)
        query = (
            "SELECT window_start, team, SUM(points) AS points "
            "FROM TUMBLE(TABLE PCOLLECTION, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, team"
        )
        _ = goals | SqlTransform(query) | "Windows" >> kept(windows)
        _ = goals | WriteToSpark("parquet", str(tmp_path / "out"), schema=SCHEMA)
    offsets = [1, 2, 70]
    assert sorted(times) == [NOON + datetime.timedelta(seconds=offset) for offset in offsets]
    expected = [(NOON, "blue", 3), (NOON, "red", 5), (NOON + datetime.timedelta(minutes=1), "blue", 4)]
    assert sorted(tuple(row) for row in windows) == expected
    again: list[Any] = []
    with beam.Pipeline() as pipeline:
        rows = pipeline | beam.io.ReadFromParquet(f"{tmp_path}/out/*.parquet")
        _ = rows | beam.Map(lambda row: row["at"]) | kept(again)
    assert sorted(again) == sorted(times)


def test_a_stream_of_a_table_and_of_whole_files_is_the_same(setting: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{line}\n" for line in LINES))
    rows: list[Any] = []
    whole: list[Any] = []
    with beam.Pipeline(mode="streaming", shuffle_partitions=2) as pipeline:
        table = ReadFromSpark("csv", str(tmp_path / "in"), SCHEMA).as_stream(ends=True)
        _ = pipeline | table | beam.Map(lambda goal: (goal.team, goal.points, goal.at)) | "Rows" >> kept(rows)
        lines = beam.io.ReadFromText(f"{tmp_path}/in/*.csv", delimiter=b";").as_stream(ends=True)
        _ = pipeline | "Whole" >> lines | "Keep" >> kept(whole)
    assert [row[2] - NOON for row in sorted(rows)] == [datetime.timedelta(seconds=s) for s in (1, 70, 2)]
    assert whole == ["".join(f"{line}\n" for line in LINES)]
