"""Beam's classes of options, as far as they have a meaning for a pipeline on Spark."""

from __future__ import annotations

from typing import Any

from penstock.options import table
from penstock.options.base import PipelineOptions


class StandardOptions(PipelineOptions):
    """The options of every pipeline (Beam's ``StandardOptions``)."""

    DEFAULT_RUNNER = "SparkRunner"
    _records = table.STANDARD


class TypeOptions(PipelineOptions):
    """The options of type checks, and permissions for unsafe features (Beam's ``TypeOptions``)."""

    _records = table.TYPES


class DirectOptions(PipelineOptions):
    """Options of Beam's in-process runner, which can be set and read (Beam's ``DirectOptions``).

    None of them has an effect; a run logs a warning.
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
        """Returns True for an experiment without a value, its value as a string if it has one, otherwise `default`."""
        for experiment in self.experiments or []:
            name, equals, value = experiment.partition("=")
            if experiment == key or name == key:
                return value if equals and experiment != key else True
        return default


class SetupOptions(PipelineOptions):
    """The options of what workers need in addition to the pipeline (Beam's ``SetupOptions``); Spark has its own."""

    _records = table.SETUP


class TestOptions(PipelineOptions):
    """Options of test pipelines (Beam's ``TestOptions``)."""

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.
    _records = table.TEST
