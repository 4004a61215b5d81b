"""Makes each Python in which Spark asks for state a copy of one that has imported PySpark already.

Spark starts a new Python for each level of a query. It takes 0.2 seconds of a processor, nearly all of it to import
PySpark. The session of the tests has this folder on the import path of its Pythons, and the process of `forking.py`
makes the copies. Programs that tests start do without.
"""

import os
import sys

if "pyspark.sql.streaming.transform_with_state_driver_worker" in sys.orig_argv:
    # Python has these two at hand; the modules socket and json would take as long as all the rest.
    import _socket
    import marshal

    forking = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    forking.connect(os.environ["PENSTOCK_TESTS_FORKING"])
    forking.sendall(marshal.dumps((dict(os.environ), sys.path, os.getcwd())))
    forking.shutdown(_socket.SHUT_WR)
    # The copy talks to Spark in the place of this process, which stays as long as the copy does.
    forking.recv(1)
    os._exit(0)
