"""Checks of what a pipeline is constructed with."""

from __future__ import annotations

import copy
from typing import Any

from penstock.error import three_parts
from penstock.options.base import all_classes, parser_of
from penstock.options.given import NOT_FLAGS
from penstock.options.parser import nearest
from penstock.options.pipeline_options import PipelineOptions


def own_options(options: Any, argv: Any) -> PipelineOptions:
    """A copy of options, or options made of command line arguments; ValueError if neither is of its type."""
    if options is not None and not isinstance(options, PipelineOptions):
        raise ValueError(
            three_parts(
                f"Parameter options, if specified, must be of type PipelineOptions. Received: {options!r}",
                hint="PipelineOptions.from_dictionary makes options of a dictionary",
            )
        )
    if argv is not None and not isinstance(argv, list):
        raise ValueError(three_parts(f"Parameter argv, if specified, must be a list. Received: {argv!r}"))
    if options is None:
        return PipelineOptions(argv or [])
    own = copy.copy(options)
    own._all_options = dict(options._all_options)
    return own


def checked_arguments(arguments: dict[str, Any], taker: str = "Pipeline") -> dict[str, Any]:
    """The keyword arguments of a pipeline or a runner; TypeError if one is neither ``spark`` nor an option.

    >>> checked_arguments({"shufle_partitions": 4})
    Traceback (most recent call last):
        ...
    TypeError: Pipeline has no argument or option 'shufle_partitions'
      hint: did you mean shuffle_partitions?
    """
    if arguments:
        known = {*NOT_FLAGS, *vars(parser_of(all_classes()).parse_args([]))}
        for name in arguments:
            if name not in known:
                close = nearest(name, known)
                hint = f"did you mean {close}?" if close else "a program run with --help shows all options"
                raise TypeError(three_parts(f"{taker} has no argument or option {name!r}", hint=hint))
    return arguments
