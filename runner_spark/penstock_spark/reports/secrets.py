"""Texts of packages without the secrets of a store or a catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable

from penstock.io.argument_checks import strip_user

_SECRET = re.compile("key|secret|token|password|sas|credential|account|oauth", re.IGNORECASE)


def redact_secrets(text: str, options: Iterable[tuple[str, str]]) -> str:
    """Returns the first line of a text, without the values of options whose names suggest a secret.

    >>> redact_secrets("no, hush, at db://me:hush@host", [("password", "hush"), ("uri", "db://me:hush@host")])
    'no, ..., at db://host'
    """
    first = strip_user(text.strip().partition("\n")[0])
    for name, value in options:
        if _SECRET.search(name) and value:
            first = first.replace(value, "...")
    return first
