"""Plans a sink of a database."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.io.database import DatabaseSink
from penstock_spark.formats.database.address import Address
from penstock_spark.formats.database.layout import Layout
from penstock_spark.formats.database.pages import SCHEMA, Page, pages_of
from penstock_spark.formats.database.postgres import PostgresWriter, StagedRows, tidied
from penstock_spark.formats.database.through_driver import CarriedRows, DriverWriter
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan


@dataclass(frozen=True)
class _Encoders:
    """Makes the encoder of a task; the tasks need not ask what kind of database it is."""

    address: Address
    layout: Layout
    driver: str

    def __call__(self) -> Encoder:
        if self.address.is_postgres:
            return StagedRows(self.address, self.layout, self.driver)
        return CarriedRows(self.layout)


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
        kind = PostgresWriter if address.is_postgres else DriverWriter
        return kind(address, layout, sink.create, driver)

    writers = _Writers(make)

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        writer = writers.get()
        try:
            writer.begin(batch.stream)
            if isinstance(writer, PostgresWriter):
                pages: list[Page] = []
                with tidied(writer, pages):
                    pages += pages_of(frame)
                    writer.commit(pages, batch)
            else:
                writer.commit(pages_of(frame), batch)
        finally:
            if not batch.stream:
                writers.close()
        return []

    return SinkPlan(SCHEMA, _Encoders(address, layout, driver), None, commit, close=writers.close)
