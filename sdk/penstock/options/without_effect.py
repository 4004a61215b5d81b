"""Options of Beam's that this runner cannot follow: those that it refuses, and those that change no result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from penstock.error import three_parts

__all__ = ["NO_EFFECT", "REFUSED", "refusals", "warn_of_no_effect"]

_LOGGER = logging.getLogger(__name__)
_SPARK_SENDS = (
    "send files with spark-submit --py-files, or install them where the workers are; see docs/running.md"
)
_ASSERT = "check the result with assert_that"

REFUSED: Mapping[str, str] = {
    "beam_plugins": "import the module where a DoFn is set up",
    "dry_run": "explain() tells what a run would do",
    "extra_packages": _SPARK_SENDS,
    "files_to_stage": _SPARK_SENDS,
    "on_success_matcher": _ASSERT,
    "requirements_cache": _SPARK_SENDS,
    "requirements_file": _SPARK_SENDS,
    "setup_file": _SPARK_SENDS,
}
"""By option, what to do instead: a program that relies on one would fail later, or pass without its check."""

_SPARK_HAS_WORKERS = "Spark says how many workers there are: --master"
NO_EFFECT: Mapping[str, str] = {
    "direct_embed_docker_python": "there are no containers",
    "direct_num_workers": _SPARK_HAS_WORKERS,
    "direct_runner_bundle_repeat": "a bundle runs once",
    "direct_runner_use_stacked_bundle": "bundles are Spark's",
    "direct_running_mode": _SPARK_HAS_WORKERS,
    "direct_test_splits": "there are no splittable DoFns",
    "number_of_worker_harness_threads": _SPARK_HAS_WORKERS,
    "save_main_session": "functions of the main program are always sent by value",
    "sdk_location": "the workers have the SDK of the driver",
    "streaming": "a pipeline with unbounded input is a stream, and --mode says how it runs",
    "user_agent": "there is no service that would be told",
}
"""By option, why it changes nothing: a program means the same without it. A run that has one logs a warning."""


def refusals(given: Mapping[str, Any]) -> list[str]:
    """An error for each refused option.

    Args:
        given: The options that differ from their defaults, by name.

    >>> print(*refusals({"dry_run": True}))
    the option dry_run is refused: this runner cannot follow it
      hint: explain() tells what a run would do
    """
    return [
        three_parts(f"the option {name} is refused: this runner cannot follow it", hint=REFUSED[name])
        for name, value in given.items()
        if name in REFUSED and value
    ]


def warn_of_no_effect(given: Mapping[str, Any]) -> None:
    """Logs a warning for each option that changes nothing.

    Args:
        given: As in `refusals`.
    """
    for name in given:
        if name in NO_EFFECT:
            _LOGGER.warning("the option %s has no effect: %s", name, NO_EFFECT[name])
