"""Reads Spark's configuration before a Spark runs that could be asked."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from pathlib import Path


def read_spark_property(name: str) -> str | None:
    """Returns a Spark property from ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf``; None if neither sets it."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for flag, value in itertools.pairwise(words):
        if flag == "--conf" and value.partition("=")[0] == name:
            return value.partition("=")[2]
        if flag == "--master" and name == "spark.master":
            return value
    folder = configuration_folder()
    defaults = folder / "spark-defaults.conf" if folder else None
    if defaults is None or not defaults.is_file():
        return None
    match = re.search(rf"^[ \t]*{re.escape(name)}[ \t=:]+(.*?)[ \t]*$", defaults.read_text(), re.MULTILINE)
    return match[1] if match else None


def configuration_folder() -> Path | None:
    """Returns the folder with Spark's configuration files, which may not exist; None if nothing names it."""
    if own := os.environ.get("SPARK_CONF_DIR"):
        return Path(own)
    home = os.environ.get("SPARK_HOME")
    return Path(home, "conf") if home else None
