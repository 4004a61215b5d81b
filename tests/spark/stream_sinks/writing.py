"""What the tests of a stream's sinks share: what is there afterwards, and a program that dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.pvalue import Row

ROWS = "level int, shard int, payload binary"
"""The columns of a micro-batch."""


def score(team: str, points: int) -> Row:
    """A record."""
    return Row(team=team, points=points)


def runs(effects: Path) -> int:
    """How many tasks have left a line in a file."""
    return len(effects.read_text().splitlines()) if effects.exists() else 0


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark has run so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def lines(folder: Path) -> dict[str, list[str]]:
    """The words of every file of a folder."""
    return {name: content.decode().split() for name, content in contents(folder).items()}


class Killed(Exception):
    """What a test raises where a program may die."""


def dying(call: Callable[..., Any], after: int) -> Callable[..., Any]:
    """The same function for some calls, and then none."""
    left = [after]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return call(*args, **kwargs)

    return wrapped
