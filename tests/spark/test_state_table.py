"""State that Spark keeps, read back as a table; and checkpoints on the file systems that Spark reaches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

import penstock as beam
from penstock.coders.deterministic import encode_keys
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MIN_MICROS, Element, Times
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import CountCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindow, GlobalWindows, IntervalWindow
from penstock.utils.timestamp import Timestamp
from penstock.windows.windowing import Windowing
from penstock_spark import read_state, state_rows
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.custody.folder import Checkpoint, find_checkpoint, open_checkpoint
from penstock_spark.compiler import optimise
from penstock_spark.passes.levels import levels
from penstock_spark.session.backends import backend_of
from penstock_spark.session.spark_versions import transform_with_state
from penstock_spark.stream.shards.keys import KeyTable
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.page_index import PageNotes

SECOND = 1_000_000
TWICE = Repeatedly(AfterCount(2))
MINUTES = Windowing(FixedWindows(60), TWICE, AccumulationMode.ACCUMULATING)
LONG = "long" * 6_000
"""Of this length, three in a list are kept apart from the page of their key."""
LATER = Windowing(GlobalWindows(), Repeatedly(AfterProcessingTime(10)), AccumulationMode.DISCARDING)


@dataclass(frozen=True)
class Place:
    """A key of a class of the user's."""

    name: str


def signature(two_levels: bool = True) -> dict[str, Any]:
    """That of the pipeline whose state is made below."""
    pipeline = beam.Pipeline()
    clicks = pipeline | "Clicks" >> TestStream().add_elements([("ann", 1)]).advance_watermark_to_infinity()
    counts = clicks | beam.WindowInto(FixedWindows(60), TWICE, AccumulationMode.ACCUMULATING)
    last = counts | "Count" >> beam.CombinePerKey(CountCombineFn())
    if two_levels:
        later = last | "Later" >> beam.WindowInto(GlobalWindows(), LATER.triggerfn, LATER.accumulation_mode)
        last = later | "Group" >> beam.GroupByKey()
    _ = last | "Show" >> beam.Map(print)
    return signature_of(levels(optimise(pipeline.to_graph()), "streaming"), 2)


def keeper(groupings: dict[str, tuple[Windowing, Any, list[tuple[Any, Any, int]]]]) -> StatefulProcessor:
    """An operator that gives the elements of one micro-batch to machines, and keeps what these keep.

    It is made in a function, so that workers get it with its code.
    """

    class Store:
        def __init__(self, pages: Any, label: str) -> None:
            self.pages = pages
            self.label = label

        def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
            raise NotImplementedError

        def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
            for number, page in items:
                self.pages.updateValue((self.label, number), (page,))

    class Keeper(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.pages = handle.getMapState("pages", "grouping string, page long", "page binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timers: Any) -> Iterator[Any]:
            given = list(rows)
            for label, (windowing, combine, elements) in groupings.items():
                machine = GroupingMachine(windowing, combine)
                table = KeyTable(machine, KeyPages(Store(self.pages, label), PageNotes(), 1))
                for one, value, seconds in elements:
                    [name] = encode_keys([one])
                    micros = seconds * SECOND
                    element = Element(value, micros, machine.assign(micros, (one, value)))
                    table.element(name, one, element, Times(MIN_MICROS, micros))
                table.save()
            yield from given

        def close(self) -> None:
            pass

    return Keeper()


def run(spark: Any, checkpoint: Checkpoint, *operators: StatefulProcessor) -> None:
    """One micro-batch of a query with some operators in a row."""
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    conf = {"spark.sql.streaming.stateStore.providerClass": store, "spark.sql.shuffle.partitions": "2"}
    session = backend_of(spark).clone(conf)
    heartbeat = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    frame = heartbeat.selectExpr("cast(value as int) as shard")
    for operator in operators:
        frame = transform_with_state(frame.groupBy("shard"), operator, "shard int")
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint.spark_location)
    query = writer.trigger(processingTime="1 hour").start()
    try:
        while query.lastProgress is None and query.isActive:
            query.awaitTermination(0.05)
        assert query.exception() is None
    finally:
        query.stop()


@pytest.fixture(scope="module")
def location(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint with two levels of state, one of a grouping that is no longer there."""
    folder = tmp_path_factory.mktemp("state") / "of-clicks"
    checkpoint = open_checkpoint(spark, folder, signature())
    clicks = [("ann", 1, 5), ("ann", 1, 65), ("ann", 1, 70), ("bob", 1, 6), (Place("Ulm"), 1, 7)]
    counted = {"Count": (MINUTES, CountCombineFn(), clicks), "Gone": (MINUTES, None, clicks)}
    grouped: list[Any] = [(("ann", 1), "x", 5), *((("bob", 1), LONG, 5) for _ in range(3))]
    run(spark, checkpoint, keeper(counted), keeper({"Group": (LATER, None, grouped)}))
    return str(folder)


@pytest.mark.every_spark
def test_the_state_is_a_table(spark: Any, location: str) -> None:
    table = read_state(location, spark)
    moments = [name for name, kind in table.dtypes if kind == "timestamp"]
    seconds = table.withColumns({name: F.unix_micros(name) / SECOND for name in moments})
    rows = {(row.level, row.grouping, row.key, row.window_start): row for row in seconds.collect()}
    assert {key: (row.window_end, row.value, row.new_elements, row.panes) for key, row in rows.items()} == {
        (1, "Count", "'ann'", 0): (60, "1", 1, 0),
        (1, "Count", "'ann'", 60): (120, "2", 0, 1),
        (1, "Count", "'bob'", 0): (60, "1", 1, 0),
        (1, "Count", "Place(name='Ulm')", 0): (60, "1", 1, 0),
        (2, "Group", "('ann', 1)", None): (None, "['x']", 1, 0),
        (2, "Group", "('bob', 1)", None): (None, repr([LONG] * 3), 3, 0),
    }
    # Nothing is new in the second minute, so that nothing is held back. The end of the global window is not a date.
    assert {key[2:]: (row.hold, row.next_alarm, row.next_clock_alarm) for key, row in rows.items()} == {
        ("'ann'", 0): (59.999999, 60, None),
        ("'ann'", 60): (None, 120, None),
        ("'bob'", 0): (59.999999, 60, None),
        ("Place(name='Ulm')", 0): (59.999999, 60, None),
        ("('ann', 1)", None): (None, None, 15),
        ("('bob', 1)", None): (None, None, 15),
    }
    # It is a frame like any other, and what Python makes of its moments are dates.
    assert table.groupBy("grouping").count().orderBy("grouping").collect() == [("Count", 4), ("Group", 2)]
    assert {type(row.window_end) for row in table.where("level = 1").collect()} == {datetime}


def test_the_state_is_rows_with_the_objects_themselves(spark: Any, location: str) -> None:
    rows = sorted(state_rows(location, spark), key=lambda row: (row.level, str(row.key), row.window))
    assert [(row.key, row.window, row.value) for row in rows] == [
        (Place("Ulm"), IntervalWindow(0, 60), 1),
        ("ann", IntervalWindow(0, 60), 1),
        ("ann", IntervalWindow(60, 120), 2),
        ("bob", IntervalWindow(0, 60), 1),
        (("ann", 1), GlobalWindow(), ["x"]),
        (("bob", 1), GlobalWindow(), [LONG] * 3),
    ]
    assert [row.next_clock_alarm for row in rows] == [None] * 4 + [Timestamp(15)] * 2


def test_a_checkpoint_that_nothing_has_run_with_has_no_state(spark: Any, tmp_path: Path) -> None:
    open_checkpoint(spark, tmp_path / "new", signature())
    table = read_state(f"file://{tmp_path}/new", spark)
    assert table.collect() == []
    assert table.columns[:3] == ["level", "grouping", "key"]
    assert list(state_rows(tmp_path / "new", spark)) == []


@pytest.mark.parametrize("read", [read_state, lambda *arguments: list(state_rows(*arguments))])
def test_what_is_no_checkpoint_has_no_state(spark: Any, tmp_path: Path, read: Callable[..., Any]) -> None:
    with pytest.raises(
        ValueError, match=r"it holds nothing\n  in file:.*\n  hint: name the checkpoint_location of a stream"
    ):
        read(tmp_path / "absent", spark)
    assert not (tmp_path / "absent").exists()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        read(tmp_path / "file", spark)
    with pytest.raises(ValueError, match="Spark cannot access the folder nowhere://x"):
        read("nowhere://x", spark)
    (tmp_path / "plan-1.json").write_text('{"format": 2, "penstock": "9.0"}')
    with pytest.raises(ValueError, match=r"penstock 9\.0 wrote the plan of a checkpoint"):
        read(tmp_path, spark)


def finish_one(folder: Path) -> None:
    """Notes that a micro-batch is finished, as Spark does, with the state of both shards of one level."""
    for shard in ("0", "1"):
        state = folder / "spark" / "state" / "0" / shard
        state.mkdir(parents=True)
        (state / "1.changelog").touch()
    for name, content in (("offsets", "v1\n{}\n-\n-"), ("commits", "v1\n{}")):
        (folder / "spark" / name).mkdir()
        (folder / "spark" / name / "0").write_text(content)


def test_a_folder_that_spark_cannot_read_state_in_is_refused(spark: Any, tmp_path: Path) -> None:
    open_checkpoint(spark, tmp_path / "50% done", signature())
    finish_one(tmp_path / "50% done")
    with pytest.raises(ValueError, match="Spark cannot read state from a folder with spaces"):
        read_state(tmp_path / "50% done", spark)


def test_a_checkpoint_is_opened_changed_and_refused_on_disk(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "some checkpoint"
    made = open_checkpoint(spark, folder, signature(two_levels=False))
    assert made.is_new
    assert made.spark_location == f"file://{folder}/spark"
    (folder / "inputs-0" / "Clicks").mkdir()
    assert open_checkpoint(spark, folder, signature(two_levels=False)).is_new
    assert list((folder / "inputs-0").iterdir()) == []
    finish_one(folder)
    changed = signature(two_levels=False) | {"steps": ["another"]}
    assert not open_checkpoint(spark, f"file://{folder}", changed).is_new
    with pytest.raises(
        ValueError, match=r"the pipeline has a different mode\n    - streaming\n    \+ micro_batch"
    ):
        open_checkpoint(spark, folder, changed | {"mode": "micro_batch"})
    (folder / "spark" / "state" / "0" / "1" / "1.changelog").unlink()
    with pytest.raises(
        ValueError, match=r"Spark's file state/0/1/1\.changelog cannot be read \(it is missing\)"
    ):
        open_checkpoint(spark, folder, changed)
    # Nothing hidden is left behind, and no checksums.
    assert sorted(path.name for path in folder.iterdir()) == [
        *("control", "inputs-0", "plan-2.json", "plan-3.json", "spark"),
    ]
    assert json.loads((folder / "plan-3.json").read_text())["steps"] == ["another"]


def test_spark_reads_commands_in_order(spark: Any, tmp_path: Path) -> None:
    open_checkpoint(spark, tmp_path, signature())
    checkpoint = find_checkpoint(spark, tmp_path)
    for number in range(3):
        checkpoint.command("signal", f"number {number}")
    checkpoint.command("drain")
    frame = spark.read.text(checkpoint.control_location).selectExpr("value", "_metadata.file_name as name")
    lines = [json.loads(row.value) for row in frame.orderBy("name").collect()]
    assert [line["name"] for line in lines] == ["number 0", "number 1", "number 2", None]
    assert [line["command"] for line in lines] == ["signal"] * 3 + ["drain"]
    assert not list(Path(checkpoint.control_location.removeprefix("file:")).glob(".*"))
