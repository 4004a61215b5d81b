"""When a run asks whether Java has died, for how long it waits for the answer, and what it says."""

from __future__ import annotations

import errno

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from penstock_spark.session.classic import java_life


def of_pyspark(error):
    """The error as code of PySpark raises it."""
    return raised(error, {"__name__": "pyspark.core.context"})


def of_a_user(error):
    return raised(error, {"__name__": "shop.orders"})


def raised(error, names):
    names["error"] = error
    try:
        exec("raise error", names)
    except BaseException as caught:
        return caught


def in_place_of(cause):
    """A file error that a run has raised where PySpark had failed."""
    try:
        try:
            raise cause
        except Exception:
            raise OSError("the output cannot be written: Connection refused") from None
    except OSError as caught:
        return caught


def refused():
    return ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


@pytest.fixture
def deaths(monkeypatch):
    """The facts that this program knows about its Javas, for one test."""
    found = []
    monkeypatch.setattr(java_life, "_deaths", found)
    return found


LOST = {
    "a connection that was cut": of_pyspark(refused()),
    "no answer": Py4JNetworkError("Answer from Java side is empty"),
    "a call that failed": Py4JError("An error occurred while calling o346.isActive"),
    "an end of the answer": of_pyspark(EOFError()),
    "an error that stands for another": in_place_of(of_pyspark(refused())),
}
OTHERS = {
    "a service of the user": ConnectionError("the brokers cannot be reached"),
    "a refused connection of the user": of_a_user(refused()),
    "the user's own": of_a_user(ValueError("a user's own")),
}


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        *(pytest.param(error, True, id=name) for name, error in LOST.items()),
        *(pytest.param(error, False, id=name) for name, error in OTHERS.items()),
    ],
)
def test_only_who_may_have_lost_java_waits_for_its_end(monkeypatch, deaths, error, waits):
    asked = []
    monkeypatch.setattr(SparkContext, "_gateway", object())
    monkeypatch.setattr(java_life, "_find_exit_status", asked.append)
    monkeypatch.setattr(java_life, "_forget_java", lambda status: None)
    java_life.explain_java_death(error)
    assert [seconds > 0 for seconds in asked] == [waits]


def test_an_error_that_says_nothing_of_java_tells_of_a_java_that_has_ended(monkeypatch):
    forgotten = []
    monkeypatch.setattr(java_life, "_find_exit_status", lambda seconds: -9)
    monkeypatch.setattr(java_life, "_forget_java", forgotten.append)
    found = java_life.explain_java_death(ConnectionError("the brokers cannot be reached"), "at step 'Read'")
    assert "Spark's Java process has died, killed by SIGKILL" in str(found)
    assert forgotten == [-9]


@pytest.mark.parametrize("status", [-15, 143])
def test_a_signal_to_all_processes_of_a_program_is_told_from_a_death(monkeypatch, status):
    monkeypatch.setattr(java_life, "_find_exit_status", lambda seconds: status)
    monkeypatch.setattr(java_life, "_forget_java", lambda status: None)
    told = str(java_life.explain_java_death(ConnectionError("the connection is gone"), "at step 'Read'"))
    assert told.startswith("Spark's Java process has died, ended by SIGTERM, and the run ended with it\n")
    assert "hint: send SIGTERM to the program alone" in told
    assert "spark.driver.memory" not in told


@pytest.mark.parametrize("gateway", [None, object()], ids=["no Java yet", "the next Java lives"])
@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in LOST.items()])
def test_a_run_that_notices_it_second_tells_the_same(monkeypatch, deaths, error, gateway):
    deaths.append(-9)
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(java_life, "_find_exit_status", lambda seconds: None)
    assert "Spark's Java process has died, killed by SIGKILL" in str(java_life.explain_java_death(error))


def test_whatever_pyspark_says_without_a_java_is_its_death(monkeypatch, deaths):
    deaths.append(-9)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    error = of_pyspark(AttributeError("'NoneType' object has no attribute 'functions'"))
    assert "killed by SIGKILL" in str(java_life.explain_java_death(error))


@pytest.mark.parametrize(
    "error",
    [
        *(pytest.param(error, id=name) for name, error in OTHERS.items()),
        pytest.param(
            of_pyspark(PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})),
            id="a next Java that cannot start",
        ),
        pytest.param(Py4JJavaError.__new__(Py4JJavaError), id="an answer of Java"),
    ],
)
def test_an_earlier_death_explains_no_other_error(monkeypatch, deaths, error):
    deaths.append(-9)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert java_life.explain_java_death(error) is None
