"""The files under deploy: they parse, and name only options, files and metrics that exist."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.options.pipeline_options import PipelineOptions
from penstock.runners.runner import PipelineState
from penstock_spark.live import prometheus
from penstock_spark.live.elements import StepElements
from penstock_spark.live.prometheus import metrics_text
from penstock_spark.live.snapshot import GroupingNow, MicroBatch, RunSnapshot, SourceNow

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
OF_PROMETHEUS = {"up"}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))


def strings(value: object) -> Iterator[str]:
    """Yields all strings in a document."""
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from strings(each)
        case list():
            for each in value:
                yield from strings(each)


def exported() -> set[str]:
    """The metrics that a run may export."""
    full = RunSnapshot(
        *("name", "run", "streaming", PipelineState.RUNNING, 0, 1),
        processing_lag_micros=1,
        rows_in=1,
        elements=(StepElements("step", 1, 1),),
        sources=(SourceNow("source", 1, 1.0, 1, 1, 1, 1, 1),),
        groupings=(
            GroupingNow("grouping", 1, 1, 1, 1, open_windows=1, early=1, on_time=1, late=1, retracted=1),
        ),
        micro_batches=(MicroBatch(1, 1, 1, {"triggerExecution": 1}),),
    )
    return set(re.findall(r"^# TYPE (\S+)", metrics_text(full), re.MULTILINE))


def expressions() -> list[str]:
    [alerts] = documents("monitoring/alerts.yaml")
    rules = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    panels = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text("utf-8"))["panels"]
    return rules + [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_document_has_content(path: Path) -> None:
    assert all(isinstance(each, dict) and each for each in documents(str(path.relative_to(DEPLOY))))


@pytest.mark.parametrize(
    "name", ["compose.yaml", "kubernetes/stream.yaml", "kubernetes/spark_application.yaml"]
)
def test_command_lines_have_only_options_that_exist(name: str) -> None:
    flags = [each for document in documents(name) for each in strings(document) if each.startswith("--")]
    of_penstock = [each for each in flags if "_" in each.partition("=")[0] or each.startswith("--master=s")]
    assert len(of_penstock) >= 4
    parsed = PipelineOptions(of_penstock).get_all_options()
    for flag in of_penstock:
        option = flag.removeprefix("--").partition("=")[0]
        assert parsed[option], f"{flag} is not an option"


def test_alerts_and_panels_use_metrics_that_a_run_exports() -> None:
    named = {
        name for each in expressions() for name in re.findall(r"\b(penstock_\w+|up)\b(?=[{)\s\[]|$)", each)
    }
    assert len(named) >= 10
    assert named - OF_PROMETHEUS <= exported()


def test_a_metric_that_no_run_exports_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_sources", lambda now, run: iter(()))
    with pytest.raises(AssertionError, match="penstock_source_backlog"):
        test_alerts_and_panels_use_metrics_that_a_run_exports()


def test_the_image_copies_only_what_is_in_the_repository() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    names = [name for words in copied for name in words]
    assert "runner_spark" in names
    assert [name for name in names if not (ROOT / name).exists()] == []
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    wheel = re.findall(r'^    "(\w+)/', text[text.index("targets.wheel") :], re.MULTILINE)
    assert set(wheel) <= set(names)


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.py")), ids=lambda path: path.name)
def test_programs_parse_and_say_what_they_are(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_the_page_lists_every_file() -> None:
    page = (DEPLOY / "README.md").read_text("utf-8")
    named = {name for name in re.findall(r"\]\(([\w./]+)\)", page) if not name.startswith("..")}
    found = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*") if path.is_file()} - {"README.md"}
    assert {name for name in found if name not in named and name.partition("/")[0] not in named} == set()
    assert [name for name in named if not (DEPLOY / name).exists()] == []
