"""Imports what the Pythons need that Spark starts anew, and copies itself for each one that starts.

It ends when its standard input does, which the process of the tests holds open.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading

_ASKING = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""The Python in which Spark asks for state. What it prints, penstock throws away in all sessions."""

_IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "penstock_spark.formats.ranges.stream",
    "penstock_spark.session.classic.accumulators",
    "penstock_spark.stream.level_processor",
    "penstock_spark.stream.resharding.seed_processor",
)
_IMPORTED_IF_INSTALLED = ("confluent_kafka.admin", "psycopg", "sqlalchemy", "pyspark.sql.connect.session")

# One thread only can be copied: NumPy would start more, and so would the allocator in Arrow.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def serve(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.environ.update(_ONE_THREAD)
    for name in _IMPORTED:
        importlib.import_module(name)
    for name in _IMPORTED_IF_INSTALLED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        # The process of the tests waits for this line.
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([sys.stdin, listening], [], [])
            if sys.stdin in ready:
                return
            client, _ = listening.accept()
            with client:
                if os.fork() == 0:
                    listening.close()
                    _answer(client)


def _end_with(client: socket.socket) -> None:
    """Ends this process as soon as the one is gone in whose place it is; Spark may kill that."""
    gone = select.poll()
    gone.register(client, 0)
    gone.poll()
    os._exit(1)


def _answer(client: socket.socket) -> None:
    """Does what the Python that has started would do; the socket to it closes with this process."""
    threading.Thread(target=_end_with, args=(client,), daemon=True).start()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with client.makefile("rb") as sent:
        module, environment, import_path, folder = marshal.load(sent)
    os.environ.clear()
    os.environ.update(environment)
    # Python adds the folder when it runs a module, which comes after the start that has sent the rest.
    sys.path[:] = [folder, *import_path]
    os.chdir(folder)
    # Spark shows what its Pythons print among the errors.
    sys.stdout = open(os.devnull, "w") if module == _ASKING else sys.stderr  # noqa: SIM115
    # Python does so for its own random numbers.
    importlib.import_module("numpy.random").seed()
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit:
        status = 1
    os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
