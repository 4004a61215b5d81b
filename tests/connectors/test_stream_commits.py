"""One rule says what is in a table: a break of it is seen in each table to which streams commit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("psycopg")
pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")
import deltalake

from penstock.error import RunnerError
from penstock.io.database import DatabaseSink
from penstock.io.delta import WriteToDelta
from penstock.io.iceberg import WriteToIceberg
from penstock_spark.formats.registry import plan_sink, prepare_sink
from penstock_spark.sinks import stream_commits
from penstock_spark.sinks.plan import MicroBatch, SinkPlan
from penstock_spark.sinks.stream_commits import RetryCommit, retry_commits
from tests.connectors.iceberg_tables import TABLE, make_namespace, properties, rows_of

WHERE = "at step 'Write' (game.py:41)"
SCORES = pa.schema([("team", pa.string()), ("points", pa.int64())])
STREAM = "a stream"


class Frame:
    """The rows that tasks have given the driver, without Spark."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._table = pa.Table.from_batches(batches)

    def collect(self) -> list[Any]:
        return [SimpleNamespace(**row) for row in self._table.to_pylist()]

    def toArrow(self) -> pa.Table:
        return self._table


@pytest.fixture(autouse=True)
def _own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the errors of steps without the envelope in which Spark passes them on."""

    def raised(error: BaseException, where: str) -> None:
        raise error

    monkeypatch.setattr(stream_commits, "fail_step", raised)


@dataclass
class Target:
    """A table, and what it has."""

    sink: Any
    teams: Callable[[], list[str]]
    plans: list[SinkPlan] = field(default_factory=list)

    def plan(self) -> SinkPlan:
        self.plans.append(plan_sink(self.sink, WHERE, is_stream=True))
        return self.plans[-1]

    def begin(self) -> None:
        none: Any = None
        prepare_sink(self.sink, none, WHERE, STREAM)


def delta(folder: Path) -> Target:
    path = folder / "table"

    def teams() -> list[str]:
        return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["team"].to_pylist())

    return Target(WriteToDelta(path, schema=SCORES).sink, teams)


def iceberg(folder: Path) -> Target:
    lake = folder / "lake"
    make_namespace(lake)
    sink = WriteToIceberg(TABLE, properties(lake), schema=SCORES).sink
    return Target(sink, lambda: sorted(row["team"] for row in rows_of(lake)))


def sqlite(folder: Path) -> Target:
    path = folder / "scores.db"

    def teams() -> list[str]:
        with sqlite3.connect(path) as database:
            return sorted(team for (team,) in database.execute("select team from scores"))

    sink = DatabaseSink(f"sqlite:///{path}", "scores", create=True, schema="team string, points long")
    return Target(sink, teams)


@pytest.fixture(params=["delta", "iceberg", "sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    made = made_target(request, tmp_path)
    yield made
    for plan in made.plans:
        close(plan)


def made_target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    match request.param:
        case "delta":
            return delta(tmp_path)
        case "iceberg":
            return iceberg(tmp_path)
        case "sqlite":
            return sqlite(tmp_path)
    import psycopg

    server = request.getfixturevalue("server")

    def ask(text: str) -> list[Any]:
        with psycopg.connect(server.url, autocommit=True) as connection:
            found = connection.execute(text)
            return found.fetchall() if found.description else []

    ask("drop table if exists scores, penstock_commits")
    sink = DatabaseSink(server.url, "scores", create=True, schema="team string, points long")
    return Target(sink, lambda: sorted(team for (team,) in ask("select team from scores")))


def write(plan: SinkPlan, number: int, team: str, claim: int = 1) -> None:
    encoder = plan.make_encoder()
    parts = [encoder.start(), encoder.encode([{"team": team, "points": number}]), encoder.finish()]
    frame: Any = Frame([part for part in parts if part is not None])
    plan.commit(frame, MicroBatch(number, STREAM, claim))


def close(plan: SinkPlan) -> None:
    if plan.close is not None:
        plan.close()


def play(target: Target) -> list[str]:
    """The contents of a table for a stream whose second micro-batch comes again, in the same run and in a later one."""
    target.begin()
    target.begin()
    for claim, numbers in ((1, (0, 1, 1)), (2, (1, 2))):
        plan = target.plan()
        for number in numbers:
            write(plan, number, "abc"[number], claim)
        close(plan)
    return target.teams()


def held(target: Target) -> list[bool]:
    """True if a table says that it has the micro-batches before, at and after the last one of a stream."""
    target.begin()
    plan = target.plan()
    is_committed = plan.is_committed
    assert is_committed is not None
    found = [is_committed(MicroBatch(0, STREAM))]
    write(plan, 0, "a")
    write(plan, 1, "b")
    found += [is_committed(MicroBatch(number, STREAM)) for number in range(3)]
    found.append(is_committed(MicroBatch(0, "another stream")))
    close(plan)
    return found


def test_each_micro_batch_is_in_the_table_once(target: Target) -> None:
    assert play(target) == ["a", "b", "c"]


def test_a_table_says_which_micro_batches_it_has(target: Target) -> None:
    assert held(target) == [False, True, True, False, False]


BREAKS: dict[str, Callable[[int | None, int], bool]] = {
    "the last micro-batch is written again": lambda last, number: last is not None and last > number,
    "the next micro-batch is left out": lambda last, number: last is not None and last >= number - 1,
    "nothing is in the table": lambda last, number: False,
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_of_the_rule_is_seen_in_what_every_table_has(name: str, target: Target) -> None:
    with broken(name):
        assert play(target) != ["a", "b", "c"]


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_of_the_rule_is_seen_in_what_every_table_says(name: str, target: Target) -> None:
    with broken(name):
        assert held(target) != [False, True, True, False, False]


@contextmanager
def replaced(function: Any, other: Any) -> Iterator[None]:
    """Within the block, a function does what another one does, wherever it was imported."""
    before, function.__code__ = function.__code__, other.__code__
    try:
        yield
    finally:
        function.__code__ = before


def broken(name: str) -> Any:
    """Breaks the rule by the code of its function, since other modules have imported it."""
    return replaced(stream_commits.is_committed, BREAKS[name])


def test_a_stream_that_has_written_and_lost_its_checkpoint_is_refused(target: Target) -> None:
    target.begin()
    plan = target.plan()
    write(plan, 0, "a")
    close(plan)
    if isinstance(target.sink, DatabaseSink):
        # Its claim to the checkpoint tells the runs of a stream apart.
        older = target.plan()
        with pytest.raises(RunnerError, match="another run has taken over this stream"):
            write(older, 1, "b", claim=0)
        return
    with pytest.raises(ValueError, match="has micro-batches of this stream, whose checkpoint is gone"):
        target.begin()


def test_a_table_that_does_not_know_the_stream_gets_nothing_of_it(target: Target) -> None:
    target.begin()
    plan = target.plan()
    write(plan, 0, "a")
    refusal = pytest.raises((LookupError, RunnerError), match=r"does not know this stream|has been deleted")
    with replaced(stream_commits.digest_stream, lambda stream: "unknown"), refusal:
        write(plan, 1, "b")
    assert target.teams() == ["a"]


@pytest.mark.parametrize("failures", [0, 1, stream_commits.ATTEMPTS - 1])
def test_what_others_refuse_is_tried_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(stream_commits.clock, "sleep", pauses.append)

    def work(attempt: int) -> str:
        if attempt < failures:
            raise RetryCommit(ValueError(json.dumps(attempt)))
        return "done"

    assert retry_commits(work) == "done"
    assert len(pauses) == failures
    assert all(pauses)


def test_the_last_refusal_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_commits.clock, "sleep", lambda seconds: None)
    tries: list[int] = []

    def work(attempt: int) -> None:
        tries.append(attempt)
        raise RetryCommit(ValueError(f"refused {attempt}"))

    with pytest.raises(ValueError, match=f"refused {stream_commits.ATTEMPTS - 1}"):
        retry_commits(work)
    assert tries == list(range(stream_commits.ATTEMPTS))
    with pytest.raises(KeyError):
        retry_commits(lambda attempt: {}[attempt])


@pytest.mark.parametrize(("is_named", "deleted"), [(True, []), (False, [["a", "b"]])])
def test_files_that_a_table_does_not_name_are_deleted(is_named: bool, deleted: list[Any]) -> None:
    found: list[Any] = []
    assert committed(lambda files: is_named, found) == []
    assert found == deleted


def test_files_of_a_run_that_another_one_has_displaced_are_deleted_before_a_commit() -> None:
    def displaced() -> None:
        raise KeyError("another run")

    found: list[Any] = []
    with pytest.raises(KeyError, match="another run"):
        committed(lambda files: pytest.fail("it commits"), found, check=displaced)
    assert found == [["a", "b"]]


def test_errors_of_a_stream_are_the_steps_own_and_those_of_a_system_are_the_runners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: list[tuple[BaseException, str]] = []
    monkeypatch.setattr(stream_commits, "fail_step", lambda error, where: failed.append((error, where)))

    def commit(files: Any) -> bool:
        raise error

    error: Exception = LookupError("no table")
    committed(commit, [])
    assert failed == [(error, WHERE)]
    with pytest.raises(LookupError):
        committed(commit, [], stream="")
    error = OSError("no space")
    with pytest.raises(OSError, match="no space"):
        committed(commit, [])
    assert len(failed) == 1


def committed(commit: Any, deleted: list[Any], stream: str = STREAM, **more: Any) -> list[Any]:
    """What a commit of two files returns; `deleted` gets what it deletes."""
    frame: Any = Frame([pa.RecordBatch.from_pydict({"file": ["a", "b"]})])
    return stream_commits.commit_files(
        frame,
        MicroBatch(3, stream, **more),
        WHERE,
        written_of=lambda row: row.file,
        commit=commit,
        delete=deleted.append,
    )
