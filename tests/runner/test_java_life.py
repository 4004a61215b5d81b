"""When a run asks whether Java has died, and for how long it waits for the answer."""

from __future__ import annotations

import errno

import pytest
from py4j.protocol import Py4JNetworkError

from penstock_spark.session import java_life


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), True),
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (ConnectionError("the brokers cannot be reached"), False),
        (ValueError("a user's own"), False),
    ],
)
def test_only_who_may_have_lost_java_waits_for_its_end(monkeypatch, error, waits):
    asked = []
    monkeypatch.setattr(java_life, "_ended", asked.append)
    monkeypatch.setattr(java_life, "_forget_java", lambda status: None)
    java_life.java_death(error)
    assert [seconds > 0 for seconds in asked] == [waits]


def test_an_error_that_says_nothing_of_java_tells_of_a_java_that_has_ended(monkeypatch):
    forgotten = []
    monkeypatch.setattr(java_life, "_ended", lambda seconds: -9)
    monkeypatch.setattr(java_life, "_forget_java", forgotten.append)
    found = java_life.java_death(ConnectionError("the brokers cannot be reached"), "at step 'Read'")
    assert "Spark's Java process has died, killed by SIGKILL" in str(found)
    assert forgotten == [-9]
