"""A standalone Spark cluster on this machine, whose workers have Python's packages but not penstock.

A local master runs its tasks on the driver's own files and paths, so it hides what a program forgot to send
along. Here the driver is a program of its own and the workers are started with nothing of its environment.
"""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["jobs"]
"""The programs in that folder are run, not imported: the modules beside them are found only then."""

_HERE = Path(__file__).parent
_PROGRAM = _HERE / "jobs" / "public_pipelines.py"
_SOURCES = tuple(str(_HERE.parents[1] / folder) for folder in ("sdk", "runner_spark"))
_START_SECONDS_MAX = 120
_JOB_SECONDS_MAX = 600
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Six Javas share one small machine."""

_HIDDEN = re.compile(r"(__editable__.*|_?penstock.*|.*\.pth|__pycache__)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: The URL of its master.
        folder: Where its logs, its workers' files and its drivers' settings are.
        worker_python: The Python of its workers.
    """

    master: str
    folder: Path
    worker_python: Path

    def driver_environment(self) -> dict[str, str]:
        """The environment of a program that is to run on this cluster, as an administrator would set it
        up."""
        settings = {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": _SMALL,
            "spark.driver.extraJavaOptions": _SMALL,
            "spark.sql.shuffle.partitions": "2",
        }
        conf = self.folder / "conf"
        conf.mkdir(exist_ok=True)
        lines = [f"{name} {value}\n" for name, value in settings.items()]
        (conf / "spark-defaults.conf").write_text("".join(lines))
        logging = (
            "rootLogger.level = error\nrootLogger.appenderRef.stderr.ref = e\nappender.e.type = Console\n"
        )
        (conf / "log4j2.properties").write_text(
            f"{logging}appender.e.name = e\nappender.e.target = SYSTEM_ERR\n"
        )
        return {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("SPARK_", "PYSPARK_"))
            },
            "SPARK_CONF_DIR": str(conf),
            "PYSPARK_PYTHON": str(self.worker_python),
            "PYTHONPATH": os.pathsep.join([*_SOURCES, *filter(None, sys.path)]),
        }


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Starts a master and two workers, of one core and one gigabyte each, and ends them with the block."""
    worker_python = _python_without_penstock(folder)
    with ExitStack() as processes:
        master_log = processes.enter_context(
            _daemon(
                folder, "master", "org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0"
            )
        )
        master = _awaited(master_log, r"Starting Spark master at (spark://\S+)")
        logs = [
            processes.enter_context(
                _daemon(
                    *(folder, f"worker{number}", "org.apache.spark.deploy.worker.Worker"),
                    *("--cores", "1", "--memory", "1g", "--port", "0", "--webui-port", "0"),
                    *("--work-dir", str(folder / f"work{number}"), master),
                )
            )
            for number in range(2)
        ]
        for log in logs:
            _awaited(log, r"(Successfully registered) with master")
        yield Cluster(master, folder, worker_python)


@contextmanager
def _daemon(folder: Path, name: str, main_class: str, *arguments: str) -> Iterator[Path]:
    """Runs one of Spark's daemons with a log file, and ends it, and what it has started, with the block."""
    import pyspark

    from penstock_spark.session.java import ensure_java

    home = Path(pyspark.__file__).parent
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": ensure_java(),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _SMALL,
        "SPARK_LAUNCHER_OPTS": _SMALL,
    }
    log = folder / f"{name}.log"
    command = [str(home / "bin" / "spark-class"), main_class, "--host", "127.0.0.1", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
    try:
        yield log
    finally:
        # A worker that is asked to end also ends its executors.
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _awaited(log: Path, pattern: str) -> str:
    """What a daemon's log says once it has started."""
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text())
        if match:
            return match[1]
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} does not say {pattern!r}:\n{log.read_text()}")


def _python_without_penstock(folder: Path) -> Path:
    """A Python that imports every installed package but penstock, however that is installed."""
    packages = folder / "packages"
    packages.mkdir()
    for source in map(Path, dict.fromkeys(site.getsitepackages())):
        for entry in source.iterdir() if source.is_dir() else ():
            if not _HIDDEN.fullmatch(entry.name) and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    program = folder / "worker_python"
    # With -S Python reads no .pth file, so an editable install stays unknown too.
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one cluster of a test run."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def outcomes(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each part of the one program on the cluster came to: its start costs more than all of them.

    It is a process of its own, because a process has one Spark at a time, and the tests have theirs.
    """
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("shared"))],
        env=cluster.driver_environment(),
        cwd=tmp_path_factory.mktemp("job"),
        capture_output=True,
        text=True,
        timeout=_JOB_SECONDS_MAX,
    )
    assert done.returncode == 0, f"it ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
