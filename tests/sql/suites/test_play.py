"""The player of suites tells what is equal, refused and wrong; the file that it plays here is our own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.sql.binding import groupings
from tests.sql.suites.play import Report, play_file

OWN = """
statement ok
CREATE TABLE goals(team VARCHAR, points INTEGER, made TIMESTAMP)

statement ok
INSERT INTO goals VALUES ('red', 3, '2026-01-01 00:00:01'), ('blue', 4, '2026-01-01 00:00:09'), ('red', NULL, NULL)

statement ok
INSERT INTO goals VALUES ('red', 3, '2026-01-01 00:00:01')

query TI rowsort
SELECT team, SUM(points) FROM goals GROUP BY team
----
blue	4
red	6

query T
SELECT DISTINCT team AS "the team" FROM goals ORDER BY 1
----
blue
red

statement ok
CREATE VIEW totals AS SELECT team, COUNT(*) AS n FROM goals GROUP BY team

statement ok
DELETE FROM goals WHERE points IS NULL

query TI nosort
SELECT team, n FROM totals WHERE n > 1
----
red 2

query TT
SELECT team, made FROM goals WHERE team = 'blue'
----
blue 2026-01-01 00:00:09

query R
SELECT AVG(points) FROM goals
----
3.333333

query I
SELECT COUNT(*) FROM goals
----
4

query I
SELECT DISTINCT ON (team) points FROM goals
----
3
4

query I
SELECT 1 // 0 FROM goals EMIT CHANGES
----
3

skipif duckdb
query I
SELECT nothing
----
1

query IT valuesort
SELECT 7, 'x'
----
7
x
"""


def _verdicts(folder: Path) -> Counter[str]:
    file = folder / "own.test"
    file.write_text(OWN)
    report = Report()
    play_file(file, "duckdb", report, streams=1)
    return report.verdicts


def test_each_query_has_a_verdict(tmp_path: Path) -> None:
    assert _verdicts(tmp_path) == {
        "equal": 6,
        "equal in a stream": 6,
        "differs": 1,
        "refused": 1,
        "not played": 1,
    }


def test_a_break_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupings, "distinct", lambda relation: relation)
    assert _verdicts(tmp_path)["differs"] == 2


def test_a_digest_stands_for_rows(tmp_path: Path) -> None:
    file = tmp_path / "own.test"
    # MD5 of "3\n3\n4\n".
    text = "statement ok\nCREATE TABLE t(a INTEGER)\n\nstatement ok\nINSERT INTO t VALUES (4), (3), (3)\n\n"
    found = []
    for digest in ("ac059305735acca458c8e4f379e2111c", "5d4e40ae5f5a6e05f4d5a0b4b9f5f1c1"):
        file.write_text(f"{text}query I rowsort\nSELECT a FROM t\n----\n3 values hashing to {digest}\n")
        report = Report()
        play_file(file, "sqlite", report, streams=9)
        found.append([*report.verdicts])
    assert found == [["equal"], ["not played"]]
