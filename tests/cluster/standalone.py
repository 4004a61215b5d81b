"""A standalone Spark cluster on this machine, whose workers have Python's packages but not penstock.

A task that takes long runs twice at once, as on the clusters of many companies (``spark.speculation``).

Tests harm it: they kill its processes, or stop them as if the network were cut, and start them again.
"""

from __future__ import annotations

import os
import re
import signal
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

_SOURCES = tuple(str(Path(__file__).parents[2] / folder) for folder in ("sdk", "runner_spark", "connectors"))
_START_SECONDS_MAX = 120
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Six Javas share one small machine."""

_MASTER_IS_UP = r"Starting Spark master at (spark://\S+)"
_WORKER_IS_UP = r"(Successfully registered) with master"

_HIDDEN = re.compile(r"(__editable__.*|_?penstock.*|.*\.pth|__pycache__)")


@dataclass
class Daemon:
    """One of Spark's daemons, with a log file.

    Attributes:
        folder: Where its log is.
        name: The name of its log.
        arguments: Its class, and what that takes.
        host: What it calls this machine.
    """

    folder: Path
    name: str
    arguments: tuple[str, ...]
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = None

    def start(self, pattern: str) -> str:
        """Starts it, and waits until its log says so; returns what the pattern's group has found."""
        import pyspark

        from penstock_spark.session.java import ensure_java

        home = Path(pyspark.__file__).parent
        recovery = (
            f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self.folder}/kept"
        )
        environment = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": ensure_java(),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            # A master that starts again knows the programs and the workers of before.
            "SPARK_DAEMON_JAVA_OPTS": f"{_SMALL} {recovery}",
            "SPARK_LAUNCHER_OPTS": _SMALL,
        }
        command = [str(home / "bin" / "spark-class"), *self.arguments[:1], "--host", self.host]
        log = self.folder / f"{self.name}.log"
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [*command, *self.arguments[1:]],
                env=environment,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
            )
        return _awaited(log, pattern)

    def stop(self) -> None:
        """Ends it; a worker that is asked to end also ends its executors."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to it and to all that it has started."""
        assert self.process is not None
        for pid in sessions_processes(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL:
            self.process.wait()


def sessions_processes(session: int) -> list[int]:
    """The processes of a session; an executor is in the session of its worker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if os.getsid(int(entry.name)) == session:
                    found.append(int(entry.name))
    return found


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        master: The URL of its master.
        folder: Where its logs, its workers' files and its drivers' settings are.
        worker_python: The Python of its workers.
        leader: The master.
        workers: The workers.
    """

    master: str
    folder: Path
    worker_python: Path
    leader: Daemon
    workers: list[Daemon]
    _healing: list[tuple[Daemon, bool]] = field(default_factory=list)

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
            "spark.speculation": "true",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.minTaskRuntime": "500ms",
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

    def harm(self, part: str, cut: bool, random: Random) -> None:
        """Kills a ``master``, a ``worker machine`` with its executors, or an ``executor``; or cuts it off.

        A process that is stopped answers nobody, as one behind a cable that is out.
        """
        daemon = self.leader if part == "master" else random.choice(self.workers)
        if part == "executor":
            assert daemon.process is not None
            for pid in sessions_processes(daemon.process.pid):
                if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
            return
        daemon.send(signal.SIGSTOP if cut else signal.SIGKILL)
        self._healing.append((daemon, cut))

    def heal(self) -> None:
        """Has all that was harmed work again."""
        while self._healing:
            daemon, was_cut = self._healing.pop()
            if was_cut:
                daemon.send(signal.SIGCONT)
            else:
                daemon.start(_MASTER_IS_UP if daemon is self.leader else _WORKER_IS_UP)


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Starts a master and two workers, of one core and one gigabyte each, and ends them with the block."""
    worker_python = _python_without_penstock(folder)
    with ExitStack() as stack:
        place = ("--port", "0", "--webui-port", "0")
        leader = Daemon(folder, "master", ("org.apache.spark.deploy.master.Master", *place))
        stack.callback(leader.stop)
        master = leader.start(_MASTER_IS_UP)
        # It must be found at the same port when it starts again.
        port = master.rpartition(":")[2]
        leader.arguments = (leader.arguments[0], "--port", port, "--webui-port", "0")
        workers = []
        # Spark runs a task twice at once only on machines of two names.
        for number, host in enumerate(("127.0.0.1", "localhost")):
            share = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            arguments = ("org.apache.spark.deploy.worker.Worker", *place, *share, master)
            workers.append(Daemon(folder, f"worker{number}", arguments, host))
            stack.callback(workers[-1].stop)
            workers[-1].start(_WORKER_IS_UP)
        yield Cluster(master, folder, worker_python, leader, workers)


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
