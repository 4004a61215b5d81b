"""What all tests share: one Spark session."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.on_connect import EXPECTED_FAILURES, FAR_AWAY, LEFT_OUT, reason_in
from tests.spark.schemes import FAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The same examples in every run, and no time limit for one: a test fails because of the code and not of the machine.
hypothesis.settings.register_profile("penstock", deadline=None, derandomize=True)
hypothesis.settings.load_profile("penstock")

# The tests start hundreds of Pythons: each would compile all modules anew if none may keep what it has compiled.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


HANG = "PENSTOCK_TESTS_HANG_SECONDS"
"""The environment variable that says how long a test may take before it counts as one that hangs."""

_HANG_SECONDS = 1_800.0
"""Thirty times as long as the longest test takes on an idle machine."""

_SOAK_SECONDS = 6 * 3_600.0

_STACKS_SECONDS = 5.0
"""The time that Java gets to write what its threads do."""

_error_number = -1
"""The file of the standard error, which pytest replaces while a test runs."""


BEAMS_MARKS = (
    "it_postcommit",
    "it_validatesrunner",
    "no_sickbay_batch",
    "no_xdist",
    "no_sickbay_streaming",
    "sickbay_direct",
    "timeout",
    "uses_dill",
)
"""The marks of Beam's tests that tests/beam_pipelines runs."""


def pytest_configure(config: pytest.Config) -> None:
    global _error_number
    _error_number = os.dup(2)
    # Ten thousand tests that all stay: to look for garbage among them took a third of the time of the collection.
    gc.disable()
    for mark in BEAMS_MARKS:
        config.addinivalue_line("markers", f"{mark}: Beam's own")
    if tuple(map(int, version("pyspark").split(".")[:2])) < (4, 2):
        # Such a PySpark leaves the sockets to its workers open.
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--beam-suite", action="store_true", help="run all of Beam's own tests, which takes long"
    )
    parser.addoption(
        "--connect",
        action="store_true",
        help=f"run the tests with Spark in a session of Spark Connect, of a local server or of ${REMOTE}",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--beam-suite"):
        for item in items:
            if item.get_closest_marker("beam_suite"):
                item.add_marker(pytest.mark.skip(reason="only with --beam-suite: it takes long"))
    if "soak" not in config.getoption("markexpr"):
        # The long forms of tests that have a short one, which always runs.
        soaks = {item for item in items if item.get_closest_marker("soak")}
        config.hook.pytest_deselected(items=[*soaks])
        items[:] = [item for item in items if item not in soaks]
    for item in items:
        # A test that uses the session, or a cluster, starts Java, and so has the mark by which it can be left out.
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.spark)
    if config.getoption("--connect"):
        _keep_tests_on_connect(config, items)
    # Else one process may begin a long test when the others have nothing left to do.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _keep_tests_on_connect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests that use the session, and marks those of them that are left out or expected to fail."""
    others = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if "spark" in getattr(item, "fixturenames", ())]
    for item in items:
        names = item.path.stem, getattr(item, "originalname", item.name), item.name
        is_far = hasattr(item, "callspec") and item.callspec.params.get("scheme") == FAR
        if (reason := FAR_AWAY if is_far else reason_in(LEFT_OUT, *names)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif (reason := reason_in(EXPECTED_FAILURES, *names)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()
    # Workers of Spark look for garbage less often, too; tests of pipelines take a fifteenth less.
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _no_java_without_the_mark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that starts Java in a run that asks for none, ``-m "not spark"``: it lacks the mark."""
    if "not spark" not in request.config.getoption("markexpr", ""):
        yield
        return
    from pyspark import java_gateway

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this test starts Java: mark it with pytest.mark.spark")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_gateway, "launch_gateway", refuse)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Ends a process whose test hangs, and shows what its threads, Java's and Spark's Python workers wait for."""
    seconds = _seconds_until_a_hang(item)
    watch = threading.Timer(seconds, _end_hanging, (item, seconds))
    watch.daemon = True
    watch.start()
    # The timer is a Python thread: it would wait for a thread that never lets others run.
    faulthandler.dump_traceback_later(seconds + 4 * _STACKS_SECONDS, exit=True, file=_error_number)
    try:
        return (yield)
    finally:
        watch.cancel()
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Undoes what PySpark does to two loggers when a query fails, before pytest looks at them.

    PySpark keeps what they log from the root. Pytest adds its own handlers to such loggers, and a logger of PySpark
    sets the format of a handler that it gets: all later tests would read JSON in ``caplog.text``.
    """
    try:
        return (yield)
    finally:
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            # Only PySpark may make them, since they have a class of its own.
            if isinstance(logger := logging.Logger.manager.loggerDict.get(name), logging.Logger):
                logger.propagate = True


def _seconds_until_a_hang(item: pytest.Item) -> float:
    default_seconds = _SOAK_SECONDS if item.get_closest_marker("soak") else _HANG_SECONDS
    return float(os.environ.get(HANG, default_seconds))


def _end_hanging(item: pytest.Item, seconds: float) -> None:
    with open(os.dup(_error_number), "w", encoding="utf-8", errors="replace") as error:
        print(
            f"\n{item.nodeid} has not ended for {seconds:g} s, so its process ends:", file=error, flush=True
        )
        faulthandler.dump_traceback(error, all_threads=True)
        below = _processes_below(os.getpid())
        javas = [*filter(_is_java, below)]
        for process in javas:
            # It writes the stacks of its threads to its standard output.
            with suppress(OSError):
                os.kill(process, signal.SIGQUIT)
        if javas:
            threading.Event().wait(_STACKS_SECONDS)
        capture: Any = item.config.pluginmanager.getplugin("capturemanager")
        if capture.is_globally_capturing():
            print(*capture.read_global_capture(), sep="\n", file=error, flush=True)
        for process in below:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
    os._exit(1)


def _processes_below(ancestor: int) -> list[int]:
    """The processes that a process has started, and those that they have started; none without ``/proc``."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [ancestor]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def _is_java(process: int) -> bool:
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{process}/exe")) == "java"
    return False


ARCHIVE = "PENSTOCK_CLASS_ARCHIVE"

MANY_TESTS = 100
"""From so many tests with Spark on, an archive of Java's classes saves more than it costs to write it."""


@pytest.fixture(scope="session", autouse=True)
def _classes_are_archived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Has a program write the archive of Java's classes while the first tests run, unless there is one.

    Otherwise, a program of the tests would write it, and the first ones are killed before they can. Then no program has
    an archive for an hour, and each takes half as many processor seconds again.
    """
    tests = sum(item.get_closest_marker("spark") is not None for item in request.session.items)
    if tests < MANY_TESTS or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0" or _has_archive():
        yield
        return
    command = [sys.executable, Path(__file__).with_name("first_program.py"), tmp_path_factory.mktemp("first")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {ARCHIVE: "1"}):
        yield


def _has_archive() -> bool:
    from pyspark.find_spark_home import _find_spark_home

    from penstock_spark.process.environment import environment
    from penstock_spark.session.class_archive import archive_arguments
    from penstock_spark.session.java import find_java

    with environment({ARCHIVE: "read"}):
        return archive_arguments(find_java(), Path(_find_spark_home(), "jars")) != ()


LOCAL_FILES = """
package penstock;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        if (permission.getStickyBit()) {
            super.setPermission(path, permission);
            return;
        }
        String user = permission.getUserAction().SYMBOL;
        String group = permission.getGroupAction().SYMBOL;
        String other = permission.getOtherAction().SYMBOL;
        Files.setPosixFilePermissions(
            pathToFile(path).toPath(), PosixFilePermissions.fromString(user + group + other));
    }
}

class FarFiles extends LocalFiles {
    public URI getUri() {
        return URI.create("far:///");
    }

    public String getScheme() {
        return "far";
    }
}
"""
"""Hadoop's local file system, but it sets permissions itself; and the same under a scheme that is not a disk's.

Hadoop's own starts a ``chmod`` for each file and folder that it makes, which are seventy processes in a small stream.
"""


def _set_file_systems(spark: SparkSession) -> None:
    """Has the session use `LOCAL_FILES`, compiled by the compiler that Spark brings for its generated code."""
    context: Any = spark.sparkContext
    java, new_array = context._jvm.java, context._gateway.new_array
    compiler = context._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(LOCAL_FILES)

    def made(name: str) -> Any:
        constructor = compiler.getClassLoader().loadClass(f"penstock.{name}").getDeclaredConstructors()[0]
        constructor.setAccessible(True)
        return constructor.newInstance(new_array(java.lang.Object, 0))

    disk = context._jvm.org.apache.hadoop.fs.LocalFileSystem(made("LocalFiles"))
    conf = context._jsc.hadoopConfiguration()
    # Hadoop keeps one file system for each scheme; this is its only way to say which, and not a public one.
    of = java.lang.Class.forName
    types, values = new_array(java.lang.Class, 3), new_array(java.lang.Object, 3)
    types[0], types[1], types[2] = of("java.net.URI"), conf.getClass(), of("org.apache.hadoop.fs.FileSystem")
    keep = types[2].getDeclaredMethod("addFileSystemForTesting", types)
    keep.setAccessible(True)
    for root, files in (("file:///", disk), ("far:///", made("FarFiles"))):
        values[0], values[1], values[2] = java.net.URI(root), conf, files
        files.initialize(values[0], conf)
        keep.invoke(None, values)


@contextmanager
def _forked_pythons() -> Iterator[dict[str, str]]:
    """The variables by which a session takes its Pythons that ask for state from `forked_pythons/forking.py`."""
    folder = Path(__file__).with_name("forked_pythons")
    # The path of a socket may have about a hundred characters, and pytest's own folders have long names.
    with tempfile.TemporaryDirectory() as place:
        socket = str(Path(place, "socket"))
        command = [sys.executable, str(folder / "forking.py"), socket]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forking:
            assert forking.stdout is not None
            assert forking.stdout.readline() == b"ready\n"
            paths = filter(None, [str(folder), os.environ.get("PYTHONPATH")])
            yield {"PENSTOCK_TESTS_FORKING": socket, "PYTHONPATH": os.pathsep.join(paths)}


REMOTE = "PENSTOCK_TESTS_REMOTE"
"""The environment variable with the address of a Connect server for ``--connect``, instead of a new local one."""


def _remote_session(warehouse: str, variables: dict[str, str]) -> SparkSession:
    """A session of Spark Connect; without an address, PySpark starts the server in this process."""
    from pyspark.sql import SparkSession

    from penstock_spark.process.environment import environment
    from penstock_spark.session.java import find_java, wrap_java

    address = os.environ.get(REMOTE)
    if address is not None:
        return SparkSession.builder.remote(address).getOrCreate()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark then chooses a free port for the server, so that several processes of tests have one each.
    os.environ["SPARK_TESTING"] = "1"
    conf = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": warehouse,
    }
    with environment({"JAVA_HOME": wrap_java(find_java()), **variables}), warnings.catch_warnings():
        # The server has what concerns its Java, and a session cannot set it again.
        warnings.filterwarnings("ignore", "Failed to set spark")
        return SparkSession.builder.remote("local[2]").config(map={**conf}).getOrCreate()


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of a test run; pipelines find it without being told, as the active session."""
    from penstock_spark.process.environment import environment
    from penstock_spark.session.session import SessionOptions, session_for

    # Spark makes a warehouse folder where the process runs as soon as its catalog is asked for anything.
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    if request.config.getoption("--connect"):
        with _forked_pythons() as variables:
            session = _remote_session(warehouse, variables)
            yield session
            session.stop()
        return
    options = SessionOptions(
        master="local[2]",
        app_name="penstock tests",
        conf={
            "spark.driver.memory": "2g",
            "spark.sql.warehouse.dir": warehouse,
            # A worker whose task takes half as long writes what it waits for.
            "spark.python.worker.tracebackDumpIntervalSeconds": f"{_seconds_until_a_hang(request.node) / 2:.0f}",
        },
        fast_start=True,
    )
    with _forked_pythons() as variables:
        # The second start writes the archive of classes when it ends. The programs that tests start end sooner.
        with environment({ARCHIVE: "read", **variables}):
            session = session_for(options)
        _set_file_systems(session)
        yield session
        session.stop()
