"""Delta tables without Java: what deltalake reads of them, and what a table cannot take."""

from __future__ import annotations

import datetime
import decimal
import errno
import importlib
import json
import random
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.delta import ReadChangesFromDelta, ReadFromDelta, TablePlace, WriteToDelta
from penstock.relations.upserts import Upsert, Upserts
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import IntervalWindow
from penstock_connectors.delta.table import translate_errors
from tests.connectors.killed import micro_batches, started, wait_until
from tests.connectors.s3_server import options_of, s3_server
from tests.connectors.scores import FILES, Score, expected_of, pipeline_of, put, scores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake", reason="needs the package deltalake")

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("delta_program.py")


SCORES = [Score("a", 1), Score("b", 2), Score("a", 3)]


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows that deltalake reads, sorted."""
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist(), key=repr)


def write(values: list[Any], path: Path | str, element_type: Any = Score, **arguments: Any) -> None:
    with beam.Pipeline() as pipeline:
        given = pipeline | beam.Create(values).with_output_types(element_type)
        _ = given | WriteToDelta(path, **arguments)


def version(path: Path) -> int:
    return int(deltalake.DeltaTable(str(path)).version())


def as_dicts(scores: list[Score]) -> list[dict[str, Any]]:
    return sorted((score._asdict() for score in scores), key=repr)


# What goes wrong.


def test_a_path_without_a_table_and_versions_and_columns_that_it_lacks_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "table"
    deltalake.write_deltalake(str(table), pa.table({"a": [1]}))
    cases: list[tuple[ReadFromDelta, type[Exception], str]] = [
        (ReadFromDelta(tmp_path / "none"), FileNotFoundError, "there is no Delta table at"),
        (ReadFromDelta(tmp_path), FileNotFoundError, "there is no Delta table at"),
        (ReadFromDelta(table, version=7), ValueError, "has no version 7: the newest is 0"),
        (ReadFromDelta(table, columns=["a", "z"]), ValueError, "has no columns z"),
    ]
    for read, kind, words in cases:
        pipeline = beam.Pipeline()
        _ = pipeline | "ReadIt" >> read | beam.Map(print)
        with pytest.raises(kind, match=words) as caught:
            pipeline.run()
        assert "ReadIt" in str(caught.value)
        assert "hint: " in str(caught.value)


class TooWide(NamedTuple):
    team: str
    number: int
    bonus: int


class OtherType(NamedTuple):
    team: str
    number: str


class NoTeam(NamedTuple):
    number: int


@pytest.mark.parametrize(
    ("element_type", "words"),
    [
        (TooWide, "has no column bonus"),
        (OtherType, "the column number .* has the type int64, not string"),
        (NoTeam, "the elements have no field team, which the table"),
    ],
)
def test_elements_that_do_not_fit_the_table_are_refused_before_anything_runs(
    element_type: Any, words: str, tmp_path: Path
) -> None:
    write(SCORES, tmp_path)
    started: list[Any] = []
    pipeline = beam.Pipeline()
    seen = pipeline | beam.Create([1]) | beam.Map(started.append).with_output_types(element_type)
    _ = seen | WriteToDelta(tmp_path)
    with pytest.raises(ValueError, match=words):
        pipeline.run()
    assert version(tmp_path) == 0


def test_a_value_that_does_not_fit_a_column_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    columns = pa.schema([("team", pa.string()), ("number", pa.int32())])
    deltalake.DeltaTable.create(str(tmp_path), columns)
    with pytest.raises(TypeError, match="a value of the field number does not fit the type int32") as caught:
        write([Score("a", 1), Score("b", 1 << 40)], tmp_path)
    assert str(1 << 40) not in str(caught.value)
    write([Score("a", 1)], tmp_path)
    assert rows(tmp_path) == [{"team": "a", "number": 1}]


def test_the_mode_says_what_happens_to_a_table(tmp_path: Path) -> None:
    write(SCORES, tmp_path, mode="error")
    with pytest.raises(FileExistsError, match="a Delta table already exists at"):
        write(SCORES, tmp_path, mode="error")
    write([Score("c", 9)], tmp_path)
    assert rows(tmp_path) == as_dicts([*SCORES, Score("c", 9)])
    write([Score("d", 4)], tmp_path, mode="overwrite")
    assert rows(tmp_path) == as_dicts([Score("d", 4)])
    write([], tmp_path)
    assert version(tmp_path) == 2, "nothing to add makes no commit"
    write([], tmp_path, mode="overwrite")
    assert rows(tmp_path) == []


def test_a_run_that_fails_adds_nothing(tmp_path: Path) -> None:
    write(SCORES, tmp_path)
    pipeline = beam.Pipeline()
    divided = beam.Map(lambda n: Score("a", 1 // n)).with_output_types(Score)
    _ = pipeline | beam.Create([1, 0]) | divided | WriteToDelta(tmp_path)
    with pytest.raises(ZeroDivisionError):
        pipeline.run()
    assert rows(tmp_path) == as_dicts(SCORES)


def test_tables_with_rules_that_files_of_tasks_might_break_are_refused(tmp_path: Path) -> None:
    write(SCORES, tmp_path)
    deltalake.DeltaTable(str(tmp_path)).alter.add_constraint({"positive": "number > 0"})
    with pytest.raises(UnsupportedByRunner, match="has constraints"):
        write([Score("a", -1)], tmp_path)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_rule_that_a_table_gets_while_a_pipeline_runs_is_not_broken(tmp_path: Path, mode: str) -> None:
    table = tmp_path / "table"
    write(SCORES, table)

    def with_rule(number: int) -> Score:
        deltalake.DeltaTable(str(table)).alter.add_constraint({"small": "number < 3"})
        return Score("z", number)

    deltalake.DeltaTable(str(table)).delete("number >= 3")
    pipeline = beam.Pipeline(mode=mode)
    later = beam.Map(with_rule).with_output_types(Score)
    _ = pipeline | beam.Create([9]) | later | "Add" >> WriteToDelta(table)
    with pytest.raises(UnsupportedByRunner, match=r"has constraints\n.*'Add'.*\n  hint: write to a table"):
        pipeline.run().wait_until_finish()
    assert rows(table) == as_dicts(SCORES[:2])


def test_secrets_of_the_store_are_never_shown(tmp_path: Path) -> None:
    options = {
        "aws_secret_access_key": "hush-hush",
        "aws_endpoint_url": "http://127.0.0.1:9",
        "aws_region": "x",
    }
    options |= {"aws_access_key_id": "whoami", "timeout": "1s", "max_retries": "0", "aws_allow_http": "true"}
    pipeline = beam.Pipeline()
    sink = WriteToDelta("s3://me:pass@lake/scores", storage_options=options)
    read = ReadFromDelta("s3://me:pass@lake/scores", storage_options=options)
    shown = [repr(sink.sink), sink.sink.describe(), repr(read.source), read.source.describe(), repr(sink)]
    _ = pipeline | beam.Create(SCORES).with_output_types(Score) | sink
    with pytest.raises(RuntimeError, match="the Delta table s3://lake/scores cannot be opened") as caught:
        pipeline.run()
    for text in [*shown, str(caught.value)]:
        assert not any(secret in text for secret in ("hush-hush", "whoami", "me:pass"))


@pytest.mark.parametrize("arrow", ["↳", "\x1b[31m↳\x1b[0m"])
def test_the_last_cause_of_an_error_of_the_package_says_what_has_happened(tmp_path: Path, arrow: str) -> None:
    def tell(cause: str) -> None:
        with translate_errors(TablePlace(str(tmp_path)), "rejects the commit", "at step 'Write' (game.py:9)"):
            first = f"Generic LocalFileSystem error\n    {arrow} Unable to copy data to file\n"
            raise OSError(f"{first}     {arrow} {cause}\n")

    denied = "error: Unable to copy data to file: Permission denied"
    with pytest.raises(
        RuntimeError, match=rf"the commit: Generic LocalFileSystem {denied} \(os error 13\)\n"
    ):
        tell("Permission denied (os error 13)")
    with pytest.raises(OSError, match="No space left on device") as caught:
        tell("No space left on device (os error 28)")
    assert caught.value.errno == errno.ENOSPC


def test_arguments_that_do_not_fit_together_are_refused_when_the_transform_is_made() -> None:
    for make, words in [
        (lambda: ReadFromDelta("/t", version=1, timestamp="2026-01-01"), "both version and timestamp"),
        (lambda: ReadFromDelta("/t", version=-1), "a number from 0"),
        (lambda: ReadFromDelta("/t", timestamp="yesterday"), "must be a datetime"),
        (lambda: ReadFromDelta("/t", version=1).as_stream(starting_version=1), "both version and starting_v"),
        (lambda: ReadFromDelta("/t").as_stream(starting_version="first"), "a number from 0"),
        (lambda: ReadChangesFromDelta("/t", ending_version=1), "needs a starting_version"),
        (lambda: ReadChangesFromDelta("/t", 1, 2).as_stream(), "a stream of changes does not end"),
        (lambda: WriteToDelta("/t", mode="ignore"), "is not a mode"),
        (lambda: WriteToDelta("/t", mode="overwrite", key="a"), "but the mode is"),
        (lambda: WriteToDelta("/t", value="a"), "but there is no key"),
        (lambda: WriteToDelta("/t", key=()), "each once"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(TypeError, match="storage_options must have strings"):
        WriteToDelta("/t", storage_options={"timeout": 5})  # type: ignore[dict-item]


# What goes right.


class Inner(NamedTuple):
    x: int
    y: str | None


class Everything(NamedTuple):
    number: int | None
    real: float | None
    text: str | None
    raw: bytes | None
    truth: bool | None
    price: decimal.Decimal | None
    day: datetime.date | None
    at: datetime.datetime | None
    inner: Inner | None
    items: list[int] | None
    table: dict[str, int] | None


FULL = Everything(
    *(
        -(1 << 63),
        0.1,
        "ä'\"",
        b"\x00\xff",
        False,
        decimal.Decimal("12345678901234567890.000000000000000001"),
    ),
    datetime.date(1, 1, 1),
    datetime.datetime(2026, 5, 1, 12, 0, 0, 123456, datetime.UTC),
    Inner(1, None),
    [1, 2],
    {"k": 1},
)
NOTHING = Everything(*(None,) * 11)


def test_values_of_all_types_come_back_as_they_were(tmp_path: Path) -> None:
    write([FULL, NOTHING], tmp_path, Everything)
    expected = [{**FULL._asdict(), "inner": {"x": 1, "y": None}}, NOTHING._asdict()]
    own = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert sorted(({**row, "table": row["table"] and dict(row["table"])} for row in own), key=repr) == sorted(
        expected, key=repr
    )
    with beam.Pipeline() as pipeline:
        read = pipeline | ReadFromDelta(tmp_path)
        # As in Parquet files, pyarrow's form of a map is a list of pairs.
        plain = read | beam.Map(lambda row: {**row, "table": row["table"] and dict(row["table"])})
        assert_that(plain, equal_to(expected))


def test_old_versions_and_some_columns_are_read(tmp_path: Path) -> None:
    write(SCORES[:1], tmp_path, partition_by="team")
    before = datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=5)
    while datetime.datetime.now(datetime.UTC) < before + datetime.timedelta(milliseconds=20):
        pass
    write(SCORES[1:], tmp_path)
    with beam.Pipeline() as pipeline:
        now = pipeline | "Now" >> ReadFromDelta(tmp_path)
        old = pipeline | "Old" >> ReadFromDelta(tmp_path, version=0)
        then = pipeline | "Then" >> ReadFromDelta(tmp_path, timestamp=before)
        teams = pipeline | "Teams" >> ReadFromDelta(tmp_path, columns=["team"], as_rows=True)
        assert_that(now, equal_to([score._asdict() for score in SCORES]), label="now")
        assert_that(old, equal_to([SCORES[0]._asdict()]), label="old")
        assert_that(then, equal_to([SCORES[0]._asdict()]), label="then")
        assert_that(teams | beam.Map(lambda row: row.team), equal_to(["a", "b", "a"]), label="teams")


class Sale(NamedTuple):
    shop: str | None
    day: datetime.date
    amount: int


def test_partitions_are_what_deltalake_and_penstock_read(tmp_path: Path) -> None:
    days = [datetime.date(2026, 1, day) for day in (1, 2)]
    sales = [Sale(shop, day, n) for n, shop in enumerate(["a b", "ü/=%20", None]) for day in days]
    write(sales, tmp_path, Sale, partition_by=["shop", "day"])
    expected = sorted((sale._asdict() for sale in sales), key=repr)
    assert rows(tmp_path) == expected
    assert len(deltalake.DeltaTable(str(tmp_path)).file_uris()) >= 6
    table = deltalake.DeltaTable(str(tmp_path))
    assert table.to_pyarrow_table(filters=[("shop", "=", "a b")]).num_rows == 2
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | ReadFromDelta(tmp_path), equal_to(expected))
    with pytest.raises(ValueError, match="is partitioned by shop, day"):
        write(sales, tmp_path, Sale, partition_by="day")
    with pytest.raises(ValueError, match="an empty string"):
        write([Sale("", days[0], 1)], tmp_path, Sale)


def test_readers_skip_files_by_their_statistics(tmp_path: Path) -> None:
    write(
        [Score("a", 5), Score("a", 7)],
        tmp_path,
        schema=pa.schema([("team", pa.string()), ("number", pa.int64())]),
    )
    log = pa.table(deltalake.DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    assert sum(file["num_records"] for file in log) == 2
    assert {min(file["min.number"] for file in log), max(file["max.number"] for file in log)} == {5, 7}


# Changes by key.

TOTALS = pa.schema([pa.field("Team Name", pa.string(), False), ("points", pa.int64())])


def changes(upserts: list[Upsert], path: Path, **arguments: Any) -> None:
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(upserts, reshuffle=False) | WriteToDelta(path, **arguments)


def test_changes_are_merged_by_key(tmp_path: Path) -> None:
    by_name = {"key": "Team Name", "value": "points", "schema": TOTALS}
    with beam.Pipeline() as pipeline:
        totals = pipeline | beam.Create([("a", 1), ("b", 2), ("a", 3)]) | beam.CombinePerKey(sum)
        _ = totals | Upserts() | WriteToDelta(tmp_path, **by_name)
    assert rows(tmp_path) == [{"Team Name": "a", "points": 4}, {"Team Name": "b", "points": 2}]
    changes(
        [Upsert("a", None, True), Upsert("b", 5), Upsert("c", None), Upsert("d", None, True)],
        tmp_path,
        **by_name,
    )
    assert rows(tmp_path) == [{"Team Name": "b", "points": 5}, {"Team Name": "c", "points": None}]
    assert not list(tmp_path.glob("changes-*")), "they are deleted after the commit"


def test_keys_with_windows_and_values_with_fields_fill_columns(tmp_path: Path) -> None:
    instant = pa.timestamp("us", "UTC")
    schema = pa.schema(
        [("name", pa.string()), ("start", instant), ("end", instant), ("n", pa.int64()), ("z", pa.string())]
    )
    upsert = Upsert(("amy", IntervalWindow(0, 60)), beam.Row(n=3, z=None))
    changes(
        [upsert, upsert._replace(value=beam.Row(n=4, z="q"))],
        tmp_path,
        key=["name", "start", "end"],
        schema=schema,
    )
    [row] = rows(tmp_path)
    assert (row["name"], row["end"].timestamp(), row["n"], row["z"]) == ("amy", 60, 4, "q")


@pytest.mark.parametrize(
    ("upserts", "arguments", "words"),
    [
        ([Score("a", 1)], {}, "an element is a Score, not an Upsert"),
        ([Upsert(None, 1)], {}, "a value of the field Team Name is None, which its type does not allow"),
        ([Upsert(("a", "b"), 1)], {}, "has 2 parts"),
        ([Upsert("a", 1)], {"value": None}, "without named fields"),
        ([Upsert("a", {"points": 1, "more": 2})], {"value": None}, "has no column more"),
        ([Upsert("a", {"Team Name": "b", "points": 1})], {"value": None}, "has a different key"),
        ([Upsert("a", "many")], {}, "a value of the field points does not fit"),
        ([Upsert("a", 1)], {"schema": None}, "its columns are not declared"),
        ([Upsert("a", 1)], {"key": "name"}, "has no column name"),
    ],
)
def test_changes_that_do_not_fit_are_refused(
    upserts: list[Any], arguments: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        changes(upserts, tmp_path, **{"key": "Team Name", "value": "points", "schema": TOTALS, **arguments})


def test_changes_of_one_key_from_two_tasks_are_refused(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    upserts = pipeline | beam.Create([Upsert("a", n) for n in range(50)]) | beam.Reshuffle()
    _ = upserts | WriteToDelta(tmp_path, key="Team Name", value="points", schema=TOTALS)
    with pytest.raises(ValueError, match="two tasks have changes of the same key"):
        pipeline.run()


# A store.


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    """The options for a server of S3 that has the bucket ``lake``."""
    with s3_server() as address:
        yield options_of(address)


def test_a_table_on_s3_is_written_merged_and_read(bucket: dict[str, str]) -> None:
    path = "s3://lake/scores"
    write(SCORES[:2], path, partition_by="team", storage_options=bucket)
    with beam.Pipeline() as pipeline:
        upserts = pipeline | beam.Create([Upsert("a", 5), Upsert("c", 7)])
        _ = upserts | WriteToDelta(path, key="team", value="number", storage_options=bucket)
    expected = [{"team": "a", "number": 5}, {"team": "b", "number": 2}, {"team": "c", "number": 7}]
    own = deltalake.DeltaTable(path, storage_options=bucket).to_pyarrow_table().to_pylist()
    assert sorted(own, key=repr) == sorted(expected, key=repr)
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | ReadFromDelta(path, storage_options=bucket), equal_to(expected))


# Streams.


def stream(source: Path, table: Path, checkpoint: Path, **arguments: Any) -> None:
    with pipeline_of(checkpoint) as pipeline:
        _ = scores_of(pipeline, source) | WriteToDelta(table, **arguments)


def test_a_stream_writes_each_micro_batch_once_and_empty_ones_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.delta import writer
    from penstock_spark.sinks.plan import MicroBatch

    source, table = tmp_path / "in", tmp_path / "table"
    source.mkdir()
    for number in range(FILES):
        put(source, number)
    calls: list[tuple[Any, Any]] = []
    call = writer._Commit.__call__

    def twice(self: Any, frame: Any, batch: MicroBatch) -> list[Any]:
        call(self, frame, batch)
        calls.append((self, batch))
        before = version(table)
        result = call(self, frame, batch)
        assert version(table) == before
        return result

    monkeypatch.setattr(writer._Commit, "__call__", twice)
    stream(source, table, tmp_path / "checkpoint")
    assert rows(table) == expected_of("append")
    assert version(table) == FILES - 1, "one commit makes the table, and four have rows"
    named = {Path(path).name for path in deltalake.DeltaTable(str(table)).file_uris()}
    assert {path.name for path in table.glob("*.parquet")} == named, "files of second tries are deleted"
    with pytest.raises(FileExistsError, match="a Delta table already exists"):
        stream(source, table, tmp_path / "other", mode="error")
    stream(source, table, tmp_path / "third", mode="overwrite")
    assert rows(table) == expected_of("append")


def test_a_second_driver_of_a_stream_cannot_commit_the_same_micro_batch(tmp_path: Path) -> None:
    from penstock_connectors.delta import writer

    write(SCORES, tmp_path)
    properties = writer._properties("a stream", 4, "")
    first, second = (deltalake.DeltaTable(str(tmp_path)) for _ in range(2))
    columns = pa.schema(first.schema().to_arrow())
    first.create_write_transaction([], "append", columns, commit_properties=properties)
    with pytest.raises(deltalake.exceptions.CommitFailedError, match="Concurrent transaction"):
        second.create_write_transaction([], "append", columns, commit_properties=properties)
    other = writer._properties("another stream", 4, "")
    second.create_write_transaction([], "append", columns, commit_properties=other)
    assert deltalake.DeltaTable(str(tmp_path)).transaction_version(writer.app_of("a stream")) == 4


def test_a_micro_batch_goes_on_when_others_commit_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.delta import writer

    source, table = tmp_path / "in", tmp_path / "table"
    source.mkdir()
    put(source, 0)
    add = writer._Commit._add
    others = iter(["mine", "foreign"])

    def late(self: Any, found: Any, written: Any, batch: Any, properties: Any) -> None:
        match next(others, None):
            case "mine":
                # Another driver of the same stream has been faster with the same micro-batch.
                add(self, deltalake.DeltaTable(str(table)), written, batch, properties)
            case "foreign":
                deltalake.write_deltalake(str(table), pa.table({"team": ["z"], "number": [1]}), mode="append")
        add(self, found, written, batch, properties)

    monkeypatch.setattr(writer._Commit, "_add", late)
    stream(source, table, tmp_path / "checkpoint")
    mine = sorted(({"team": "abc"[row % 3], "number": row} for row in range(20)), key=repr)
    assert rows(table) == mine
    stream(source, table, tmp_path / "another")
    assert len(rows(table)) == 41


def test_a_table_that_goes_away_or_changes_stops_the_stream(tmp_path: Path) -> None:
    from penstock_connectors.delta import writer

    source, table = tmp_path / "in", tmp_path / "table"
    source.mkdir()
    put(source, 0)
    stream(source, table, tmp_path / "checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        # The stream has its old name, but a new checkpoint.
        patch.setattr(writer, "app_of", lambda stream: "fixed")
        stream(source, table, tmp_path / "one")
        with pytest.raises(ValueError, match="whose checkpoint is gone"):
            stream(source, table, tmp_path / "two")
    put(source, 1)
    (table / "_delta_log").rename(tmp_path / "log")
    with pytest.raises(Exception, match="there is no Delta table"):
        stream(source, table, tmp_path / "checkpoint")
    columns = pa.schema([pa.field("team", pa.string(), False), pa.field("number", pa.int64(), False)])
    deltalake.DeltaTable.create(str(table), deltalake.Schema.from_arrow(columns))
    with pytest.raises(LookupError, match="does not know this stream: it was deleted and created again"):
        stream(source, table, tmp_path / "checkpoint")
    assert rows(table) == []


def test_a_table_that_was_there_knows_a_stream_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.delta import writer
    from penstock_connectors.delta.table import find_table

    columns = pa.schema([("team", pa.string()), ("number", pa.int64())])
    deltalake.write_deltalake(str(tmp_path), pa.table({"team": ["z"], "number": [1]}))
    sink: Any = WriteToDelta(tmp_path, schema=columns).sink
    no_spark: Any = None
    begin = partial(writer.prepare_delta, sink, no_spark, "", "a stream")
    others = iter([1])

    def late(place: Any, where: str) -> Any:
        found = find_table(place, where)
        if next(others, None):
            # Another driver of the stream does the same.
            begin()
        return found

    monkeypatch.setattr("penstock_connectors.delta.writer.find_table", late)
    begin()
    assert deltalake.DeltaTable(str(tmp_path)).transaction_version(writer.app_of("a stream")) == -1
    assert rows(tmp_path) == [{"team": "z", "number": 1}]
    before = version(tmp_path)
    begin()
    assert version(tmp_path) == before


def logged_rows(table: Path) -> list[dict[str, Any]]:
    """The rows of a table by the protocol of Delta, found without any package for Delta."""
    files: dict[str, dict[str, str]] = {}
    for log in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for removed in (action["remove"] for action in actions if "remove" in action):
            del files[unquote(removed["path"])]
        for added in (action["add"] for action in actions if "add" in action):
            files[unquote(added["path"])] = added["partitionValues"]
    read = ((parts, pq.ParquetFile(table / path).read().to_pylist()) for path, parts in files.items())
    return sorted(({**parts, **row} for parts, found in read for row in found), key=repr)


@pytest.mark.soak
@pytest.mark.parametrize(("how", "kills"), [("append", 30), ("merge", 30)])
def test_a_killed_stream_leaves_each_element_once(
    how: str, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill is in every run, in test_killed_lakes.py.

    A third of the kills come just before a commit, a third just after one, and the others at any time.
    """
    source, table, checkpoint, log = (tmp_path / name for name in ("in", "table", "checkpoint", "log"))
    source.mkdir()
    # A kill costs three micro-batches at most, and the last run also needs some.
    files = 3 * kills + 3
    for number in range(files):
        put(source, number)
    chance = random.Random(f"{how} {kills}")
    moments = [("before", "after", "")[number % 3] for number in range(kills)]
    chance.shuffle(moments)
    arguments = how, str(source), str(table), str(checkpoint)
    for moment in moments:
        begun = micro_batches(checkpoint)
        at_commit = [moment, str(chance.choice([0, 1]))] if moment else []
        with started(PROGRAM, *arguments, *at_commit, log=log) as process:
            if moment:
                assert process.wait(240) == -signal.SIGKILL, log.read_text()[-5000:]
            else:
                wait_until(lambda before=begun: micro_batches(checkpoint) > before, process, log)
                time.sleep(chance.uniform(0, 1))
                assert process.poll() is None, log.read_text()[-5000:]
    # The last run saves a start of Spark.
    importlib.import_module("tests.connectors.delta_program").build(*arguments).run().wait_until_finish()
    assert rows(table) == expected_of(how, files)
    assert logged_rows(table) == expected_of(how, files)
