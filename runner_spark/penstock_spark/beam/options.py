"""The options of a pipeline of Beam's as penstock's."""

from __future__ import annotations

from typing import Any

from penstock.options.base import PipelineOptions
from penstock.options.given import NOT_FLAGS
from penstock.options.spark import SparkOptions


def options_of(options: Any) -> PipelineOptions:
    """The same flags, and the values of penstock's own options that were given by name.

    Beam has acted on its own options already, such as ``runtime_type_check``.
    """
    flags = list(options._flags or ())
    own = PipelineOptions(flags).view_as(SparkOptions).get_all_options(current_only=True)
    given = options._all_options
    return PipelineOptions(flags, **{name: given[name] for name in (*own, *NOT_FLAGS) if name in given})
