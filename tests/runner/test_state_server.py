"""A worker asks a state server that never answers, or stops answering."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.error import RunnerError
from penstock_spark.stream import state_server
from penstock_spark.stream.resharding.seed_processor import SeedProcessor
from penstock_spark.stream.state.page_store import PageStore

_KEY = StructType([StructField("shard", IntegerType())])
_GOOD = struct.pack("!i", 0)  # An answer without content: the status 0.


@contextmanager
def handle_of(server: socket.socket) -> Iterator[StatefulProcessorHandle]:
    """A handle as Spark's worker makes it."""
    client = StatefulProcessorApiClient(server.getsockname()[1], _KEY)
    try:
        yield StatefulProcessorHandle(client)
    finally:
        client.sockfile.close()
        client._client_socket.close()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_server, "FIRST_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(state_server, "ANSWER_SECONDS", 0.3)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as made:
        yield made


@pytest.mark.parametrize("accepts", [False, True])
def test_a_state_server_that_never_answers_is_an_error(server: socket.socket, accepts: bool) -> None:
    with handle_of(server) as handle, ExitStack() as stack:
        if accepts:
            stack.enter_context(server.accept()[0])
        with pytest.raises(
            RunnerError, match=r"has not answered a task for 0\.2 seconds(.|\n)*hint: run the program again"
        ):
            SeedProcessor(1, 1, ()).init(handle)


def _answer(server: socket.socket, answers: int) -> None:
    """Accepts a connection and answers some requests; then it stays silent for as long as the other side waits."""
    with server.accept()[0] as taken, taken.makefile("rb") as asked:
        for _ in range(answers):
            _, length = struct.unpack("!ii", asked.read(8))
            asked.read(length)
            taken.sendall(_GOOD)
        asked.read()


@pytest.mark.parametrize("many", [False, True], ids=["one at a time", "many at a time"])
def test_a_state_server_that_stops_answering_is_an_error(server: socket.socket, many: bool) -> None:
    answering = Thread(target=_answer, args=(server, 2), daemon=True)
    answering.start()
    with handle_of(server) as handle:
        processor = SeedProcessor(1, 1, ())
        processor.init(handle)
        store = PageStore(processor._pages, "Count")
        assert store._pipeline is not None
        assert store.get_many([1]) == [None]
        ask = partial(store.get_many, [1, 2]) if many else partial(processor._pages.getValue, ("Count", 1))
        with pytest.raises(RunnerError, match=r"has not answered a task for 0\.3 seconds"):
            ask()
    answering.join(20)
    assert not answering.is_alive()


def test_a_state_that_has_no_socket_is_asked_as_before() -> None:
    pages = object()
    handle: Any = SimpleNamespace(getMapState=lambda *_: pages)
    processor = SeedProcessor(1, 1, ())
    processor.init(handle)
    assert processor._pages is pages
