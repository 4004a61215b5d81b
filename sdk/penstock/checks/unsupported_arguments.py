"""Arguments that only Beam's classes have: refused by name, with a hint what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.error import UnsupportedByRunner, refusal

_ENDS = "managed transforms are left out: use a transform of penstock.io, such as ReadFromKafka or WriteToDatabase"
MANAGED = dict.fromkeys(("config", "config_url", "expansion_service"), _ENDS)
"""The arguments that only Beam's managed ``Read`` and ``Write`` have."""


def refuse_unsupported(what: str, given: Mapping[str, Any], instead: Mapping[str, str]) -> None:
    """Refuses arguments that only Beam has, and unknown ones.

    An argument that asks for nothing, such as None or False, is accepted.

    Args:
        what: The class that was called.
        given: Its arguments that have no parameter.
        instead: The arguments that only Beam has, each with what to do instead.

    >>> refuse_unsupported("WriteToLog", {"replicas": 3}, {"replicas": "set it for the topic"})
    Traceback (most recent call last):
        ...
    penstock.error.UnsupportedByRunner: WriteToLog does not have Beam's replicas
      at ...
      hint: set it for the topic
    """
    for name, value in given.items():
        if name not in instead:
            raise refusal(TypeError, f"{what} has no argument {name!r}", hint="check its spelling")
        if value:
            raise UnsupportedByRunner(f"{what} does not have Beam's {name}", hint=instead[name])
