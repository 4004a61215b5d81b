"""Compares the Python that Spark's workers run with the driver's, before anything starts.

PySpark puts the name of a Python into every function that it sends to workers: the ``$PYSPARK_PYTHON`` that was set
when the SparkContext was made, or else the ``python3`` on the ``PATH``. In a virtual environment that is not
activated, and in the kernel of a notebook, that is not the driver's Python.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from pyspark import SparkContext

from penstock.error import RunnerError
from penstock_spark.session.classic.waiting import watch_for_waiting

_DEFAULT = "python3"
_NEEDED = ("pyarrow", "pandas", "cloudpickle", "typing_extensions")
"""The packages that workers import beside Spark's and penstock, which is sent to the workers of a cluster."""

_checked: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_instead: weakref.WeakKeyDictionary[SparkContext, str] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def check_workers_python(context: SparkContext, is_local: bool) -> None:
    """Checks, once for each SparkContext, that its workers can run what this driver sends them.

    If a local session would take the first ``python3`` on the ``PATH``, its workers run the driver's own Python
    instead, but only for pipelines. A Python that the user has chosen stays; a small job checks it.
    """
    if context in _checked:
        return
    if not is_local:
        _ask(context, _NEEDED)
    elif not _is_this_python(context.pythonExec):
        if context.pythonExec == _DEFAULT and "PYSPARK_PYTHON" not in os.environ and sys.executable:
            _instead[context] = sys.executable
        else:
            _ask(context, (*_NEEDED, "penstock_spark"))
    _checked.add(context)


@contextmanager
def workers_python() -> Iterator[None]:
    """Within the block, functions that are made for Spark's workers run in the Python that the check chose."""
    context = SparkContext._active_spark_context
    python = None if context is None else _instead.get(context)
    if context is None or python is None:
        yield
        return
    # The user's code shares the context: a function that another thread makes in these microseconds gets this Python.
    with _lock:
        before, context.pythonExec = context.pythonExec, python
        try:
            yield
        finally:
            context.pythonExec = before


def _is_this_python(name: str) -> bool:
    """True if a program is this interpreter, under any of its names.

    Every virtual environment links to the interpreter that it was made with, so the folder counts as well.
    """
    path = shutil.which(name)
    if path is None or not sys.executable:
        return False
    folders = (os.path.realpath(os.path.dirname(os.path.abspath(each))) for each in (path, sys.executable))
    return len(set(folders)) == 1 and os.path.realpath(path) == os.path.realpath(sys.executable)


def _ask(context: SparkContext, needed: Sequence[str]) -> None:
    """Starts a worker, which compares the versions on its own, and has it look for packages."""
    before = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", "penstock: check the workers' Python")
    try:
        # Python's own functions only: the worker cannot unpickle a function of a package that it lacks.
        specs = context.parallelize(needed, 1).map(importlib.util.find_spec)
        with watch_for_waiting(context):
            found = specs.map(bool).collect()
    except Exception as error:
        _raise_explained(context.pythonExec, context.pythonVer, error)
    finally:
        # None removes the description, which PySpark's types do not say.
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]
    packages = [name.removesuffix("_spark").replace("_", "-") for name in needed]
    if missing := [name for name, is_there in zip(packages, found, strict=True) if not is_there]:
        raise RunnerError(
            f"the workers' Python lacks {', '.join(missing)}",
            where=_where(context.pythonExec),
            hint=f"install {' '.join(missing)} there, or set PYSPARK_PYTHON to another Python before you make the "
            "session",
        )


def _where(python: str) -> str:
    return f"in {python}, which Spark's workers run (PYSPARK_PYTHON, or spark.pyspark.python)"


def _raise_explained(python: str, own: str, error: Exception) -> NoReturn:
    """Explains why the check of the workers' Python failed; raises other failures unchanged."""
    text = str(error)
    version = re.search(r"different version: (\d+\.\d+)", text)
    if version is not None:
        raise RunnerError(
            f"the workers run Python {version[1]}, and the driver runs Python {own}: they must be the same",
            where=_where(python),
            hint=f"run the driver with Python {version[1]}, or set PYSPARK_PYTHON to a Python {own} on the workers "
            "before you make the session",
        ) from error
    if "Cannot run program" in text:
        raise RunnerError(
            "the workers cannot start their Python",
            where=_where(python),
            hint="set PYSPARK_PYTHON to a Python that exists on every machine before you make the session",
        ) from error
    raise error
