"""A local session has the collector that takes the least time, and never one beside the user's."""

from __future__ import annotations

import pytest

from penstock_spark.session.collector import collector

SIMPLE, PARALLEL = "-XX:+UseSerialGC", "-XX:+UseParallelGC"


@pytest.fixture(autouse=True)
def nothing_is_configured(monkeypatch, tmp_path):
    for name in (
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "SPARK_SUBMIT_OPTS",
        "SPARK_DRIVER_MEMORY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


def test_the_parallel_collector_is_for_long_jobs_and_the_simple_one_for_fast_starts():
    assert collector({}, fast_start=False) == [PARALLEL]
    assert collector({}, fast_start=True) == [SIMPLE]
    assert collector(
        {"spark.driver.extraJavaOptions": "-Dgc=1 -XX:MaxGCPauseMillis=9"}, fast_start=False
    ) == [PARALLEL]


@pytest.mark.parametrize("fast_start", [False, True])
@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC"),
        ("JDK_JAVA_OPTIONS", "-Xss1m -XX:+UseShenandoahGC"),
        ("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -Dx=y"),
        ("PYSPARK_SUBMIT_ARGS", "--driver-java-options '-XX:+UseZGC' pyspark-shell"),
    ],
)
def test_the_users_choice_in_the_environment_is_the_only_one(monkeypatch, fast_start, variable, text):
    monkeypatch.setenv(variable, text)
    assert collector({}, fast_start) == []


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_the_users_choice_in_a_property_is_the_only_one(nothing_is_configured, name):
    assert collector({name: "-XX:+UseG1GC"}, fast_start=False) == []
    (nothing_is_configured / "spark-defaults.conf").write_text(f"{name} -Da=b -XX:+UseG1GC\n")
    assert collector({}, fast_start=False) == []


def test_a_heap_of_the_users_size_has_the_collector_that_java_chooses(monkeypatch, nothing_is_configured):
    assert collector({"spark.driver.memory": "64g"}, fast_start=False) == []
    with monkeypatch.context() as changed:
        changed.setenv("SPARK_DRIVER_MEMORY", "64g")
        assert collector({}, fast_start=False) == []
    with monkeypatch.context() as changed:
        changed.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 64g pyspark-shell")
        assert collector({}, fast_start=False) == []
    (nothing_is_configured / "spark-defaults.conf").write_text("spark.driver.memory 64g\n")
    assert collector({}, fast_start=False) == []
