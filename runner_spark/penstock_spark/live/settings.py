"""The options of a run that a view shows: those that the program has set, without secrets."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

import penstock
from penstock.io.argument_checks import strip_user
from penstock.options import table
from penstock.options.spark import SparkOptions
from penstock.options.spark_properties import parse_spark_properties

HIDDEN = "set, but not shown"

_SECRET = re.compile("key|secret|token|password|sas|credential|account|oauth", re.IGNORECASE)
_PROPERTIES = "spark_conf"
_OWN = (*table.STANDARD, *table.STREAMING, *table.TYPES, *table.SPARK)


def settings_of(settings: SparkOptions) -> dict[str, str]:
    """Returns the options of penstock that differ from their defaults, by name, as text.

    A program's own options are left out, because their values may be anything. Of the properties for Spark, only those
    of ``spark_conf`` are there, as those in a file may be secret.

    >>> from penstock.options.pipeline_options import PipelineOptions
    >>> flags = ["--live_token=a-long-enough-token", "--spark_conf=spark.ui.enabled=true", "--live_port=0"]
    >>> found = settings_of(PipelineOptions([*flags, "--spark_conf=spark.a.password=hush"]).view_as(SparkOptions))
    >>> found["live_port"], found["live_token"], found["spark.ui.enabled"], found["spark.a.password"]
    ('0', 'set, but not shown', 'true', 'set, but not shown')
    """
    return dict(_texts(settings))


def machine_facts(spark_version: str, parallelism: int, shards: int | None = None) -> dict[str, str]:
    """Returns the versions of a run, and how many tasks and shards it has."""
    facts = {
        "penstock": penstock.__version__,
        "Spark": spark_version,
        "Python": platform.python_version(),
        "tasks at a time": str(parallelism),
    }
    return facts if shards is None else {**facts, "shards": str(shards)}


def _texts(settings: SparkOptions) -> Iterator[tuple[str, str]]:
    values = settings.get_all_options(retain_unknown_options=True)
    for option in _OWN:
        value = values.get(option.name)
        if option.effect is not None or value is None or value == option.default or value == []:
            continue
        if option.name == _PROPERTIES:
            for name, text in parse_spark_properties(value).items():
                is_secret = _SECRET.search(name) or _SECRET.search(text)
                yield name, HIDDEN if is_secret else strip_user(text)
        elif option.name.endswith("_token"):
            yield option.name, HIDDEN
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            yield option.name, strip_user(shown)
