"""A pipeline that needs a package which is not installed says so before Spark starts, whatever its format."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io.avroio import ReadAllFromAvro
from penstock.io.database import ReadFromDatabase, WriteToDatabase
from penstock.io.delta import ReadChangesFromDelta, ReadFromDelta, WriteToDelta
from penstock.io.iceberg import ReadFromIceberg, WriteToIceberg
from penstock.io.kafka import AvroDeserializer, ReadFromKafka, WriteToKafka
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.io.tfrecordio import ReadAllFromTFRecord, ReadFromTFRecord, WriteToTFRecord
from penstock_connectors import packages
from penstock_spark.formats.connectors import GROUP
from penstock_spark.formats.format import Format
from penstock_spark.formats.packages import Package
from penstock_spark.formats.registry import FORMATS, format_of
from penstock_spark.reports.lineage import unwrap_source
from penstock_spark.runs import open_session

SCHEMA = {"type": "record", "name": "Score", "fields": [{"name": "user", "type": "string"}]}
URL = "postgresql://amy@127.0.0.1:9/sales"
KAFKA = {"bootstrap.servers": "127.0.0.1:9"}
CATALOG = {"type": "sql", "uri": "sqlite://"}
READS: dict[str, tuple[str, Any]] = {
    "ReadFromAvro": ("fastavro", beam.io.ReadFromAvro("/scores", validate=False)),
    "ReadFromTFRecord": ("google_crc32c", ReadFromTFRecord("/scores", validate=False)),
    "ReadFromDelta": ("deltalake", ReadFromDelta("/scores")),
    "ReadFromDelta as a stream": ("deltalake", ReadFromDelta("/scores").as_stream()),
    "ReadChangesFromDelta": ("deltalake", ReadChangesFromDelta("/scores")),
    "ReadFromIceberg": ("pyiceberg", ReadFromIceberg("sales.scores", CATALOG)),
    "ReadFromKafka": ("confluent_kafka", ReadFromKafka(KAFKA, ["scores"])),
    "ReadFromKafka as a stream": ("confluent_kafka", ReadFromKafka(KAFKA, ["scores"]).as_stream()),
    "AvroDeserializer": (
        "fastavro",
        ReadFromKafka(KAFKA, ["scores"], value_deserializer=AvroDeserializer(SCHEMA)).as_stream(),
    ),
    "ReadFromDatabase": ("sqlalchemy", ReadFromDatabase("sqlite:///scores", "scores")),
    "ReadFromDatabase of PostgreSQL": ("psycopg", ReadFromDatabase(URL, "scores")),
    "ReadChangesFromPostgres": (
        "psycopg",
        ReadChangesFromPostgres(URL, "scores", slot="penstock", publication="scores"),
    ),
}
READS_OF_ELEMENTS: dict[str, tuple[str, Any]] = {
    "ReadAllFromAvro": ("fastavro", ReadAllFromAvro()),
    "ReadAllFromTFRecord": ("google_crc32c", ReadAllFromTFRecord()),
}
WRITES: dict[str, tuple[str, Any]] = {
    "WriteToAvro": ("fastavro", beam.io.WriteToAvro("/scores", SCHEMA)),
    "WriteToTFRecord": ("google_crc32c", WriteToTFRecord("/scores")),
    "WriteToDelta": ("deltalake", WriteToDelta("/scores")),
    "WriteToIceberg": ("pyiceberg", WriteToIceberg("sales.scores", CATALOG)),
    "WriteToKafka": ("confluent_kafka", WriteToKafka(KAFKA, "scores")),
    "WriteToDatabase": ("sqlalchemy", WriteToDatabase("sqlite:///scores", "scores")),
    "WriteToDatabase of PostgreSQL": ("psycopg", WriteToDatabase(URL, "scores")),
}


class Score(NamedTuple):
    user: str


KNOWN = {value.module: value for value in vars(packages).values() if isinstance(value, Package)}


def test_each_format_that_needs_a_package_is_tried_below() -> None:
    tried = {}
    for _, transform in [*READS.values(), *WRITES.values()]:
        description = unwrap_source(getattr(transform, "source", None) or transform.sink)
        kind = type(description)
        tried[f"{kind.__module__}.{kind.__qualname__}"] = format_of(description)
    own = [point for point in entry_points(group=GROUP) if point.module.startswith("penstock_connectors.")]
    assert tried == {point.name: point.load() for point in own}
    assert all(format.packages is not Format.packages for format in tried.values())
    assert all(format.packages is Format.packages for format in FORMATS.values())
    assert {module for module, _ in [*READS.values(), *WRITES.values()]} == KNOWN.keys()


@pytest.mark.parametrize("label", [*READS, *READS_OF_ELEMENTS, *WRITES])
def test_a_package_that_is_not_installed_is_named_before_spark_starts(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, transform = {**READS, **READS_OF_ELEMENTS, **WRITES}[label]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(
        open_session, "session_for", lambda *arguments, **keywords: pytest.fail("Spark starts")
    )

    def run() -> None:
        pipeline = beam.Pipeline()
        start = (
            pipeline
            if label in READS
            else pipeline | beam.Create([Score("amy") if label in WRITES else "/scores"])
        )
        _ = start | label >> transform
        pipeline.run()

    with pytest.raises(ModuleNotFoundError) as caught:
        run()
    what, where, hint = str(caught.value).splitlines()
    package = KNOWN[module]
    assert what.endswith(f" need the package {package.name}, which is not installed")
    assert where.startswith(f"  at step '{label}")
    assert hint == f"  hint: pip install 'penstock[{package.extra}]'"


def test_each_package_is_of_an_extra_of_penstock() -> None:
    extras = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    for package in KNOWN.values():
        needed = " ".join(extras["project"]["optional-dependencies"][package.extra])
        assert package.name in needed or package.extra == "postgres"
