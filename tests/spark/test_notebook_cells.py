"""Cells of a notebook: SQL over its variables, jobs, and the live page of a run."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock import notebooks
from penstock.testing.test_pipeline import TestPipeline
from penstock.utils import clock

pytest.importorskip("sqlglot")


class Goal(NamedTuple):
    team: str
    points: int


GOALS = [Goal("red", 3), Goal("blue", 5), Goal("red", 4)]
TOTALS = "SELECT team, SUM(points) AS total FROM goals GROUP BY team ORDER BY total DESC"


@pytest.fixture
def shell(spark: Any) -> Iterator[Any]:
    shells = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    settings = pytest.importorskip("traitlets.config").Config()
    settings.HistoryManager.enabled = False
    made = shells.instance(config=settings)
    made.run_cell("%load_ext penstock", store_history=True)
    made.user_ns["spark"] = spark
    yield made
    shells.clear_instance()


def run(shell: Any, line: str, cell: str) -> Any:
    return shell.run_cell(f"%%penstock_sql {line}\n{cell}", store_history=True).result


def test_a_query_reads_the_variables_of_a_notebook_and_shows_its_rows_as_a_table(
    shell: Any, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = TestPipeline()
    goals = pipeline | beam.Create(GOALS).with_output_types(Goal)
    (tmp_path / "colours.csv").write_text("team,colour\nred,#f00\nblue,#00f\n")
    coaches = spark.createDataFrame([("red", "kim")], "team string, coach string")
    shell.user_ns.update(goals=goals, colours=str(tmp_path / "colours.csv"), coaches=coaches, unused=object())
    found = run(shell, "totals", TOTALS)
    assert [(row.team, row.total) for row in found] == [("red", 7), ("blue", 5)]
    assert shell.user_ns["totals"] is found
    assert "<th>team</th><th>total</th>" in found._repr_html_()
    # A PCollection, a file, a DataFrame, and the rows of an earlier cell, in one query.
    cell = """SELECT goals.team, points, colour, coach, total FROM goals JOIN colours ON goals.team = colours.team
        JOIN coaches ON coaches.team = goals.team JOIN totals ON totals.team = goals.team ORDER BY points"""
    joined = run(shell, "", cell)
    assert [tuple(row) for row in joined] == [("red", 3, "#f00", "kim", 7), ("red", 4, "#f00", "kim", 7)]
    # The cells are no part of the pipeline, and can run again.
    assert [row.total for row in run(shell, "totals", TOTALS)] == [7, 5]
    assert pipeline.applied_labels == {"Create"}
    capsys.readouterr()


def test_a_cell_of_statements_is_a_job(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "goals.csv").write_text("team,points\nred,3\nblue,5\nred,4\n")
    cell = f"""
        CREATE TABLE goals (team STRING, points INT)
            WITH (format = 'csv', path = '{tmp_path}/goals.csv', header = 'true');
        CREATE TABLE totals WITH (format = 'json', path = '{tmp_path}/totals') AS
            SELECT team, SUM(points) AS total FROM goals GROUP BY team;
        SELECT COUNT(*) AS n FROM goals;
    """
    assert run(shell, "", cell) is None
    lines = [line for path in (tmp_path / "totals").glob("[!._]*") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["total"] for line in lines) == [5, 7]
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[-2:]] == ["3", "(1 row)"]


class Published:
    """What a notebook was told to show."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, bool, str]] = []

    def publish(self, data: dict[str, str], metadata: Any, transient: dict[str, str], update: bool) -> None:
        self.shown.append((transient["display_id"], update, data["text/html"]))


def snapshot_in(frame: str) -> Any:
    """The snapshot in the page of a frame."""
    document = html.unescape(re.findall(r'srcdoc="([^"]*)"', frame)[0])
    [given] = re.findall(r'<script type="application/json" id="given">(.*?)</script>', document)
    return json.loads(given)


def test_the_page_of_a_run_is_in_the_cell_and_stays_as_it_ended(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "_SHOW_SECONDS", 0.1)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    pipeline = beam.Pipeline(mode="streaming", live_port=0, shuffle_partitions=2)
    lines = pipeline | "Read" >> beam.io.ReadFromText(f"{tmp_path}/in/*.txt").as_stream()
    _ = lines | "</script><b>" >> beam.Map(str) | beam.io.WriteToMemory([])
    result: Any = pipeline.run()
    published = Published()
    shell.display_pub = published
    notebooks.show(result, 300)
    name, is_update, frame = published.shown[0]
    assert (is_update, "height:300px" in frame) == (False, True)
    assert snapshot_in(frame)["state"] == "RUNNING"
    until = time.monotonic() + 60
    while len(published.shown) < 4 and time.monotonic() < until:
        clock.sleep(0.05)
    _, is_update, news = published.shown[3]
    assert is_update
    assert f"getElementById('{name}')" in news
    assert news.count("</script>") == 1
    result.cancel()
    while published.shown[-1][2] and time.monotonic() < until:
        clock.sleep(0.05)
    last = [frame for shown, is_update, frame in published.shown if shown == name and is_update]
    assert [snapshot_in(frame)["state"] for frame in last] == ["CANCELLED"]
    # A run that is over is shown once.
    published.shown.clear()
    notebooks.show(result)
    assert [is_update for _, is_update, _ in published.shown] == [False]
