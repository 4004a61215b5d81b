"""The table of a task that another session has dropped, on the simulated server."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg")
pytest.importorskip("sqlalchemy")
import pyarrow as pa

from penstock_connectors.database import postgres
from penstock_connectors.database.address import Address
from penstock_connectors.database.errors import RowsLost
from penstock_connectors.database.layout import Layout
from penstock_connectors.database.pages import Page
from penstock_spark.sinks.plan import MicroBatch
from tests.simulation.mutant import Mutant
from tests.simulation.simulated_database import URL, Server
from tests.simulation.simulated_world import CALM, World

ADDRESS = Address(URL, "lines", URL, "at step 'Write'")
LAYOUT = Layout(pa.schema([("line", pa.string())]), (), "insert", "rows", "at step 'Write'")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server(World(1, CALM), 1, 0.0)
    monkeypatch.setattr(postgres, "connect", made.connect)
    return made


def test_the_driver_takes_it_for_lost(server: Server) -> None:
    """A crash takes the lock of its driver, and another driver drops the tables that no session has locked."""
    writer = postgres.PostgresWriter(ADDRESS, LAYOUT, True, "0123456789ab")
    writer.begin("a stream", 1)
    with pytest.raises(RowsLost):
        writer.commit([Page(2, table="penstock_staged_0123456789ab_1")], MicroBatch(0, "a stream"))
    # Nothing of the transaction was written: the rows may come again.
    writer.commit([Page(1, b"a\n")], MicroBatch(0, "a stream"))
    assert server.tables["lines"].rows == [(0, "a")]


def test_its_task_takes_it_for_lost(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "INLINE_BYTES", 1)
    monkeypatch.setattr(postgres, "CHUNK_BYTES", 1)
    rows = postgres.StagedRows(ADDRESS, LAYOUT, "0123456789ab")
    rows.encode([{"line": "a"}])
    [name] = server.tables
    del server.tables[name]
    with pytest.raises(RowsLost):
        rows.encode([{"line": "b"}])


def test_tables_that_could_not_be_dropped_go_at_the_end(server: Server) -> None:
    assert tables_at_the_end(server) == []


def test_a_driver_that_forgets_tables_which_it_could_not_drop_is_found(server: Server) -> None:
    # Few programs of the simulation break off in just this moment, and write nothing more.
    forgets = Mutant(
        "tables that could not be dropped stay",
        postgres.PostgresWriter,
        "tidy",
        "self._has_left = True",
        "pass",
    )
    with forgets.applied():
        assert tables_at_the_end(server) != []


def tables_at_the_end(server: Server) -> list[str]:
    """The tables of tasks that a driver leaves, whose connection breaks when it drops them for the first time."""
    driver = "0123456789ab"
    writer = postgres.PostgresWriter(ADDRESS, LAYOUT, True, driver)
    writer.begin("a stream", 1)
    rows = postgres.StagedRows(ADDRESS, LAYOUT, driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "INLINE_BYTES", 1)
        rows.encode([{"line": "of a task that has failed"}])
        fates = iter(["before"])
        patch.setattr(server, "fate", lambda is_commit: next(fates, ""))
        writer.tidy()
    assert [name for name in server.tables if name.startswith("penstock_staged_")] != []
    writer.close()
    return [name for name in server.tables if name.startswith("penstock_staged_")]
