"""The console: statements over files, tables printed whole and streams as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_conformance.command import main

GOALS = """team,points,at,arrived
blue,3,2026-01-01T12:00:01Z,2026-01-01T12:05:00Z
red,5,2026-01-01T12:00:02Z,2026-01-01T12:05:30Z
blue,4,2026-01-01T12:01:10Z,2026-01-01T12:06:00Z
,1,2026-01-01T12:00:05Z,2026-01-01T12:08:00Z
"""
STATEMENTS = """
CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP, arrived TIMESTAMP)
WITH (format = 'csv', path = '{folder}/log/goals.csv', header = 'true');
CREATE TABLE log (team STRING, points BIGINT, at TIMESTAMP, arrived TIMESTAMP)
WITH (format = 'csv', path = '{folder}/log', header = 'true', event_time = 'at', arrival_time = 'arrived',
      watermark = '5 seconds');
CREATE VIEW totals AS SELECT team, SUM(points) AS total FROM goals GROUP BY team;
SELECT * FROM totals WHERE total > 1;
SELECT STREAM team, SUM(points) AS total, Sys.Undo FROM log GROUP BY team;
SELECT points FROM goals WHERE points > 100;
"""


def test_statements_run_over_files_and_logs(spark: Any, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "goals.csv").write_text(GOALS)
    (tmp_path / "queries.sql").write_text(STATEMENTS.format(folder=tmp_path))
    assert main(["sql", "--file", str(tmp_path / "queries.sql")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:8] == [
        *("created table goals", "created table log", "created view totals"),
        *("team | total", "-----+------", "blue | 7", "red  | 5", "(2 rows)"),
    ]
    assert sorted(lines[8:-1]) == ["+ NULL | 1", "+ blue | 3", "+ blue | 7", "+ red | 5", "- blue | 3"]
    assert [line for line in lines[8:-1] if "blue" in line] == ["+ blue | 3", "- blue | 3", "+ blue | 7"]
    assert lines[-1] == "(0 rows)"


def test_a_view_may_name_its_columns(spark: Any, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "goals.csv").write_text(GOALS)
    statements = f"""
    CREATE TABLE goals WITH (format = 'csv', path = '{tmp_path}/goals.csv', header = 'true');
    CREATE VIEW totals (`the team`, total) AS SELECT team, COUNT(*) FROM goals GROUP BY team; -- each team
    SELECT total, `the team` FROM totals WHERE total > 1;
    SELECT total, RANK() OVER (ORDER BY total) AS place FROM totals ORDER BY place DESC;
    """
    assert main(["sql", statements]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        *("created view totals", "total | the team", "------+---------", "2     | blue", "(1 row)"),
        # Only Spark knows it.
        *("total | place", "------+------", "2     | 3", "1     | 1", "1     | 1", "(3 rows)"),
    ]


def test_a_query_reads_the_tables_that_it_or_its_views_name(spark: Any, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "goals.csv").write_text(GOALS)
    statements = f"""
    CREATE TABLE `the goals` (team STRING, points BIGINT, at TIMESTAMP, arrived TIMESTAMP)
    WITH (format = 'csv', path = '{tmp_path}/goals.csv', header = 'true');
    CREATE TABLE team (a BIGINT) WITH (format = 'csv', path = '{tmp_path}/absent/*.csv', event_time = 'a');
    CREATE VIEW unread AS SELECT a FROM team;
    CREATE VIEW points AS SELECT team, SUM(points) AS points FROM `The Goals` GROUP BY team;
    CREATE VIEW blue AS SELECT points FROM points WHERE team = 'blue' AND 'unread' <> team;
    SELECT * FROM Blue;
    """
    # Nothing reads the table that is named as a column is, and no file of it is there.
    assert main(["sql", statements]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == ["points", "------", "7", "(1 row)"]


def test_a_wrong_statement_ends_the_console_with_its_place(capsys: Any) -> None:
    assert main(["sql", "SELECT x FROM nowhere"]) == 2
    assert "the query reads no table" in capsys.readouterr().err
    assert main(["sql", "CREATE TABLE t (a BIGINT)"]) == 2
    assert "CREATE TABLE t has no format and no path" in capsys.readouterr().err
    assert main(["sql", "SELECT 'x"]) == 2
    assert "does not end" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["blue,4,9", "blue", "blue,x"])
def test_a_record_that_does_not_fit_its_columns_is_an_error_and_is_not_cut_or_filled(
    spark: Any, tmp_path: Path, capsys: Any, line: str
) -> None:
    (tmp_path / "goals.csv").write_text(f"team,points\nred,3\n{line}\n")
    statements = f"""
    CREATE TABLE goals (team STRING, points BIGINT)
    WITH (format = 'csv', path = '{tmp_path}/goals.csv', header = 'true');
    SELECT SUM(points) AS total FROM goals;
    """
    assert main(["sql", statements]) != 0
    shown = capsys.readouterr().err
    assert f"{tmp_path}/goals.csv has a record that does not fit the columns" in shown
    assert "blue" not in shown
