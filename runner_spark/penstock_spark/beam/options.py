"""The options of a Beam pipeline: as penstock's options, and for Beam's code in the workers."""

from __future__ import annotations

import functools
import json
import logging

from apache_beam.io.filesystems import FileSystems
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import PipelineOptions as BeamsOptions
from apache_beam.options.value_provider import RuntimeValueProvider

from penstock.options.base import PipelineOptions, get_shared_parser
from penstock.options.checks import NOT_FLAGS
from penstock.options.spark import SparkOptions


def options_of(options: BeamsOptions) -> PipelineOptions:
    """Returns the flags unchanged, and the values of penstock options that were passed by name.

    Beam has acted on its own options already, such as ``runtime_type_check``.
    """
    flags = list(options._flags or ())
    own = PipelineOptions(flags).view_as(SparkOptions).get_all_options(current_only=True)
    given = options._all_options
    return PipelineOptions(flags, **{name: given[name] for name in (*own, *NOT_FLAGS) if name in given})


def keep_beam_quiet_about_own_options() -> None:
    """Keeps Beam from warning of options for penstock: it takes them for misspelt options of its own."""
    logging.getLogger(pipeline_options.__name__).addFilter(_is_not_of_own_option)


def _is_not_of_own_option(record: logging.LogRecord) -> bool:
    _, _, argument = record.getMessage().partition("Unparseable argument: ")
    # The value may follow, or a proposal from Beam.
    return (
        argument.partition("=")[0].partition(".")[0] not in get_shared_parser((SparkOptions,)).known_flags()
    )


def workers_options(options: BeamsOptions) -> str:
    """The argument of `use_options`: all options but those that are objects of the program, such as a session."""
    given = options.get_all_options(drop_default=True, retain_unknown_options=True)
    return json.dumps({name: value for name, value in given.items() if _is_plain(value)}, sort_keys=True)


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return value is not None


def use_options(options: str) -> None:
    """Has Beam's code in this process use some options, as Beam's own workers do.

    Its file systems find the addresses and keys of stores there, and functions of the user's the values of options that
    the program has declared with ``add_value_provider_argument``.
    """
    RuntimeValueProvider.set_runtime_options(json.loads(options))
    FileSystems.set_options(_parse(options))


@functools.lru_cache(16)
def _parse(options: str) -> object:
    return BeamsOptions.from_dictionary(json.loads(options))
