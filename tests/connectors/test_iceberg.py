"""Iceberg tables without Java: what pyiceberg reads of them, and what a table cannot take."""

from __future__ import annotations

import datetime
import decimal
import importlib
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.iceberg import ReadFromIceberg, WriteToIceberg
from penstock.relations.upserts import Upsert, Upserts
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import IntervalWindow

pytest.importorskip("pyiceberg", reason="needs the package pyiceberg")
pytest.importorskip("sqlalchemy", reason="needs the package sqlalchemy")

from tests.connectors.iceberg_tables import TABLE, make_namespace, properties, rows_of, table_of
from tests.connectors.s3_server import s3_server
from tests.connectors.scores import FILES, expected_of, pipeline_of, put, scores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("iceberg_program.py")
SOAK_SEEDS = 10
KILLS_A_SEED = 3


class Score(NamedTuple):
    team: str
    number: int | None


SCORES = [Score("a", 1), Score("b", 2), Score("a", 3)]


@pytest.fixture(scope="module", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Every pipeline of this file runs in the one session."""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder of a catalog with an empty namespace."""
    make_namespace(tmp_path / "lake")
    return tmp_path / "lake"


def write(values: list[Any], lake: Path, element_type: Any = Score, **arguments: Any) -> None:
    with beam.Pipeline() as pipeline:
        given = pipeline | beam.Create(values).with_output_types(element_type)
        _ = given | WriteToIceberg(TABLE, properties(lake), **arguments)


def as_dicts(scores: list[Score]) -> list[dict[str, Any]]:
    return sorted((score._asdict() for score in scores), key=repr)


def snapshots(lake: Path) -> int:
    return len(table_of(lake).snapshots())


# What goes wrong.


def test_tables_snapshots_columns_and_filters_that_are_not_there_are_refused(lake: Path) -> None:
    write(SCORES, lake)
    catalog = properties(lake)
    cases: list[tuple[ReadFromIceberg, type[Exception], str]] = [
        (ReadFromIceberg("lake.none", catalog), LookupError, "there is no Iceberg table lake.none"),
        (ReadFromIceberg("sea.scores", catalog), LookupError, "there is no Iceberg table sea.scores"),
        (ReadFromIceberg(TABLE, catalog, snapshot_id=7), ValueError, "has no snapshot 7"),
        (ReadFromIceberg(TABLE, catalog, as_of="2020-01-01"), ValueError, "has no snapshot of 2020"),
        (ReadFromIceberg(TABLE, catalog, columns=["team", "z"]), ValueError, "has no columns z"),
        (ReadFromIceberg(TABLE, catalog, filter="z > 3"), ValueError, "the filter 'z > 3' does not fit"),
        (ReadFromIceberg(TABLE, catalog, filter="number >"), ValueError, "the filter 'number >' does not"),
        (ReadFromIceberg(TABLE, {"type": "nonsense"}), RuntimeError, "its catalog does not answer"),
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


class Grown(NamedTuple):
    team: str
    points: int
    bonus: int


class Tagged(NamedTuple):
    team: str
    number: int
    tags: list[str]


class OtherType(NamedTuple):
    team: str
    number: str


class NoTeam(NamedTuple):
    number: int


class Odd(NamedTuple):
    waited: datetime.timedelta


def test_elements_that_do_not_fit_the_table_are_refused_before_anything_runs(lake: Path) -> None:
    write(SCORES, lake)
    for element_type, table, words in [
        (TooWide, TABLE, "has no column bonus"),
        (OtherType, TABLE, "the column number .* has the type int64, not string"),
        (NoTeam, TABLE, "the elements have no field team, which the table"),
        (Odd, "lake.other", "Iceberg has no type for the column waited"),
        (Score, "sea.scores", "has no namespace for the table sea.scores"),
    ]:
        started: list[Any] = []
        pipeline = beam.Pipeline()
        seen = pipeline | beam.Create([1]) | beam.Map(started.append).with_output_types(element_type)
        _ = seen | WriteToIceberg(table, properties(lake))
        with pytest.raises((ValueError, LookupError), match=words):
            pipeline.run()
    assert snapshots(lake) == 1


def test_a_value_that_does_not_fit_and_a_run_that_fails_leave_the_table_as_it_was(lake: Path) -> None:
    columns = pa.schema([("team", pa.string()), ("number", pa.int32())])
    write([], lake, schema=columns)
    assert rows_of(lake) == []
    with pytest.raises(TypeError, match="a value of the field number does not fit the type int32") as caught:
        write([Score("a", 1), Score("b", 1 << 40)], lake)
    assert str(1 << 40) not in str(caught.value)
    pipeline = beam.Pipeline()
    divided = beam.Map(lambda n: Score("a", 1 // n)).with_output_types(Score)
    _ = pipeline | beam.Create([1, 0]) | divided | WriteToIceberg(TABLE, properties(lake))
    with pytest.raises(ZeroDivisionError):
        pipeline.run()
    write([], lake)
    assert snapshots(lake) == 0, "nothing to add makes no commit"
    write([Score("a", 1)], lake)
    assert rows_of(lake) == [{"team": "a", "number": 1}]


def test_a_run_that_fails_makes_no_table(lake: Path) -> None:
    from pyiceberg.exceptions import NoSuchTableError

    pipeline = beam.Pipeline()
    divided = beam.Map(lambda n: Score("a", 1 // n)).with_output_types(Score)
    _ = pipeline | beam.Create([0]) | divided | WriteToIceberg(TABLE, properties(lake))
    with pytest.raises(ZeroDivisionError):
        pipeline.run()
    with pytest.raises(NoSuchTableError):
        table_of(lake)


def test_secrets_of_the_catalog_are_never_shown() -> None:
    catalog = {
        "type": "rest",
        "uri": "http://me:pass@127.0.0.1:9/",
        "credential": "id:hush-hush",
        "s3.secret-access-key": "s3cr3t",
        "name": "prod",
    }
    sink, read = WriteToIceberg(TABLE, catalog), ReadFromIceberg(TABLE, catalog)
    shown = [repr(sink.sink), sink.sink.describe(), repr(read.source), read.source.describe(), repr(sink)]
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(SCORES).with_output_types(Score) | sink
    with pytest.raises(RuntimeError, match=r"the Iceberg table prod.lake.scores cannot be opened") as caught:
        pipeline.run()
    for text in [*shown, str(caught.value)]:
        assert not any(secret in text for secret in ("hush-hush", "me:pass", "s3cr3t"))


def test_arguments_that_do_not_fit_together_are_refused_when_the_transform_is_made() -> None:
    for make, words in [
        (lambda: ReadFromIceberg(TABLE, snapshot_id=1, as_of="2026-01-01"), "both snapshot_id and as_of"),
        (lambda: ReadFromIceberg(TABLE, snapshot_id=-1), "a number from 0"),
        (lambda: ReadFromIceberg(TABLE, as_of="yesterday"), "must be a datetime"),
        (lambda: ReadFromIceberg(TABLE).as_stream(), "cannot be read as a stream"),
        (lambda: ReadFromIceberg("scores"), "a name with its namespace"),
        (lambda: WriteToIceberg(TABLE, value="a"), "but there is no key"),
        (lambda: WriteToIceberg(TABLE, key=()), "each once"),
        (lambda: WriteToIceberg(TABLE, partition_by="minute(at)"), "minute is not a transform"),
        (lambda: WriteToIceberg(TABLE, partition_by="day[3](at)"), "day takes no number"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(TypeError, match="catalog must have strings"):
        WriteToIceberg(TABLE, {"timeout": 5})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="filter must be a string"):
        ReadFromIceberg(TABLE, filter=3)  # type: ignore[arg-type]


def test_formats_and_delete_files_that_pyiceberg_cannot_handle_are_refused(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(SCORES, lake)
    with monkeypatch.context() as patch:
        patch.setattr("pyiceberg.table.Table.format_version", 3)
        with pytest.raises(UnsupportedByRunner, match="has the format 3"):
            write(SCORES, lake)
    with table_of(lake).transaction() as transaction:
        transaction.set_properties({"write.format.default": "orc"})
    with pytest.raises(UnsupportedByRunner, match="needs files of orc"):
        write(SCORES, lake)

    def plan(*_: Any) -> Any:
        raise ValueError("PyIceberg does not yet support equality deletes: https://...")

    monkeypatch.setattr("pyiceberg.table.DataScan.plan_files", plan)
    pipeline = beam.Pipeline()
    _ = pipeline | ReadFromIceberg(TABLE, properties(lake)) | beam.Map(print)
    with pytest.raises(UnsupportedByRunner, match="delete files that name rows by values"):
        pipeline.run()


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
    clock: datetime.time | None
    at: datetime.datetime | None
    inner: Inner | None
    items: list[int] | None
    table: dict[str, int] | None


FULL = Everything(
    *(-(1 << 63), 0.1, "ä'\"", b"\x00\xff", False),
    decimal.Decimal("12345678901234567890.000000000000000001"),
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 999999),
    datetime.datetime(2026, 5, 1, 12, 0, 0, 123456, datetime.UTC),
    Inner(1, None),
    [1, 2],
    {"k": 1},
)
NOTHING = Everything(*(None,) * 12)


def test_values_of_all_types_come_back_as_they_were(lake: Path) -> None:
    write([FULL, NOTHING], lake, Everything)
    expected = [{**FULL._asdict(), "inner": {"x": 1, "y": None}}, NOTHING._asdict()]

    def plain(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "table": row["table"] and dict(row["table"])}

    assert sorted(map(plain, rows_of(lake)), key=repr) == sorted(expected, key=repr)
    with beam.Pipeline() as pipeline:
        read = pipeline | ReadFromIceberg(TABLE, properties(lake))
        assert_that(read | beam.Map(plain), equal_to(expected))


def test_old_snapshots_some_columns_and_some_rows_are_read_by_the_identifiers_of_columns(lake: Path) -> None:

    write(SCORES[:1], lake)
    first = table_of(lake).current_snapshot()
    write(SCORES[1:2], lake)
    with table_of(lake).update_schema() as update:
        update.rename_column("number", "points")
        update.add_column("bonus", __import__("pyiceberg.types").types.IntegerType())
    write([Grown("a", 3, 7)], lake, Grown)
    after = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, datetime.UTC)
    catalog = properties(lake)
    with beam.Pipeline() as pipeline:
        now = pipeline | "Now" >> ReadFromIceberg(TABLE, catalog)
        old = pipeline | "Old" >> ReadFromIceberg(TABLE, catalog, snapshot_id=first.snapshot_id)
        then = pipeline | "Then" >> ReadFromIceberg(TABLE, catalog, as_of=after)
        teams = pipeline | "Teams" >> ReadFromIceberg(TABLE, catalog, columns=["team"], as_rows=True)
        few = pipeline | "Few" >> ReadFromIceberg(TABLE, catalog, columns=["team"], filter="points >= 2")
        rows = [("a", 1, None), ("b", 2, None), ("a", 3, 7)]
        names = ("team", "points", "bonus")
        assert_that(now, equal_to([dict(zip(names, row, strict=True)) for row in rows]), label="now")
        assert_that(old, equal_to([SCORES[0]._asdict()]), label="old")
        assert_that(then, equal_to([SCORES[0]._asdict()]), label="then")
        assert_that(teams | beam.Map(lambda row: row.team), equal_to(["a", "b", "a"]), label="teams")
        assert_that(few, equal_to([{"team": "b"}, {"team": "a"}]), label="few")


def test_rows_that_delete_files_name_are_left_out(lake: Path) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    write([Score("a", number) for number in range(10)], lake, schema=None)
    table = table_of(lake)
    [task, *_] = sorted(table.scan().plan_files(), key=lambda task: -task.file.record_count)
    gone = table.scan().to_arrow().num_rows
    path = f"{table.location()}/data/deletes.parquet"
    positions = pa.table({"file_path": [task.file.file_path], "pos": pa.array([0], pa.int64())})
    pq.write_table(positions, path.removeprefix("file://"))
    from penstock_connectors.iceberg import scan

    plan = scan.plan_files

    def with_deletes(*arguments: Any) -> list[Any]:
        files = plan(*arguments)
        deletes = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES, file_path=path, file_format=FileFormat.PARQUET
        )
        for each in files:
            if each.file.file_path == task.file.file_path:
                each.delete_files = {deletes}
        return files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "plan_files", with_deletes)
        with beam.Pipeline() as pipeline:
            count = pipeline | ReadFromIceberg(TABLE, properties(lake)) | beam.combiners.Count.Globally()
            assert_that(count, equal_to([gone - 1]))


class Sale(NamedTuple):
    shop: str | None
    at: datetime.datetime
    amount: int


def test_partitions_are_what_pyiceberg_and_penstock_read(lake: Path) -> None:
    times = [datetime.datetime(2026, 1, day, 23, 59, tzinfo=datetime.UTC) for day in (1, 2)]
    sales = [Sale(shop, at, n) for n, shop in enumerate(["a b", "ü/=%20", None, ""]) for at in times]
    parts = ["shop", "day(at)", "bucket[2](amount)"]
    write(sales, lake, Sale, partition_by=parts)
    expected = sorted((sale._asdict() for sale in sales), key=repr)
    assert rows_of(lake) == expected
    table = table_of(lake)
    assert [str(field.transform) for field in table.spec().fields] == ["identity", "day", "bucket[2]"]
    planned = [*table.scan("shop = 'a b' and at < '2026-01-02T00:00:00+00:00'").plan_files()]
    assert sum(task.file.record_count for task in planned) == 1, "others are left out by their partition"
    write(sales[:1], lake, Sale)
    write(sales[:1], lake, Sale, partition_by=parts)
    with pytest.raises(ValueError, match=r"is partitioned by shop, day\(at\), bucket\[2\]\(amount\), but"):
        write(sales, lake, Sale, partition_by="shop")
    with beam.Pipeline() as pipeline:
        read = pipeline | ReadFromIceberg(TABLE, properties(lake))
        assert_that(read, equal_to([*expected, sales[0]._asdict(), sales[0]._asdict()]))


# Changes by key.

TOTALS = pa.schema([pa.field("Team Name", pa.string(), False), ("points", pa.int64())])


def changes(upserts: list[Upsert], lake: Path, **arguments: Any) -> None:
    with beam.Pipeline() as pipeline:
        given = pipeline | beam.Create(upserts, reshuffle=False)
        _ = given | WriteToIceberg(TABLE, properties(lake), **arguments)


def test_changes_are_merged_by_key_in_one_snapshot(lake: Path) -> None:
    by_name = {"key": "Team Name", "value": "points", "schema": TOTALS}
    with beam.Pipeline() as pipeline:
        totals = pipeline | beam.Create([("a", 1), ("b", 2), ("a", 3)]) | beam.CombinePerKey(sum)
        _ = totals | Upserts() | WriteToIceberg(TABLE, properties(lake), **by_name)
    assert rows_of(lake) == [{"Team Name": "a", "points": 4}, {"Team Name": "b", "points": 2}]
    changes(
        [Upsert("a", None, True), Upsert("b", 5), Upsert("c", None), Upsert("d", None, True)], lake, **by_name
    )
    assert rows_of(lake) == [{"Team Name": "b", "points": 5}, {"Team Name": "c", "points": None}]
    assert snapshots(lake) == 2
    changes([Upsert("z", None, True)], lake, **by_name)
    assert snapshots(lake) == 2, "nothing to change makes no commit"


def test_columns_beside_the_value_stay_and_many_keys_are_found_in_partitions(lake: Path) -> None:
    schema = pa.schema([("team", pa.string()), ("number", pa.int64()), ("tags", pa.list_(pa.string()))])
    tagged = [Tagged(f"t{n}", n, [str(n)]) for n in range(500)]
    write(tagged, lake, Tagged, partition_by="bucket[2](team)", schema=schema)
    upserts = [Upsert(f"t{n}", -n) for n in range(0, 600, 2)]
    changes(upserts, lake, key="team", value="number")
    odd = [each._asdict() for each in tagged if each.number % 2]
    even = [{"team": f"t{n}", "number": -n, "tags": [str(n)] if n < 500 else None} for n in range(0, 600, 2)]
    assert rows_of(lake) == sorted([*odd, *even], key=repr)


@pytest.mark.soak
def test_keys_with_windows_and_values_with_fields_fill_columns(lake: Path) -> None:
    instant = pa.timestamp("us", "UTC")
    schema = pa.schema(
        [("name", pa.string()), ("start", instant), ("end", instant), ("n", pa.int64()), ("z", pa.string())]
    )
    upsert = Upsert(("amy", IntervalWindow(0, 60)), beam.Row(n=3, z=None))
    key = ["name", "start", "end"]
    changes([upsert], lake, key=key, schema=schema)
    changes([upsert._replace(value=beam.Row(n=4, z="q"))], lake, key=key)
    [row] = rows_of(lake)
    assert (row["name"], row["end"].timestamp(), row["n"], row["z"]) == ("amy", 60, 4, "q")


@pytest.mark.soak
def test_changes_that_do_not_fit_are_refused(lake: Path) -> None:
    for upserts, arguments, words in [
        ([Score("a", 1)], {}, "an element is a Score, not an Upsert"),
        ([Upsert(None, 1)], {}, "a value of the field Team Name is None, which its type does not allow"),
        ([Upsert("a", "many")], {}, "a value of the field points does not fit"),
        ([Upsert("a", 1)], {"schema": None}, "its columns are not declared"),
        ([Upsert("a", 1)], {"key": "name"}, "has no column name"),
    ]:
        given = {"key": "Team Name", "value": "points", "schema": TOTALS, **arguments}
        with pytest.raises((TypeError, ValueError), match=words):
            changes(upserts, lake, **given)
    pipeline = beam.Pipeline()
    upserts = pipeline | beam.Create([Upsert("a", n) for n in range(50)]) | beam.Reshuffle()
    _ = upserts | WriteToIceberg(TABLE, properties(lake), key="Team Name", value="points", schema=TOTALS)
    with pytest.raises(ValueError, match="two tasks have changes of the same key"):
        pipeline.run()


@pytest.mark.soak
def test_a_table_on_s3_is_written_merged_and_read(lake: Path) -> None:
    with s3_server() as address:
        catalog = properties(lake) | {"warehouse": "s3://lake/tables", "s3.endpoint": address}
        catalog |= {"s3.access-key-id": "me", "s3.secret-access-key": "hush", "s3.region": "us-east-1"}
        with beam.Pipeline() as pipeline:
            given = pipeline | beam.Create(SCORES[:2]).with_output_types(Score)
            _ = given | WriteToIceberg(TABLE, catalog, partition_by="team")
        with beam.Pipeline() as pipeline:
            upserts = pipeline | beam.Create([Upsert("a", 5), Upsert("c", 7)], reshuffle=False)
            _ = upserts | WriteToIceberg(TABLE, catalog, key="team", value="number")
        with beam.Pipeline() as pipeline:
            read = pipeline | ReadFromIceberg(TABLE, catalog)
            assert_that(read, equal_to(as_dicts([Score("a", 5), Score("b", 2), Score("c", 7)])))


# Streams.


def part_of(number: int) -> list[dict[str, Any]]:
    return [{"team": "abc"[row % 3], "number": number * 100 + row} for row in range(20)]


def stream(source: Path, lake: Path, checkpoint: Path, **arguments: Any) -> None:
    with pipeline_of(checkpoint) as pipeline:
        _ = scores_of(pipeline, source, Score) | WriteToIceberg(
            TABLE, {**properties(lake), "token": "hush-hush"}, **arguments
        )


def test_a_stream_writes_each_micro_batch_once_and_empty_ones_not_at_all(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.iceberg import writer
    from penstock_spark.sinks.plan import MicroBatch

    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        put(source, number)
    call = writer._Commit.__call__

    def twice(self: Any, frame: Any, batch: MicroBatch) -> list[Any]:
        call(self, frame, batch)
        before = snapshots(lake)
        result = call(self, frame, batch)
        assert snapshots(lake) == before
        return result

    with monkeypatch.context() as patch:
        patch.setattr(writer._Commit, "__call__", twice)
        stream(source, lake, tmp_path / "checkpoint", partition_by="team")
    assert rows_of(lake) == sorted([*part_of(0), *part_of(1)], key=repr)
    assert snapshots(lake) == 2, "one for each micro-batch with rows"
    table = table_of(lake)
    named = {task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()}
    kept = {str(path) for path in Path(table.location().removeprefix("file://")).rglob("data/**/*.parquet")}
    assert kept == named, "files of second tries are deleted"
    checkpoint = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    metadata = [path.read_bytes() for path in lake.rglob("*.json")]
    assert len(checkpoint) > 3
    assert len(metadata) > 2
    assert not any(b"hush-hush" in content for content in [*checkpoint, *metadata])


def test_a_micro_batch_goes_on_when_others_commit_in_between_and_old_snapshots_go(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.iceberg import writer
    from penstock_spark.sinks.plan import MicroBatch

    source = tmp_path / "in"
    source.mkdir()
    put(source, 0)
    put(source, 1)
    others = iter(["mine", "foreign"])
    transaction_of = writer._Commit._transaction
    foreign = pa.table(
        {"team": ["z"], "number": pa.array([1], pa.int64())},
        schema=pa.schema([pa.field("team", pa.string(), False), ("number", pa.int64())]),
    )

    def late(self: Any, catalog: Any, table: Any, written: Any, batch: MicroBatch, mark: str) -> Any:
        prepared = transaction_of(self, catalog, table, written, batch, mark)
        match next(others, None):
            case "mine":
                # Another driver of the same stream has been faster with the same micro-batch.
                faster = transaction_of(self, catalog, table_of(lake), written, batch, "other")
                faster[0].commit_transaction()
            case "foreign":
                table_of(lake).append(foreign)
        return prepared

    monkeypatch.setattr(writer._Commit, "_transaction", late)
    stream(source, lake, tmp_path / "checkpoint")
    expected = [*part_of(0), *part_of(1), {"team": "z", "number": 1}]
    assert rows_of(lake) == sorted(expected, key=repr)
    # The number of the micro-batch stays in the table when the snapshots that it came with are gone.
    table = table_of(lake)
    old = [each.snapshot_id for each in table.snapshots()[:-1]]
    assert len(old) == 2
    table.maintenance.expire_snapshots().by_ids(old).commit()
    for name in ("commits", "sinks"):
        for log in (tmp_path / "checkpoint").glob(f"{name}/1"):
            log.unlink()
    stream(source, lake, tmp_path / "checkpoint")
    assert rows_of(lake) == sorted(expected, key=repr)


@pytest.mark.soak
def test_a_table_that_goes_away_stops_the_stream(lake: Path, tmp_path: Path) -> None:
    from penstock_connectors.iceberg import writer

    source = tmp_path / "in"
    source.mkdir()
    put(source, 0)
    stream(source, lake, tmp_path / "checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        # The stream has its old name, but a new checkpoint.
        patch.setattr(writer, "property_of", lambda stream: "fixed")
        stream(source, lake, tmp_path / "one")
        with pytest.raises(ValueError, match="whose checkpoint is gone"):
            stream(source, lake, tmp_path / "two")
    put(source, 1)
    table = table_of(lake)
    table.catalog.drop_table(TABLE)
    table.catalog.close()
    with pytest.raises(Exception, match="there is no Iceberg table"):
        stream(source, lake, tmp_path / "checkpoint")


def test_an_answer_that_is_lost_after_the_commit_adds_nothing_twice(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    write(SCORES[:1], lake)
    commit = SqlCatalog.commit_table

    def lost(*arguments: Any, **named: Any) -> Any:
        commit(*arguments, **named)
        raise ConnectionError("no answer from postgresql://me:pass@db")

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", lost)
        write(SCORES[1:], lake)
    assert rows_of(lake) == as_dicts(SCORES)

    def down(*arguments: Any, **named: Any) -> Any:
        raise ConnectionError("no answer from postgresql://me:pass@db")

    monkeypatch.setattr(SqlCatalog, "commit_table", down)
    with pytest.raises(RuntimeError, match="may have it: no answer from postgresql://db"):
        write(SCORES, lake)
    assert rows_of(lake) == as_dicts(SCORES)


def test_columns_that_change_while_tasks_write_stop_the_commit(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_connectors.iceberg import writer

    write(SCORES, lake)
    commit = writer._Commit._commit_to

    def late(self: Any, catalog: Any, written: Any, batch: Any) -> Any:
        with table_of(lake).update_schema() as update:
            update.delete_column("number")
        return commit(self, catalog, written, batch)

    monkeypatch.setattr(writer._Commit, "_commit_to", late)
    with pytest.raises(ValueError, match=r"the columns of the Iceberg table .* have changed"):
        write(SCORES, lake)
    assert snapshots(lake) == 1


@pytest.mark.soak
@pytest.mark.parametrize("how", ["append", "merge"])
@pytest.mark.parametrize("seed", range(SOAK_SEEDS))
def test_a_killed_stream_leaves_each_element_once(
    how: str, seed: int, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill is in every run, in test_killed_lakes.py."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(FILES):
        put(source, number)
    chance = random.Random(f"{how} {seed}")
    drawn = [
        (number, chance.choice(["before", "after"]))
        for number in chance.choices([0, 1, 3, 4], k=KILLS_A_SEED)
    ]
    # A moment before a commit may come twice: the micro-batch begins again. After it, there is no second one.
    moments = [each for place, each in enumerate(drawn) if each[1] == "before" or each not in drawn[:place]]
    arguments = how, str(source), str(lake), str(tmp_path / "checkpoint")
    for number, moment in sorted(moments, key=lambda each: (each[0], each[1] == "after")):
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *arguments, str(number), moment],
            start_new_session=True,
            capture_output=True,
            timeout=240,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-3000:]
    # The last run saves a start of Spark.
    importlib.import_module("tests.connectors.iceberg_program").build(*arguments).run().wait_until_finish()
    assert rows_of(lake) == expected_of(how)
