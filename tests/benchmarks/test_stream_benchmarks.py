"""The benchmarks of streams run: with tiny inputs, and whatever the machine is doing, so that no time is looked at."""

from __future__ import annotations

import argparse
import doctest
import json
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.benchmark_programs import TAKES_MINUTES, Load, numbers_of


@pytest.mark.spark
@TAKES_MINUTES
def test_one_command_replays_files_with_all_contenders_and_compares_their_totals(tmp_path: Path) -> None:
    options = ["--events=3000", "--files=4", "--runs=1", "--warming-seconds=0"]
    options += ["--workloads", "sums", "team_panes"]
    numbers, printed = numbers_of("stream_replay.py", tmp_path, *options)
    assert "| penstock " in printed
    workloads = numbers["workloads"]
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
    numbers, _ = numbers_of("stream_empty_batches.py", tmp_path, "--levels", "1", "--batches=4")
    assert set(numbers["contenders"]) == {"penstock", "rows", "native_sql"}
    for [found] in numbers["contenders"].values():
        assert len(found["seconds"]) == 2
        assert found["median_millis"] > 0


@pytest.mark.spark
@TAKES_MINUTES
def test_the_cost_of_shards_is_measured(tmp_path: Path) -> None:
    numbers, printed = numbers_of("stream_shards.py", tmp_path, "--quick")
    assert "| penstock " in printed
    assert set(numbers["contenders"]) == set(numbers["growth"]) == {"penstock", "rows", "native_sql"}
    for found in numbers["contenders"].values():
        assert len(found) == 8
        assert all(cost["median_millis"] > 0 and len(cost["seconds"]) == 2 for cost in found)


@pytest.mark.spark
@TAKES_MINUTES
def test_what_a_page_and_progress_cost_is_measured(tmp_path: Path) -> None:
    options = ["--pairs=2"]
    options += ["--events=3000", "--files=4", "--runs=1", "--rate=50", "--seconds=10", "--warming-seconds=0"]
    numbers, printed = numbers_of("live_view.py", tmp_path, *options)
    assert "| with a page " in printed
    assert "| with progress " in printed
    assert [len(pair) for pair in numbers["progress_pairs"]["wall_millis"]] == [2, 2]
    for arm in ("without a page", "with a page"):
        found = numbers["contenders"][arm]
        assert all(run["wall_seconds"] > 0 for run in found["runs"])
        assert found["median_millis"][0] > 0


@pytest.mark.spark
@TAKES_MINUTES
def test_the_latency_is_measured(tmp_path: Path) -> None:
    options = ["--rate=50", "--keys=50", "--seconds=15", "--warming-seconds=0", "--sources", "socket"]
    numbers, _ = numbers_of(
        "stream_latency.py", tmp_path, *options, "--contenders", "penstock", "native_python"
    )
    for [found] in numbers["contenders"].values():
        assert 0 < found["median_millis"] <= found["p99_millis"]
        assert 0 < found["micro_batches"] <= found["events"]


@pytest.mark.spark
@TAKES_MINUTES
def test_the_cost_of_state_is_measured(tmp_path: Path) -> None:
    options = ["--keys", "500", "--batches=2", "--events=200"]
    numbers, _ = numbers_of("stream_state.py", tmp_path, *options)
    assert set(numbers["contenders"]) == {"penstock", "native_python"}
    for [found] in numbers["contenders"].values():
        assert len(found["seconds"]) == 2
        assert 0 < found["resident_megabytes"] <= found["resident_megabytes_max"]


@pytest.mark.spark
@TAKES_MINUTES
@pytest.mark.parametrize(
    ("program", "contenders"),
    [
        ("stream_stateful", ["rows", "frames", "penstock"]),
        ("stream_join", ["rows", "frames", "native_sql", "native_python", "penstock"]),
    ],
)
def test_all_contenders_keep_something_for_each_key_and_give_the_same_totals(
    program: str, contenders: list[str], tmp_path: Path
) -> None:
    keys = "--users=300" if program == "stream_stateful" else "--orders=300"
    options = ["--events=2000", "--files=2", "--runs=1", "--warming-seconds=0", keys]
    options += ["--contenders", *contenders]
    numbers, _ = numbers_of(f"{program}.py", tmp_path, *options)
    [work] = numbers["workloads"].values()
    assert list(work["contenders"]) == contenders
    for contender in work["contenders"].values():
        assert all(count > 0 for run in contender["runs"] for count in run["panes"].values())
    assert list(work["state_bytes_per_key"]) == contenders
    assert all(size > 0 for size in work["state_bytes_per_key"].values())


@pytest.mark.parametrize(
    "module", ["keyed_inputs", "stream_inputs", "stream_report", "stream_shards", "stream_ticker"]
)
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


def test_the_totals_of_orders_are_those_of_all_pairs_in_a_window(load: Load, tmp_path: Path) -> None:
    keyed, streams = load("keyed_inputs"), load("stream_inputs")
    folder = keyed.order_files(tmp_path, 4_000, 3)
    orders, payments = (
        [
            (key, keyed.join_start(second), amount)
            for path in sorted((folder / side).iterdir())
            for key, amount, second in (streams.parsed(line, 0) for line in path.read_text().splitlines())
            if key != streams.LAST_KEY
        ]
        for side in keyed.SIDES
    )
    prices = {(key, start): price for key, start, price in orders}
    pairs = [
        (f"{key} {start}", prices[key, start] - paid)
        for key, start, paid in payments
        if (key, start) in prices
    ]
    # Some orders are paid twice, or never, or in the next window.
    totals = json.loads(streams.totals_path(folder).read_text())
    assert len(totals) < len(pairs) < len(payments)
    assert len(totals) < len(orders)
    written = tmp_path / "written"
    written.mkdir()
    part = written / "part-0"
    part.write_text("".join(f"{name}\t{owed}\n" for name, owed in pairs))
    assert streams.check(folder, written, "pairs") == {"pairs": len(pairs)}
    part.write_text("".join(f"{name}\t{owed}\n" for name, owed in pairs[1:]))
    with pytest.raises(AssertionError):
        streams.check(folder, written)


def test_each_user_has_a_total_and_the_last_event_is_later_than_all_that_waits(
    load: Load, tmp_path: Path
) -> None:
    keyed, streams = load("keyed_inputs"), load("stream_inputs")
    folder = keyed.user_files(tmp_path, 2_000, 50, 4)
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    *events, last = [streams.parsed(line, 0) for line in lines]
    totals: Counter[str] = Counter()
    for user, value, _ in events:
        totals[user] += value
    assert json.loads(streams.totals_path(folder).read_text()) == totals
    assert len(totals) == 50
    latest = max(second for _, _, second in events)
    assert last[0] == streams.LAST_KEY
    assert last[2] - streams.DISORDER_SECONDS >= latest + keyed.EXPIRY_SECONDS


def test_only_full_runs_of_everybody_write_the_numbers_that_are_kept(load: Load) -> None:
    options = load("options")

    def results(*given: str) -> Path:
        parser = argparse.ArgumentParser()
        parser.add_argument("--events", type=int, default=10)
        parser.add_argument("--runs", type=int, default=3)
        path: Path = options.parsed_settings(parser, given, ("a", "b"), "n.json").results
        return path

    kept = options.FOLDER / "n.json"
    assert results() == results("--runs=1", "--cores=1") == kept
    assert kept not in (results("--events=9"), results("--contenders", "a"))
    assert results("--events=9", "--results=other.json") == Path("other.json")


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
