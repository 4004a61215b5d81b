"""The page about speed says what the recorded numbers say, and says so of all that is measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.benchmarks.benchmark_programs import BENCHMARKS, Load


def _recorded(load: Load, folder: Path, **files: Any) -> Any:
    for name, numbers in files.items():
        (folder / f"{name}.json").write_text(json.dumps({"machine": {"cores": 2, "python": "3"}, **numbers}))
    return load("recorded").Recorded(folder)


def _timed(wall_seconds: float, cpu_seconds: float) -> dict[str, float]:
    return {"wall_seconds": wall_seconds, "cpu_seconds": cpu_seconds}


def _measured(report: ModuleType, comparison: Any) -> Any:
    """The numbers of a comparison in which each entrant took a second more than the one before."""
    times = {
        entrant.name: report.Measured(
            tuple(report.Times(size, number, 2.0 * number, 100.0) for size in entrant.sizes(0.01))
        )
        for number, entrant in enumerate(comparison.entrants, 1)
    }
    return report.summary(comparison, 0.01, times)


def test_the_pages_are_what_the_recorded_numbers_give(load: Load) -> None:
    page = load("page")
    for path in page.PAGES:
        text = path.read_text()
        rendered = page.rendered(text, load("recorded").Recorded(BENCHMARKS / "results"))
        assert rendered == text, "run python benchmarks/page.py"


def test_every_table_is_on_the_page_once(load: Load) -> None:
    page = load("page")
    assert sorted(re.findall(r"<!-- table: ([\w ]+) -->", page.PAGE.read_text())) == sorted(
        set(page.TABLES) - {"summary"}
    )


def test_every_table_can_be_made(load: Load, tmp_path: Path) -> None:
    page = load("page")
    files = {each.name: _measured(load("report"), each) for each in load("comparisons").COMPARISONS}
    for program, peer in ((load("latency"), "frames"), (load("startup"), "pyspark")):
        each = {name: program.summary(name, [(1.0, 2.0)]) for name in (peer, "penstock")}
        files[program.__name__] = {"contenders": each}
    contenders = {
        "penstock": {**_timed(2, 2), "speed_by_wall": 0.5, "speed_by_cpu": 0.8},
        "native_python": _timed(1, 2),
    }
    queries = {"q1": {"title": "prices", "contenders": contenders}}
    files |= {
        f"nexmark_{mode}": {"mode": mode, "events": 9, "queries": queries} for mode in ("batch", "streaming")
    }
    sides = {
        **{side: {"wall_seconds": 1, "cpu_seconds": 2} for side in ("native", "penstock")},
        "title": "sums",
        "speed_by_wall": 0.96,
        "speed_by_cpu": 0.97,
    }
    files["sql_speed"] = {
        "batch": dict.fromkeys(load("sql_speed").WHOLE, sides),
        "stream": {"sums": sides},
        "planning": {"queries": 500, "median_characters": 9, "wall_seconds": 4, "cpu_seconds": 3},
    }
    files["splittable_speed"] = dict.fromkeys(("pieces_claimed", "records_claimed"), sides)
    files["database_speed"] = {"upserts": sides}
    over_parquet = {"penstock_sql_parquet": {**contenders["penstock"], "computed_by": "the transforms"}}
    in_sql = {
        **contenders,
        "penstock_sql": contenders["penstock"],
        "native_sql": _timed(1, 2),
        **over_parquet,
    }
    files["nexmark_sql_batch"] = {
        **files["nexmark_batch"],
        "queries": {"q1": {"title": "prices", "contenders": in_sql}},
        "geometric_means": in_sql,
    }
    recorded = _recorded(load, tmp_path, **files)
    for name in {*files, "sql_pairs", "sql_planning"} & set(page.TABLES):
        assert "Not measured" not in page.TABLES[name](recorded)
    assert page.TABLES["twins"](recorded).count("\n") > 6
    assert re.search(r"word count +\| +0.50 ", page.TABLES["summary"](recorded))
    goals = page.TABLES["goals"](recorded)
    assert goals.count("not measured yet") == goals.count("stream: ") + 1
    assert "q1 prices *" in page.TABLES["nexmark_sql_batch"](recorded)
    assert re.search(r"1,000 queries.*ten seconds +\| +at most 1 \| +0.80 \| +0.60 \| +reached", goals)
    assert re.search(r"Nexmark, batch.*\| +0.50 \| +0.80 \| +only by CPU \|", goals)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(1.0, "reached"), (1.1, "reached"), (1.2, "no")],
)
def test_a_goal_is_reached_or_not(load: Load, tmp_path: Path, ours: float, verdict: str) -> None:
    entrants = {"penstock": _timed(ours, ours), "handwritten": _timed(1, 1)}
    recorded = _recorded(load, tmp_path, team_sums={"entrants": entrants})
    goal = load("goals").GOALS[0]
    assert goal.verdict(recorded) == (f"{1 / ours:.2f}", f"{1 / ours:.2f}", verdict)
    assert goal.verdict(_recorded(load, tmp_path, team_sums={"entrants": {}})) == ("", "", "not measured yet")


def test_a_goal_may_be_reached_by_one_clock_only(load: Load, tmp_path: Path) -> None:
    entrants = {"penstock": _timed(2, 1), "handwritten": _timed(1, 1)}
    recorded = _recorded(load, tmp_path, team_sums={"entrants": entrants})
    assert load("goals").GOALS[0].verdict(recorded) == ("0.50", "1.00", "only by CPU")


def test_speeds_are_relative_to_the_first_entrant_and_small_parts_are_marked(load: Load) -> None:
    report, comparisons = load("report"), load("comparisons").COMPARISONS
    numbers = _measured(report, next(each for each in comparisons if each.name == "team_sums"))
    assert [entrant["speed_by_wall"] for entrant in numbers["entrants"].values()][:3] == [1.0, 0.5, 0.333]
    table = report.table(numbers)
    assert "Beam's in-process runner *" in table
    assert "| penstock  " in table


def test_programs_that_measure_everything_are_there(load: Load) -> None:
    programs = {program.split()[0] for program in load("all").PROGRAMS}
    assert len(programs) == 5
    assert [program for program in programs if not (BENCHMARKS / program).exists()] == []
