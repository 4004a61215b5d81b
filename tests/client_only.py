"""A Python that has only PySpark's client of Spark Connect: what the package pyspark-client leaves out is refused."""

from __future__ import annotations

PRELUDE = """
import sys

class _LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "py4j" or f"{name}.".startswith("pyspark.core."):
            raise ModuleNotFoundError(f"{name} is not in pyspark-client", name=name)

sys.meta_path.insert(0, _LeftOut())
"""
"""The first lines of a program in such a Python."""
