"""Whether pages are asked for many at a time: only if PySpark's private way answers as the public one."""

from __future__ import annotations

import io
import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from penstock_spark.stream.state import page_store
from penstock_spark.stream.state.page_store import PageStore, prove_pipeline

KEY = ("", 0)


class Pages:
    """A state of Spark with one page, as PySpark shows it; `answers` are those of its private way."""

    _stateName = "pages"

    def __init__(self, *answers: bytes, lacks: str = "") -> None:
        left = list(answers)
        connection = SimpleNamespace(
            sockfile=io.BytesIO(),
            _receive_proto_message=lambda: (0, "", left.pop(0)),
            pickleSer=pickle,
        )
        if lacks:
            delattr(connection, lacks)
        self._mapStateClient = SimpleNamespace(_stateful_processor_api_client=connection)
        self.asked: list[Any] = []

    def getValue(self, key: Any) -> tuple[bytes]:
        self.asked.append(key)
        return (b"header",)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_store, "_is_trusted", None)


def prove(pages: Any) -> None:
    prove_pipeline(pages, KEY, pages.getValue(KEY))


GOOD = pickle.dumps((b"header",))


def test_many_at_a_time_if_the_first_answers_are_the_same(caplog: pytest.LogCaptureFixture) -> None:
    pages: Any = Pages(GOOD, pickle.dumps((b"one",)), b"")
    prove(pages)
    assert PageStore(pages, "Count").get_many([1, 2]) == [b"one", None]
    assert pages.asked == [KEY]
    assert not caplog.records
    # Once in a process is enough.
    prove(pages)


@pytest.mark.parametrize(
    "pages",
    [
        Pages(pickle.dumps((b"another",))),
        Pages(b""),
        Pages(b"not a pickle"),
        Pages(lacks="_receive_proto_message"),
        Pages(lacks="sockfile"),
    ],
    ids=["another page", "no page", "another form", "no answers", "no connection"],
)
def test_one_at_a_time_by_the_public_way_if_not_and_the_log_says_so(
    pages: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pages.asked.clear()
    with caplog.at_level(logging.WARNING):
        prove(pages)
    assert PageStore(pages, "Count").get_many([1, 2]) == [b"header", b"header"]
    assert pages.asked == [KEY, ("Count", 1), ("Count", 2)]
    assert "one request at a time" in caplog.text
