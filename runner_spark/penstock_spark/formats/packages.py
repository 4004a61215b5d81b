"""The optional packages of formats: looked for before Spark starts, and imported when they are used and not before."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from penstock.error import refusal


@dataclass(frozen=True)
class Package:
    """A package that an extra of penstock brings.

    Attributes:
        subjects: What needs it.
        name: Its name for pip.
        module: Its name for Python.
        extra: The extra.
    """

    subjects: str
    name: str
    module: str
    extra: str

    def check(self, where: str | None = None) -> None:
        """Raises ModuleNotFoundError if it is not installed; imports nothing but the packages around it."""
        try:
            is_installed = find_spec(self.module) is not None
        except ModuleNotFoundError:
            is_installed = False
        if not is_installed:
            what = f"{self.subjects} need the package {self.name}, which is not installed"
            raise refusal(
                ModuleNotFoundError, what, where=where, hint=f"pip install 'penstock[{self.extra}]'"
            )

    def load(self, where: str | None = None, submodule: str | None = None) -> Any:
        """Imports it, or a module in it; ModuleNotFoundError in three parts if it is not installed."""
        self.check(where)
        return importlib.import_module(self.module if submodule is None else f"{self.module}.{submodule}")


FASTAVRO = Package("Avro files", "fastavro", "fastavro", "avro")
FASTAVRO_OF_RECORDS = Package("records that AvroDeserializer reads", "fastavro", "fastavro", "avro")
GOOGLE_CRC32C = Package("TFRecord files", "google-crc32c", "google_crc32c", "tfrecord")
DELTALAKE = Package("Delta tables", "deltalake", "deltalake", "delta")
PYICEBERG = Package("Iceberg tables", "pyiceberg", "pyiceberg", "iceberg")
CONFLUENT_KAFKA = Package("topics of Kafka", "confluent-kafka", "confluent_kafka", "kafka")
OF_READERS = {"Avro": FASTAVRO, "TFRecord files": GOOGLE_CRC32C}
"""The packages of readers of files, by the names under which `provide_reader` knows the readers."""

SQLALCHEMY = Package("tables of databases", "sqlalchemy", "sqlalchemy", "databases")
PSYCOPG = Package("tables of PostgreSQL", "psycopg", "psycopg", "postgres")
