"""Connectors are found by the entry points of installed packages, one by one, and penstock's own in the same way."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from penstock.error import RunnerError, UnsupportedByRunner
from penstock.graph import Graph, Read, Source, Step
from penstock.io.custom.ranges import RangesOfSource, RangeSource
from penstock.io.formats.text_source import TextSource
from penstock.io.kafka import KafkaSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock_spark.formats import connectors
from penstock_spark.formats.connectors import GROUP
from penstock_spark.formats.format import Format
from penstock_spark.formats.registry import FORMATS, format_of, formats_of, open_source
from penstock_spark.plan.column_plan import Columns, ColumnsSource
from penstock_spark.reports.lineage import unwrap_source
from penstock_spark.shipping.user_modules import pickle_by_value_modules
from tests.installing import write_entry_points, write_metadata

ROOT = Path(__file__).parents[2]
CONNECTOR = """
from penstock_spark.connecting.formats import Format

def open_rows(source, spark, where):
    raise AssertionError

ROWS = Format(open_rows)
OTHER = Format(open_rows, takes_streams=False)
NO_FORMAT = open_rows
"""


@dataclass(frozen=True)
class Rows(Source):
    """A source that the runner does not know."""


@dataclass(frozen=True)
class RowsOfTexts(TextSource):
    """A source that the runner knows as one of text."""

    file_pattern: str = "/rows"


KIND = f"{__name__}.Rows"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, with the module of a connector."""
    (tmp_path / "rows_connector.py").write_text(CONNECTOR)
    monkeypatch.syspath_prepend(tmp_path)
    connectors._format_of.cache_clear()
    yield tmp_path
    connectors._format_of.cache_clear()
    sys.modules.pop("rows_connector", None)


def install(folder: Path, value: str, kind: str = KIND, name: str = "rows") -> None:
    write_entry_points(folder, name, {GROUP: {kind: value}})


def test_a_connector_is_found_by_its_entry_point(folder: Path) -> None:
    assert format_of(Rows()) == Format()
    # A class that was unknown may be known later, in a notebook; so another one asks again.
    connectors._format_of.cache_clear()
    install(folder, "rows_connector:ROWS")
    assert format_of(Rows()).open is importlib.import_module("rows_connector").open_rows


def test_a_class_that_derives_from_one_of_the_runner_may_be_of_a_connector(folder: Path) -> None:
    assert format_of(RowsOfTexts()) is FORMATS[TextSource]
    connectors._format_of.cache_clear()
    install(folder, "rows_connector:OTHER", f"{__name__}.RowsOfTexts")
    assert not format_of(RowsOfTexts()).takes_streams
    assert format_of(TextSource("/texts")) is FORMATS[TextSource]


def test_what_a_description_holds_is_not_taken_for_the_description() -> None:
    """A stream and columns stand around a description; what is inside of that is its own affair."""
    held = RangesOfSource(Mock(spec=RangeSource))
    for around in (
        held,
        StreamSource(held, IngressTime()),
        ColumnsSource(held, Columns(None, (), False, "")),
    ):
        assert unwrap_source(around) is held
    assert formats_of(Graph((Step("Read", Read(held)),), ())) == [FORMATS[RangesOfSource]]


def test_two_connectors_for_one_description_are_named(folder: Path) -> None:
    install(folder, "rows_connector:ROWS")
    install(folder, "rows_connector:OTHER", name="more-rows")
    with pytest.raises(RunnerError) as caught:
        format_of(Rows())
    what, where, hint = str(caught.value).splitlines()
    assert what.startswith(f"two connectors claim {KIND}: ")
    assert "rows_connector:ROWS of rows" in what
    assert "rows_connector:OTHER of more-rows" in what
    assert where == "  in the entry points penstock.connectors"
    assert hint.startswith("  hint: uninstall ")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (
            "no_such_connector:ROWS",
            f"the connector for {KIND} cannot be imported: ModuleNotFoundError: No module",
        ),
        ("rows_connector:GONE", f"the connector for {KIND} cannot be imported: AttributeError: "),
        ("rows_connector:NO_FORMAT", f"the connector for {KIND} is not a Format, but function"),
    ],
)
def test_a_connector_that_cannot_be_used_is_named(folder: Path, value: str, what: str) -> None:
    install(folder, value)
    with pytest.raises(RunnerError) as caught:
        format_of(Rows())
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(what)
    assert f"{value} of rows" in lines[1]
    assert lines[2].startswith("  hint: ")
    # It is not remembered: what it lacks may be installed now.
    with pytest.raises(RunnerError):
        format_of(Rows())


def test_an_installation_that_is_older_than_its_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    connectors._format_of.cache_clear()
    monkeypatch.setattr(connectors, "entry_points", lambda group: ())
    with pytest.raises(RunnerError, match="does not know its own connector") as caught:
        format_of(KafkaSource({}, ("clicks",)))
    assert "pip install -e ." in str(caught.value)
    connectors._format_of.cache_clear()


def test_a_source_of_nobody_is_refused_by_name() -> None:
    none: Any = None
    with pytest.raises(UnsupportedByRunner, match=r"penstock cannot read the source Rows\n  at step 'Rows'"):
        open_source(Rows(), none, "at step 'Rows'")


def test_the_code_of_a_connector_that_is_not_installed_on_workers_is_sent_along(folder: Path) -> None:
    install(folder, "rows_connector:ROWS")
    graph: Any = SimpleNamespace(steps=[SimpleNamespace(primitive=Read(Rows()))])
    found = pickle_by_value_modules(formats_of(graph))
    assert [module.__name__ for module in found] == ["rows_connector"]
    assert pickle_by_value_modules([format_of(KafkaSource({}, ("clicks",)))]) == ()


def test_penstocks_own_connectors_are_what_its_project_says() -> None:
    points = entry_points(group=GROUP)
    own = {point.name: point.value for point in points if point.module.startswith("penstock_connectors.")}
    folder_of = {name: importlib.import_module(name.rpartition(".")[0]) for name in own}
    assert all(hasattr(module, name.rpartition(".")[2]) for name, module in folder_of.items())
    assert {value.partition(":")[0].rpartition(".")[2] for value in own.values()} == {
        path.parent.name for path in (ROOT / "connectors/penstock_connectors").glob("*/__init__.py")
    }


def test_the_metadata_that_tests_write_is_that_of_pip(tmp_path: Path) -> None:
    write_metadata(ROOT, tmp_path)
    [written] = tmp_path.glob("*.dist-info/entry_points.txt")
    lines = [line for line in written.read_text().splitlines() if line.startswith("penstock.io.")]
    points = entry_points(group=GROUP)
    assert sorted(lines) == sorted(
        f"{point.name} = {point.value}" for point in points if point.name.startswith("penstock.io.")
    )


def test_a_run_imports_no_connector_but_the_one_that_it_needs() -> None:
    program = """
import sys
import penstock as beam
from penstock.io.kafka import ReadFromKafka
from penstock.options.pipeline_options import PipelineOptions
from penstock_spark.runner import SparkRunner

def connectors():
    return sorted({name.split(".")[1] for name in sys.modules if name.startswith("penstock_connectors.")})

pipeline = beam.Pipeline()
_ = pipeline | beam.Create([1]) | beam.io.WriteToText("/tmp/a")
pipeline.explain()
print(connectors())
pipeline = beam.Pipeline()
_ = pipeline | ReadFromKafka({"bootstrap.servers": "127.0.0.1:9"}, ["clicks"]) | beam.Map(print)
from penstock_spark.formats.registry import check_packages
check_packages(pipeline.to_graph())
print(connectors())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["[]", "['kafka', 'packages']"], run.stderr
