"""Plans a sink of a database.

The modules that need SQLAlchemy and psycopg are imported when a run starts, and not with the runner.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from penstock.io.database import DatabaseSink
from penstock_connectors.database.address import Address
from penstock_connectors.database.errors import are_rows_lost
from penstock_connectors.database.layout import Layout
from penstock_connectors.database.pages import SCHEMA, pages_of
from penstock_spark.connecting.writing import Encoder, MicroBatch, SinkPlan

if TYPE_CHECKING:
    from penstock_connectors.database.postgres import PostgresWriter
    from penstock_connectors.database.through_driver import DriverWriter

_ATTEMPTS = 3
_LOGGER = logging.getLogger(__name__)


def check_database(sink: DatabaseSink, where: str) -> None:
    """Refuses what would fail later, before a run starts."""
    address, layout = Address.of(sink, where), Layout.of(sink, where)
    address.parse()  # Refuses a package that is missing.
    from penstock_connectors.database.check import check_table

    check_table(address, layout, sink.create)


@dataclass(frozen=True)
class _Encoders:
    """Makes the encoder of a task; the tasks need not ask what kind of database it is."""

    address: Address
    layout: Layout
    driver: str

    def __call__(self) -> Encoder:
        if self.address.is_postgres:
            from penstock_connectors.database.postgres import StagedRows

            return StagedRows(self.address, self.layout, self.driver)
        from penstock_connectors.database.through_driver import ArrowRows

        return ArrowRows(self.layout)


@dataclass
class _Writers:
    """The writer of a run, made when it first commits: a plan that is only explained needs no database."""

    make: Callable[[], PostgresWriter | DriverWriter]
    found: list[PostgresWriter | DriverWriter] = field(default_factory=list)

    def get(self) -> PostgresWriter | DriverWriter:
        if not self.found:
            self.found.append(self.make())
        return self.found[0]

    def close(self) -> None:
        while self.found:
            self.found.pop().close()


def plan_database(sink: DatabaseSink, is_stream: bool, where: str) -> SinkPlan:
    address, layout = Address.of(sink, where), Layout.of(sink, where)
    # Names this plan, and so one run of one driver.
    driver = secrets.token_hex(6)

    def make() -> PostgresWriter | DriverWriter:
        if address.is_postgres:
            from penstock_connectors.database.postgres import PostgresWriter

            return PostgresWriter(address, layout, sink.create, driver)
        from penstock_connectors.database.through_driver import DriverWriter

        return DriverWriter(address, layout, sink.create, driver)

    writers = _Writers(make)

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        writer = writers.get()
        try:
            writer.begin(batch.stream, batch.claim)
            for attempt in range(_ATTEMPTS):
                try:
                    pages = pages_of(frame)
                    batch.check()
                    writer.commit(pages, batch)
                    break
                except Exception as error:
                    # The tasks have to make the rows again.
                    if attempt + 1 == _ATTEMPTS or not are_rows_lost(error):
                        raise
                    _LOGGER.warning("%s; it is tried again", str(error).splitlines()[0])
                finally:
                    writer.tidy()
        finally:
            if not batch.stream:
                writers.close()
        return []

    def is_committed(batch: MicroBatch) -> bool:
        try:
            return writers.get().is_committed(batch)
        finally:
            writers.close()

    make_encoder = _Encoders(address, layout, driver)
    return SinkPlan(SCHEMA, make_encoder, None, commit, is_committed=is_committed, close=writers.close)
