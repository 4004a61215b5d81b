"""Brings this package and the user's import paths to the workers."""

from __future__ import annotations

import contextlib
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
from penstock.where import OUR_PACKAGES
from penstock_spark.process.user_cache import temporary_folder
from penstock_spark.session.backends import backend_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHIPPED_SUFFIXES = (".py", ".properties", ".typed")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can hold: with one time for all files, the same code has the same bytes."""


def ship_packages(spark: SparkSession) -> None:
    """Makes penstock importable on the workers of a cluster, in the driver's version.

    Its packages travel as one zip archive, whether they are installed, installed as editable or run from
    their source tree. The archive takes precedence over a penstock that a worker has installed. The second call for a
    session does nothing.
    """
    backend, content = backend_of(spark), packages_as_zip()
    name = f"penstock-{penstock.__version__}-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    if backend.has_shipped(name):
        return
    # Spark sends this file to workers that join later, so it stays as long as the process.
    path = temporary_folder("shipped") / name
    path.write_bytes(content)
    backend.ship_archive(str(path))


@functools.cache
def packages_as_zip() -> bytes:
    """The packages as a zip archive; the same sources always give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in OUR_PACKAGES:
            # The package's paths, not the folder of its __init__: an editable install may map it to any folder.
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

    The workers of a local master are other Python processes on the same machine. With these entries after
    their own, they can import what the program can import: modules beside the main file, an editable install,
    ``PYTHONPATH``.
    """
    entries = (os.path.abspath(entry) for entry in sys.path)
    return tuple(dict.fromkeys(entry for entry in entries if os.path.exists(entry)))


def worker_sys_path(spark: SparkSession) -> tuple[str, ...]:
    """Returns `driver_sys_path` for the workers of a local session; the workers of a cluster get nothing of it."""
    return driver_sys_path() if backend_of(spark).is_local else ()


def import_like_driver(sys_path: tuple[str, ...]) -> None:
    """Appends the folders of `driver_sys_path` to a worker's import path, so that the worker's own folders come first.

    A worker does this before it unpickles the user's objects.
    """
    sys.path.extend(folder for folder in sys_path if folder not in sys.path)


def driver_folder() -> tuple[str, int] | None:
    """The program's current folder and its process; None if the folder was deleted."""
    try:
        return os.getcwd(), os.getpid()
    except FileNotFoundError:
        return None


def work_in(folder: str, driver: int) -> None:
    """Lets a worker on the same machine work in the program's folder, so that relative paths mean the same in both.

    Workers start in the folder where Spark was started, which the program may have left since, as in a notebook. The
    program may also read its own parts, and then stays in its folder.
    """
    if os.getpid() != driver:
        with contextlib.suppress(OSError):
            os.chdir(folder)
