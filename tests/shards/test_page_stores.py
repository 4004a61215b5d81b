"""Pages in Spark's state: the same many at a time as one by one, and what PySpark must be like for the former."""

from __future__ import annotations

import pickle
from collections import deque
from types import SimpleNamespace
from typing import Any

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
import pytest
from pyspark.sql.streaming.map_state_client import MapStateClient
from pyspark.sql.streaming.stateful_processor import MapState
from pyspark.sql.types import StructType

from penstock_spark.stream.state import page_store
from penstock_spark.stream.state.page_store import PageStore, pipeline_of


@pytest.fixture(autouse=True)
def _nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the process may have asked a state that is not Spark's."""
    monkeypatch.setattr(page_store, "_is_trusted", None)


PAGES = [(number, str(number).encode()) for number in range(200)]


class Connection:
    """Stands for PySpark's connection to the state, with the state at its other end."""

    def __init__(self) -> None:
        self.state: dict[Any, bytes] = {}
        self.pickleSer = SimpleNamespace(dumps=pickle.dumps, loads=pickle.loads)
        self.sockfile = self
        self.flushes: list[set[str]] = []
        self.error = ""
        self._written = b""
        self._answers: deque[bytes] = deque()

    def write(self, data: bytes) -> None:
        self._written += data

    def flush(self) -> None:
        written, self._written = self._written, b""
        kinds = set()
        while written:
            version, length = int.from_bytes(written[:4], "big"), int.from_bytes(written[4:8], "big")
            assert version == 0
            request = messages.StateRequest.FromString(written[8 : 8 + length])
            call = request.stateVariableRequest.mapStateCall
            assert call.stateName == "pages"
            kinds.add(call.WhichOneof("method"))
            self._answers.append(self._answer(call))
            written = written[8 + length :]
        self.flushes.append(kinds)

    def _answer(self, call: Any) -> bytes:
        method = call.WhichOneof("method")
        asked = getattr(call, method)
        key = pickle.loads(asked.userKey)
        if method == "getValue":
            return self.state.get(key, b"")
        if method == "removeKey":
            self.state.pop(key)
        else:
            self.state[key] = asked.value
        return b""

    def _receive_proto_message(self) -> tuple[int, str, bytes]:
        return int(self.error != ""), self.error, self._answers.popleft()


class PublicOnly:
    """A ``MapState`` of which nothing private is known."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.getValue = self.values.get
        self.updateValue = self.values.__setitem__
        self.removeKey = self.values.pop


def spark_state(connection: Connection) -> MapState:
    """PySpark's own class, at a connection."""
    client: Any = connection
    return MapState(MapStateClient(client, StructType(), StructType()), "pages")


def test_this_pyspark_can_be_asked_for_much_at_a_time() -> None:
    assert pipeline_of(spark_state(Connection())) is not None


def test_another_pyspark_is_asked_one_by_one() -> None:
    assert pipeline_of(PublicOnly()) is None


@pytest.mark.parametrize("state", [spark_state(Connection()), PublicOnly()], ids=["at once", "one by one"])
def test_pages_come_back_in_order_and_what_is_forgotten_does_not(state: Any) -> None:
    store = PageStore(state, "Sum")
    store.put_many(PAGES)
    store.put_many([(3, None), (4, b"new")])
    PageStore(state, "Other").put_many([(5, b"of another grouping")])
    assert store.get_many([199, 3, 4, 5, 1_000]) == [b"199", None, b"new", b"5", None]
    assert store.get_many([]) == []


def test_many_requests_of_one_kind_are_sent_before_the_first_answer_is_read() -> None:
    connection = Connection()
    store = PageStore(spark_state(connection), "Sum")
    store.put_many(PAGES)
    assert store.get_many([number for number, _ in PAGES]) == [page for _, page in PAGES]
    assert connection.flushes == 4 * [{"updateValue"}] + 4 * [{"getValue"}]


def test_an_error_of_sparks_is_not_taken_for_a_missing_page() -> None:
    connection = Connection()
    connection.error = "the disk is full"
    with pytest.raises(RuntimeError, match="the disk is full"):
        PageStore(spark_state(connection), "Sum").get_many([1])
