"""The pages of connectors name every argument that the code has, and their tables say what the sources do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import from_dataframe, to_dataframe, to_streaming_dataframe
from penstock.io.console import WriteToConsole
from penstock.io.custom.ranges import NumberedSource, RangeSource, ReadFromSource
from penstock.io.database import ReadFromDatabase, WriteToDatabase
from penstock.io.delta import ReadChangesFromDelta, ReadFromDelta, WriteToDelta
from penstock.io.external.generate_sequence import GenerateSequence
from penstock.io.iceberg import ReadFromIceberg, WriteToIceberg
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.io.sparkio import ReadFromSpark, WriteToSpark
from penstock.io.streaming.periodic_sequence import PeriodicImpulse
from penstock.io.streaming.stream_sources import Streamable

DOCS = Path(__file__).parents[1] / "docs"
INDEX = (DOCS / "connectors.md").read_text(encoding="utf-8")
PAGES = sorted((DOCS / "connectors").glob("*.md"))
REJECTS = (DOCS / "rejects.md").read_text(encoding="utf-8").partition("## What each source rejects\n")[2]

WITH_OPTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        GenerateSequence,
        PeriodicImpulse,
        ReadChangesFromDelta,
        ReadChangesFromPostgres,
        ReadFromDatabase,
        ReadFromDelta,
        ReadFromIceberg,
        ReadFromKafka,
        ReadFromSpark,
        WriteToConsole,
        WriteToDatabase,
        WriteToDelta,
        WriteToIceberg,
        WriteToKafka,
        WriteToSpark,
        from_dataframe,
        to_dataframe,
        to_streaming_dataframe,
    )
}
WITH_OPTIONS["with_concurrency"] = beam.ParDo.with_concurrency
ELSEWHERE = {"expansion_service", "rejects", "self", "unsupported"}
"""Arguments without an effect, and `rejects`, which all sources explain on a page of their own."""


def tables_of_options() -> dict[str, set[str]]:
    """The names in the first column of each table of arguments, by what takes them."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for table in re.finditer(r"^\| argument of `(\w+)` .*\n(?:\|.*\n)+", text, re.MULTILINE):
            cells = [line.split("|")[1] for line in table[0].splitlines()[2:]]
            found[table[1]] = set(re.findall(r"`(\w+)`", " ".join(cells)))
    return found


def test_the_tables_of_options_have_all_arguments() -> None:
    written = tables_of_options()
    arguments = {
        name: set(inspect.signature(each).parameters) - ELSEWHERE for name, each in WITH_OPTIONS.items()
    }
    assert written == arguments


def test_the_table_of_a_source_of_ones_own_has_its_attributes() -> None:
    page = (DOCS / "connectors/own_sources.md").read_text(encoding="utf-8")
    table = re.search(r"^\| attribute of a `RangeSource` .*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert table is not None
    named = re.findall(r"^\| `(\w+)`", table[0], re.MULTILINE)
    own = [name for name in vars(RangeSource) if not name.startswith("_")]
    assert named == [name for name in own if not callable(getattr(RangeSource, name))]


class Nothing(NumberedSource[int]):
    def bounds(self) -> dict[str, tuple[int, int]]:
        return {}

    def read(self, piece: object) -> Any:
        yield []


BROKERS = {"bootstrap.servers": "kafka:9092"}
SOURCES: dict[str, list[Any]] = {
    "[text]": [
        beam.io.ReadFromText("/a", validate=False),
        beam.io.ReadFromCsv("/a"),
        beam.io.ReadFromJson("/a"),
    ],
    "[Parquet]": [beam.io.ReadFromParquet("/a", validate=False)],
    "[Avro]": [beam.io.ReadFromAvro("/a", validate=False)],
    "[ORC, TFRecord]": [
        beam.io.ReadFromOrc("/a", validate=False),
        beam.io.ReadFromTFRecord("/a", validate=False),
    ],
    "[Kafka]": [ReadFromKafka(BROKERS, ["a"], timestamp_policy="CreateTime")],
    "[Database]": [ReadFromDatabase("sqlite:///a.db", "a")],
    "[Changes of a PostgreSQL table]": [
        ReadChangesFromPostgres("postgresql://db/a", "a", slot="a", publication="a")
    ],
    "[Delta table]": [ReadFromDelta("/a")],
    "[Changes of a Delta table]": [ReadChangesFromDelta("/a")],
    "[Iceberg table]": [ReadFromIceberg("a.b")],
    "[Source of your own]": [ReadFromSource(Nothing())],
}


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of the index."""
    section = INDEX.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("name", SOURCES, ids=lambda name: name.strip("[]"))
def test_the_index_says_which_sources_are_streams(name: str) -> None:
    [row] = [row for row in rows_of("What a source delivers") if row[0].startswith(name)]
    for read in SOURCES[name]:
        source = read.source
        assert isinstance(source, Streamable)
        assert row[2].startswith("yes") == (source.why_no_stream() is None), source.describe()
        assert source.has_times == ("own" in row[4]) or isinstance(read, ReadFromSource)


@pytest.mark.parametrize("name", SOURCES, ids=lambda name: name.strip("[]"))
def test_the_index_says_which_sources_keep_rejects_in_a_batch(name: str) -> None:
    [row] = [row for row in rows_of("What a source delivers") if row[0].startswith(name)]
    for read in SOURCES[name]:
        # `ReadFromCsv` and `ReadFromJson` are functions.
        made_by = getattr(beam.io, read.label, type(read))
        keeps_them = "rejects" in inspect.signature(made_by).parameters
        assert keeps_them == (row[5] != "-" and not row[5].startswith("in a stream")), read.label
        assert keeps_them == (f"`{made_by.__name__}`" in REJECTS), read.label


def test_each_page_says_the_same_things_and_is_in_the_index() -> None:
    assert len(PAGES) > 8
    for page in PAGES:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for heading in ("The smallest program", "What is refused", "Known gaps"):
            assert heading in headings, page
        assert f"](connectors/{page.name})" in INDEX
        assert f"\nconnectors/{page.stem}\n" in INDEX
