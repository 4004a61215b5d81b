"""A server of Spark Connect: how a program names it, with PySpark's client alone, and what happens when it refuses."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as beam
from penstock.error import RunnerError
from penstock.testing.util import assert_that, equal_to
from tests.client_only import PRELUDE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def address(spark: SparkSession, request: pytest.FixtureRequest) -> str:
    """The server of the tests."""
    if not request.config.getoption("--connect"):
        pytest.skip("it needs a server of Spark Connect: --connect")
    from penstock_spark.session.connect.server_life import name_of_server

    return f"sc://{name_of_server(spark)}"


@pytest.fixture
def session(address: str) -> Iterator[SparkSession]:
    """A session of its own; the program's active one stays."""
    from pyspark.sql.connect.session import SparkSession as Remote

    made = Remote(address)
    yield made  # type: ignore[misc]
    with suppress(Exception):
        end(made)


def total(spark: SparkSession) -> None:
    with beam.Pipeline(spark=spark) as pipeline:
        assert_that(pipeline | beam.Create([1, 2, 3]) | beam.CombineGlobally(sum), equal_to([6]))


_THREE_WAYS = """
import os
from pyspark.sql import SparkSession
import penstock as beam
from penstock.testing.util import assert_that, equal_to

def run(way, **options):
    with beam.Pipeline(**options) as pipeline:
        sums = pipeline | beam.Create([("a", 1), ("a", 2), ("b", 3)]) | beam.CombinePerKey(sum)
        assert_that(sums, equal_to([("a", 3), ("b", 3)]))
    print(way)

address = sys.argv[1]
os.environ["SPARK_REMOTE"] = "sc://nobody.invalid:1"
run("master", argv=[f"--master={address}"])
SparkSession.active().stop()
os.environ["SPARK_REMOTE"] = address
run("SPARK_REMOTE")
SparkSession.active().stop()
del os.environ["SPARK_REMOTE"]
run("spark", spark=SparkSession.builder.remote(address).getOrCreate())
print([name for name in sys.modules if name.startswith(("py4j", "pyspark.core"))])
"""


def test_a_program_with_the_client_alone_names_its_server_in_three_ways(address: str) -> None:
    command = [sys.executable, "-c", PRELUDE + _THREE_WAYS, address]
    # PySpark refuses a second server in a process that began as a server of its own.
    own = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_REMOTE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=own)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["master", "SPARK_REMOTE", "spark", "[]"]


def test_a_session_that_has_ended_is_an_error_and_a_clone_that_has_is_replaced(session: SparkSession) -> None:
    from penstock_spark.session.connect import backend

    total(session)
    clone = backend._clones[session.session_id].spark  # type: ignore[attr-defined]
    clone.client.release_session()
    with pytest.raises(RunnerError, match="the session of the Spark Connect server has ended"):
        total(session)
    total(session)
    session.client.release_session()  # type: ignore[attr-defined]
    with pytest.raises(RunnerError, match=r"has ended[^\n]*\n  (?:at|in) [^\n]*\n  hint: stop the session"):
        total(session)


def test_more_values_than_a_message_holds_are_refused(session: SparkSession) -> None:
    values = [os.urandom(10_000_000) for _ in range(14)]
    with (
        pytest.raises(RunnerError, match="larger than one message may be") as raised,
        beam.Pipeline(spark=session) as pipeline,
    ):
        _ = pipeline | beam.Create(values) | beam.Map(len)
    assert "read large values from files instead of Create" in str(raised.value)


def test_a_setting_that_a_server_does_not_permit_is_left_out_and_said(
    address: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.connect.session import SparkSession as Remote

    from penstock_spark.session.backends import open_remote

    monkeypatch.setattr(Remote, "_default_session", None)
    monkeypatch.setattr(Remote._active_session, "session", None)
    with caplog.at_level(logging.WARNING):
        opened = open_remote(address, {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "3"})
    assert opened.conf.get("spark.sql.shuffle.partitions") == "3"
    [said] = caplog.messages
    assert said.startswith(
        "the Spark Connect server does not let a session set spark.executor.memory, which is left"
    )
    end(opened)


def test_a_checkpoint_that_workers_do_not_see_is_refused(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_spark.session.connect.backend import ConnectBackend

    backend = ConnectBackend(session)
    plan, missing = tmp_path / "plan-1.json", tmp_path / "elsewhere" / "plan-1.json"
    plan.touch()
    # Where the server is on this machine, its workers are not asked.
    assert backend.shares_disk
    backend.check_workers_see(f"file://{missing}", str(tmp_path))
    monkeypatch.setattr(ConnectBackend, "shares_disk", False)
    backend.check_workers_see(f"file://{plan}", str(tmp_path))
    with pytest.raises(RunnerError, match="do not see the checkpoint") as raised:
        backend.check_workers_see(f"file://{missing}", str(tmp_path))
    assert str(tmp_path) in str(raised.value)


def test_a_session_that_shares_its_files_leaves_nothing_that_ends_the_tasks_of_others(address: str) -> None:
    from pyspark.sql.connect.session import SparkSession as Remote

    from penstock_spark.session.backends import map_in_arrow
    from penstock_spark.shipping.import_paths import ship_packages

    shared: Any = Remote(address)
    shared.conf.set("spark.sql.artifact.isolation.enabled", "false")
    of_it = shared.cloneSession()
    ship_packages(of_it)
    assert map_in_arrow(of_it.range(4), unchanged, "id long").count() == 4
    end(of_it)
    assert shared.range(4).mapInArrow(unchanged, "id long").count() == 4
    end(shared)


def test_reports_are_read_by_one_thread_while_another_makes_a_frame_and_after_a_job_has_failed(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock_spark.session.connect.reports import LastRow, ObservedReports

    frame, reports = session.range(3), ObservedReports()
    observe = type(frame).observe
    seen: list[dict[Any, Any]] = []

    def observe_late(rows: Any, *arguments: Any) -> Any:
        seen.append(dict(reports.value))
        return observe(rows, *arguments)

    monkeypatch.setattr(type(frame), "observe", observe_late)

    def make(number: int) -> Any:
        def job_with_a_sink(sink: LastRow) -> Any:
            def job(batches: Iterator[Any]) -> Iterator[Any]:
                for batch in batches:
                    if number == 0:
                        raise ValueError("planted")
                    sink.add({("run", number, "step"): batch.num_rows})
                    yield batch

            return job

        return job_with_a_sink

    with pytest.raises(Exception, match="planted"):
        reports.map_in_arrow(frame, make(0), "id long").count()
    for number in (1, 2):
        assert reports.map_in_arrow(frame.coalesce(1), make(number), "id long").count() == 3
    assert seen == [{}, {}, {("run", 1, "step"): 3}]
    assert reports.value == {("run", 1, "step"): 3, ("run", 2, "step"): 3}


def end(session: Any) -> None:
    """Ends one session: where a test run has a local server, the method ``stop`` of any session ends that, too."""
    session.client.release_session()
    session.client.close()


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_the_figures_are_played_on_a_server(
    address: str, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock_conformance import command

    assert (
        command.main(
            ["conformance", f"--remote={address}", "--figure", "figure 10", "figure 12", "--mode", mode]
        )
        == 0
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 passed, 0 failed")
