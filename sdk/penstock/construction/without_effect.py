"""Beam's options that this runner cannot follow: the ones that it refuses, and the ones that change no result."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.error import three_parts

if TYPE_CHECKING:
    from penstock.graph import Step


_LOGGER = logging.getLogger(__name__)
_SPARK_SENDS = (
    "send files with spark-submit --py-files, or install them where the workers are; see docs/running.md"
)
_ASSERT = "check the result with assert_that"

REFUSED: Mapping[str, str] = {
    "beam_plugins": "import the module where a DoFn is set up",
    "dry_run": "call explain(), which says what a run would do",
    "extra_packages": _SPARK_SENDS,
    "files_to_stage": _SPARK_SENDS,
    "gbek": "switch Spark's own encryption on, --spark_conf=spark.io.encryption.enabled=true",
    "on_success_matcher": _ASSERT,
    "requirements_cache": _SPARK_SENDS,
    "requirements_file": _SPARK_SENDS,
    "setup_file": _SPARK_SENDS,
}
"""What to do instead of each option: a program that relies on one would fail later, or pass without its check."""

NO_EFFECT_IN_BATCH: Mapping[str, str] = {
    "streaming": "a pipeline with unbounded input is a stream, and --mode says how it runs",
}
"""Why each option changes nothing in a batch: a program means the same without it. A run with one logs a warning, as
`penstock.options.given` does for options that the parser knows to have no effect."""


def refusals(given: Mapping[str, Any]) -> list[str]:
    """An error for each refused option among the options that differ from their defaults.

    >>> print(*refusals({"extra_packages": ["a.zip"]}))
    the option extra_packages is refused: this runner cannot follow it
      hint: send files with spark-submit --py-files, or install them where the workers are; see docs/running.md
    """
    return [
        three_parts(f"the option {name} is refused: this runner cannot follow it", hint=REFUSED[name])
        for name, value in given.items()
        if name in REFUSED and value
    ]


def warn_of_no_effect(given: Mapping[str, Any]) -> None:
    """Logs a warning for each option of a batch that changes nothing."""
    for name in given:
        if name in NO_EFFECT_IN_BATCH:
            _LOGGER.warning("the option %s has no effect: %s", name, NO_EFFECT_IN_BATCH[name])


def warn_of_hints(steps: Iterable[Step]) -> None:
    """Logs one warning if steps of a pipeline that is about to run have resource hints."""
    hinted = [step.label for step in steps if step.resource_hints]
    if hinted:
        _LOGGER.warning(
            "Spark gives all steps the same machines, so the resource hints of these steps have no effect: %s; set "
            "Spark's properties, such as --spark_conf=spark.executor.memory=8g, spark.executor.cores and "
            "spark.executor.resource.gpu.amount",
            ", ".join(hinted),
        )
