"""Jobs in SQL on Spark: results land, streams are stopped and continued, and users see what is wrong."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io.rejects import RejectedRecord
from penstock.sql.jobs.running import Job
from penstock_conformance.command import main

SECONDS_MAX = 120

GOALS = """CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '5' SECONDS)
WITH (format = 'csv', path = '{folder}/goals', header = 'true');
"""
JOB = """SET checkpoint = '{folder}/checkpoint'; SET shuffle_partitions = 2;
CREATE TABLE minutes (start TIMESTAMP, team STRING, total BIGINT) WITH (format = 'parquet', path = '{folder}/minutes');
CREATE TABLE high (team STRING, points BIGINT) WITH (format = 'json', path = '{folder}/high');
CREATE VIEW named AS SELECT team, points, at FROM goals WHERE team IS NOT NULL;
INSERT INTO minutes SELECT window_start, team, SUM(points) AS total
  FROM TUMBLE(TABLE named, DESCRIPTOR(at), INTERVAL '1' MINUTE)
  GROUP BY window_start, window_end, team EMIT AFTER WATERMARK;
INSERT INTO high SELECT team, points FROM named WHERE points > 3;
"""


def add_goals(folder: Path, name: str, *lines: str) -> None:
    """A file that is complete when it appears."""
    goals = folder / "goals"
    goals.mkdir(exist_ok=True)
    hidden = goals / f".{name}"
    hidden.write_text("team,points,at\n" + "".join(f"{line}\n" for line in lines))
    hidden.rename(goals / f"{name}.csv")


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    """All rows of the files of Parquet or JSON in a folder."""
    rows = [
        tuple(row.values()) for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()
    ]
    for file in folder.glob("*.json"):
        rows += [tuple(json.loads(line).values()) for line in file.read_text().splitlines()]
    return sorted(rows)


def until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not _is_so(is_done):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_so(is_done: Callable[[], bool]) -> bool:
    try:
        return is_done()
    except FileNotFoundError:  # A micro-batch that is written again replaces its files.
        return False


def minute(number: int) -> datetime:
    return datetime(2026, 1, 1, 12, number)


def test_a_job_is_stopped_continued_changed_and_drained(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = (GOALS + JOB).format(folder=tmp_path)
    first = ["blue,3,2026-01-01T12:00:01Z", "red,5,2026-01-01T12:00:02Z", ",9,2026-01-01T12:00:03Z"]
    add_goals(tmp_path, "a", *first, "blue,4,2026-01-01T12:01:10Z")
    started = Job(job, "job.sql").start()
    assert started is not None
    until(lambda: len(rows_of(tmp_path / "minutes")) == len(rows_of(tmp_path / "high")) == 2)
    # Otherwise the changed job does the micro-batch again, and may do it in another way.
    until((tmp_path / "checkpoint" / "spark" / "commits" / "0").exists)
    started.cancel()
    assert rows_of(tmp_path / "high") == [("blue", 4), ("red", 5)]

    # The filter may change, and an INSERT without state may come or stand in another place.
    changed = job.replace("points > 3", "points > 6")
    add_goals(tmp_path, "b", "red,7,2026-01-01T12:01:20Z", "blue,1,2026-01-01T12:03:00Z")
    lines = changed.splitlines(keepends=True)
    (tmp_path / "job.sql").write_text("".join([*lines[:-1], "\n", lines[-1]]))
    continued = Job((tmp_path / "job.sql").read_text(), "job.sql").start()
    assert continued is not None
    until(lambda: len(rows_of(tmp_path / "minutes")) == 4)
    continued.drain()
    continued.wait_until_finish()
    # The windows that were open when the job was stopped have what came before and after.
    assert rows_of(tmp_path / "minutes") == [
        *((minute(0), "blue", 3), (minute(0), "red", 5), (minute(1), "blue", 4), (minute(1), "red", 7)),
        (minute(3), "blue", 1),
    ]
    assert rows_of(tmp_path / "high") == [("blue", 4), ("red", 5), ("red", 7)]


def test_a_job_that_lost_a_grouping_is_refused_by_the_name_of_its_table(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = (GOALS + JOB).format(folder=tmp_path)
    add_goals(tmp_path, "a", "blue,4,2026-01-01T12:01:10Z")
    started = Job(job, "job.sql").start()
    assert started is not None
    until(lambda: len(rows_of(tmp_path / "high")) == 1)
    started.cancel()
    before, after = job.index("INSERT INTO minutes"), job.index("INSERT INTO high")
    (tmp_path / "job.sql").write_text(job[:before] + job[after:])
    assert main(["sql", str(tmp_path / "job.sql")]) == 2
    shown = capsys.readouterr().err
    assert "Insert minutes/Group" in shown
    assert "does not fit the state in its checkpoint" in shown


def test_queries_print_tables_and_changes(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_goals(
        tmp_path,
        "a",
        "blue,3,2026-01-01T12:00:01Z",
        "red,5,2026-01-01T12:00:02Z",
        "blue,4,2026-01-01T12:01:10Z",
    )
    (tmp_path / "shouting.py").write_text("def shout(text: str) -> str:\n    return text.upper()\n")
    (tmp_path / "job.sql").write_text(
        GOALS.format(folder=tmp_path).replace("header =", "existing_only = true, header =")
        + """CREATE VIEW totals (`the team`, total) AS SELECT team, SUM(points) FROM goals GROUP BY team;
        CREATE FUNCTION shout AS 'shouting:shout';
        SELECT STREAM team, SUM(points) AS total, Sys.Undo FROM goals GROUP BY team;
        SELECT TABLE SHOUT(`the team`) AS team, total FROM totals;
        SELECT points FROM goals WHERE points > 100;
        """
    )
    assert main(["sql", str(tmp_path / "job.sql")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "  team | total"
    assert [line for line in lines if "blue" in line][-1] == "+ blue | 7"
    assert lines[-6:] == ["team | total", "-----+------", "BLUE | 7", "RED  | 5", "(2 rows)", "  points"]


def test_a_table_over_a_stream_stays_in_its_place(spark: Any, tmp_path: Path) -> None:
    add_goals(tmp_path, "a", "blue,3,2026-01-01T12:00:01Z", "blue,4,2026-01-01T12:01:10Z")
    screen = io.StringIO()
    statements = GOALS.format(folder=tmp_path).replace("header =", "existing_only = true, header =")
    Job(f"{statements} SELECT TABLE team, SUM(points) AS total FROM goals GROUP BY team", screen=screen).run()
    assert screen.getvalue().endswith("team | total\n-----+------\nblue | 7\n(1 row)\n")


@pytest.mark.parametrize("line", ["blue,4,9,2", "blue", "blue,x,2026-01-01T12:01:10Z"])
def test_a_line_that_does_not_fit_is_an_error_with_its_number(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z", line)
    (tmp_path / "job.sql").write_text(
        GOALS.format(folder=tmp_path) + "SELECT SUM(points) AS total FROM goals;"
    )
    assert main(["sql", str(tmp_path / "job.sql"), "--mode=batch"]) != 0
    shown = capsys.readouterr().err
    assert f"line 3 of {tmp_path}/goals/a.csv does not fit the columns" in shown
    assert "blue" not in shown


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_lines_that_do_not_fit_go_to_the_table_of_rejects(spark: Any, tmp_path: Path, mode: str) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z", "blue,x,2026-01-01T12:00:01Z", "blue", "blue,4,")
    goals = GOALS.format(folder=tmp_path).replace(
        "header =", "rejects = 'bad', existing_only = true, header ="
    )
    Job(
        f"""{goals}
        CREATE TABLE bad (record STRING, line BIGINT, source STRING, reason STRING)
        WITH (format = 'json', path = '{tmp_path}/bad');
        CREATE TABLE good WITH (format = 'json', path = '{tmp_path}/good') AS SELECT team, points FROM goals""",
        mode=mode,
    ).run()
    rejected = {record: more for record, *more in rows_of(tmp_path / "bad")}
    file, what = f"{tmp_path}/goals/a.csv", "the record does not fit the columns: "
    assert rejected["blue"] == [4, file, f"{what}it has 1 field, and there are 3 columns"]
    wrong = rejected["blue,x,2026-01-01T12:00:01Z"]
    assert wrong == [3, file, f"{what}the field 'points' is not of type BIGINT"]
    # A row without a time was read, so its record is the row.
    timeless = [more for record, more in rejected.items() if record.startswith("{")]
    assert [more[:2] for more in timeless] == ([] if mode == "batch" else [[5, file]])
    # A row without a time has no place in a stream.
    good = [("blue", 4), ("red", 3)] if mode == "batch" else [("red", 3)]
    assert rows_of(tmp_path / "good") == good


@pytest.mark.parametrize("option", ["", ", multiLine = 'true'"])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_null_where_the_column_is_not_null_is_a_reject(
    spark: Any, tmp_path: Path, format: str, option: str
) -> None:
    (tmp_path / "in").mkdir()
    texts = {"csv": "day,euros\n1,3.50\n2,\n", "json": '{"day":1,"euros":3.5}\n{"day":2,"euros":null}\n'}
    if format == "json" and option:
        texts[format] = f"[{texts[format].replace(chr(10), ',', 1)}]"
    (tmp_path / "in" / "a").write_text(texts[format])
    Job(
        f"""
        CREATE TABLE sales (day BIGINT, euros DECIMAL(10,2) NOT NULL)
        WITH (format = '{format}', path = '{tmp_path}/in', header = 'true', rejects = '{tmp_path}/bad'{option});
        CREATE TABLE good WITH (format = 'json', path = '{tmp_path}/good') AS SELECT day, euros FROM sales""".replace(
            "header = 'true', ", "header = 'true', " if format == "csv" else ""
        ),
        mode="batch",
    ).run()
    assert [dict(each)["day"] for each in _objects(tmp_path / "good")] == [1]
    [found] = map(dict, _objects(tmp_path / "bad"))
    assert (
        found["reason"]
        == "the record does not fit the columns: the field 'euros' has no value, and is NOT NULL"
    )
    record = texts[format].splitlines()[-1] if not option else '{"day": 2, "euros": null}'
    assert (found["line"], found["record"]) == (None if option else len(texts[format].splitlines()), record)


def test_rejects_have_the_same_json_in_sql_and_in_python(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,s\n1,x\nword,y\n2\n")
    columns = ", ".join(f"{name} {kind}" for name, kind in REJECT_TYPES.items())
    Job(
        f"""
        CREATE TABLE one (n BIGINT, s STRING)
        WITH (format = 'csv', path = '{tmp_path}/a.csv', header = 'true', rejects = 'bad');
        CREATE TABLE other (n BIGINT, s STRING)
        WITH (format = 'csv', path = '{tmp_path}/a.csv', header = 'true', rejects = '{tmp_path}/folder');
        CREATE TABLE bad ({columns}) WITH (format = 'json', path = '{tmp_path}/table');
        CREATE TABLE good WITH (format = 'json', path = '{tmp_path}/good')
        AS SELECT one.n FROM one JOIN other ON one.n = other.n""",
        mode="batch",
    ).run()
    pipeline = beam.Pipeline()
    read = beam.io.ReadFromSpark("csv", f"{tmp_path}/a.csv", "n long, s string", header=True, rejects=True)
    _, rejected = pipeline | read
    _ = rejected | beam.io.WriteToJson(f"{tmp_path}/python/part")
    pipeline.run()
    wanted = sorted(_objects(tmp_path / "python"))
    assert [name for name, _ in wanted[0]] == list(RejectedRecord._fields)
    assert len(wanted) == 2
    assert sorted(_objects(tmp_path / "table")) == wanted
    assert sorted(_objects(tmp_path / "folder")) == wanted


REJECT_TYPES = {
    **dict.fromkeys(["source"], "STRING"),
    **dict.fromkeys(["line", "`partition`", "`offset`"], "BIGINT"),
    **dict.fromkeys(["field", "reason", "error", "record"], "STRING"),
    "is_escaped": "BOOLEAN",
}


def _objects(folder: Path) -> list[list[tuple[str, Any]]]:
    """The fields of the objects in files of JSON, in their order."""
    lines = [line for path in folder.glob("part*") for line in path.read_text().splitlines()]
    return [list(json.loads(line).items()) for line in lines]


def test_changing_rows_are_merged_by_the_primary_key(spark: Any, tmp_path: Path) -> None:
    add_goals(
        tmp_path,
        "a",
        "red,3,2026-01-01T12:00:01Z",
        "blue,4,2026-01-01T12:00:01Z",
        "red,2,2026-01-01T12:02:01Z",
    )
    goals = GOALS.format(folder=tmp_path).replace("header =", "existing_only = true, header =")
    Job(
        f"""SET shuffle_partitions = 2; {goals}
        CREATE TABLE totals (team STRING, total BIGINT, PRIMARY KEY (team) NOT ENFORCED)
        WITH (connector = 'database', url = 'sqlite:///{tmp_path}/game.db', 'table' = 'totals', 'create' = true);
        CREATE TABLE lake (team STRING, total BIGINT, PRIMARY KEY (team) NOT ENFORCED)
        WITH (connector = 'delta', path = '{tmp_path}/lake');
        CREATE MATERIALIZED VIEW sums AS SELECT team, SUM(points) AS total FROM goals GROUP BY team;
        INSERT INTO totals SELECT * FROM sums;
        INSERT INTO lake SELECT * FROM sums;"""
    ).run()
    with sqlite3.connect(tmp_path / "game.db") as database:
        assert sorted(database.execute("SELECT team, total FROM totals")) == [("blue", 4), ("red", 5)]
    lines: list[str] = []
    Job(
        f"""CREATE TABLE lake WITH (connector = 'delta', path = '{tmp_path}/lake');
        CREATE TABLE totals WITH (connector = 'database', url = 'sqlite:///{tmp_path}/game.db', 'table' = 'totals');
        SELECT lake.team, lake.total + totals.total AS both FROM lake JOIN totals ON lake.team = totals.team""",
        show=lines.append,
    ).run()
    assert lines[2:] == ["blue | 8", "red  | 10", "(2 rows)"]


RAISING = """from penstock import CombineFn

def half(n: int) -> int:
    return whole(n, 2)

def whole(n, m):
    raise LookupError(f"no half of {n}")

class Longest(CombineFn):
    def create_accumulator(self):
        return ""

    def add_input(self, accumulator, name):
        return accumulator + name[7]

    def merge_accumulators(self, accumulators):
        return max(accumulators)

    def extract_output(self, accumulator):
        return accumulator
"""


def test_a_function_that_raises_shows_its_call_and_its_own_lines(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z")
    (tmp_path / "raising.py").write_text(RAISING)
    (tmp_path / "job.sql").write_text(
        f"""{GOALS.format(folder=tmp_path)} CREATE FUNCTION half AS 'raising:half';
    CREATE TABLE halves (n BIGINT, team STRING) WITH (format = 'json', path = '{tmp_path}/halves');
    INSERT INTO halves (team, n)
    SELECT team,
      HALF(points) FROM goals"""
    )
    assert main(["sql", str(tmp_path / "job.sql"), "--mode=batch"]) == 2
    expected = f"""the function HALF has raised LookupError: no half of 3
  line 8, column 7 of {tmp_path}/job.sql
          HALF(points) FROM goals
          ^
  in half (raising.py:4): return whole(n, 2)
  in whole (raising.py:7): raise LookupError(f"no half of {{n}}")
  hint: correct the function, or filter out such rows first"""
    shown = capsys.readouterr().err
    assert shown.endswith(f"{expected}; set show_elements_in_errors to see the row\n")
    assert "Traceback" not in shown
    assert not rows_of(tmp_path / "halves")
    flags = ["--mode=batch", "--show_elements_in_errors"]
    assert main(["sql", str(tmp_path / "job.sql"), *flags]) == 2
    assert capsys.readouterr().err.endswith(f"{expected}; the element is ('red', 3)\n")


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize(
    ("expression", "what"),
    [("points / (points - 3)", "divides by zero"), ("CAST(team AS INT)", "cannot cast a value")],
)
def test_an_error_of_a_run_names_the_line_of_its_statement(
    spark: Any, tmp_path: Path, mode: str, expression: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z")
    (tmp_path / "job.sql").write_text(
        f"""{GOALS.format(folder=tmp_path)}
CREATE TABLE results (n STRING) WITH (format = 'json', path = '{tmp_path}/results');
INSERT INTO results
SELECT CAST({expression} AS STRING) AS n
FROM goals;"""
    )
    assert main(["sql", str(tmp_path / "job.sql"), f"--mode={mode}", "--available_now"]) == 2
    shown = capsys.readouterr().err
    assert what in shown
    # The step that writes has the line of INSERT, and the query has the line of SELECT.
    assert re.search(r"'Write results/Write' \(job\.sql:6\)|'Insert results/\w+' \(job\.sql:7\)", shown)


def test_an_aggregate_that_raises_shows_its_declaration(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z")
    (tmp_path / "raising_too.py").write_text(RAISING)
    (tmp_path / "job.sql").write_text(
        f"""{GOALS.format(folder=tmp_path)} CREATE FUNCTION longest AS 'raising_too:Longest';
    SELECT LONGEST(team) AS l FROM goals HAVING LONGEST(team) > ''"""
    )
    assert main(["sql", str(tmp_path / "job.sql"), "--mode=batch"]) == 2
    shown = capsys.readouterr().err
    assert "the function LONGEST has raised IndexError: string index out of range" in shown
    assert "line 4, column 29 of" in shown
    assert "in add_input (raising_too.py:14): return accumulator + name[7]\n  hint:" in shown


def test_settings_of_text_formats_are_known_to_spark(spark: Any) -> None:
    from penstock.sql.tables import spark_settings

    packages = {"csv": "csv.CSVOptions", "json": "json.JSONOptions"}
    for format, name in packages.items():
        options = getattr(spark._jvm.org.apache.spark.sql.catalyst, "csv" if format == "csv" else "json")
        found = getattr(options, name.rpartition(".")[2]).getAllOptions()
        known = {found.toSeq().apply(at) for at in range(found.size())}
        known = {each.lower() for each in known}
        assert sorted(known - {each.lower() for each in spark_settings.of_format(format)}) == []


def test_a_batch_may_ask_for_what_only_spark_knows(spark: Any, tmp_path: Path) -> None:
    add_goals(tmp_path, "a", "red,3,2026-01-01T12:00:01Z", "red,4,2026-01-01T12:00:01Z")
    lines: list[str] = []
    query = (
        "SELECT team, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY points) AS middle FROM goals GROUP BY team"
    )
    Job(GOALS.format(folder=tmp_path) + query, show=lines.append, mode="batch").run()
    assert lines == ["team | middle", "-----+-------", "red  | 3.5", "(1 row)"]
