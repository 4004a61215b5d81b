"""Java's names of the encodings that Python knows by many names."""

from __future__ import annotations

import codecs

__all__ = ["java_charset"]

_JAVA = {
    "ascii": "US-ASCII",
    "iso8859-1": "ISO-8859-1",
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "utf-32": "UTF-32",
}


def java_charset(encoding: str | None) -> str | None:
    """Java's name of an encoding; an encoding that only Java may know stays unchanged.

    >>> java_charset("latin1"), java_charset("utf8"), java_charset("x-other"), java_charset(None)
    ('ISO-8859-1', 'UTF-8', 'x-other', None)
    """
    if encoding is None:
        return None
    try:
        return _JAVA.get(codecs.lookup(encoding).name, encoding)
    except LookupError:
        return encoding
