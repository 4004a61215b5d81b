"""The Python processes of a local session run this when they start, as Python's module ``sitecustomize``.

It lies beside PySpark in the folder that `unpacked.py` makes. The Python process that serves the state of a query
prints a line for each thing that it does; the first line comes before any code of a pipeline.
"""

import importlib.machinery
import importlib.util
import os
import sys

if "pyspark.sql.streaming.transform_with_state_driver_worker" in sys.orig_argv:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115

# The environment may have its own module of that name, which must still run.
_others = [folder for folder in sys.path if os.path.abspath(folder) != os.path.dirname(__file__)]
_other = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _other is not None and _other.loader is not None:
    _module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(_other)
    _other.loader.exec_module(_module)
