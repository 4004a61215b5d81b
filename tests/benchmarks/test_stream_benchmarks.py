"""The benchmarks of streams run: with tiny inputs, and whatever the machine is doing, so that no time is looked at."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_SECONDS_MAX = 600
_QUICK_START = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Several Javas start for a few small jobs: this halves what that takes."""

TAKES_MINUTES = pytest.mark.skipif(
    not os.environ.get("PENSTOCK_BENCHMARKS"),
    reason="starts several Sparks: set PENSTOCK_BENCHMARKS=1 to see that the benchmarks of streams still run",
)

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports a module of the benchmarks, which import each other by their bare names, as programs do."""
    monkeypatch.syspath_prepend(str(_BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(_BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def numbers_of(program: str, folder: Path, *options: str) -> Any:
    """What a benchmark has written."""
    results = folder / "numbers.json"
    command = [sys.executable, str(_BENCHMARKS / program), *options]
    done = subprocess.run(
        [*command, f"--folder={folder}", f"--results={results}"],
        env={**os.environ, **_QUICK_START},
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    assert "| penstock " in done.stdout
    return json.loads(results.read_text())


@pytest.mark.spark
@TAKES_MINUTES
def test_one_command_replays_files_with_all_contenders_and_compares_their_totals(tmp_path: Path) -> None:
    options = ["--events=3000", "--files=4", "--runs=1", "--workloads", "sums", "team_panes"]
    workloads = numbers_of("stream_replay.py", tmp_path, *options)["workloads"]
    assert {name: list(workload["contenders"]) for name, workload in workloads.items()} == {
        "sums": ["native_sql", "native_python", "penstock"],
        "team_panes": ["rows", "frames", "penstock"],
    }
    for workload in workloads.values():
        for contender in workload["contenders"].values():
            assert all(run["wall_seconds"] > 0 and run["cpu_seconds"] > 0 for run in contender["runs"])
            assert contender["runs"][-1]["panes"]["on time"] > 0


@pytest.mark.spark
@TAKES_MINUTES
def test_empty_micro_batches_are_measured(tmp_path: Path) -> None:
    numbers = numbers_of("stream_empty_batches.py", tmp_path, "--levels", "1", "--batches=4")
    assert set(numbers["contenders"]) == {"penstock", "rows", "native_sql"}
    for [found] in numbers["contenders"].values():
        assert len(found["seconds"]) == 2
        assert found["median_millis"] > 0


@pytest.mark.spark
@TAKES_MINUTES
def test_the_latency_is_measured(tmp_path: Path) -> None:
    options = ["--rate=50", "--keys=50", "--seconds=15", "--warming-seconds=0", "--sources", "socket"]
    numbers = numbers_of("stream_latency.py", tmp_path, *options, "--contenders", "penstock", "native_python")
    for [found] in numbers["contenders"].values():
        assert 0 < found["median_millis"] <= found["p99_millis"]
        assert 0 < found["micro_batches"] <= found["events"]


@pytest.mark.spark
@TAKES_MINUTES
def test_the_cost_of_state_is_measured(tmp_path: Path) -> None:
    options = ["--keys", "500", "--batches=2", "--events=200"]
    numbers = numbers_of("stream_state.py", tmp_path, *options)
    assert set(numbers["contenders"]) == {"penstock", "native_python"}
    for [found] in numbers["contenders"].values():
        assert len(found["seconds"]) == 2
        assert 0 < found["resident_megabytes"] <= found["resident_megabytes_max"]


@pytest.mark.parametrize("module", ["stream_inputs", "stream_report", "stream_ticker"])
def test_the_examples_in_the_benchmarks_of_streams_are_right(load: Load, module: str) -> None:
    done = doctest.testmod(load(module))
    assert done.attempted > 0
    assert done.failed == 0


def test_a_wrong_or_missing_total_of_a_stream_is_found_and_several_panes_are_added_up(
    load: Load, tmp_path: Path
) -> None:
    inputs = load("stream_inputs")
    files = inputs.REPLAYS[1].make_files(tmp_path, 1_000, 3)
    right = [
        line
        for name, total in json.loads(inputs.totals_path(files).read_text()).items()
        for line in (f"{name}\t1\tearly\n", f"{name}\t{total - 1}\ton time\n")
    ]
    written = tmp_path / "written"
    written.mkdir()
    part = written / "part-0"
    part.write_text("".join(right) + f"{inputs.LAST_KEY} 0\t0\ton time\n")
    assert inputs.check(files, written) == {"early": len(right) // 2, "on time": len(right) // 2}
    for wrong in (right[1:], [*right, right[0]], [*right, "unheard 0\t1\tlate\n"]):
        part.write_text("".join(wrong))
        with pytest.raises(AssertionError):
            inputs.check(files, written)


def test_files_of_a_stream_are_in_order_and_only_some_streams_have_late_events(
    load: Load, tmp_path: Path
) -> None:
    inputs = load("stream_inputs")
    late: Counter[str] = Counter()
    for replay in inputs.REPLAYS:
        files = sorted(replay.make_files(tmp_path, 20_000, 7).iterdir())
        assert len(files) == 7
        assert sorted(files, key=lambda path: path.stat().st_mtime) == files
        newest = 0
        for line in "".join(path.read_text() for path in files).splitlines():
            second = inputs.parsed(line, replay.key)[2]
            newest = max(newest, second)
            late[replay.name] += newest - second > inputs.DISORDER_SECONDS
            assert newest - second < inputs.LATENESS_SECONDS
    assert {name for name, count in late.items() if count} == {
        replay.name for replay in inputs.REPLAYS if replay.fires
    }


def test_delays_count_only_after_warming_up_and_until_the_end(load: Load, monkeypatch: Any) -> None:
    delays_module = load("stream_delays")
    now_micros = 0

    def at(micros: int, born_micros: list[int]) -> None:
        nonlocal now_micros
        now_micros = micros
        delays.add(born_micros)

    monkeypatch.setattr(delays_module, "_now_micros", lambda: now_micros)
    delays = delays_module.Delays(warming_seconds=1, seconds=2)
    at(5_000_000, [4_000_000])
    at(7_000_000, [5_999_999, 6_000_000, 6_500_000])
    with pytest.raises(RuntimeError, match="for longer"):
        delays_module.Delays(1, 2).numbers()
    at(9_000_000, [7_999_999, 8_000_000])
    numbers = delays.numbers()
    assert (numbers["events"], numbers["micro_batches"]) == (3, 2)
    assert numbers["percentiles_millis"][49] == 1_000.0


def test_ticks_come_in_order_and_never_before_their_time(load: Load) -> None:
    ticker = load("stream_ticker")
    before_micros = time.time_ns() // 1_000
    with (
        ticker.ticking(1_000) as port,
        socket.create_connection(("127.0.0.1", port)) as connection,
        connection.makefile() as lines,
    ):
        ticks = [tuple(map(int, next(lines).split(","))) for _ in range(200)]
    assert [number for number, _ in ticks] == list(range(200))
    assert all(micros >= before_micros + number * 1_000 for number, micros in ticks)
