"""What sources and sinks are made of (Beam's ``apache_beam.io.iobase``)."""

from __future__ import annotations

from penstock.io.bounded import (
    BoundedSource,
    RangeTracker,
    Read,
    SDFBoundedSourceReader,
    SourceBase,
    SourceBundle,
)
from penstock.io.custom_sink import Sink, Write, WriteImpl, Writer
from penstock.io.restrictions import RestrictionProgress, RestrictionTracker, WatermarkEstimator

__all__ = [
    "BoundedSource",
    "RangeTracker",
    "Read",
    "RestrictionProgress",
    "RestrictionTracker",
    "SDFBoundedSourceReader",
    "Sink",
    "SourceBase",
    "SourceBundle",
    "WatermarkEstimator",
    "Write",
    "WriteImpl",
    "Writer",
]
