"""The function that writes micro-batches to sinks: jobs, errors, sinks of the driver, and whole queries."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle, StreamingQuery

import penstock as beam
from penstock.coders import coders
from penstock.error import RunnerError, UnsupportedByRunner
from penstock.graph import DriverList, Sink
from penstock.io import WriteToText
from penstock.io.console import ConsoleSink, WriteToConsole
from penstock.io.each_batch import EachBatchSink, ForEachBatch
from penstock.io.sparkio import SparkSink
from penstock.testing.test_pipeline import TestPipeline
from penstock_spark.formats.format import Format
from penstock_spark.formats.program import PickledRows
from penstock_spark.formats.registry import FORMATS
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.reports.failure import find_failure, to_exception
from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import transform_with_state
from penstock_spark.sinks.plan import MicroBatch, SinkPlan
from penstock_spark.worker.batch import Batch, encode_page
from tests.spark.stream_sinks.writing import ROWS, contents, jobs, lines, runs

Writer = Callable[..., BatchWriter]
PATIENCE = 120
"""Seconds after which a test gives up."""


def sinks_of_each_kind(folder: Path) -> list[Any]:
    return [
        WriteToText(f"{folder}/a/o"),
        WriteToText(f"file://{folder}/b/o", num_shards=2),
        SparkSink("parquet", f"{folder}/c", "append", schema="team string"),
        EachBatchSink(lambda elements, number: None),
        ConsoleSink(),
        DriverList([]),
    ]


def refuse(elements: list[Any], number: int) -> None:
    raise LookupError("not today")


def raised(call: Callable[[], Any]) -> BaseException:
    """What a query makes of an exception that leaves a micro-batch: Spark passes only its text on."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    failure = find_failure(str(caught.value))
    assert failure is not None
    return to_exception(failure)


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., StreamingQuery]]:
    """Starts, or goes on with, a query with one row in each micro-batch."""
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    session = backend_of(spark).clone(
        {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.streaming.stateStore.providerClass": provider,
        },
    )
    started: list[StreamingQuery] = []

    def run(write: BatchWriter, effects: Path | None = None) -> StreamingQuery:
        frame = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().select("value")
        if effects is None:
            frame = frame.mapInArrow(as_element(), ROWS)
        else:
            keyed = frame.selectExpr("value", "0 as shard").groupBy("shard")
            frame = transform_with_state(keyed, counting(effects), ROWS)
        called = tmp_path / f"called {len(started)}"
        stream = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        started.append(backend_of(session).start(stream, write, str(called)))
        return started[-1]

    yield run
    for query in started:
        query.stop()


def counting(effects: Path) -> StatefulProcessor:
    """A stateful operator whose class travels with it: workers do not know the modules of this folder."""

    class Counting(StatefulProcessor):
        """Tells two sinks how many rows there have been; leaves a line in a file whenever it is called."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._count = handle.getValueState("count", "count int")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            count = (self._count.get() or (0,))[0] + len(list(rows))
            self._count.update((count,))
            with effects.open("a") as file:
                file.write(f"{count}\n")
            for level in (-1, -2):
                yield SparkRow(level=level, shard=0, payload=encode_page(Batch([count])))

        def close(self) -> None:
            pass

    return Counting()


def as_element() -> Any:
    """The function that makes rows of numbers, likewise."""

    def run(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            for value in record.column(0).to_pylist():
                page = encode_page(Batch([value]))
                columns = [pa.array([-1], pa.int32()), pa.array([0], pa.int32()), pa.array([page])]
                yield pa.RecordBatch.from_arrays(columns, ["level", "shard", "payload"])

    return run


@pytest.mark.parametrize("number", range(6))
def test_a_micro_batch_without_rows_is_one_job_and_no_file(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, number: int
) -> None:
    write = writer(sinks_of_each_kind(tmp_path)[number])
    for batch in range(2):
        before = jobs(spark)
        write(rows([]), batch)
        assert jobs(spark) - before == 1
    assert contents(tmp_path) == {}


def test_several_sinks_are_one_job_more_and_the_steps_before_them_run_once(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession
) -> None:
    effects = tmp_path / "effects"
    kept = set(spark.sparkContext._jsc.getPersistentRDDs())
    write = writer(*sinks_of_each_kind(tmp_path / "out"))
    write(rows([]), 0)
    before = jobs(spark)
    write(rows([], effects=effects), 1)
    assert (jobs(spark) - before, runs(effects)) == (1, 2)
    effects.unlink()
    before = jobs(spark)
    write(rows(["a"], [], [{"team": "red"}], [], [], ["b"], effects=effects), 2)
    assert (jobs(spark) - before, runs(effects)) == (4, 2)
    assert len(contents(tmp_path / "out")) == 2
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= kept


@pytest.mark.parametrize("sinks", [[], [WriteToText]])
def test_the_steps_before_no_sink_or_one_run_once(
    tmp_path: Path, writer: Writer, rows: Any, spark: SparkSession, sinks: list[Any]
) -> None:
    effects = tmp_path / "effects"
    before = jobs(spark)
    writer(*[sink(f"{tmp_path}/o") for sink in sinks])(rows(["a"], effects=effects), 5)
    assert (jobs(spark) - before, runs(effects)) == (1, 2)


class Twice(Sink):
    """Stands for a format of somebody else's, which computes the rows as often as it likes."""


def test_rows_for_a_sink_of_unknown_jobs_are_kept(
    tmp_path: Path, writer: Writer, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        assert frame.count() == frame.count() == 1
        return []

    plan = SinkPlan("value binary", PickledRows, None, commit, is_one_job=False)
    monkeypatch.setitem(FORMATS, Twice, Format(plan=lambda sink, is_stream, where: plan))
    writer(Twice())(rows(["a"], effects=tmp_path / "effects"), 0)
    assert runs(tmp_path / "effects") == 2


def test_errors_name_the_step_of_the_sink_and_keep_their_type(
    tmp_path: Path, writer: Writer, rows: Any
) -> None:
    class Breaks(coders.Coder):
        """Fails, as code of a user's may."""

        def encode(self, value: Any) -> bytes:
            raise KeyError(f"no {value}")

    (tmp_path / "file").write_text("")

    fine = ConsoleSink()
    cases = [
        (WriteToText(f"{tmp_path}/o", coder=Breaks()), KeyError),
        (WriteToText(f"{tmp_path}/file/o"), OSError),
        (SparkSink("json", f"{tmp_path}/file", "append", schema="team string"), (RunnerError, OSError)),
        (EachBatchSink(refuse), LookupError),
    ]
    for sink, kind in cases:
        for sinks, label in (([sink], "Write 1"), ([fine, sink], "Write 2")):
            data = (
                [["a"], ["a"]] if not isinstance(sink, SparkSink) else [[], [{"team": "red"}]][-len(sinks) :]
            )
            error = raised(lambda sinks=sinks, data=data: writer(*sinks)(rows(*data), 0))
            assert isinstance(error, kind)
            assert f"'{label}'" in "\n".join([str(error), *getattr(error, "__notes__", ())])


def test_a_sink_that_takes_no_stream_is_refused_before_anything_starts(writer: Writer) -> None:
    with pytest.raises(UnsupportedByRunner, match="cannot be used in a stream"):
        writer(Sink())
    with pytest.raises(UnsupportedByRunner, match="letter W"):
        writer(WriteToText("/tmp/o", shard_name_template="-W-SS"))


def test_lines_on_the_console_come_from_the_program(
    writer: Writer, rows: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write = writer(ConsoleSink(2))
    write(rows(["a", "b", "c", "d"]), 0)
    write(rows([]), 1)
    write(rows(["e"]), 2)
    assert capsys.readouterr().out == "a\nb\n... and 2 more\ne\n"


def test_a_function_gets_the_elements_and_the_number_and_again_what_is_tried_again(
    writer: Writer, rows: Any
) -> None:
    calls: list[tuple[int, list[Any]]] = []
    write = writer(EachBatchSink(lambda elements, number: calls.append((number, elements))))
    for number, elements in ((4, ["a", "b"]), (5, []), (6, ["c"]), (6, ["c"])):
        write(rows(elements), number)
    assert calls == [(4, ["a", "b"]), (6, ["c"]), (6, ["c"])]


def test_in_batch_mode_all_elements_are_one_micro_batch(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, list[Any]]] = []

    def take(elements: list[Any], number: int) -> None:
        calls.append((number, elements))

    with TestPipeline() as pipeline:
        numbers = pipeline | beam.Create([1, 2, 3]) | beam.Reshuffle()
        numbers | ForEachBatch(take)
        numbers | WriteToConsole("number ", limit=1)
        numbers | "None" >> beam.Filter(lambda number: number > 3) | "Nothing" >> ForEachBatch(take)
    assert [(number, sorted(elements)) for number, elements in calls] == [(0, [1, 2, 3])]
    assert re.fullmatch(r"number [123]\n\.\.\. and 2 more\n", capsys.readouterr().out)
    with pytest.raises(LookupError, match=r"while running 'ForEachBatch"), TestPipeline() as pipeline:
        pipeline | beam.Create([1]) | ForEachBatch(refuse)


def test_a_list_has_each_micro_batch_once_whoever_starts_the_query_again(writer: Writer, rows: Any) -> None:
    into: list[Any] = []
    for number, elements in ((0, ["a"]), (1, ["b", "c"]), (1, ["b", "c"])):
        writer(DriverList(into))(rows(elements), number)
    assert into == ["a", "b", "c"]
    writer(DriverList(into), app="another")(rows(["d"]), 0)
    assert into == ["a", "b", "c", "d"]


def test_a_query_with_state_goes_on_after_a_failure_as_if_there_had_been_none(
    tmp_path: Path, writer: Writer, start: Any
) -> None:
    numbers, effects, done = [], tmp_path / "effects", threading.Event()

    def fail_once(elements: list[int], number: int) -> None:
        numbers.append((number, elements))
        if numbers == [(0, [1]), (1, [2]), (2, [3])]:
            raise LookupError("not today")
        if number == 4:
            done.set()

    sinks = [WriteToText(f"{tmp_path}/out/o"), EachBatchSink(fail_once)]
    failed = start(writer(*sinks), effects)
    with pytest.raises(StreamingQueryException) as caught:
        failed.awaitTermination()
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert isinstance(to_exception(failure), LookupError)
    assert effects.read_text().split() == ["1", "2", "3"]

    query = start(writer(*sinks), effects)
    assert done.wait(PATIENCE)
    query.stop()
    assert query.exception() is None
    assert numbers[:6] == [(0, [1]), (1, [2]), (2, [3]), (2, [3]), (3, [4]), (4, [5])]
    assert effects.read_text().split()[:6] == ["1", "2", "3", "3", "4", "5"]
    files = lines(tmp_path / "out")
    assert [files[f"o-batch-00000{number}-00000-of-00001"] for number in range(5)] == [
        [str(number + 1)] for number in range(5)
    ]


def test_a_query_that_is_stopped_while_spark_writes_has_not_failed(
    tmp_path: Path, writer: Writer, start: Any
) -> None:
    class Slow(coders.Coder):
        def encode(self, value: Any) -> bytes:
            (tmp_path / "began").touch()
            threading.Event().wait(5)
            return b""

    query = start(writer(WriteToText(f"{tmp_path}/o", coder=Slow())))
    ended = time.monotonic() + PATIENCE
    while not (tmp_path / "began").exists() and time.monotonic() < ended:
        query.awaitTermination(0.05)
    query.stop()
    assert query.exception() is None
