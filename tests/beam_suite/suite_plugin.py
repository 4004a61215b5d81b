"""The plugin of pytest under which Beam's tests run: groups, expected failures, one Spark session, a time limit."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.beam_suite.engines import engine
from tests.beam_suite.porting import PACKAGE, PLACEHOLDERS, Modules, expected_failures
from tests.beam_suite.public_names import inner_part

GROUPS = ("run", "eager", "unit")
SECONDS_MAX = int(os.environ.get("BEAM_SUITE_SECONDS", "120"))
ENGINE = os.environ.get("BEAM_SUITE_ENGINE", "spark")
COUNTS_FILE = os.environ.get("BEAM_SUITE_COUNTS")


class _Seen:
    """What the test that runs now has done so far, and the outcome of each test."""

    def __init__(self) -> None:
        self.made_pipeline = False
        self.applied_to_values = False
        self.groups: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.skipped: set[str] = set()
        self.ran: set[str] = set()
        self.inner: dict[str, str] = {}

    def group(self) -> str:
        if self.applied_to_values:
            return "eager"
        return "run" if self.made_pipeline else "unit"


seen = _Seen()
expected = expected_failures() | (expected_failures("on_spark") if ENGINE == "spark" else {})


def name_of(node_id: str) -> str:
    """A test's name in the data files, such as ``io/utils_test.py::Class::test``."""
    return node_id.partition(f"{PACKAGE}/")[2] or node_id


def pytest_configure(config: pytest.Config) -> None:
    _watch_pipelines()


def _watch_pipelines() -> None:
    """Notes who makes a pipeline, and has pipelines run by the chosen engine."""
    from penstock.pipeline import Pipeline
    from penstock.transforms import applying
    from penstock_spark.runner import SparkRunner

    construct, at_once = Pipeline.__init__, applying._run_at_once

    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        seen.made_pipeline = True
        construct(self, *args, **kwargs)

    def applied(*args: Any) -> Any:
        seen.applied_to_values = True
        return at_once(*args)

    Pipeline.__init__ = constructed  # type: ignore[method-assign]
    applying._run_at_once = applied
    SparkRunner.run_pipeline = engine(ENGINE, SparkRunner.run_pipeline)  # type: ignore[method-assign]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sys.modules[PLACEHOLDERS].loading[0] = 0
    modules = Modules.read()
    left_out = (*modules.left_out_tests, *(modules.in_one_process if ENGINE == "spark" else ()))
    # A name may also be a class, with all its tests.
    gone = [
        item for item in items if f"{name_of(item.nodeid)}::".startswith(tuple(f"{n}::" for n in left_out))
    ]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]
    for item in items:
        if name_of(item.nodeid) in expected:
            item.add_marker(pytest.mark.xfail(reason=expected[name_of(item.nodeid)], strict=True))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # All classes of options that live are known to each pipeline, and a positional one reads what the others leave.
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()


class TookTooLong(Exception):
    """A test took longer than `SECONDS_MAX`."""


def pytest_collection_finish() -> None:
    # Tests of Beam's collect garbage themselves, and all that was imported is none.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    seen.made_pipeline = seen.applied_to_values = False

    def stop(*_: Any) -> None:
        raise TookTooLong(f"{item.name} takes longer than {SECONDS_MAX} seconds")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        seen.groups[name_of(item.nodeid)] = seen.group()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[pytest.TestReport]:
    report = yield
    inner = inner_part(call.excinfo.value, PACKAGE) if call.excinfo else None
    if inner is not None and report.outcome != "passed":
        seen.inner[name_of(item.nodeid)] = inner
        why = f"it uses {inner}, an inner part of Beam's or a name that docs/beam_names.md leaves out"
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, why)
        vars(report).pop("wasxfail", None)
        if name_of(item.nodeid) in expected:
            report.outcome, report.longrepr = "failed", f"{why}: it is no longer an expected failure"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = name_of(report.nodeid)
    if report.when == "call" or report.outcome == "failed":
        seen.ran.add(name)
    if report.outcome == "failed" or (report.outcome == "skipped" and hasattr(report, "wasxfail")):
        crash = getattr(report.longrepr, "reprcrash", None)
        seen.failed[name] = str(crash.message if crash else report.longrepr).partition("\n")[0]
    elif report.outcome == "skipped":
        seen.skipped.add(name)


def counts() -> dict[str, dict[str, int]]:
    """How many tests of each group passed, and of how many; a test that Beam skips counts in neither."""
    of: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for name in seen.ran - (seen.skipped - seen.failed.keys()) - seen.inner.keys():
        group = seen.groups.get(name, "unit")
        of[group] += 1
        passed[group] += name not in seen.failed
    return {group: {"passed": passed[group], "of": of[group]} for group in GROUPS if of[group]}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("Beam's own tests")
    for group, count in counts().items():
        share = 100 * count["passed"] / count["of"]
        terminalreporter.line(f"{group}: {count['passed']} pass of {count['of']} ({share:.1f} %)")
    terminalreporter.line(f"not counted: {len(seen.inner)} that use inner parts or names that are left out")


def pytest_sessionfinish(session: pytest.Session) -> None:
    from pyspark.sql import SparkSession

    if COUNTS_FILE:
        found = {
            "counts": counts(),
            "failed": seen.failed,
            "skipped": sorted(seen.skipped - seen.inner.keys()),
            "groups": seen.groups,
            "inner": seen.inner,
        }
        Path(COUNTS_FILE).write_text(json.dumps(found, indent=1), encoding="utf-8")
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
