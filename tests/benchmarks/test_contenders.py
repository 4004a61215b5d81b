"""Whoever is measured finds the totals that plain Python finds, of every workload that it has a part in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from tests.benchmarks.benchmark_programs import BENCHMARKS, TAKES_MINUTES, Load
from tests.runner.plain_runner import collect, run_plain

_SIZES = {"word_count": 3_000, "large_values": 2, "small_values": 20, "wide_rows": 20}
_SIZE = 400

Side = tuple[str, Path, Path]
"""What is done, from which file, to which folder."""


@pytest.fixture
def sides(load: Load, tmp_path: Path) -> Callable[[str], list[Side]]:
    """What a worker does in all comparisons, with tiny inputs."""

    def found(worker: str) -> list[Side]:
        entrants = {
            (entrant.job, entrant.workload.name): entrant
            for comparison in load("comparisons").COMPARISONS
            for entrant in comparison.entrants
            if entrant.worker == worker
        }
        return [
            (job, entrant.workload.make_input(tmp_path, _SIZES.get(name, _SIZE)), tmp_path / f"{job}-{name}")
            for (job, name), entrant in entrants.items()
        ]

    return found


def _check(load: Load, sides: list[Side], run: Callable[..., None]) -> None:
    assert sides
    for job, source, target in sides:
        run(job, source=str(source), target=str(target))
        load("workload").check(source, target)


def test_the_pipelines_find_the_totals(load: Load, sides: Callable[[str], list[Side]]) -> None:
    bodies = {name: partial(body, penstock) for name, body in load("pipelines").JOBS.items()}
    bodies |= load("shapes").JOBS

    def run(job: str, source: str, target: str) -> None:
        pipeline = penstock.Pipeline()
        lines = pipeline | penstock.Create(Path(source).read_text().splitlines())
        written = collect(bodies[job](lines))
        run_plain(pipeline)
        Path(target).mkdir()
        (Path(target) / "part-0").write_text("".join(f"{line}\n" for line in written))

    ours = sides("penstock")
    assert {job for job, *_ in ours} == set(bodies)
    _check(load, ours, run)


def test_plain_python_finds_the_totals(load: Load, sides: Callable[[str], list[Side]]) -> None:
    _check(load, sides("plain"), load("plain").run)


@TAKES_MINUTES
def test_beam_finds_the_totals(load: Load, sides: Callable[[str], list[Side]]) -> None:
    pytest.importorskip("apache_beam")
    _check(load, sides("beam"), load("contender").CONTENDERS["beam"](2))


@pytest.mark.spark
@TAKES_MINUTES
@pytest.mark.parametrize("worker", ["penstock", "handwritten", "native_sql", "columns", "rdd"])
def test_what_spark_runs_finds_the_totals(
    load: Load,
    sides: Callable[[str], list[Side]],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    worker: str,
) -> None:
    def session(cores: int) -> Any:
        return spark

    contender = load("contender")
    monkeypatch.setattr(contender, "spark_session", session)
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(BENCHMARKS))
    _check(load, sides(worker), contender.CONTENDERS[worker](2))


def test_a_session_ends_where_a_window_of_the_gap_would(load: Load) -> None:
    totals = load("totals")
    at_once, at_the_end = ["ann,red,1,0", "ann,red,2,59"], ["ann,red,1,0", "ann,red,2,60"]
    assert totals.user_sessions(at_once) == {"ann 0": 3}
    assert totals.user_sessions(at_the_end) == {"ann 0": 1, "ann 60": 2}
