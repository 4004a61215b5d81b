"""Pipelines as streaming DataFrames, whose queries the program starts, and streaming DataFrames as PCollections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io import ReadFromSpark, ReadFromText, from_dataframe, to_streaming_dataframe
from penstock.io.watermarks import BoundedDisorder
from penstock.relations.upserts import Upserts
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterSignal, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.session.backends import backend_of

_STORE = "spark.sql.streaming.stateStore.providerClass"
_SECONDS = 300


class Total(NamedTuple):
    team: str
    start: int
    points: int


class Row(NamedTuple):
    team: str
    points: int | None
    is_deleted: bool


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the settings that a query needs; other tests see others."""
    settings = {
        _STORE: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.sql.shuffle.partitions": "2",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


def add(folder: Path, *rows: tuple[str, int, int]) -> None:
    """Adds a file with the scores of some teams, each at a number of seconds."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("*.json")))
    lines = [
        {"team": team, "points": points, "at": f"1970-01-01 00:00:{at:02d}"} for team, points, at in rows
    ]
    # Spark finds a file only when it is whole.
    part = folder / f"_{number}"
    part.write_text("".join(json.dumps(line) + "\n" for line in lines))
    part.rename(folder / f"{number}.json")


def scores(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    schema = "team string, points bigint, at timestamp"
    return spark.readStream.schema(schema).option("timeZone", "UTC").json(str(folder))


def totals(spark: SparkSession, folder: Path, seconds: int = 10, factor: int = 1) -> DataFrame:
    """The totals of each team and window, as a streaming DataFrame."""
    pipeline = beam.Pipeline(spark=spark)
    rows = pipeline | from_dataframe(scores(spark, folder).withWatermark("at", "5 seconds"))
    pairs = rows | beam.Map(lambda row: (row.team, row.points * factor)).with_output_types(tuple[str, int])
    sums = pairs | beam.WindowInto(FixedWindows(seconds)) | "Sums" >> beam.CombinePerKey(sum)

    def with_start(team: str, points: int, window: Any = beam.DoFn.WindowParam) -> Total:
        return Total(team, int(window.start), points)

    return to_streaming_dataframe(
        sums | beam.MapTuple(with_start).with_output_types(Total), sequence="sequence"
    )


def best(spark: SparkSession, folder: Path, factor: int = 1) -> DataFrame:
    """The best team of each window, which needs two groupings."""
    pipeline = beam.Pipeline(spark=spark)
    rows = pipeline | from_dataframe(scores(spark, folder).withWatermark("at", "5 seconds"))
    pairs = rows | beam.Map(lambda row: (row.team, row.points)).with_output_types(tuple[str, int])
    sums = pairs | beam.WindowInto(FixedWindows(10)) | "Sums" >> beam.CombinePerKey(sum)
    swapped = sums | beam.MapTuple(lambda team, points: (points * factor, team))
    best = swapped | "Best" >> beam.CombineGlobally(max).without_defaults()

    def with_start(best: tuple[int, str], window: Any = beam.DoFn.WindowParam) -> Total:
        return Total(best[1], int(window.start), best[0])

    return to_streaming_dataframe(best | beam.Map(with_start).with_output_types(Total))


def run(frame: DataFrame, folder: Path) -> None:
    """Runs the user's own query over what is there now."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(_SECONDS)
    finally:
        query.stop()


def written(frame: DataFrame, folder: Path) -> list[Any]:
    read = frame.sparkSession.read.schema(frame.schema).parquet(str(folder / "out"))
    return sorted(map(tuple, read.collect()), key=lambda row: row[-1])


def test_the_users_query_continues_after_a_restart_and_refuses_another_pipeline(session, tmp_path):
    source = tmp_path / "in"
    frame = totals(session, source)
    assert frame.isStreaming
    assert frame.sparkSession is session
    assert frame.columns == ["team", "start", "points", "sequence"]
    add(source, ("red", 1, 1), ("red", 2, 9), ("blue", 4, 12))
    run(frame, tmp_path)
    assert written(frame, tmp_path) == []
    # The watermark is 12 - 5 seconds: the row at 3 seconds is in time. Then it is 27 - 5 seconds.
    add(source, ("red", 4, 3), ("red", 8, 27))
    run(totals(session, source), tmp_path)
    first = written(frame, tmp_path)
    assert sorted(row[:3] for row in first) == [("blue", 10, 4), ("red", 0, 7)]
    # A step without state may change; the row at 2 seconds is late.
    add(source, ("red", 100, 2), ("red", 16, 36))
    run(totals(session, source, factor=10), tmp_path)
    rows = written(frame, tmp_path)
    assert rows[: len(first)] == first
    assert [row[:3] for row in rows[len(first) :]] == [("red", 20, 8)]
    of_red = [row[3] for row in rows if row[0] == "red"]
    assert of_red == sorted(set(of_red))

    add(source, ("red", 1, 50))
    with pytest.raises(Exception, match="the pipeline does not fit the state of its query") as refused:
        run(totals(session, source, seconds=20), tmp_path)
    assert "'Sums' has other windows" in str(refused.value)
    assert "hint: undo the change of the pipeline" in str(refused.value)


def test_groupings_in_one_operator_keep_one_plan(session, tmp_path):
    session.conf.set("spark.sql.shuffle.partitions", "1")
    source = tmp_path / "in"
    add(source, ("red", 3, 1), ("blue", 4, 2), ("red", 2, 3), ("red", 1, 17))
    frame = best(session, source)
    run(frame, tmp_path)
    assert sorted(written(frame, tmp_path)) == [("red", 0, 5)]
    add(source, ("blue", 9, 18), ("blue", 1, 30))
    run(best(session, source, factor=10), tmp_path)
    add(source, ("blue", 1, 50))
    run(best(session, source, factor=10), tmp_path)
    assert sorted(written(frame, tmp_path)) == [("blue", 10, 90), ("blue", 30, 10), ("red", 0, 5)]
    session.conf.set("spark.sql.shuffle.partitions", "2")
    add(source, ("blue", 1, 59))
    with pytest.raises(Exception, match="the pipeline does not fit the state of its query"):
        run(totals(session, source), tmp_path)


def test_changes_of_keys_make_a_table_by_their_sequence(session, tmp_path):
    retracting = beam.WindowInto(
        GlobalWindows(),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
    )

    def make() -> DataFrame:
        rows = beam.Pipeline(spark=session) | from_dataframe(scores(session, tmp_path / "in"))
        pairs = rows | beam.Map(lambda row: (row.team, row.points)).with_output_types(tuple[str, int])
        last = pairs | "Once" >> retracting | "Sums" >> beam.CombinePerKey(sum)
        kept = last | beam.Filter(lambda pair: pair[1] < 10)
        changes = kept | Upserts() | beam.Map(lambda each: Row(*each)).with_output_types(Row)
        return to_streaming_dataframe(changes, sequence="sequence")

    def table() -> dict[str, int | None]:
        rows = written(make(), tmp_path)
        assert len({(row[0], row[3]) for row in rows}) == len(rows)
        last = {team: None if is_deleted else points for team, points, is_deleted, _ in rows}
        return {team: points for team, points in last.items() if points is not None}

    add(tmp_path / "in", ("red", 1, 1), ("blue", 4, 1))
    run(make(), tmp_path)
    add(tmp_path / "in", ("red", 2, 1), ("green", 5, 1), ("blue", 7, 1))
    run(make(), tmp_path)
    assert table() == {"red": 3, "green": 5}


def test_columns_stay_with_spark_and_side_inputs_are_computed_first(session, tmp_path):
    pipeline = beam.Pipeline(spark=session)
    numbers = ReadFromSpark("rate-micro-batch", rowsPerBatch=3, numPartitions=1).as_stream()
    rows = pipeline | numbers
    odd = rows | beam.Filter(beam.field("value") != 1) | beam.Select(twice=beam.field("value") * 2)
    by_spark = to_streaming_dataframe(odd, "twice bigint")
    assert "MapInArrow" not in backend_of(session).analysed_plan(by_spark)
    factor = pipeline | beam.Create([10])
    times = beam.Map(lambda row, by: row.value * by, beam.pvalue.AsSingleton(factor))
    by_python = to_streaming_dataframe(rows | times.with_output_types(int))
    assert "MapInArrow" in backend_of(session).analysed_plan(by_python)
    seen = []
    for frame in (by_spark, by_python):
        query = frame.writeStream.format("memory").queryName("numbers").trigger(availableNow=True).start()
        assert query.awaitTermination(_SECONDS)
        seen.append([row[0] for row in session.table("numbers").collect()])
        session.catalog.dropTempView("numbers")
    assert seen == [[0, 4], [0, 10, 20]]


def test_a_run_reads_a_streaming_frame_with_its_times(session, tmp_path):
    seen: list[Any] = []
    add(tmp_path / "in", ("red", 1, 1), ("blue", 4, 12))

    def frame() -> DataFrame:
        return scores(session, tmp_path / "in")

    def with_time(row: Any, at: Any = beam.DoFn.TimestampParam) -> tuple[str, bool, bool]:
        return row.team, at == row.at.timestamp(), at > 1_700_000_000

    with beam.Pipeline(spark=session, available_now=True) as pipeline:
        timed = pipeline | "Timed" >> from_dataframe(frame().withWatermark("at", "5 seconds"))
        arrived = pipeline | "Arrived" >> from_dataframe(frame())
        chosen = pipeline | "Chosen" >> from_dataframe(frame(), "at", BoundedDisorder(0))
        both = (
            timed | "1" >> beam.Map(lambda row: ("timed", row)),
            arrived | "2" >> beam.Map(lambda row: ("arrived", row)),
            chosen | "3" >> beam.Map(lambda row: ("chosen", row)),
        )

        def label(pair: Any, at: Any = beam.DoFn.TimestampParam) -> tuple[Any, ...]:
            return pair[0], *with_time(pair[1], at)

        _ = both | beam.Flatten() | beam.Map(label) | beam.io.ForEachBatch(lambda rows, _: seen.extend(rows))
    assert sorted(seen) == [
        *[("arrived", team, False, True) for team in ("blue", "red")],
        *[("chosen", team, True, False) for team in ("blue", "red")],
        *[("timed", team, True, False) for team in ("blue", "red")],
    ]


def _times(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("at", "5 seconds")


@pytest.mark.parametrize(
    ("of_frame", "match"),
    [
        pytest.param(
            lambda frame: _times(frame).unionAll(_times(frame)),
            "reads 2 streams, and the checkpoint",
            id="two_streams",
        ),
        pytest.param(
            lambda frame: _times(frame).dropDuplicates(["at"]),
            r"keeps its own state \(Deduplicate\)",
            id="own_state",
        ),
    ],
)
def test_a_run_refuses_a_frame_that_its_checkpoint_has_no_place_for(session, tmp_path, of_frame, match):
    pipeline = beam.Pipeline(spark=session)
    _ = pipeline | from_dataframe(of_frame(scores(session, tmp_path / "in"))) | beam.Map(print)
    with pytest.raises(UnsupportedByRunner, match=match) as refused:
        pipeline.run()
    assert "to_streaming_dataframe" in str(refused.value)


def test_a_run_refuses_one_stream_under_two_names(session, tmp_path):
    pipeline = beam.Pipeline(spark=session)
    frame = scores(session, tmp_path / "in")
    timed = pipeline | "Timed" >> from_dataframe(_times(frame))
    arrived = pipeline | "Arrived" >> from_dataframe(frame)
    _ = (timed, arrived) | beam.Flatten() | beam.Map(print)
    with pytest.raises(UnsupportedByRunner, match="another step reads the same stream") as refused:
        pipeline.run()
    assert "at step 'Arrived'" in str(refused.value)


@pytest.mark.parametrize(
    ("of_frame", "match"),
    [
        pytest.param(
            lambda frame: _times(frame).select("at", F.col("at").alias("again")),
            "watermarks of several columns: at, again",
            id="two_watermarks",
        ),
        pytest.param(
            lambda frame: _times(frame).groupBy(F.window("at", "10 seconds")).count(),
            r"select window_time\(window\)",
            id="a_window",
        ),
    ],
)
def test_a_watermark_that_names_no_time_is_refused(session, tmp_path, of_frame, match):
    frame = of_frame(scores(session, tmp_path / "in"))
    with pytest.raises(ValueError, match=match):
        from_dataframe(frame)


def test_a_frame_that_ends_has_no_watermark(session):
    frame = session.createDataFrame([("red", 1)], "team string, points int")
    with pytest.raises(ValueError, match="are for streaming DataFrames, and this one ends"):
        from_dataframe(frame, "points", BoundedDisorder(1))
    with pytest.raises(ValueError, match="is not a streaming one"):
        from_dataframe(frame).as_stream()


Make = Callable[[beam.Pipeline, DataFrame, Path], Any]


def _with_text(pipeline: beam.Pipeline, frame: DataFrame, folder: Path) -> Any:
    (folder / "names.txt").write_text("red\n")
    names = pipeline | ReadFromText(str(folder / "names.txt"))
    rows = pipeline | from_dataframe(frame) | beam.Map(lambda row: row.team).with_output_types(str)
    return (names, rows) | beam.Flatten()


def _with_signal(pipeline: beam.Pipeline, frame: DataFrame, _: Path) -> Any:
    rows = (
        pipeline
        | from_dataframe(frame)
        | beam.Map(lambda row: (row.team, 1)).with_output_types(tuple[str, int])
    )
    trigger = Repeatedly(AfterSignal("now"))
    return (
        rows
        | beam.WindowInto(GlobalWindows(), trigger=trigger, accumulation_mode=AccumulationMode.DISCARDING)
        | beam.CombinePerKey(sum)
    )


def _that_retracts(pipeline: beam.Pipeline, frame: DataFrame, _: Path) -> Any:
    rows = (
        pipeline
        | from_dataframe(frame)
        | beam.Map(lambda row: (row.team, 1)).with_output_types(tuple[str, int])
    )
    retracting = AccumulationMode.ACCUMULATING_AND_RETRACTING
    return (
        rows
        | beam.WindowInto(GlobalWindows(), trigger=Repeatedly(AfterCount(1)), accumulation_mode=retracting)
        | beam.CombinePerKey(sum)
    )


def _that_ends(pipeline: beam.Pipeline, _: DataFrame, folder: Path) -> Any:
    return pipeline | ReadFromText(f"{folder}/*.txt").as_stream(existing_only=True)


@pytest.mark.parametrize(
    ("make", "options", "what", "hint"),
    [
        pytest.param(
            lambda pipeline, *_: pipeline | beam.Create([1]),
            {},
            "the PCollection is bounded",
            "use to_dataframe()",
            id="bounded",
        ),
        pytest.param(
            lambda pipeline, *_: pipeline | TestStream().add_elements([1]).advance_watermark_to_infinity(),
            {},
            "the program lists all of its elements",
            "test with pipeline.run()",
            id="played",
        ),
        pytest.param(
            _with_text, {}, "reads a bounded source into its checkpoint", "as a side input", id="staged"
        ),
        pytest.param(
            _that_ends,
            {},
            "the end of a source fires the last windows",
            "leave out existing_only=True",
            id="ends",
        ),
        pytest.param(_with_signal, {}, "waits for the signal now", "use another trigger", id="signal"),
        pytest.param(_that_retracts, {}, "cannot write retractions", "Changelog()", id="retracts"),
        *[
            pytest.param(
                lambda pipeline, frame, _: pipeline | from_dataframe(frame),
                {option: value},
                f"the option {option} is for runs",
                hint,
                id=option,
            )
            for option, value, hint in (
                ("checkpoint_location", "/tmp/nowhere", "checkpointLocation"),
                ("trigger_interval", 1.0, "processingTime"),
                ("available_now", True, "availableNow"),
            )
        ],
        pytest.param(
            lambda pipeline, frame, _: pipeline | from_dataframe(frame),
            {"shuffle_partitions": 7},
            "needs other values of spark.sql.shuffle.partitions",
            "spark.conf.set('spark.sql.shuffle.partitions', '7')",
            id="shuffle_partitions",
        ),
    ],
)
def test_what_needs_more_than_the_checkpoint_of_spark_is_refused_by_name(
    session, tmp_path, make, options, what, hint
):
    pipeline = beam.Pipeline(spark=session, **options)
    made = make(pipeline, scores(session, tmp_path / "in"), tmp_path)
    with pytest.raises((UnsupportedByRunner, ValueError)) as refused:
        to_streaming_dataframe(made)
    lines = str(refused.value).splitlines()
    assert what in lines[0]
    assert "test_streaming_dataframes.py" in lines[1]
    assert hint in lines[2]


def test_a_wrong_setting_of_the_session_is_named(session, tmp_path):
    session.conf.unset(_STORE)
    with pytest.raises(ValueError, match=f"needs other values of {_STORE}") as refused:
        totals(session, tmp_path / "in")
    assert f"spark.conf.set({_STORE!r}, " in str(refused.value)


def test_a_sequence_needs_a_name_of_its_own(session, tmp_path):
    rows = beam.Pipeline(spark=session) | from_dataframe(scores(session, tmp_path / "in"))
    with pytest.raises(ValueError, match="already have a column 'team'"):
        to_streaming_dataframe(rows, sequence="team")
    with pytest.raises(TypeError, match="sequence must be the name of a column"):
        to_streaming_dataframe(rows, sequence=1)  # type: ignore[arg-type]
