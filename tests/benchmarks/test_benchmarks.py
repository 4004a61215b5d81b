"""The benchmarks run: with tiny inputs, and whatever the machine is doing, so that no time is looked at."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.benchmark_programs import BENCHMARKS, TAKES_MINUTES, Load, numbers_of, run_program


@pytest.mark.spark
@TAKES_MINUTES
def test_one_command_compares_entrants_in_turns_and_writes_their_numbers(tmp_path: Path) -> None:
    printed = run_program("run.py", tmp_path, "steps", "--scale=0.001", "--runs=2", f"--results={tmp_path}")
    numbers = json.loads((tmp_path / "steps.json").read_text())
    assert list(numbers["entrants"]) == ["one_step", "many_steps"]
    assert numbers["entrants"]["one_step"]["speed_by_wall"] == 1
    for entrant in numbers["entrants"].values():
        assert len(entrant["runs"]) == 2
        assert all(run["wall_seconds"] > 0 and run["peak_megabytes"] > 0 for run in entrant["runs"])
    assert numbers["title"] in printed


def test_a_wrong_missing_or_second_total_is_found(load: Load, tmp_path: Path) -> None:
    workloads = load("workloads")
    source = workloads.WORD_COUNT.make_input(tmp_path, 1_000)
    totals = json.loads(source.with_suffix(".json").read_text())
    right = [f"{word}\t{count}\n" for word, count in totals.items()]
    part = tmp_path / "part-0"
    part.write_text("".join(right))
    load("workload").check(source, tmp_path)
    for wrong in (
        right[1:],
        [*right, right[0]],
        [*right, "unheard\t1\n"],
        [right[0].replace("\t", "\t9"), *right[1:]],
    ):
        part.write_text("".join(wrong))
        with pytest.raises(AssertionError):
            load("workload").check(source, tmp_path)


def test_no_run_writes_where_another_wrote_even_if_that_folder_comes_back(load: Load, tmp_path: Path) -> None:
    targets = load("targets")
    first = targets.empty_target(tmp_path, "sums")
    (targets.checkpoint_of(first) / "spark").mkdir(parents=True)
    second = targets.empty_target(tmp_path, "sums")
    assert not targets.checkpoint_of(first).exists()
    (targets.checkpoint_of(first) / "spark").mkdir(parents=True)
    assert second.parent.is_dir()
    assert not second.exists()
    assert not targets.checkpoint_of(second).exists()


def test_inputs_are_the_same_every_time_and_smaller_ones_are_the_beginning_of_larger_ones(
    load: Load, tmp_path: Path
) -> None:
    for workload in load("workloads").WORKLOADS:
        first, second = (workload.make_input(tmp_path / name, 200).read_bytes() for name in "ab")
        smaller = workload.make_input(tmp_path / "a", 100).read_bytes()
        assert first == second
        if workload.form == "parquet":
            continue
        assert first.startswith(smaller)
        assert 0 < len(smaller) < len(first)


@pytest.mark.parametrize("module", ["lines", "report", "stream_report", "totals"])
def test_the_examples_in_the_benchmarks_are_right(load: Load, module: str) -> None:
    done = doctest.testmod(load(module))
    assert done.attempted > 0
    assert done.failed == 0


def test_building_and_explaining_is_measured(load: Load, tmp_path: Path) -> None:
    results = tmp_path / "construction.json"
    load("construction").main(["--transforms=20", "--runs=1", f"--results={results}"])
    numbers = json.loads(results.read_text())
    assert numbers["transforms"] == 20
    assert all(numbers[shape]["build_seconds"] >= 0 for shape in ("chain", "branches"))


def test_the_cost_of_open_windows_is_measured(load: Load, tmp_path: Path) -> None:
    results = tmp_path / "open_windows.json"
    benchmark = load("open_windows")
    benchmark.main(["--windows=20", "--runs=1", f"--results={results}"])
    numbers = json.loads(results.read_text())
    assert all(numbers[case]["few_micros"] > 0 and numbers[case]["ratio"] > 0 for case in benchmark.CASES)


@pytest.mark.spark
def test_a_tiny_pipeline_is_measured(
    load: Load, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "latency.json"
    load("latency").main(["--warming-runs=1", "--runs=2", "--profile", f"--results={results}"])
    numbers = json.loads(results.read_text())
    assert {"frames", "penstock"} < set(numbers["contenders"])
    for found in numbers["contenders"].values():
        assert len(found["wall_seconds"]) == 2
        assert min(found["wall_seconds"]) <= found["median_wall_seconds"] <= max(found["wall_seconds"])
    assert "function calls" in capsys.readouterr().out


@pytest.mark.spark
@TAKES_MINUTES
def test_sql_is_measured_and_both_sides_give_the_same_rows(tmp_path: Path) -> None:
    options = ["--rows=20000", "--events=4000", "--queries=20", "--turns=2", "--warming-turns=0"]
    numbers, printed = numbers_of("sql_speed.py", tmp_path, *options)
    assert "20 generated queries" in printed
    assert 0 < numbers["planning"]["cpu_seconds"] < 2
    for found in (*numbers["batch"].values(), *numbers["stream"].values()):
        assert found["speed_by_wall"] > 0
        assert all(len(found[side]["wall_seconds_of_runs"]) == 2 for side in ("native", "penstock"))


def test_the_processor_time_of_what_a_program_leaves_behind_is_counted(tmp_path: Path) -> None:
    program = tmp_path / "leaves.py"
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    program.write_text(f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {burn!r}])\n")
    # In a process of its own, which may become the parent of orphans and wait for all of its children.
    measure = (
        "import startup, sys; from pathlib import Path; startup.adopt_orphans(); "
        "print(startup.timed(Path(sys.argv[1]), (), {}, Path(sys.argv[2]))[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", measure, str(program), str(tmp_path / "log")],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) >= 0.5


def test_the_peak_of_memory_is_that_since_it_was_forgotten(load: Load) -> None:
    processes = load("processes")
    processes.forget_peaks(os.getpid())
    before = processes.tree_peak_megabytes(os.getpid())
    bytearray(b"x") * 100_000_000
    assert processes.tree_peak_megabytes(os.getpid()) > before + 80


@pytest.mark.spark
@TAKES_MINUTES
def test_whole_processes_are_measured(tmp_path: Path) -> None:
    options = ["--runs=1", "--contenders", "pyspark", "penstock"]
    numbers, printed = numbers_of("startup.py", tmp_path, *options)
    assert "PySpark" in printed
    for found in numbers["contenders"].values():
        # Java alone takes seconds; a program whose processes are not all counted would have taken much less.
        assert found["median_cpu_seconds"] > 2
        assert found["median_wall_seconds"] > 0
