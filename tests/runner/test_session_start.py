"""What a user reads when Spark does not start, without starting it."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from penstock.error import RunnerError
from penstock_spark.reports.spark_errors import translate
from penstock_spark.session import session
from penstock_spark.session.classic import gateway

_STOPPED = "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n\n"


class Java:
    """A Java that starts, and tells what it has thrown until it is ended."""

    _target_id = "o1"

    def __init__(self):
        self.has_ended = False
        self.thrown = ""
        self._gateway_client = self

    def error(self, thrown):
        """The error of Py4J for an exception."""
        self.thrown = thrown
        return Py4JJavaError("An error occurred.\n", self)

    def send_command(self, command):
        if self.has_ended:
            raise ConnectionRefusedError("Connection refused")
        return "ys" + self.thrown.replace("\n", "\\n")

    def end(self, process):
        self.has_ended = True


@pytest.fixture
def java(monkeypatch):
    started = Java()
    monkeypatch.setattr(gateway, "_launch", lambda command, answer: object())
    monkeypatch.setattr(gateway, "_await_answer", lambda process, answer: (1, "secret"))
    monkeypatch.setattr(gateway, "_use", lambda process, port, secret: None)
    monkeypatch.setattr(gateway, "_end", started.end)
    # A session of other tests in this process keeps its Java.
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)
    return started


class FailingBuilder:
    """PySpark's builder, which fails to make a session."""

    def __init__(self, error):
        self.error = error

    def config(self, map):
        return self

    def getOrCreate(self):
        raise self.error


def test_what_java_says_of_a_start_that_fails_is_read_before_java_ends(java):
    thrown = (
        "org.apache.spark.SparkException: Asked to run locally with 0 threads\n\tat org.apache.spark.A.b(A:1)"
    )
    with pytest.raises(Py4JJavaError) as raised, gateway.start_java({}, "/spark"):
        raise java.error(f"{thrown}\n")
    assert java.has_ended
    shown = str(translate(raised.value))
    assert shown.startswith("Spark failed: Asked to run locally with 0 threads\n")


def test_a_master_that_nobody_reaches_is_named(java, monkeypatch):
    error = java.error(f"java.lang.IllegalStateException: {_STOPPED}")
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", FailingBuilder(error))
    with pytest.raises(RunnerError) as raised, gateway.start_java({}, "/spark"):
        session._make_session({"spark.master": "spark://10.0.0.1:7077"})
    shown = str(translate(raised.value))
    assert shown.startswith("no master of the cluster has answered at spark://10.0.0.1:7077\n")
    # Python would ask Java for the text of an error that it shows as the cause.
    assert raised.value.__context__ is None


def test_another_failure_of_a_start_stays_as_it_is(java, monkeypatch):
    error = java.error("java.net.BindException: Cannot assign requested address")
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", FailingBuilder(error))
    with pytest.raises(Py4JJavaError) as raised:
        session._make_session({"spark.master": "spark://10.0.0.1:7077"})
    assert raised.value is error
