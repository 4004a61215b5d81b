"""The views of the options that have a meaning for a pipeline on Spark: Beam's classes."""

from __future__ import annotations

from typing import Any

from penstock.options import table
from penstock.options.base import PipelineOptions


class StandardOptions(PipelineOptions):
    """Options of every pipeline (Beam's ``StandardOptions``)."""

    DEFAULT_RUNNER = "SparkRunner"
    _records = table.STANDARD


class TypeOptions(PipelineOptions):
    """The checks of types, and permissions for unsafe things (Beam's ``TypeOptions``)."""

    _records = table.TYPES


class DirectOptions(PipelineOptions):
    """Options of Beam's in-process runner, which can be set and read (Beam's ``DirectOptions``).

    None has an effect; a run says so.
    """

    _records = table.DIRECT


class DebugOptions(PipelineOptions):
    """Experiments (Beam's ``DebugOptions``): names, or ``name=value``, for the program to look up.

    >>> options = PipelineOptions(["--experiments=fast,level=3"]).view_as(DebugOptions)
    >>> options.lookup_experiment("fast"), options.lookup_experiment("level")
    (True, '3')
    """

    _records = table.DEBUG

    def add_experiment(self, experiment: str) -> None:
        """Adds an experiment unless it is there."""
        so_far: list[str] = self._all_options["experiments"] or []
        if experiment not in so_far:
            self._all_options["experiments"] = [*so_far, experiment]

    def lookup_experiment(self, key: str, default: object = None) -> Any:
        """True for an experiment without a value, the text of its value if it has one, else `default`."""
        for experiment in self.experiments or []:
            name, equals, value = experiment.partition("=")
            if experiment == key or name == key:
                return value if equals and experiment != key else True
        return default


class SetupOptions(PipelineOptions):
    """Options for what workers need in addition to the pipeline (Beam's ``SetupOptions``); Spark has most of it."""

    _records = table.SETUP


class TestOptions(PipelineOptions):
    """Options of test pipelines (Beam's ``TestOptions``)."""

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.
    _records = table.TEST
