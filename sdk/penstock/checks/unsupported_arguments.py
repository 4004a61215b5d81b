"""Refuses arguments that only Beam's classes have, with a hint what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import UnsupportedByRunner, refusal

_ENDS = "managed transforms are left out: use a transform of penstock.io, such as ReadFromKafka or WriteToDatabase"
MANAGED = dict.fromkeys(("config", "config_url", "expansion_service"), _ENDS)
"""The arguments that only Beam's managed ``Read`` and ``Write`` have."""


def refuse_unsupported(called: type[Any], given: Mapping[str, Any], instead: Mapping[str, str]) -> None:
    """Refuses arguments that only Beam has, and unknown ones.

    An argument that asks for nothing, such as None or False, is accepted.

    Args:
        called: The class that was called.
        given: Its arguments that have no parameter.
        instead: The arguments that only Beam has, each with what to do instead.

    >>> class WriteToLog:
    ...     def __init__(self, path, **given): pass
    >>> refuse_unsupported(WriteToLog, {"replicas": 3}, {"replicas": "set it for the topic"})
    Traceback (most recent call last):
        ...
    penstock.error.UnsupportedByRunner: WriteToLog does not have Beam's replicas
      at ...
      hint: set it for the topic
    """
    for name, value in given.items():
        if name not in instead:
            parameters = [
                each.name
                for each in signature(called).parameters.values()
                if each.kind is not each.VAR_KEYWORD
            ]
            hint = hint_at_name(name, (*parameters, *instead), "check its spelling")
            raise refusal(TypeError, f"{called.__name__} has no argument {name!r}", hint=hint)
        if value:
            raise UnsupportedByRunner(f"{called.__name__} does not have Beam's {name}", hint=instead[name])
