"""The SparkSession that a pipeline runs in: the user's own, the active one, or a new one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.error import RunnerError, UnsupportedByRunner, refusal
from penstock_spark.process.environment import environment
from penstock_spark.process.interrupts import end_first, keep_handlers
from penstock_spark.session.backend import TIME_ZONE
from penstock_spark.session.backends import backend_of, has_lost_server, is_connect, open_remote
from penstock_spark.session.class_archive import archive_arguments
from penstock_spark.session.classic.gateway import start_java
from penstock_spark.session.classic.java_connection import has_context, kill_java
from penstock_spark.session.classic.log_noise import quiet_session
from penstock_spark.session.collector import collector
from penstock_spark.session.configuration import configuration_folder, read_spark_property
from penstock_spark.session.java import find_java, wrap_java
from penstock_spark.session.masters import is_local, local_cores
from penstock_spark.session.spark_versions import is_client_only
from penstock_spark.session.unpacked_spark import HOME, unpack_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULT_HANDLER = "spark.python.worker.faulthandler.enabled"
"""Spark's setting that preserves what `penstock_spark.reports.crash_marker` has written when a worker dies."""

_KEPT_FOR_PAGES = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.ui.dagGraph.retainedRootRDDs": "50",
    "spark.sql.ui.retainedExecutions": "20",
}
"""The number of jobs and tasks that Spark remembers for its pages, even without them: by default 1,000 jobs and queries
and 100,000 tasks, which a stream reaches after hours, and which are some hundred megabytes."""

DEFAULT_MASTER = "local[*]"

_SERVER = "sc:"
"""The beginning of the address of a Spark Connect server, also of one that lacks its slashes."""

_FILE_SYSTEM = "fs.defaultFS"
"""Hadoop's setting of the file system of paths without a scheme."""

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Without the slow compiler, a start takes half the CPU time, and a long job takes more."""

_ROOM_FOR_CODE = "-XX:ReservedCodeCacheSize=240m"
"""As much as Java reserves with both compilers. With one it is 48 MB, which are full after a hundred pipelines.

Java then throws compiled code away and compiles it again, all the time.
"""

_PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=15000",
    "-XX:Tier4MinInvocationThreshold=1800",
    "-XX:Tier4CompileThreshold=45000",
)
"""The slow compiler waits three times as long: a start takes a tenth less CPU time, and long jobs lose nothing.

Java then does not compile a function a second time that only the start calls, a few thousand times.
"""


@dataclass(frozen=True)
class SessionOptions:
    spark: SparkSession | None = None  # The user's own session; the other options then have no effect.
    # Spark's master URL; None means the master in Spark's configuration, or else every local core.
    master: str | None = None
    app_name: str | None = None  # The name in Spark's user interface; None means the program's file name.
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark properties; they override this module's.
    fast_start: bool = False  # Start a local session in half the time, at the cost of long jobs; for tests.


def session_for(options: SessionOptions, on_start: Callable[[], None] = lambda: None) -> SparkSession:
    """Returns the session to run in; calls `on_start` before it starts one, which takes a while.

    The user's own session comes first, then an active session (on Databricks, in a notebook, in
    spark-submit's shell); neither is changed. Then comes the server of Spark Connect that the option master names,
    or else ``$SPARK_REMOTE``. Without any, it starts a new one.
    """
    existing = options.spark if options.spark is not None else existing_session()
    if existing is not None and not has_lost_server(existing):
        return _checked(existing)
    server = server_for(options.master)
    on_start()
    if server is not None:
        return open_remote(server, options.conf)
    return _start(options)


def existing_session() -> SparkSession | None:
    """Returns the process's session, if it has one, with its settings unchanged."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Another thread may have made it. A builder without options returns it unchanged.
    if has_context():
        return SparkSession.builder.getOrCreate()
    if is_remote():
        with suppress(PySparkException):
            return SparkSession.active()
    return None


def server_for(master: str | None) -> str | None:
    """Returns the address of the server of Spark Connect to run on; None if the program runs a Spark of its own.

    Args:
        master: The option master.

    Raises:
        RunnerError: if the option and ``$SPARK_REMOTE`` contradict each other, or the installed PySpark needs a server
            and neither names one.
    """
    if master is not None and master.startswith(_SERVER):
        return master
    remote = os.environ.get("SPARK_REMOTE")
    if is_client_only() and (master is not None or not (remote or "").startswith(_SERVER)):
        named = f"runs no Spark of its own for master={master!r}" if master else "has no server to talk to"
        raise UnsupportedByRunner(
            f"the installed PySpark is only a client of Spark Connect, and {named}",
            where="in this Python",
            hint="name a server (master='sc://host:15002', or $SPARK_REMOTE); to run Spark on this machine, run pip "
            "uninstall pyspark-client databricks-connect, then pip install 'penstock[java]'",
        )
    if remote and master is not None:
        raise RunnerError(
            f"the option master is {master!r}, but $SPARK_REMOTE names the server {remote.partition(';')[0]!r}",
            where="in the options of the pipeline",
            hint="leave out the option, or unset SPARK_REMOTE",
        )
    return remote or None


def _checked(spark: SparkSession) -> SparkSession:
    from pyspark.sql import SparkSession

    if not is_connect(spark) and not isinstance(spark, SparkSession):
        what = f"the option spark is of the type {type(spark).__name__}, and not a SparkSession"
        raise refusal(TypeError, what, hint="pass spark=SparkSession.builder.getOrCreate()")
    return spark


def reads_this_disk(options: SessionOptions) -> bool:
    """True if the session to run in certainly reads paths without a scheme on this machine's disk; starts nothing."""
    # Without PySpark, the process has no session.
    existing = options.spark or (existing_session() if "pyspark" in sys.modules else None)
    if existing is not None:
        backend = backend_of(existing)
        hadoop = backend.hadoop() if backend.is_local else None
        return hadoop is not None and _is_disk(str(hadoop.configuration.get(_FILE_SYSTEM)))
    if server_for(options.master) is not None or _is_submitted() or not is_local(_master(options) or ""):
        return False
    folders = [os.environ.get("HADOOP_CONF_DIR"), os.environ.get("YARN_CONF_DIR"), configuration_folder()]
    if any(folder and Path(folder, "core-site.xml").exists() for folder in folders):
        return False
    name = f"spark.hadoop.{_FILE_SYSTEM}"
    return _is_disk(options.conf.get(name) or read_spark_property(name) or "file:///")


def _is_disk(file_system: str) -> bool:
    return file_system.startswith("file:")


def _is_submitted() -> bool:
    """True if spark-submit has already started Java."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _master(options: SessionOptions) -> str | None:
    """Returns the master of a new session; None if spark-submit knows it."""
    master = options.master or options.conf.get("spark.master")
    if master is None and not _is_submitted():
        master = read_spark_property("spark.master") or os.environ.get("MASTER") or DEFAULT_MASTER
    return master


def _start(options: SessionOptions) -> SparkSession:
    """Starts a session and its Java process, unless spark-submit has already started Java."""
    submitted, master = _is_submitted(), _master(options)
    conf = {TIME_ZONE: "UTC", FAULT_HANDLER: "true"}
    if master is not None:
        conf["spark.master"] = master
        if is_local(master):
            conf |= _local_conf(master)
            if not _has_pages(options.conf):
                conf |= _KEPT_FOR_PAGES
    conf["spark.app.name"] = options.app_name or _name_of_program()
    conf |= options.conf
    end_first(kill_java)
    with environment(_python_environment(options.conf)), keep_handlers():
        if submitted:
            return _make_session(conf)
        return _start_java(conf, options.fast_start)


def _name_of_program() -> str:
    """Returns the name of the program's file, or of the notebook whose kernel runs it."""
    name = os.path.basename(sys.argv[0])
    if name == "ipykernel_launcher.py":
        # Jupyter tells its kernels the path of their notebook; other notebooks do not.
        return os.path.basename(os.environ.get("JPY_SESSION_NAME", "")) or "notebook"
    return name or "penstock"


def _start_java(conf: dict[str, str], fast_start: bool) -> SparkSession:
    from pyspark.find_spark_home import _find_spark_home

    java = find_java()
    spark_home = _find_spark_home()
    arguments: list[str] = []
    if is_local(conf["spark.master"]):
        if not _has_folders(conf, spark_home):
            arguments += archive_arguments(java, Path(spark_home, "jars"))
        arguments += [_QUICK_COMPILER, _ROOM_FOR_CODE] if fast_start else _PATIENT_COMPILER
        arguments += collector(conf, fast_start)
        arguments += _log_arguments(conf)
    defaults = "spark.driver.defaultJavaOptions"
    given = conf.get(defaults) or read_spark_property(defaults) or ""
    conf = conf | {defaults: " ".join([*map(_quote, arguments), given]).strip()}
    # The launcher is a Java that only builds a command line.
    launcher = [_QUICK_COMPILER, *collector({}, fast_start=True)]
    launch = {
        "JAVA_HOME": wrap_java(java),
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", " ".join(launcher)),
        # Without it, spark-submit starts a Python to look for it.
        "SPARK_HOME": spark_home,
        HOME: (unpack_spark_home(spark_home) or "") if is_local(conf["spark.master"]) else "",
    }
    with environment(launch), start_java(conf, spark_home):
        spark = _make_session(conf)
    quiet_session(spark)
    return spark


def _make_session(conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.config(map={**conf}).getOrCreate()
    except Exception as error:
        # While a context is made, only Spark can stop it, and it does so if no master accepts the program.
        if "stopped SparkContext" not in str(error):
            raise
    raise RunnerError(
        f"no master of the cluster has answered at {conf.get('spark.master', 'the address of spark-submit')}",
        where="in the session that the pipeline would run in",
        hint="check the address, whether the master runs, and the network between; Spark's messages above say more",
    )


def _has_folders(conf: Mapping[str, str], spark_home: str) -> bool:
    """True if Java's class path has a folder with files, with which Java neither writes nor reads an archive.

    Java would say at its end that it could not start.
    """
    name = "spark.driver.extraClassPath"
    own = (conf.get(name) or read_spark_property(name) or "").split(os.pathsep)
    folders = [configuration_folder() or Path(spark_home, "conf"), *map(Path, filter(None, own))]
    return any(folder.is_dir() and any(folder.iterdir()) for folder in folders)


def _local_conf(master: str) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Nothing outside of this machine must reach the driver, and a laptop's own name may lead nowhere.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Spark's 200 partitions are for a cluster; a small stateful query was 15 times slower with them.
        "spark.sql.shuffle.partitions": str(local_cores(master)),
    }


def _has_pages(conf: Mapping[str, str]) -> bool:
    return conf.get("spark.ui.enabled", "false").lower() == "true"


def _python_environment(conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that choose the workers' Python.

    Spark starts ``python3`` from the ``PATH`` unless ``PYSPARK_PYTHON`` is set, so a program in a virtual
    environment would get workers outside of it. Spark ignores the property ``spark.pyspark.python`` in a
    session that a Python program builds, so it is copied.
    """
    workers = os.environ.get("PYSPARK_PYTHON") or conf.get("spark.pyspark.python") or sys.executable
    driver = os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    return {"PYSPARK_PYTHON": workers, "PYSPARK_DRIVER_PYTHON": driver}


def _log_arguments(conf: Mapping[str, str]) -> list[str]:
    """Arguments for quiet logging, unless the user has set up logging."""
    own = conf.get("spark.driver.extraJavaOptions", "") + (
        read_spark_property("spark.driver.extraJavaOptions") or ""
    )
    folder = configuration_folder()
    if "log4j" in own or (folder is not None and any(folder.glob("log4j2*"))) or not _LOG_SETTINGS.is_file():
        return []
    return [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"]


def _quote(argument: str) -> str:
    """Returns an argument as Spark's launcher reads it from a property."""
    if re.fullmatch(r"[\w.,:=/+*%@-]+", argument):
        return argument
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'
