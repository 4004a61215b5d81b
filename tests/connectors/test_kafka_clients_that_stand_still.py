"""Clients of Kafka that wait for much longer than they were asked to, as after a clock was set back by hours."""

from __future__ import annotations

import logging
import time
from threading import Event
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from penstock.io.custom.ranges import SourceRange
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock_connectors.kafka import client, sink, source
from penstock_connectors.kafka.client import ClientStalled, abandon, call_in_time
from penstock_connectors.kafka.producers import Clients
from penstock_spark.worker.batch import dumps
from tests.connectors.brokers import Mock, Tansu

pytestmark = pytest.mark.spark


def stand_still(*arguments: Any) -> NoReturn:
    raise ClientStalled


def test_a_call_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LATE_SECONDS", 0.1)
    goes_on = Event()
    with pytest.raises(ClientStalled, match=r"was to wait for 0\.1 seconds(.|\n)*clock has been set back"):
        call_in_time(goes_on.wait, 0.1)
    goes_on.set()
    assert call_in_time(goes_on.wait, 0.1)
    with pytest.raises(LookupError):
        call_in_time(lambda: {}["missing"], 0.1)


def test_nobody_waits_for_a_client_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        gone = Event()

        def __del__(self) -> None:
            time.sleep(0.2)
            self.gone.set()

    monkeypatch.setattr(client, "_FAREWELL_SECONDS", 0.05)
    clients = {"one": Slow()}
    abandon(clients.pop("one"))
    assert not Slow.gone.is_set()
    assert Slow.gone.wait(10)


def test_another_producer_writes_what_is_not_written(tansu: Tansu, caplog: pytest.LogCaptureFixture) -> None:
    topic = tansu.make("stands-still", 1)
    once = WriteToKafka(tansu.config, topic, exactly_once=True, transactions=1).sink
    page, clients = dumps([(topic, b"v", b"k", -1, 0, [])]), Clients()

    def write(batch: int) -> int:
        writing = sink._Writing(once, "here", "penstock-stands-still", batch)
        return sink._write_part(writing, clients, 0, [page])

    assert write(0) == 1
    producer = clients._producers["penstock-stands-still-0"]
    # It stands still behind its commit, so its transaction is done.
    commit, committed = producer.client.commit_transaction, []

    def commit_and_stand_still(seconds: float) -> NoReturn:
        committed.append(commit(seconds))
        stand_still()

    names = ("begin_transaction", "produce", "poll", "send_offsets_to_transaction")
    as_before = {name: getattr(producer.client, name) for name in names}
    producer.client = SimpleNamespace(**as_before, commit_transaction=commit_and_stand_still)
    with caplog.at_level(logging.WARNING):
        assert write(1) == 0
    assert (committed, caplog.text.count("new clients replace the clients")) == ([None], 1)
    # It stands still before anything is written.
    clients._producers["penstock-stands-still-0"].client = SimpleNamespace(begin_transaction=stand_still)
    assert write(2) == 1
    assert len(tansu.consume(topic, 1)) == 3


def test_another_consumer_reads_on(mock: Mock, caplog: pytest.LogCaptureFixture) -> None:
    topic = mock.make("read-on")
    mock.produce(topic, [(0, None, b"%d" % number) for number in range(20)])
    topics = source.Topics(ReadFromKafka(mock.config, [topic]).source)
    piece = SourceRange(f"{topic}/0", 5, 20)
    expected = [element for elements in topics.read(piece) for element in elements]
    assert len(expected) == 15
    consumer = topics._consumer()
    [key] = [key for key, each in source._consumers.items() if each is consumer]
    reads = iter([lambda: consumer.consume(3, 1.0), stand_still])

    def consume(*arguments: Any) -> Any:
        return next(reads)()

    source._consumers[key] = SimpleNamespace(
        assign=consumer.assign, unassign=consumer.unassign, consume=consume
    )
    with caplog.at_level(logging.WARNING):
        assert [element for elements in topics.read(piece) for element in elements] == expected
    assert "another client continues" in caplog.text
