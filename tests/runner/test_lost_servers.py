"""Servers of Spark Connect that do not answer, refuse a program, or have ended its session: the errors of each."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from types import SimpleNamespace

import grpc
import pytest
from pyspark.errors.exceptions.connect import PythonException, SparkConnectGrpcException

from penstock.error import RunnerError
from penstock_spark.reports.spark_errors import ErrorContext, translate
from penstock_spark.session.connect import opening, server_life
from penstock_spark.session.connect.opening import Patience, has_lost_server, open_remote
from penstock_spark.session.connect.server_life import explain_server_loss

WHERE = ErrorContext(places=("at step 'Slow' (job.py:3)",))


class Unavailable(grpc.RpcError):
    """As gRPC raises it below PySpark."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


def of_status(status: grpc.StatusCode, text: str = "a text of the server") -> SparkConnectGrpcException:
    return SparkConnectGrpcException(text, grpc_status_code=status)


ENDED = "[INVALID_HANDLE.SESSION_{}] The handle 1-2 is invalid. Session was closed. SQLSTATE: HY000"


@pytest.mark.parametrize(
    ("error", "what", "hint"),
    [
        (of_status(grpc.StatusCode.UNAVAILABLE), "no Spark Connect server answers", "check the address"),
        (Unavailable(), "no Spark Connect server answers", "check the address"),
        (
            of_status(grpc.StatusCode.DEADLINE_EXCEEDED),
            "has not answered in time",
            "check the server's log",
        ),
        (of_status(grpc.StatusCode.UNAUTHENTICATED), "does not know who this program is", "token"),
        (of_status(grpc.StatusCode.PERMISSION_DENIED), "does not permit", "ask the operator of the server"),
        (
            of_status(grpc.StatusCode.RESOURCE_EXHAUSTED),
            "larger than one message may be",
            "read large values",
        ),
        (
            of_status(grpc.StatusCode.UNIMPLEMENTED),
            "is not a Spark Connect server",
            "check the host and the port",
        ),
        (of_status(grpc.StatusCode.INTERNAL, ENDED.format("CLOSED")), "has ended", "spark.stop()"),
        (of_status(grpc.StatusCode.UNKNOWN, ENDED.format("NOT_FOUND")), "has ended", "spark.stop()"),
        (ValueError("Cannot invoke RPC: Channel closed!"), "has ended", "spark.stop()"),
        (
            SparkConnectGrpcException("<_InactiveRpcError of RPC\n\tstatus = StatusCode.UNAVAILABLE"),
            "no Spark Connect server answers",
            "check the address",
        ),
    ],
    ids=lambda value: None if isinstance(value, Exception) else value,
)
def test_each_loss_has_three_parts_and_no_text_of_the_server(error: Exception, what: str, hint: str) -> None:
    other = translate(error, WHERE)
    assert isinstance(other, RunnerError)
    first, second, third = str(other).splitlines()
    assert what in first
    assert second == "  at step 'Slow' (job.py:3)"
    assert third.startswith("  hint: ")
    assert hint in third
    assert not {"RPC", "StatusCode", "SQLSTATE", "text of the server"} & set(str(other).split())


@pytest.mark.parametrize(
    "error",
    [
        PythonException("Traceback: grpc says status = StatusCode.UNAVAILABLE"),
        of_status(grpc.StatusCode.INTERNAL, "a job failed: [SESSION_CLOSED] was its output"),
        ValueError("Channel closed!"),
    ],
    ids=["worker", "job", "user"],
)
def test_what_a_step_says_of_another_service_is_not_a_lost_server(error: Exception) -> None:
    assert explain_server_loss(error) is None


def test_another_python_of_the_workers_is_named() -> None:
    said = (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )
    stack = f'PythonException: \nTraceback (most recent call last):\n  File "worker.py", line 1\n{said}\n'
    what, where, hint = str(translate(PythonException(stack), WHERE)).splitlines()
    assert (
        what == "the workers run Python 3.12, and the program Python 3.11: they need the same minor version"
    )
    assert where == "  in the Spark session of the run"
    assert "run the program with Python 3.12" in hint


def test_what_is_kept_of_a_session_is_forgotten_when_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(server_life, "_at_loss", [lambda: forgotten.append("all")])
    monkeypatch.setattr(server_life.atexit, "register", lambda function: forgotten.append(function.__name__))
    explain_server_loss(of_status(grpc.StatusCode.INTERNAL, ENDED.format("CLOSED")))
    explain_server_loss(of_status(grpc.StatusCode.UNAVAILABLE))
    assert forgotten == ["all", "all", "_end_without_retries"]


def test_a_wait_for_a_server_is_said_twice_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = iter([0.0, 1.0, 1.0, 2.0, 29.0, 31.5, 31.5, 32.0])
    monkeypatch.setattr(opening, "clock", SimpleNamespace(monotonic_seconds=lambda: next(times)))
    patience = Patience()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert patience.can_retry(Unavailable())
            assert not patience.can_retry(ValueError("of a user"))
    assert caplog.text.count("the Spark Connect server does not answer: trying again") == 2


class Refused(Unavailable):
    """As gRPC says that nothing listens at a port."""

    def __str__(self) -> str:
        return "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:15002: Connection refused"


def test_a_port_at_which_nothing_listens_is_tried_for_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(opening, "clock", SimpleNamespace(monotonic_seconds=lambda: now[0]))
    patience, tried = Patience(), []
    # The server may have answered before the last one.
    for now[0] in (100.0, 110.0, 125.0, 130.0, 131.0, 165.0):
        tried.append(patience.can_retry(Refused()))
    assert tried == [True, True, True, True, False, True]


def test_a_run_waits_for_two_minutes() -> None:
    state, waited = Patience().to_state(), 0
    while (pause := state.next_attempt()) is not None:
        waited += pause
    assert 90_000 < waited < 150_000


def test_a_session_that_the_program_has_made_is_not_replaced() -> None:
    assert not has_lost_server(SimpleNamespace(client=None))  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["sc:/host", "sc://host:port", "sc://host/path;token=secret"])
def test_what_is_no_address_is_refused_with_one_that_is(address: str) -> None:
    with pytest.raises(RunnerError, match="is not the address of a Spark Connect server") as raised:
        open_remote(address, {})
    assert "sc://host:15002" in str(raised.value)
    assert "secret" not in str(raised.value)


_CLOSED_PORT = """
import socket, warnings
import penstock as beam
with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    try:
        (beam.Pipeline(argv=[f"--master=sc://127.0.0.1:{port}"]) | beam.Create([1])).pipeline.run()
    except Exception as error:
        print(str(error).replace(str(port), "PORT"))
"""


def test_a_closed_port_is_said_within_seconds_and_the_program_ends() -> None:
    began = time.monotonic()
    command = [sys.executable, "-W", "error", "-c", _CLOSED_PORT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    what, where, hint = done.stdout.splitlines()
    assert what == "no Spark Connect server answers"
    assert where == "  in the session of 127.0.0.1:PORT"
    assert hint.startswith("  hint: check the address")
    assert set(done.stderr.splitlines()) <= {"penstock: starting Spark"}
    assert time.monotonic() - began < 60
