"""The SparkSession that a pipeline runs in: the user's own, the active one, or a new one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from penstock.error import RunnerError, UnsupportedByRunner, refusal
from penstock_spark.process.environment import environment
from penstock_spark.process.interrupts import keep_handlers
from penstock_spark.session.class_archive import archive_arguments
from penstock_spark.session.collector import collector
from penstock_spark.session.configuration import configuration_folder, read_spark_property
from penstock_spark.session.gateway import start_java
from penstock_spark.session.java import find_java, wrap_java
from penstock_spark.session.log_noise import quiet_session
from penstock_spark.session.unpacked_spark import HOME, unpack_spark_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FAULT_HANDLER = "spark.python.worker.faulthandler.enabled"
"""Spark's setting that preserves what `penstock_spark.reports.crash_marker` has written when a worker dies."""

SQL_MEANING = {
    # Native sums rely on it: without it, a sum beyond 64 bits wraps around.
    "spark.sql.ansi.enabled": "true",
    # A timestamp is an instant, and not the local time that a clock shows.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""The settings on which the meaning of SQL depends; they are the same in each run and override the user's."""

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

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Without the slow compiler, a start takes half the processor time, and a long job takes more."""

_ROOM_FOR_CODE = "-XX:ReservedCodeCacheSize=240m"
"""As much as Java reserves with both compilers. With one it is 48 MB, which are full after a hundred pipelines.

Java then throws compiled code away and compiles it again, all the time.
"""

_PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=15000",
    "-XX:Tier4MinInvocationThreshold=1800",
    "-XX:Tier4CompileThreshold=45000",
)
"""The slow compiler waits three times as long: a start takes a tenth less processor time, and long jobs lose nothing.

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
    spark-submit's shell); neither is changed. Without either, it starts a new one.
    """
    existing = options.spark if options.spark is not None else existing_session()
    if existing is not None:
        return _classic(existing)
    on_start()
    return _start(options)


def runner_session(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Returns a clone of the user's session, with SQL settings of its own.

    The clone has the user's settings, temporary views and functions, and the user's session does not see the clone's.
    They share the SparkContext. A clone takes milliseconds, so each run makes one and sees the user's latest settings.
    """
    clone = type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in conf.items():
        clone.conf.set(name, value)
    return clone


def move_to_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Returns the frame in another session of the same SparkContext.

    A frame runs with the settings of the session that made it; a user's frame must run with the runner's.
    """
    from pyspark.sql import DataFrame

    plan = frame._jdf.queryExecution().analyzed()
    dataset = getattr(spark.sparkContext._jvm, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """Makes a frame without rows; ``createDataFrame`` would make the `runner_session` the user's active session."""
    from pyspark.sql import DataFrame

    session = spark._jsparkSession
    rows = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    return DataFrame(session.createDataFrame(rows, session.parseDataType(schema.json())), spark)


def is_local(master: str) -> bool:
    """True if the driver's own process runs the tasks.

    >>> is_local("local[2]"), is_local("local"), is_local("local-cluster[2,1,1024]"), is_local("yarn")
    (True, True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def is_local_session(spark: SparkSession) -> bool:
    return is_local(spark.sparkContext.master or "")


def local_cores(master: str) -> int:
    """Returns the number of tasks that a local master runs at once.

    >>> local_cores("local"), local_cores("local[3]"), local_cores("local[4,2]"), local_cores("local[*]") >= 1
    (1, 3, 4, True)
    """
    match = re.fullmatch(r"local\[\s*(\*|\d+)\s*(,.*)?\]", master)
    if match is None:
        return 1
    if match[1] != "*":
        return int(match[1])
    # The cores that this process may use, if the system says: a container often has fewer than its machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def existing_session() -> SparkSession | None:
    """Returns the process's session, if it has one, with its settings unchanged."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if is_remote() or "SPARK_REMOTE" in os.environ:
        _refuse_connect()
    if SparkContext._active_spark_context is None:
        return None
    # Another thread made it. A builder without options returns it unchanged.
    return SparkSession.builder.getOrCreate()


def _classic(spark: SparkSession) -> SparkSession:
    from pyspark.sql import SparkSession

    if type(spark).__module__.startswith("pyspark.sql.connect"):
        _refuse_connect()
    if not isinstance(spark, SparkSession):
        what = f"the option spark is of the type {type(spark).__name__}, and not a SparkSession"
        raise refusal(TypeError, what, hint="pass spark=SparkSession.builder.getOrCreate()")
    return spark


def _refuse_connect() -> NoReturn:
    raise UnsupportedByRunner(
        "the Spark session is a Spark Connect session, but penstock needs a classic one",
        where="in the session that the pipeline would run in",
        hint="start the program with spark-submit, or pass spark=SparkSession.builder.master(...).getOrCreate()",
    )


def _start(options: SessionOptions) -> SparkSession:
    """Starts a session and its Java process, unless spark-submit has already started Java."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = options.master or options.conf.get("spark.master")
    if master is None and not submitted:
        master = read_spark_property("spark.master") or os.environ.get("MASTER") or DEFAULT_MASTER
    conf = {"spark.sql.session.timeZone": "UTC", FAULT_HANDLER: "true"}
    if master is not None:
        conf["spark.master"] = master
        if is_local(master):
            conf |= _local_conf(master)
            if not _has_pages(options.conf):
                conf |= _KEPT_FOR_PAGES
    conf["spark.app.name"] = options.app_name or os.path.basename(sys.argv[0]) or "penstock"
    conf |= options.conf
    with environment(_python_environment(options.conf)), keep_handlers():
        if submitted:
            return _classic(_make_session(conf))
        return _start_java(conf, options.fast_start)


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
    quiet_session(spark.sparkContext)
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
