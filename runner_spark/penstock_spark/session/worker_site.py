"""The Python processes of a local session run this when they start, as Python's module ``sitecustomize``.

It lies beside PySpark in the folder that `unpacked_spark.py` makes. The Python process that serves the state of a query
prints a line for each thing that it does; the first line comes before any code of a pipeline.

All other workers are copies of one process, Spark's daemon. What that has imported, they need not import: a small
stream has four workers, and each would take half a second of a processor for it.
"""

import contextlib
import ctypes
import importlib
import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import threading
import traceback
from typing import Any

if "pyspark.sql.streaming.transform_with_state_driver_worker" in sys.orig_argv:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115

_IMPORTED_BY_WORKERS = (
    "penstock_spark.stages.stage",
    "penstock_spark.stream.tasks",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    # Arrow asks for it before it makes its first array, whatever of.
    "pandas",
)


def _import_for_workers() -> None:
    """Imports what a worker finds on its own import path, before it knows the driver's; leaves out the rest.

    The daemon must have one thread when it copies itself. NumPy starts more unless Spark has told it not to, and the
    allocator in Arrow starts one unless the environment says so.
    """
    if sys.platform != "linux" or os.environ.get("OMP_NUM_THREADS") != "1":
        return
    allocator = "JE_ARROW_MALLOC_CONF"
    before = os.environ.get(allocator)
    os.environ[allocator] = ",".join(filter(None, [before, "background_thread:false"]))
    # The daemon writes its port for Spark to its standard output, and nothing else may be there.
    with contextlib.redirect_stdout(sys.stderr):
        for name in _IMPORTED_BY_WORKERS:
            # A worker that cannot import it says so where it is needed.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    if before is None:
        del os.environ[allocator]
    else:
        os.environ[allocator] = before
    _copies_have_own_random_numbers()


def _copies_have_own_random_numbers() -> None:
    """Python sees to it for its own; NumPy's would be the same in all workers, whatever step asks for them."""
    numbers = sys.modules.get("numpy.random")
    if numbers is None:
        return
    daemon = os.getpid()

    def begin_anew() -> None:
        # User code may have set a seed in a worker; its forks keep the state that it made.
        if os.getppid() == daemon:
            numbers.seed()

    os.register_at_fork(after_in_child=begin_anew)


_SET_SIGNAL_OF_PARENTS_DEATH = 1
"""The number of the request in Linux."""


def _copies_end_with_java() -> None:
    """Ends a worker when Java has ended, even if the daemon, which would end it, was killed before.

    Until then, the worker stays: Spark lets its task end, and starts another daemon for the next one.
    """
    if sys.platform != "linux":
        return
    daemon, java, told = os.getpid(), os.getppid(), signal.SIGRTMAX
    ask = ctypes.CDLL(None).prctl

    def follow_java() -> None:
        while _is_there(java):
            threading.Event().wait(1)
        os._exit(1)

    signal.signal(told, lambda *_: threading.Thread(target=follow_java, daemon=True).start())

    def begin() -> None:
        # Processes that a worker starts are not asked for.
        if os.getppid() == daemon:
            ask(_SET_SIGNAL_OF_PARENTS_DEATH, int(told))

    os.register_at_fork(after_in_child=begin)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _print_whole_lines() -> None:
    """Makes ``print`` write each line at once.

    Spark runs Python with ``-u``, which writes the end of a line on its own, so that lines of two workers would mix.
    What is left unfinished is written when its task ends.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


def _quiet_about_tasks_that_spark_has_given_up() -> None:
    """Keeps a worker from printing that it cannot answer: what has ended its job is the error that a user reads."""
    print_exc = traceback.print_exc

    def print_others(*arguments: Any, **options: Any) -> None:
        error = sys.exc_info()[1]
        if not (isinstance(error, ConnectionError) and _is_raised_by_daemon(error)):
            print_exc(*arguments, **options)

    traceback.print_exc = print_others


def _is_raised_by_daemon(error: BaseException) -> bool:
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return os.path.basename(frame.f_code.co_filename) == "daemon.py"


if sys.orig_argv[-2:] == ["pyspark.daemon", "pyspark.worker"]:
    _import_for_workers()
    _copies_end_with_java()
    _print_whole_lines()
    _quiet_about_tasks_that_spark_has_given_up()

# The environment may have its own module of that name, which must still run.
_others = [folder for folder in sys.path if os.path.abspath(folder) != os.path.dirname(__file__)]
_other = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _other is not None and _other.loader is not None:
    _module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(_other)
    _other.loader.exec_module(_module)
