"""The names of the engine: the only module in which the SDK imports its runner, on first use."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from penstock.error import refusal

SPARK_RUNNER = ("penstock_spark.runner", "SparkRunner")
BATCHES = "penstock_spark.columns.batches"
SPARK_NAMES = ("SparkRunner",)
LOCAL_NAMES = (
    "DirectRunner",
    "BundleBasedDirectRunner",
    "SwitchingDirectRunner",
    "FnApiRunner",
    "PrismRunner",
    "InProcessRunner",
    "TestDirectRunner",
)


def create_runner(runner_name: str | None = None) -> Any:
    """Returns the runner of a name (Beam's ``create_runner``); case does not matter, nor does a missing ``Runner``.

    Args:
        runner_name: ``SparkRunner``, ``spark``, or none for the Spark runner. Names of Beam's local
            runners, such as ``DirectRunner``, mean the Spark runner on this machine.

    Returns:
        A new runner; its `local_only` is true for the runner on this machine.

    Raises:
        ValueError: If the name is another.
        ImportError: If the runner's package cannot be imported.
    """
    wanted = (runner_name or SPARK_NAMES[0]).lower()
    spellings = {spelling: name for name in (*SPARK_NAMES, *LOCAL_NAMES) for spelling in _spellings(name)}
    name = spellings.get(wanted)
    if name is None:
        what = f"Unexpected pipeline runner: {runner_name}"
        raise refusal(ValueError, what, hint=_hint(str(runner_name)))
    runner = make_spark_runner()
    runner.local_only = name in LOCAL_NAMES
    return runner


def _spellings(name: str) -> tuple[str, str]:
    return name.lower(), name.lower().removesuffix("runner")


def _hint(runner_name: str) -> str:
    short = runner_name.rpartition(".")[2]
    close = difflib.get_close_matches(short, (*SPARK_NAMES, *LOCAL_NAMES), n=1, cutoff=0.85)
    if close:
        return f"did you mean {close[0]}?"
    return "the only runner is SparkRunner; DirectRunner is Spark on this machine"


def load_batch_converters() -> Any:
    """Returns the runner's module of converters for batches of NumPy, pandas and Arrow; its import registers them."""
    return importlib.import_module(BATCHES)


def make_spark_runner(**arguments: object) -> Any:
    """Returns a new Spark runner; ImportError if the runner's package cannot be imported."""
    module, name = SPARK_RUNNER
    try:
        runner = getattr(importlib.import_module(module), name)(**arguments)
    except ImportError as error:
        what = f"the Spark runner cannot be imported: {error}"
        hint = "pip install 'penstock[java]', which brings the runner, Spark and a Java"
        raise refusal(ImportError, what, where=f"in {module}", hint=hint) from error
    return runner
