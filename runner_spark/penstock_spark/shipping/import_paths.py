"""How this package and the user's import paths reach the workers."""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock_spark.process.user_cache import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHIPPED_PACKAGES = ("penstock", "penstock_spark")
_SHIPPED_SUFFIXES = (".py", ".properties", ".typed")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip archive can tell: with one time for all files, the same code gives the same bytes."""

_shipped_to: set[tuple[str, int]] = set()


def ship_packages(spark: SparkSession) -> None:
    """Makes penstock importable on the workers of a cluster, in the version that runs here.

    Both packages are sent as one zip archive, whether they are installed, installed as editable or run from
    their source tree. An older penstock that a worker has is passed over. The second call for a SparkContext
    does nothing.

    Args:
        spark: A session whose workers are other processes than those of a local master.
    """
    context = spark.sparkContext
    mark = (context.applicationId, id(context))
    if mark in _shipped_to:
        return
    content = packages_as_zip()
    name = f"penstock-{penstock.__version__}-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    # Spark serves this very file to workers that join later, so it stays as long as the process.
    path = temporary_folder("shipped") / name
    path.write_bytes(content)
    context.addPyFile(str(path))
    _shipped_to.add(mark)


@functools.cache
def packages_as_zip() -> bytes:
    """Both packages as a zip archive; the same sources always give the same bytes.

    >>> "penstock/__init__.py" in zipfile.ZipFile(io.BytesIO(packages_as_zip())).namelist()
    True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _SHIPPED_PACKAGES:
            # The paths and not the file of __init__: an editable install may map a package to any folder.
            for folder in map(Path, importlib.import_module(package).__path__):
                for file in sorted(folder.rglob("*")):
                    if file.suffix in _SHIPPED_SUFFIXES and file.is_file():
                        name = f"{package}/{file.relative_to(folder).as_posix()}"
                        entry = zipfile.ZipInfo(name, _EPOCH)
                        entry.external_attr = 0o644 << 16
                        archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def driver_sys_path() -> tuple[str, ...]:
    """The folders and archives from which this process imports, in order, as absolute paths.

    The workers of a local master are Pythons of their own on the same machine. With these entries behind
    their own, they import what the program can import: modules beside the main file, an editable install,
    ``PYTHONPATH``.

    >>> all(os.path.isabs(entry) for entry in driver_sys_path())
    True
    """
    entries = (os.path.abspath(entry) for entry in sys.path)
    return tuple(dict.fromkeys(entry for entry in entries if os.path.exists(entry)))


def import_like_driver(sys_path: tuple[str, ...]) -> None:
    """Has a worker import what `driver_sys_path` names; it comes last, so that the worker's own folders count first.

    A worker does this before it unpickles anything of the user's.
    """
    sys.path.extend(folder for folder in sys_path if folder not in sys.path)
