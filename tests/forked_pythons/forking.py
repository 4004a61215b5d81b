"""Imports what a Python needs in which Spark asks for state, and copies itself for each one that starts.

It ends when its standard input does, which the process of the tests holds open.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys

_ASKING = "pyspark.sql.streaming.transform_with_state_driver_worker"
_IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "penstock_spark.reports.accumulators",
    "penstock_spark.stream.level_processor",
    "penstock_spark.stream.seed_processor",
)


def serve(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for name in _IMPORTED:
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


def _answer(client: socket.socket) -> None:
    """Does what the Python that has started would do; the socket to it closes with this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with client.makefile("rb") as sent:
        environment, import_path, folder = marshal.load(sent)
    os.environ.clear()
    os.environ.update(environment)
    # Python adds the folder when it runs a module, which comes after the start that has sent the rest.
    sys.path[:] = [folder, *import_path]
    os.chdir(folder)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    runpy.run_module(_ASKING, run_name="__main__", alter_sys=True)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
