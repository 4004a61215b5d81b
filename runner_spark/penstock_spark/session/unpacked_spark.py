"""A folder that Java takes for Spark's home, from which workers import unpacked packages.

Spark's workers import ``pyspark`` and ``py4j`` from zip archives in Spark's home. Python cannot store compiled modules
in an archive, so the workers of each new Spark compile a megabyte of Python, which takes three quarters of a second.
If Spark was installed with pip, the same packages lie unpacked and compiled beside those archives.

The folder links to everything in Spark's home, except that folders replace the archives in ``python/lib``.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import tempfile
from pathlib import Path

from penstock_spark.process.user_cache import find_kept_folder

SWITCH = "PENSTOCK_UNPACKED"
"""The environment variable that turns this off when it is ``0``."""

HOME = "PENSTOCK_SPARK_HOME"
"""The environment variable that names the folder to the script around Java (see `penstock_spark.session.java`)."""


def unpack_spark_home(spark_home: str) -> str | None:
    """Returns the folder for a Spark that was installed with pip; None if the workers must use the archives."""
    packages = _packages(Path(spark_home))
    folder = find_kept_folder("home") if packages and os.environ.get(SWITCH) != "0" else None
    if folder is None or os.pathsep in str(folder):
        # A folder with the separator of import paths in its name cannot be on the path.
        return None
    try:
        return str(_make_links(folder, Path(spark_home), packages))
    except OSError:
        # The disk has no links or no room: the start is then as slow as Spark's own.
        return None


def _packages(home: Path) -> dict[str, Path]:
    """Returns the unpacked folder for each archive; empty if one is missing."""
    pyspark, py4j = (importlib.import_module(name) for name in ("pyspark", "py4j.version"))
    packages = {
        "pyspark.zip": Path(str(pyspark.__file__)).parent,
        f"py4j-{py4j.__version__}-src.zip": Path(str(py4j.__file__)).parent,
    }
    archives = {path.name for path in (home / "python" / "lib").glob("*.zip")}
    is_own = home.is_dir() and packages["pyspark.zip"].resolve() == home.resolve()
    return packages if is_own and archives == set(packages) else {}


def _make_links(folder: Path, home: Path, packages: dict[str, Path]) -> Path:
    """Returns the folder of links, made if it is missing; its name depends on everything that it links to."""
    links = {entry.name: entry for entry in home.iterdir() if entry.name not in ("python", "__pycache__")}
    inside = {f"python/lib/{archive}/{path.name}": path for archive, path in packages.items()}
    inside["python/lib/pyspark.zip/sitecustomize.py"] = Path(__file__).with_name("worker_site.py")
    links |= {name: path.absolute() for name, path in inside.items()}
    content = "\n".join(f"{name} {path}" for name, path in sorted(links.items()))
    made = folder / hashlib.sha256(content.encode()).hexdigest()[:16]
    if not made.is_dir():
        unfinished = Path(tempfile.mkdtemp(dir=folder))
        for name, path in links.items():
            (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / name).symlink_to(path)
        try:
            unfinished.rename(made)
        except OSError:
            # Another process was faster.
            shutil.rmtree(unfinished)
    return made
