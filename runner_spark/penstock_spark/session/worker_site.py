"""What the Pythons of a local session run when they start, under the name of Python's module ``sitecustomize``.

It lies beside PySpark in the folder that `unpacked.py` makes. The Python that Spark asks for the state of a query
prints what it does, line by line; the first of these lines comes before any code of a pipeline.
"""

import importlib.machinery
import importlib.util
import os
import sys

if "pyspark.sql.streaming.transform_with_state_driver_worker" in sys.orig_argv:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115

# Another module of that name, of the environment's, is still to be run.
_others = [folder for folder in sys.path if os.path.abspath(folder) != os.path.dirname(__file__)]
_other = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _other is not None and _other.loader is not None:
    _module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(_other)
    _other.loader.exec_module(_module)
