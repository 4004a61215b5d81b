"""Which Python the workers of a session run, and what is said where it cannot run a pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from penstock.error import RunnerError
from penstock_spark.process.environment import environment
from penstock_spark.session.class_archive import SWITCH, archive_arguments
from penstock_spark.session.classic import workers_python
from penstock_spark.session.classic.workers_python import check_workers_python
from penstock_spark.session.java import ensure_java, find_java

_OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.driver.defaultJavaOptions", " ".join(sys.argv[1:])).getOrCreate()
import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
for mode in ("batch", "streaming"):
    with beam.Pipeline(options=PipelineOptions(mode=mode)) as pipeline:
        pairs = pipeline | beam.Create([1, 2, 3]) | beam.Map(lambda number: (number % 2, number))
        pairs | beam.CombinePerKey(sum) | beam.Map(lambda pair: print(mode, pair, flush=True))
print("the session has", spark.sparkContext.pythonExec)
"""


def _python_without_packages(folder: Path, name: str) -> Path:
    program = folder / name
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def test_the_workers_of_a_users_local_session_run_the_drivers_python_without_a_virtual_environment_on_the_path(
    tmp_path: Path,
) -> None:
    _python_without_packages(tmp_path, "python3")
    hidden = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables["PATH"] = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    variables["JAVA_HOME"] = ensure_java()
    script = tmp_path / "own_session.py"
    script.write_text(_OWN_SESSION)
    with environment({SWITCH: "read"}):
        quick = ["-XX:TieredStopAtLevel=1", *archive_arguments(find_java(), Path(_find_spark_home(), "jars"))]
    command = [sys.executable, str(script), *quick]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert all(f"{mode} {pair}" in told for mode in ("batch", "streaming") for pair in ("(1, 4)", "(0, 2)"))
    # The session is the user's, and stays as it was.
    assert "the session has python3" in done.stdout


@pytest.fixture
def context(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(workers_python, "_checked", weakref.WeakSet())
    monkeypatch.setattr(workers_python, "_instead", weakref.WeakKeyDictionary())
    monkeypatch.setenv("PYSPARK_PYTHON", "chosen")
    return spark.sparkContext


def test_another_minor_version_of_the_workers_is_said_before_anything_starts(
    context, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = context.pythonVer
    monkeypatch.setattr(context, "pythonVer", "3.2")
    told = rf"(?s)workers run Python {own}, and the driver runs Python 3.2.*\n  in .*PYSPARK_PYTHON.*\n  hint: run "
    with pytest.raises(RunnerError, match=told):
        check_workers_python(context, is_local=False)
    assert context not in workers_python._checked


@pytest.mark.every_spark
def test_packages_that_a_chosen_python_lacks_are_named(
    context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(context, "pythonExec", str(_python_without_packages(tmp_path, "bare")))
    told = r"(?s)lacks pyarrow, pandas.*, penstock\n  in .*bare, which .*\n  hint: install pyarrow"
    with pytest.raises(RunnerError, match=told):
        check_workers_python(context, is_local=True)


def test_a_python_that_cannot_be_started_is_named(context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "pythonExec", "/no/such/python")
    with pytest.raises(RunnerError, match=r"(?s)cannot start.*\n  in /no/such/python, .*\n  hint: set"):
        check_workers_python(context, is_local=False)


def test_a_python_that_can_run_pipelines_is_asked_once(context, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    ask = workers_python._ask
    monkeypatch.setattr(workers_python, "_ask", lambda *arguments: (asked.append(arguments), ask(*arguments)))
    for _ in range(2):
        check_workers_python(context, is_local=False)
    assert len(asked) == 1
    assert context.getLocalProperty("spark.job.description") is None


def test_only_the_interpreter_itself_counts_as_the_drivers_python(tmp_path: Path) -> None:
    assert workers_python._is_this_python(sys.executable)
    link = tmp_path / "python3"
    link.symlink_to(os.path.realpath(sys.executable))
    assert not workers_python._is_this_python(str(link))
    assert not workers_python._is_this_python("no-such-python")
