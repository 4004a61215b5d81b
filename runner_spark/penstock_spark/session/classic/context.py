"""PySpark's class of contexts, which a PySpark that only talks to servers of Spark Connect lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


def context_class() -> type[SparkContext] | None:
    """Returns the class; None if this program cannot have a context."""
    try:
        from pyspark import SparkContext
    except ImportError:
        return None
    return SparkContext
