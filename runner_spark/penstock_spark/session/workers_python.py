"""Which Python Spark's workers run, compared with the driver's before anything starts.

PySpark puts the name of a Python into every function that it sends to workers: ``$PYSPARK_PYTHON`` of the moment when
the SparkContext was made, or else ``python3``, which is looked for on the ``PATH``. In a virtual environment that is
not activated, and in the kernel of a notebook, that is another Python than the driver's.
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
from typing import Any, NoReturn

from pyspark import SparkContext

from penstock.error import RunnerError

_DEFAULT = "python3"
_NEEDED = ("pyarrow", "pandas", "cloudpickle", "typing_extensions")
"""What workers import beside Spark's own and penstock, which is sent to those of a cluster."""

_checked: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_instead: weakref.WeakKeyDictionary[SparkContext, str] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def check_workers_python(context: SparkContext, is_local: bool) -> None:
    """Finds out, once for each SparkContext, whether its workers can run what this driver sends them.

    Where a local session only takes the first ``python3`` of the ``PATH``, its workers run the driver's own Python
    instead, for functions of pipelines alone. A Python that somebody has chosen stays, and is asked by a small job.

    Args:
        context: A running SparkContext.
        is_local: Whether its workers are on this machine.

    Raises:
        RunnerError: The workers' Python is of another minor version, lacks a package, or cannot be started.
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
    """Within the block, functions that are made for Spark's workers run in the Python that was found for them."""
    context = SparkContext._active_spark_context
    python = None if context is None else _instead.get(context)
    if context is None or python is None:
        yield
        return
    # The context is the user's, too: what is made of it by another thread in these microseconds gets this Python.
    with _lock:
        before, context.pythonExec = context.pythonExec, python
        try:
            yield
        finally:
            context.pythonExec = before


def map_in_arrow(frame: Any, function: Any, schema: Any) -> Any:
    """Spark's ``mapInArrow``, in the Python that was found for the workers."""
    with workers_python():
        return frame.mapInArrow(function, schema)


def _is_this_python(name: str) -> bool:
    """Whether a program is the interpreter that runs this, under whatever of its names.

    Every virtual environment links to the interpreter that it was made with, and so the folder counts as well.
    """
    path = shutil.which(name)
    if path is None or not sys.executable:
        return False
    folders = (os.path.realpath(os.path.dirname(os.path.abspath(each))) for each in (path, sys.executable))
    return len(set(folders)) == 1 and os.path.realpath(path) == os.path.realpath(sys.executable)


def _ask(context: SparkContext, needed: Sequence[str]) -> None:
    """Has a worker start, which compares the versions by itself, and look for packages."""
    told = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", "penstock: which Python the workers have")
    try:
        # Only functions of Python's own: what is not there cannot be unpickled.
        specs = context.parallelize(needed, 1).map(importlib.util.find_spec)
        found = specs.map(bool).collect()
    except Exception as error:
        _raise_told(context.pythonExec, context.pythonVer, error)
    finally:
        # None removes it, which PySpark's types do not say.
        context.setLocalProperty("spark.job.description", told)  # type: ignore[arg-type]
    packages = [name.removesuffix("_spark").replace("_", "-") for name in needed]
    if missing := [name for name, is_there in zip(packages, found, strict=True) if not is_there]:
        raise RunnerError(
            f"the workers' Python has no {' and no '.join(missing)}",
            where=_where(context.pythonExec),
            hint=f"install {' '.join(missing)} there, or set PYSPARK_PYTHON to another Python before the session "
            "is made",
        )


def _where(python: str) -> str:
    return f"in {python}, which Spark's workers run (PYSPARK_PYTHON, or spark.pyspark.python)"


def _raise_told(python: str, own: str, error: Exception) -> NoReturn:
    """Raises what a failed look at the workers' Python means; other failures as they are."""
    text = str(error)
    version = re.search(r"different version: (\d+\.\d+)", text)
    if version is not None:
        raise RunnerError(
            f"the workers run Python {version[1]}, and the driver Python {own}: both must have the same minor version",
            where=_where(python),
            hint=f"run the driver with Python {version[1]}, or set PYSPARK_PYTHON to a Python {own} of the workers "
            "before the session is made",
        ) from error
    if "Cannot run program" in text:
        raise RunnerError(
            "the workers cannot start their Python",
            where=_where(python),
            hint="set PYSPARK_PYTHON to a Python that is on every machine before the session is made",
        ) from error
    raise error
