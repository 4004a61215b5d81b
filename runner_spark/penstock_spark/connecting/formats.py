"""The value that the entry point of a connector names: a format, and the packages that it needs."""

from penstock_spark.formats.format import Format
from penstock_spark.formats.packages import Package

__all__ = ["Format", "Package"]
