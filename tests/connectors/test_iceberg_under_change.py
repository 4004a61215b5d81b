"""Iceberg tables that others change while penstock writes to them, and catalogs that do not answer; without Spark."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.error import UnsupportedByRunner
from penstock.io.iceberg import ReadFromIceberg, WriteToIceberg
from penstock.relations.upserts import Upsert
from penstock_spark.sinks.plan import MicroBatch, SinkPlan

pytest.importorskip("pyiceberg", reason="needs the package pyiceberg")
pytest.importorskip("sqlalchemy", reason="needs the package sqlalchemy")

from pyiceberg.catalog import load_catalog
from pyiceberg.table import Transaction

from penstock_connectors.iceberg import scan, table, writer
from penstock_spark.sinks import stream_commits
from tests.connectors.iceberg_tables import TABLE, make_namespace, properties, rows_of, table_of

WHERE = "at step 'Write' (game.py:41)"
SCORES = pa.schema([("team", pa.string()), ("points", pa.int64())])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder of a catalog with an empty namespace."""
    make_namespace(tmp_path / "lake")
    return tmp_path / "lake"


@pytest.fixture(autouse=True)
def _own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the errors of steps without the envelope in which Spark passes them on."""

    def raised(error: BaseException, where: str) -> None:
        raise error

    monkeypatch.setattr(stream_commits, "fail_step", raised)
    monkeypatch.setattr(scan, "fail_step", raised)


class Stream:
    """A stream with one task, as the runner runs it."""

    def __init__(
        self, lake: Path, name: str = "scores", schema: pa.Schema = SCORES, **arguments: Any
    ) -> None:
        self.sink = WriteToIceberg(TABLE, properties(lake), schema=schema, **arguments).sink
        self.name = name
        self.plan = writer.plan_iceberg(self.sink, True, WHERE)

    def begin(self) -> Stream:
        writer.prepare_iceberg(self.sink, None, WHERE, self.name)  # type: ignore[arg-type]
        return self

    def write(self, number: int, elements: list[Any]) -> None:
        commit(self.plan, elements, MicroBatch(number, self.name))


def commit(plan: SinkPlan, elements: list[Any], batch: MicroBatch) -> None:
    encoder = plan.make_encoder()
    parts = [encoder.encode(elements), encoder.finish()]
    rows = [SimpleNamespace(written=each) for part in parts if part for each in part[0].to_pylist()]
    plan.commit(SimpleNamespace(collect=lambda: rows), batch)  # type: ignore[arg-type]


def write(lake: Path, elements: list[Any], schema: pa.Schema = SCORES, **arguments: Any) -> None:
    """A batch."""
    sink = WriteToIceberg(TABLE, properties(lake), schema=schema, **arguments).sink
    commit(writer.plan_iceberg(sink, False, WHERE), elements, MicroBatch())


def score(team: str, points: int) -> dict[str, Any]:
    return {"team": team, "points": points}


def make_again(lake: Path) -> None:
    schema = table_of(lake).schema()
    with closing(load_catalog("default", **properties(lake))) as catalog:
        catalog.drop_table(TABLE)
        catalog.create_table(TABLE, schema)


def change(lake: Path, **properties_of_table: str) -> None:
    with table_of(lake).transaction() as transaction:
        transaction.set_properties(
            {name.replace("_", "."): each for name, each in properties_of_table.items()}
        )


@pytest.mark.parametrize("how", ["append", "merge"])
def test_a_stream_stops_at_a_table_that_was_made_again(how: str, lake: Path) -> None:
    arguments: dict[str, Any] = {} if how == "append" else {"key": "team", "value": "points"}

    def element(team: str, points: int) -> Any:
        return score(team, points) if how == "append" else Upsert(team, points)

    stream = Stream(lake, **arguments).begin()
    stream.write(0, [element("a", 1)])
    make_again(lake)
    for running in (stream, Stream(lake, **arguments)):
        with pytest.raises(LookupError, match=r"lake\.scores does not know this stream any more") as caught:
            running.write(1, [element("a", 2)])
        assert WHERE in str(caught.value)
        assert "hint: use a new checkpoint to write everything again" in str(caught.value)
        assert not running.plan.is_committed(MicroBatch(0, "scores"))  # type: ignore[misc]
    assert rows_of(lake) == []
    # With another label, or a new checkpoint, it has another name.
    Stream(lake, "another", **arguments).begin().write(1, [element("a", 2)])
    assert rows_of(lake) == [score("a", 2)]


def test_a_table_that_was_there_knows_a_stream_from_its_start(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, [score("a", 1)])
    commit_transaction = Transaction.commit_transaction
    others = iter([1, 2])

    def late(self: Any) -> Any:
        if next(others, None):
            change(lake, somebody_else=str(time.time()))
        return commit_transaction(self)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "call_catalog", lambda call: late(call.__self__))
        stream = Stream(lake).begin()
    assert table_of(lake).properties[writer.property_of("scores")] == "-1"
    assert len(table_of(lake).snapshots()) == 1
    # Nothing was written, so the program may begin again.
    stream.begin()
    make_again(lake)
    with pytest.raises(LookupError, match="does not know this stream"):
        stream.write(0, [score("b", 2)])


def test_a_table_that_wants_other_files_while_a_stream_runs_gets_none(lake: Path) -> None:
    stream = Stream(lake).begin()
    change(lake, write_format_default="orc")
    with pytest.raises(UnsupportedByRunner, match="needs files of orc"):
        stream.write(0, [score("a", 1)])
    assert table_of(lake).current_snapshot() is None


@pytest.mark.parametrize(
    ("kind", "partition_by", "words"),
    [
        (pa.float64(), "x", "is partitioned by x, which is double"),
        (pa.float32(), "x", "is partitioned by x, which is float"),
        (pa.uuid(), "x", "is partitioned by x, which is uuid"),
        (pa.time64("us"), "bucket[2](x)", r"is partitioned by bucket\[2\]\(x\), which is time"),
        (pa.string(), ["x", "bucket[2](x)"], "has several partition fields of one column"),
    ],
)
def test_partitions_that_pyiceberg_computes_wrongly_are_refused(
    kind: pa.DataType, partition_by: Any, words: str, lake: Path
) -> None:
    """It wrote 0.0 and -0.0 twice each, could not write NaN, and failed at the first row of the others."""
    schema = pa.schema([("x", kind), ("number", pa.int64())])
    with pytest.raises((ValueError, UnsupportedByRunner), match=words):
        Stream(lake, schema=schema, partition_by=partition_by)


def test_a_partition_field_whose_column_is_gone_is_refused(lake: Path) -> None:
    with closing(load_catalog("default", **properties(lake))) as catalog:
        catalog.create_table(TABLE, SCORES, properties={"format-version": "1"})
    with table_of(lake).update_spec() as spec:
        spec.add_identity("team")
    with table_of(lake).update_spec() as spec:
        spec.remove_field("team")
    write(lake, [score("a", 1)])
    with table_of(lake).update_schema() as update:
        update.delete_column("team")
    with pytest.raises(UnsupportedByRunner, match="has a partition field without a column"):
        write(lake, [{"points": 2}], pa.schema([("points", pa.int64())]))
    assert rows_of(lake) == [{"points": 1}]


def test_merging_where_rows_are_deleted_by_value_is_refused_by_name(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, [score("a", 1)])

    def plan(*_: Any) -> Any:
        raise ValueError("PyIceberg does not yet support equality deletes: https://...")

    monkeypatch.setattr("pyiceberg.table.DataScan.plan_files", plan)
    with pytest.raises(UnsupportedByRunner, match="delete files that name rows by values"):
        write(lake, [Upsert("a", 2)], key="team", value="points")


def test_a_damaged_file_is_named(lake: Path) -> None:
    write(lake, [score("a", 1)])
    [path] = (lake / "tables").rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    source = ReadFromIceberg(TABLE, properties(lake)).source
    plan = table_of(lake).scan()
    files = tuple(plan.plan_files())
    reader = scan.FilesReader(
        source, plan.table_metadata, plan.io, plan.projection(), plan.row_filter, (files,), WHERE
    )
    words = f"the file {path.name} of the Iceberg table lake.scores cannot be read"
    with pytest.raises(OSError, match=words) as caught:
        [*reader(pa.record_batch([pa.array([0])], names=["id"]))]
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(RuntimeError, match=words):
        write(lake, [Upsert("a", 2)], key="team", value="points")


def test_bytes_of_a_fixed_length_fill_such_columns_and_uuids_are_no_keys(lake: Path) -> None:
    schema = pa.schema([("id", pa.uuid()), ("raw", pa.binary(2))])
    row = {"id": uuid.UUID(int=7), "raw": b"ab"}
    write(lake, [row], schema)
    write(lake, [row], pa.schema([("raw", pa.binary())]))
    assert [each["raw"] for each in rows_of(lake)] == [b"ab", b"ab"]
    with pytest.raises(TypeError, match="a value of the field raw does not fit"):
        write(lake, [{"raw": b"abc"}], pa.schema([("raw", pa.binary())]))
    with pytest.raises(ValueError, match=r"the column id of type .* cannot be a key"):
        write(lake, [Upsert(row["id"], b"cd")], schema, key="id", value="raw")


@pytest.fixture
def silent_catalog() -> Iterator[str]:
    """The address of a server that takes connections, and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_catalog_that_takes_connections_and_says_nothing_is_an_error(
    silent_catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "ANSWER_SECONDS", 0.3)
    sink = WriteToIceberg(TABLE, {"type": "rest", "uri": silent_catalog}, schema=SCORES).sink
    words = "its catalog does not answer: no answer within 0.3 seconds"
    with pytest.raises(RuntimeError, match=words) as caught:
        writer.plan_iceberg(sink, False, WHERE)
    assert WHERE in str(caught.value)


def test_a_commit_that_is_done_late_adds_nothing_twice(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(lake).begin()
    goes_on, is_done = threading.Event(), threading.Event()
    commits: list[Any] = []
    commit_transaction = Transaction.commit_transaction

    def late(self: Any) -> Any:
        commits.append(self)
        if len(commits) == 1:
            goes_on.wait(30)
        try:
            return commit_transaction(self)
        finally:
            if self is commits[0]:
                is_done.set()

    monkeypatch.setattr(Transaction, "commit_transaction", late)
    monkeypatch.setattr(table, "ANSWER_SECONDS", 1.0)
    stream.write(0, [score("a", 1)])
    assert rows_of(lake) == [score("a", 1)]
    goes_on.set()
    assert is_done.wait(30)
    assert len(commits) == 2
    assert rows_of(lake) == [score("a", 1)]


def test_a_batch_whose_commit_may_be_in_the_table_says_how_to_find_out(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    write(lake, [score("a", 1)])
    commit_table, load_table = SqlCatalog.commit_table, SqlCatalog.load_table

    def lost(self: Any, *arguments: Any) -> Any:
        commit_table(self, *arguments)
        monkeypatch.setattr(SqlCatalog, "load_table", down)
        raise ConnectionError("no answer")

    def down(*_: Any) -> Any:
        raise ConnectionError("the catalog is away")

    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    with pytest.raises(
        RuntimeError, match=r"a commit .* lake.scores, which may have it: no answer"
    ) as caught:
        write(lake, [score("b", 2)])
    monkeypatch.setattr(SqlCatalog, "load_table", load_table)
    summary = table_of(lake).current_snapshot().summary
    assert f"has penstock.commit = {summary['penstock.commit']}" in str(caught.value)
