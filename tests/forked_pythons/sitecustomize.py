"""Makes each Python that Spark starts anew a copy of one that has imported what such a Python needs.

Spark starts a new Python for each level of a query, in which it asks for state, for each source of a stream that is
written in Python, and on a Connect server for what is called with micro-batches. They take 0.2 to 0.9 seconds of a
processor, nearly all of it to import PySpark and penstock. The session of the tests has this folder on the import path
of its Pythons, and the process of `forking.py` makes the copies. Programs that tests start do without.
"""

import os
import sys

_COPIED = (
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.connect.streaming.worker.foreach_batch_worker",
)

if sys.orig_argv[-1] in _COPIED:
    # Python has these two at hand; the modules socket and json would take as long as all the rest.
    import _socket
    import marshal

    forking = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    forking.connect(os.environ["PENSTOCK_TESTS_FORKING"])
    forking.sendall(marshal.dumps((sys.orig_argv[-1], dict(os.environ), sys.path, os.getcwd())))
    forking.shutdown(_socket.SHUT_WR)
    # The copy talks to Spark for this process. Each of the two ends when the other one does.
    forking.recv(1)
    os._exit(0)
