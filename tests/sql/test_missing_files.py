"""A job in SQL says that the files of a table are not there, before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.options.spark import SparkOptions
from penstock.sql.errors import SqlError
from penstock.sql.jobs.binding import JobBinder
from penstock.sql.jobs.running import Job
from penstock.sql.statements.words import Script
from penstock_spark.runner import SparkRunner
from penstock_spark.session import session
from penstock_spark.session.session import SessionOptions, reads_this_disk

GOALS = "-- goals\nCREATE TABLE goals (team STRING{more}) WITH (format = '{format}', path = '{path}');\n"
TOTALS = "CREATE TABLE totals WITH (format = 'json', path = '{folder}/totals') AS SELECT team FROM goals;\n"
TIMED = ", at TIMESTAMP, WATERMARK FOR at AS at"


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """No session, and nothing that names a master."""
    monkeypatch.setattr(session, "existing_session", lambda: None)
    for name in ("MASTER", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)

    def start(self: SparkRunner, options: SparkOptions) -> None:
        raise AssertionError("Spark starts")

    monkeypatch.setattr(SparkRunner, "start_engine", start)


def check(text: str, **options: object) -> None:
    binder = JobBinder(Script(text, "job.sql"), options)
    binder.bind()
    binder.check_files()


@pytest.mark.parametrize("format", ["csv", "json", "text"])
@pytest.mark.parametrize(
    "last", [TOTALS, "SELECT * FROM goals", "CREATE VIEW v AS SELECT * FROM goals; SELECT * FROM v"]
)
def test_a_missing_folder_is_refused_where_its_table_is_declared(
    tmp_path: Path, format: str, last: str
) -> None:
    path = tmp_path / "nowhere"
    text = GOALS.format(format=format, path=path, more="") + last.format(folder=tmp_path)
    with pytest.raises(SqlError) as caught:
        Job(text, "job.sql").run()
    said = str(caught.value).splitlines()
    assert said[:2] == [f"the table 'goals': {path} does not exist", "  line 2, column 14 of job.sql"]
    assert said[-1] == "  hint: check the path"
    with pytest.raises(SqlError, match="does not exist"):
        Job(text).start()
    path.mkdir()
    check(text)


def test_the_columns_of_files_that_are_not_there_are_not_looked_for(tmp_path: Path) -> None:
    text = f"CREATE TABLE t WITH (format = 'csv', path = '{tmp_path}/no.csv'); SELECT * FROM t"
    with pytest.raises(
        SqlError, match=f"the table 't': {tmp_path}/no.csv does not exist\n  line 1, column 14 of"
    ):
        Job(text)
    with pytest.raises(SqlError, match=f"the table 't': {tmp_path}/no does not exist\n"):
        Job(f"CREATE TABLE t WITH (format = 'delta', path = '{tmp_path}/no'); SELECT * FROM t")


def test_a_stream_waits_for_what_matches_a_pattern_but_not_for_its_folder(tmp_path: Path) -> None:
    def job(path: str) -> str:
        return GOALS.format(format="csv", path=f"{tmp_path}/{path}", more=TIMED) + TOTALS.format(
            folder=tmp_path
        )

    with pytest.raises(
        SqlError, match=r"in does not exist\n(.|\n)*hint: create the folder before the job starts"
    ):
        check(job("in"))
    check(job("in/*.csv"))
    with pytest.raises(SqlError, match=r"no file matches .*/in/\*.csv"):
        check(job("in/*.csv"), mode="batch")
    (tmp_path / "in").mkdir()
    check(job("in"))
    (tmp_path / "in" / "a.csv").touch()
    check(job("in/*.csv"), mode="batch")


@pytest.mark.parametrize(
    "text",
    [
        # A job may make what it reads later, also by another name.
        "CREATE TABLE a (n BIGINT) WITH (format = 'json', path = '{0}/a'); INSERT INTO a SELECT 1; SELECT n FROM a",
        "CREATE TABLE a WITH (format = 'json', path = '{0}/a/') AS SELECT 1 AS n; "
        "CREATE TABLE b (n BIGINT) WITH (format = 'json', path = '{0}/a/*.json'); SELECT n FROM b",
        # Only what runs needs its files.
        "CREATE TABLE a (n BIGINT) WITH (format = 'json', path = '{0}/a'); EXPLAIN SELECT n FROM a; DESCRIBE a",
        "CREATE TABLE a (n BIGINT) WITH (format = 'json', path = 's3://lake/a'); SELECT n FROM a",
    ],
)
def test_files_that_a_job_makes_or_does_not_read_need_not_be_there(tmp_path: Path, text: str) -> None:
    check(text.format(tmp_path))


def test_nothing_is_said_where_spark_may_see_another_disk(tmp_path: Path) -> None:
    text = GOALS.format(format="csv", path=f"{tmp_path}/nowhere", more="") + "SELECT * FROM goals"
    check(text, master="spark://host:7077")
    check(text, master="sc://host:15002")
    with pytest.raises(SqlError, match="does not exist"):
        check(text, master="local[2]")


def test_which_sessions_read_the_disk_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reads_this_disk(SessionOptions())
    assert not reads_this_disk(SessionOptions(conf={"spark.hadoop.fs.defaultFS": "hdfs://name:8020"}))
    assert not reads_this_disk(SessionOptions(conf={"spark.master": "yarn"}))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert reads_this_disk(SessionOptions())
    (tmp_path / "core-site.xml").touch()
    assert not reads_this_disk(SessionOptions())
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not reads_this_disk(SessionOptions())
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert not reads_this_disk(SessionOptions())
