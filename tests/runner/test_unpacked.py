"""The folder that lets Spark's workers import what is unpacked, and when there is none."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from penstock_spark.session.java import Java, wrapper_script
from penstock_spark.session.unpacked_spark import HOME, SWITCH, unpack_spark_home


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "cache"


def installed() -> str:
    """The folder of the Spark that pip has installed here."""
    home = os.environ.get("SPARK_HOME") or _find_spark_home()
    if not Path(home, "daemon.py").exists():
        pytest.skip("this Spark was not installed with pip")
    return home


def test_a_python_imports_the_unpacked_packages_by_the_names_of_the_archives(cache: Path) -> None:
    spark_home = installed()
    home = unpack_spark_home(spark_home)
    assert home is not None
    assert cache in Path(home).parents
    archives = sorted(Path(home, "python", "lib").iterdir())
    assert [each.name for each in archives] == sorted(os.listdir(Path(spark_home, "python", "lib")))
    told = "import py4j, pyspark.daemon; print(py4j.__file__, pyspark.daemon.__file__, sep='\\n')"
    environment = {"PYTHONPATH": os.pathsep.join(map(str, archives))}
    command = [sys.executable, "-S", "-c", told]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    places = [Path(line) for line in done.stdout.split()]
    assert [place.parent.parent for place in places] == archives
    assert Path(home, "jars").samefile(Path(spark_home, "jars"))


def test_the_python_that_spark_asks_for_state_prints_nothing_and_the_environments_own_start_is_run(
    cache: Path, tmp_path: Path
) -> None:
    home = unpack_spark_home(installed())
    assert home is not None
    worker = tmp_path / "own" / "pyspark" / "sql" / "streaming"
    worker.mkdir(parents=True)
    for folder in (worker, worker.parent, worker.parent.parent):
        (folder / "__init__.py").write_text("")
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; print('own start', file=sys.stderr)")
    for name in ("transform_with_state_driver_worker", "another_worker"):
        (worker / f"{name}.py").write_text("print('noise')")
    first = tmp_path / "first"
    first.mkdir()
    (first / "sitecustomize.py").symlink_to(Path(home, "python", "lib", "pyspark.zip", "sitecustomize.py"))
    environment = {"PYTHONPATH": os.pathsep.join([str(first), str(tmp_path / "own")])}

    def said(module: str) -> tuple[str, str]:
        command = [sys.executable, "-m", f"pyspark.sql.streaming.{module}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    assert said("transform_with_state_driver_worker") == ("", "own start\n")
    assert said("another_worker") == ("noise\n", "own start\n")


def _daemon(code: str, folder: Path, **variables: str) -> str:
    """The output of a program that starts as Spark's daemon does, and imports from a folder first."""
    home = unpack_spark_home(installed())
    assert home is not None
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").symlink_to(Path(home, "python", "lib", "pyspark.zip", "sitecustomize.py"))
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), **variables}
    command = [sys.executable, "-c", code, "pyspark.daemon", "pyspark.worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


_TOLD = """
import os, sys
print("penstock_spark.stages.stage" in sys.modules, "pandas" in sys.modules, "JE_ARROW_MALLOC_CONF" in os.environ)
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a copy of a process is safe on Linux alone")
def test_sparks_daemon_has_imported_what_workers_need_and_has_one_thread(tmp_path: Path) -> None:
    assert _daemon(_TOLD, tmp_path / "first", OMP_NUM_THREADS="1") == "True True False\n1\n"


_COPIED = """
import os, random
import numpy

def answers(ask, copies):
    found = set()
    for _ in range(copies):
        here, there = os.pipe()
        if os.fork() == 0:
            os.write(there, str(ask()).encode())
            os._exit(0)
        found.add(os.read(here, 100).decode())
    return found

def copied_again():
    numpy.random.seed(7)
    return len(answers(numpy.random.random, 2))

print(len(answers(numpy.random.random, 3)), len(answers(random.random, 3)), *answers(copied_again, 1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a copy of a process is safe on Linux alone")
def test_workers_that_are_copies_have_random_numbers_of_their_own(tmp_path: Path) -> None:
    # The last number is of a worker that has seeded NumPy, and copies itself.
    assert _daemon(_COPIED, tmp_path / "first", OMP_NUM_THREADS="1") == "3 3 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a copy of a process is safe on Linux alone")
def test_sparks_daemon_leaves_out_what_would_start_threads_or_is_broken_and_prints_nothing(
    tmp_path: Path,
) -> None:
    assert _daemon(_TOLD, tmp_path / "first", OMP_NUM_THREADS="2") == "False False False\n1\n"
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "penstock_spark.py").write_text("print('noise')\nraise RuntimeError")
    assert _daemon(_TOLD, tmp_path / "second", OMP_NUM_THREADS="1") == "False True False\n1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the children of a process are listed on Linux alone")
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_worker_whose_task_spark_has_given_up_prints_nothing(tmp_path: Path, is_ours: bool) -> None:
    home = unpack_spark_home(installed())
    assert home is not None
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHON_UNIX_DOMAIN_ENABLED": "false",
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
        # As Spark has it.
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true",
    }
    if is_ours:
        archive = Path(home, "python", "lib", "pyspark.zip")
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(archive), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
    command = [sys.executable, "-m", "pyspark.daemon", "pyspark.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as daemon:  # type: ignore[call-overload]
        [port] = struct.unpack("!i", daemon.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port)) as java:
            assert len(java.recv(4)) == 4  # The worker's number.
            java.sendall(struct.pack("!i", 6) + b"secret")
            assert java.recv(6) == struct.pack("!i", 2) + b"ok"
            # A task begins, and Spark hangs up.
            java.sendall(b"\0")
            java.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        _wait_until_alone(daemon.pid)
        _, said = daemon.communicate(timeout=60)
    assert ("Broken pipe" in said.decode()) is not is_ours, said


_JAVA = """
import subprocess, sys
daemon = subprocess.Popen([sys.executable, "-m", "pyspark.daemon", "pyspark.worker"], stdin=subprocess.PIPE, stdout=1)
print(daemon.pid, file=sys.stderr, flush=True)
sys.stdin.read()
"""
"""Starts Spark's daemon, whose port comes on the standard output."""


@pytest.mark.skipif(sys.platform != "linux", reason="another system does not tell that a parent has died")
def test_a_worker_whose_daemon_was_killed_ends_with_java() -> None:
    home = unpack_spark_home(installed())
    assert home is not None
    archive = str(Path(home, "python", "lib", "pyspark.zip"))
    environment = {
        **os.environ,
        "PYTHON_UNIX_DOMAIN_ENABLED": "false",
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
        "PYTHONPATH": os.pathsep.join([archive, *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _JAVA], env=environment, **pipes) as java:  # type: ignore[call-overload]
        daemon = int(java.stderr.readline())
        [port] = struct.unpack("!i", java.stdout.read(4))
        # The connection is not Java's own, so that the worker does not see it close.
        with socket.create_connection(("127.0.0.1", port)) as task:
            [worker] = struct.unpack("!i", task.recv(4))
            os.kill(daemon, signal.SIGKILL)
            task.sendall(struct.pack("!i", 6) + b"secret")
            assert task.recv(6) == struct.pack("!i", 2) + b"ok", "without a daemon, it continues"
            time.sleep(1.5)
            assert _is_running(worker)
            java.kill()
            java.wait()
            until = time.monotonic() + 60
            while _is_running(worker):
                assert time.monotonic() < until, "the worker stays"
                time.sleep(0.05)


def _is_running(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def _wait_until_alone(daemon: int) -> None:
    """Until a process has no copies any more."""
    until = time.monotonic() + 60
    while Path(f"/proc/{daemon}/task/{daemon}/children").read_text():
        assert time.monotonic() < until, "a worker stays"
        time.sleep(0.05)


def test_the_folder_is_made_once() -> None:
    home = unpack_spark_home(installed())
    assert home is not None
    assert unpack_spark_home(installed()) == home
    assert [each.name for each in Path(home).parent.iterdir()] == [Path(home).name]


@pytest.mark.parametrize("reason", ["switched off", "another Spark", "no cache", "a colon in the path"])
def test_there_is_none_where_the_archives_have_to_do(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_home = installed()
    match reason:
        case "switched off":
            monkeypatch.setenv(SWITCH, "0")
        case "another Spark":
            other = tmp_path / "spark"
            (other / "python").mkdir(parents=True)
            (other / "python" / "lib").symlink_to(Path(spark_home, "python", "lib"))
            spark_home = str(other)
        case "no cache":
            (tmp_path / "file").write_text("not a folder")
            monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
        case _:
            monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "a:b"))
    assert unpack_spark_home(spark_home) is None


@pytest.mark.parametrize(
    ("told", "main", "seen"),
    [
        ("/unpacked", "org.apache.spark.deploy.SparkSubmit", "/unpacked"),
        ("/unpacked", "org.apache.spark.launcher.Main", "/spark"),
        ("", "org.apache.spark.deploy.SparkSubmit", "/spark"),
    ],
)
def test_java_takes_the_folder_for_sparks_home_but_makes_the_class_path_of_the_real_one(
    tmp_path: Path, told: str, main: str, seen: str
) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho "$SPARK_HOME"\n')
    java.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(wrapper_script(Java(str(java), "21.0.8")))
    arguments = ["sh", str(script), "-cp", "jars/*", main, "org.apache.spark.deploy.SparkSubmit"]
    environment = {**os.environ, "SPARK_HOME": "/spark", HOME: told}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{seen}\n"
