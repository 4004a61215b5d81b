"""The table of streams: its cells run with tiny inputs and equal totals, and a lost speed is found."""

from __future__ import annotations

import doctest
import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.benchmarks.benchmark_programs import TAKES_MINUTES, Load, numbers_of, run_program

_TINY = ("--events=4000", "--files=2", "--turns=1", "--warming-seconds=0", "--keys=400", "--fill-files=2")
_TINY_BATCHES = ("--batches=2", "--rows-per-batch=100", "--empty-batches=4", "--idle-seconds=2")
_ROW = "parquet/expressions/none/nothing"


@pytest.mark.spark
@TAKES_MINUTES
def test_every_cell_runs_beside_its_twin_and_both_have_equal_totals(load: Load, tmp_path: Path) -> None:
    numbers, printed = numbers_of("stream_table.py", tmp_path, *_TINY, *_TINY_BATCHES)
    rows = numbers["rows"]
    assert {row.partition(":")[0] for row in rows} == {cell.name for cell in load("cells").CELLS}
    goals = [goal.ratio.keywords for goal in load("goals").GOALS if isinstance(goal.ratio, partial)]
    assert set() < {words["row"] for words in goals if "row" in words} <= set(rows)
    for row, found in rows.items():
        assert f"| {row} " in printed
        assert all(found[side]["cpu_seconds"] > 0 for side in ("native", "penstock"))
        if "idle" not in row:
            assert found["speed_by_wall"] > 0
        if "/none/" in row or "/teams/" in row:
            assert found["rows"]["native"] == found["rows"]["penstock"] > 0


@pytest.mark.spark
@TAKES_MINUTES
def test_a_quick_run_that_is_slower_than_the_record_fails(load: Load, tmp_path: Path) -> None:
    """A record of a speed that nobody has."""
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"rows": {_ROW: {"speed_by_wall": 1e6, "speed_by_cpu": 0.0}}}))
    options = ("--quick", "--only", _ROW, *_TINY, f"--compared-with={record}")
    with pytest.raises(AssertionError, match=r"has lost speed: .* by wall, and 1000000\.00 in the record"):
        run_program("stream_table.py", tmp_path, *options)


@pytest.mark.parametrize("module", ["cells", "cell_inputs", "stream_table"])
def test_the_examples_in_the_table_of_streams_are_right(load: Load, module: str) -> None:
    done = doctest.testmod(load(module))
    assert done.attempted > 0
    assert done.failed == 0


def test_no_two_cells_have_one_name_and_each_can_be_asked_for(load: Load) -> None:
    cells = load("cells")
    names = [cell.name for cell in cells.CELLS]
    assert len(set(names)) == len(names)
    for cell in cells.CELLS:
        assert cells.choose([cell.name], False) == [cell]
    assert {cell.name for cell in cells.choose([], True)} < set(names)
    with pytest.raises(ValueError, match="no cell is tems"):
        cells.choose(["teams", "tems"], False)


def test_events_are_the_same_in_every_format(load: Load, tmp_path: Path) -> None:
    inputs = load("cell_inputs")
    events = inputs.Events(2_000, users=50, is_late=True)
    folders = {form: events.make_files(tmp_path, form, 3) for form in ("parquet", "json", "text")}
    files = {form: sorted(folder.iterdir()) for form, folder in folders.items()}
    assert [len(each) for each in files.values()] == [3, 3, 3]
    for each in files.values():
        assert sorted(each, key=lambda path: path.stat().st_mtime) == each
    typed = pa.concat_tables([parquet.read_table(path) for path in files["parquet"]]).to_pylist()
    assert typed[:-1] == events.table().to_pylist()
    lines = "".join(path.read_text() for path in files["text"]).splitlines()
    assert [(*inputs.parsed(line), inputs.second_of(line)) for line in lines] == [
        (row["user"], row["team"], row["amount"], int(row["at"].timestamp())) for row in typed
    ]
    objects = [json.loads(line) for path in files["json"] for line in path.read_text().splitlines()]
    assert objects == [{**row, "at": f"{row['at']:%Y-%m-%dT%H:%M:%SZ}"} for row in typed]


def test_only_late_streams_have_late_events_and_the_last_event_ends_what_waits(load: Load) -> None:
    inputs, streams, keyed = load("cell_inputs"), load("stream_inputs"), load("keyed_inputs")
    [end] = inputs.last_event().to_pylist()
    for is_late in (False, True):
        newest, behind, seconds = 0, [], []
        for row in inputs.Events(5_000, is_late=is_late).table().to_pylist():
            seconds.append(int(row["at"].timestamp()))
            newest = max(newest, seconds[-1])
            behind.append(newest - seconds[-1])
        assert (max(behind) > streams.DISORDER_SECONDS) == is_late
        assert max(behind) < streams.LATENESS_SECONDS
        waits = max(keyed.EXPIRY_SECONDS, streams.WINDOW_SECONDS + streams.LATENESS_SECONDS)
        assert end["at"].timestamp() - streams.DISORDER_SECONDS > newest + waits
    assert inputs.is_kept(inputs.Event(end["user"], end["team"], end["amount"]))


def test_expected_totals_are_those_of_a_loop_over_the_events(load: Load) -> None:
    inputs, windows = load("cell_inputs"), load("stream_inputs")
    events = inputs.Events(3_000, users=20)
    teams: dict[str, int] = {}
    users: dict[str, int] = {}
    for row in events.table().to_pylist():
        event = inputs.Event(row["user"], row["team"], row["amount"])
        users[event.user] = users.get(event.user, 0) + event.amount
        if inputs.is_kept(event):
            name = f"{event.team} {windows.window_start(int(row['at'].timestamp()))}"
            teams[name] = teams.get(name, 0) + inputs.valued(event).worth
    assert inputs.expected(events, "teams") == teams
    assert inputs.expected(events, "stateful") == users


def test_expected_pairs_are_those_of_a_loop_over_orders_and_payments(load: Load) -> None:
    inputs, keyed = load("cell_inputs"), load("keyed_inputs")
    sides = [
        [
            (row["user"], keyed.join_start(int(row["at"].timestamp())), row["amount"])
            for row in side.to_pylist()
        ]
        for side in inputs.orders_and_payments(2_000)
    ]
    prices = {(user, start): amount for user, start, amount in sides[0]}
    owed: dict[str, int] = {}
    for user, start, paid in sides[1]:
        if (user, start) in prices:
            owed[f"{user} {start}"] = owed.get(f"{user} {start}", 0) + prices[user, start] - paid
    assert inputs.expected(inputs.Events(2_000), "join") == owed
    # Some orders are never paid, or in the next window.
    assert 0 < len(owed) < len(sides[0])


def test_a_wrong_or_missing_row_of_a_cell_is_found(load: Load, tmp_path: Path) -> None:
    inputs = load("cell_inputs")
    events = inputs.Events(3_000)
    names = [name.split(" ") for name in inputs.expected(events, "teams")]
    right = [
        {"key": team, "start": _time_of(start), "total": total}
        for (team, start), total in zip(names, inputs.expected(events, "teams").values(), strict=True)
    ]
    last = {"key": "last", "start": _time_of("0"), "total": 1}

    def written(rows: list[dict[str, Any]]) -> Path:
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "part-0.parquet")
        return tmp_path

    assert inputs.check(events, "teams", written([*right, last])) == len(right)
    # Several panes of a window are added up.
    halves = [{**right[0], "total": 1}, {**right[0], "total": right[0]["total"] - 1}, *right[1:]]
    assert inputs.check(events, "teams", written(halves)) == len(right) + 1
    for wrong in (right[1:], [*right, right[0]], [{**right[0], "key": "unheard"}, *right[1:]]):
        with pytest.raises(AssertionError, match="totals are wrong, such as"):
            inputs.check(events, "teams", written(wrong))


def _time_of(second: str) -> Any:
    return pa.scalar(int(second) * 1_000_000, pa.timestamp("us", "UTC")).as_py()


@pytest.mark.parametrize(
    ("wall", "cpu", "lost"),
    [(0.86, 0.86, ""), (0.84, 1.0, "wall"), (1.0, 0.84, "CPU"), (2.0, None, "")],
)
def test_a_speed_is_lost_if_it_is_more_than_fifteen_percent_below_the_record(
    load: Load, wall: float, cpu: float | None, lost: str
) -> None:
    table = load("stream_table")
    record = {"a": {"speed_by_wall": 1.0, "speed_by_cpu": 1.0}}
    found = {
        "a": {"speed_by_wall": wall, "speed_by_cpu": cpu},
        "new": {"speed_by_wall": 0, "speed_by_cpu": 0},
    }
    words = table.find_losses(found, record)
    assert list(words) == (["a"] if lost else [])
    assert lost in words.get("a", "")


def test_of_two_measurements_the_better_speeds_count(load: Load) -> None:
    once = {"a": {"speed_by_wall": 0.5, "speed_by_cpu": None, "twin": "SQL"}}
    again = {"a": {"speed_by_wall": 0.7, "speed_by_cpu": None, "twin": "SQL"}}
    assert load("stream_table").merge_better(once, again) == again


def test_only_full_runs_or_asked_for_ones_change_what_is_kept(load: Load, tmp_path: Path) -> None:
    table = load("stream_table")

    def results(*given: str) -> Path:
        path: Path = table.arguments([*given, f"--folder={tmp_path}"]).results
        return path

    kept = table.FOLDER / "stream_table.json"
    assert results() == results("--turns=1") == results("--only", "users", "--record") == kept
    assert results("--quick", "--record") == table.FOLDER / "stream_table_quick.json"
    for given in (("--events=9",), ("--only", "users"), ("--quick",)):
        assert results(*given).parent == tmp_path


def test_a_record_of_some_cells_keeps_the_numbers_of_the_others(load: Load, tmp_path: Path) -> None:
    table = load("stream_table")
    results = tmp_path / "kept.json"
    results.write_text(json.dumps({"rows": {"old": {"speed_by_wall": 1}, "a": {"speed_by_wall": 1}}}))
    for record, rows in (("--record", {"old", "a"}), ("--turns=1", {"a"})):
        settings = table.arguments([record, f"--folder={tmp_path}", f"--results={results}"])
        table._write(settings, {"a": {"speed_by_wall": 2}})
        found = json.loads(results.read_text())["rows"]
        assert set(found) == rows
        assert found["a"] == {"speed_by_wall": 2}


def test_a_row_that_has_no_speed_by_the_clock_shows_none(load: Load) -> None:
    seconds = {"wall_seconds": 30.0, "cpu_seconds": 1.5}
    sides = {"native": seconds, "penstock": {**seconds, "cpu_seconds": 3.0}}
    idle = {"twin": "Spark SQL", **sides, "speed_by_wall": None, "speed_by_cpu": 0.5}
    table = load("stream_table").table({"parquet/expressions/idle/nothing": idle})
    assert table.splitlines()[-1].split("|")[-3:-1] == ["               ", "   0.50 "]


def test_a_peers_totals_are_read_from_text_and_from_csv(load: Load, tmp_path: Path) -> None:
    peers = load("stream_peers")
    totals = {"team1 1600000080": 5, "team2 1600000080": 7}
    text, folder = tmp_path / "text", tmp_path / "csv"
    text.write_text("team1 1600000080\t5\nteam2 1600000080\t7\nlast 1600000080\t1\n")
    folder.mkdir()
    (folder / "part-0").write_text("team1,1600000080,5\n")
    (folder / "part-1").write_text("team2,1600000080,7\n")
    assert peers.written(text) == peers.written(folder) == totals


def test_peers_are_pinned_and_only_those_that_are_installed_are_measured(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = load("stream_peers")
    assert all("==" in peer.wheel for peer in peers.PEERS)
    peers.main([f"--folder={tmp_path}"])
    assert "not measured: bytewax==" in capsys.readouterr().out
