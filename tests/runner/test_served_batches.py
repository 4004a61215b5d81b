"""How a program writes the micro-batches of a query on a server of Spark Connect, without a server."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer

from penstock_spark.session.connect import served_batches
from penstock_spark.session.connect.served_batches import ServedQuery, make_announcer
from penstock_spark.session.micro_batches import number_of_micro_batch, tag_of_micro_batch


class Session:
    """The session that owns the micro-batches; no other one is asked for."""

    session_id = "own"

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.interrupted: list[str] = []

    def _create_remote_dataframe(self, number: str) -> str:
        return f"frame {number}"

    def addTag(self, tag: str) -> None:
        self.tags.append(tag)

    def removeTag(self, tag: str) -> None:
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> None:
        self.interrupted.append(tag)


class Server:
    """A query whose micro-batches the test announces, each in a thread of its own."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.refusals: list[str] = []
        self.calls: list[threading.Thread] = []
        self._announce: Callable[[Any, int], None] | None = None

    def foreachBatch(self, announce: Callable[[Any, int], None]) -> Server:
        self._announce = announce
        return self

    def start(self) -> Server:
        if self.refusals:
            raise RuntimeError(self.refusals.pop())
        return self

    def stop(self) -> None:
        """Waits for the calls, which nothing interrupts."""
        for thread in self.calls:
            thread.join(10)
            assert not thread.is_alive()
        self.is_stopped = True

    def call(self, number: int, results: list[str]) -> threading.Thread:
        frame = SimpleNamespace(
            _plan=SimpleNamespace(_relation_id=f"r{number}"), _session=SimpleNamespace(session_id="own")
        )

        def run() -> None:
            assert self._announce is not None
            try:
                self._announce(frame, number)
                results.append("written")
            except RuntimeError as error:
                results.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.calls.append(thread)
        return thread


@contextmanager
def served(folder: Path, function: Callable[[Any, int], None]) -> Iterator[tuple[Session, Server, Any]]:
    session, server = Session(), Server()
    query = ServedQuery(session, server, function, folder / "served")  # type: ignore[arg-type]
    try:
        yield session, server, query
    finally:
        query.stop()
    assert server.is_stopped
    assert not (folder / "served").exists()


def test_each_micro_batch_is_written_in_this_process_with_its_number_as_a_tag(tmp_path: Path) -> None:
    seen: list[tuple[Any, int, list[str]]] = []
    tags: list[str] = []
    results: list[str] = []
    with served(tmp_path, lambda *batch: seen.append((*batch, [*tags]))) as (session, server, _):
        session.tags = tags
        for number in (3, 4):
            server.call(number, results).join(10)
        assert tags == []
    assert seen == [("frame r3", 3, [tag_of_micro_batch(3)]), ("frame r4", 4, [tag_of_micro_batch(4)])]
    assert results == ["written", "written"]


def test_the_query_fails_with_the_whole_error_of_the_function(tmp_path: Path) -> None:
    def function(frame: Any, number: int) -> None:
        raise ValueError("no\nroom")

    results: list[str] = []
    with served(tmp_path, function) as (_, server, _):
        server.call(0, results).join(10)
    [text] = results
    assert text.startswith("Traceback")
    assert text.rstrip().endswith("ValueError: no\nroom")


def test_a_stop_interrupts_what_is_written_and_ends_what_waits(tmp_path: Path) -> None:
    results: list[str] = []
    begun, free = threading.Event(), threading.Event()

    def function(frame: Any, number: int) -> None:
        begun.set()
        free.wait(10)

    with served(tmp_path, function) as (session, server, query):
        interrupt = session.interruptTag
        session.interruptTag = lambda tag: (interrupt(tag), free.set())  # type: ignore[assignment,func-returns-value]
        waiting = server.call(0, results)
        assert begun.wait(10)
        query.stop()
        waiting.join(10)
        assert session.interrupted == [tag_of_micro_batch(0)]
    assert len(results) == 1
    assert "stopped" in results[0]


def test_the_server_does_not_wait_for_a_program_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_batches, "_SILENCE_SECONDS", 0.1)
    monkeypatch.setattr(served_batches, "_LOOK_SECONDS", 0.001)
    announce = make_announcer(str(tmp_path))
    frame: Any = SimpleNamespace(
        _plan=SimpleNamespace(_relation_id="r"), _session=SimpleNamespace(session_id="own")
    )
    with pytest.raises(RuntimeError, match="silent"):
        announce(frame, 1)


LATE = "SparkException: Python worker failed to connect back."


@pytest.mark.parametrize(
    ("refusals", "left"),
    [([LATE] * 2, []), ([LATE] * 3, []), (["no rights", LATE], []), (["no rights"] * 2, ["no rights"])],
)
def test_a_python_of_the_server_that_starts_late_gets_three_tries(
    tmp_path: Path, refusals: list[str], left: list[str]
) -> None:
    server, folder = Server(), tmp_path / "served"
    is_late = refusals == [LATE] * 2
    server.refusals = [*refusals]

    def start() -> Any:
        return ServedQuery(Session(), server, lambda *batch: None, folder)  # type: ignore[arg-type]

    if is_late:
        start().stop()
    else:
        with pytest.raises(RuntimeError):
            start()
    assert server.refusals == left
    assert not folder.exists()


def test_the_function_on_the_server_needs_nothing_of_this_package(tmp_path: Path) -> None:
    travelling = CloudPickleSerializer().dumps(make_announcer(str(tmp_path)))
    (tmp_path / "function").write_bytes(travelling)
    program = (
        "import pickle, sys\n"
        "for name in ('penstock', 'penstock_spark'): sys.modules[name] = None\n"
        "announce = pickle.load(open(sys.argv[1], 'rb'))\n"
        "class Of:\n"
        "    def __init__(self, **own): vars(self).update(own)\n"
        "try: announce(Of(_plan=Of(_relation_id='r'), _session=Of(session_id='s')), 1)\n"
        "except RuntimeError as error: print(error)\n"
    )
    (tmp_path / "closed").touch()
    command = [sys.executable, "-c", program, str(tmp_path / "function")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "the run was stopped" in done.stdout


@pytest.mark.parametrize(
    ("properties", "number"),
    [
        ({"streaming.sql.batchId": "5"}, 5),
        ({"spark.job.tags": f"User_a_Session_b_Tag_{tag_of_micro_batch(12)},spark-session-1"}, 12),
        ({"spark.job.tags": f"other,User_a_Tag_{tag_of_micro_batch(0)}"}, 0),
    ],
    ids=["of the query's thread", "a tag before others", "a tag after others"],
)
def test_a_task_knows_the_number_of_its_micro_batch(properties: dict[str, str], number: int) -> None:
    task: Any = SimpleNamespace(getLocalProperty=properties.get)
    assert number_of_micro_batch(task) == number
