"""Which session is taken, and that the user's stays as it was."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

import penstock as beam
from penstock.options.spark import SparkOptions
from penstock.runners import SparkRunner
from penstock_spark.runs.open_session import open_session
from penstock_spark.session.backends import backend_of
from penstock_spark.session.configuration import read_spark_property
from penstock_spark.session.connect.backend import ConnectBackend
from penstock_spark.session.session import SessionOptions, session_for


def test_the_users_session_is_taken_as_it_is_from_any_thread(spark: SparkSession) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    found: list[SparkSession] = [
        session_for(SessionOptions()),
        session_for(SessionOptions(spark=spark, conf={"spark.sql.shuffle.partitions": "77"})),
        session_for(SessionOptions(app_name="other", conf={"spark.sql.shuffle.partitions": "77"})),
    ]
    thread = threading.Thread(target=lambda: found.append(session_for(SessionOptions())))
    thread.start()
    thread.join()
    assert found == [spark] * 4
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before


def test_a_pipeline_and_a_runner_take_the_session_that_they_are_given(spark: SparkSession) -> None:
    other = spark.newSession()
    for options in (
        beam.Pipeline(spark=other).options,
        SparkRunner(spark=other)._settings(beam.Pipeline().options),
    ):
        assert open_session(options.view_as(SparkOptions), local_only=False) is other
    assert open_session(beam.Pipeline().options.view_as(SparkOptions), local_only=False) is spark


def test_the_runners_session_sees_the_users_settings_and_views_and_changes_neither(
    spark: SparkSession,
) -> None:
    spark.range(3).createOrReplaceTempView("three")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        runner = backend_of(spark).clone({"spark.sql.shuffle.partitions": "5"})
        runner.range(4).createOrReplaceTempView("four")
        assert runner.sparkContext is spark.sparkContext
        assert runner.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert runner.table("three").count() == 3
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
        assert not spark.catalog.tableExists("four")
        assert session_for(SessionOptions()) is spark
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.catalog.dropTempView("three")


def test_a_frame_without_rows_of_the_runners_session_leaves_the_users_the_active_one(
    spark: SparkSession,
) -> None:
    runner = backend_of(spark).clone({})
    schema = StructType(
        [StructField("name", StringType(), nullable=False), StructField("ids", ArrayType(LongType()))]
    )
    empty = backend_of(runner).empty_frame(schema)
    assert empty.schema == schema
    assert empty.collect() == []
    assert SparkSession.getActiveSession() is spark


@pytest.mark.every_spark
def test_a_moved_frame_runs_with_the_settings_of_its_new_session(spark: SparkSession) -> None:
    settings = {"spark.sql.shuffle.partitions": "5", "spark.sql.adaptive.enabled": "false"}
    runner = backend_of(spark).clone(settings)
    frame = backend_of(runner).moved(spark.sql("SELECT id % 7 AS k, count(*) FROM range(100) GROUP BY 1"))
    assert frame.sparkSession is runner
    assert frame.rdd.getNumPartitions() == 5
    assert frame.count() == 7


def test_the_environment_of_the_program_is_not_changed(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec
    assert "SPARK_LAUNCHER_OPTS" not in os.environ
    assert os.environ.get("JAVA_HOME", "") != spark.sparkContext._jvm.System.getenv("JAVA_HOME")


def test_a_connect_session_has_the_other_backend() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    assert session_for(SessionOptions(spark=remote)) is remote
    assert isinstance(backend_of(remote), ConnectBackend)


@pytest.mark.parametrize(
    ("arguments", "defaults", "master"),
    [
        ("", "", None),
        ("--master yarn pyspark-shell", "spark.master local[3]", "yarn"),
        ("--conf spark.master=k8s://x:1 pyspark-shell", "", "k8s://x:1"),
        (
            "pyspark-shell",
            "# spark.master a\nspark.app.name b\n  spark.master \t spark://h:7077  \n",
            "spark://h:7077",
        ),
        ("pyspark-shell", "spark.master=local[3]", "local[3]"),
    ],
)
def test_sparks_own_configuration_is_read_where_spark_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, defaults: str, master: str | None
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert read_spark_property("spark.master") == master
