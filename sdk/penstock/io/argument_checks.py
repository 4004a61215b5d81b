"""Checks of arguments that several reads and writes take: names of columns, times, numbers, keys, options, coders."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from penstock.coders.base import Coder
from penstock.error import refusal

_BEAMS_CODERS = "apache_beam.coders.coders"


def strip_user(url: str) -> str:
    """Returns a URL without a user or a password.

    >>> strip_user("postgresql://me:secret@db/lake")
    'postgresql://db/lake'
    """
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def check_text_pairs(argument: str, given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Returns options as pairs in order; TypeError for values that are not strings."""
    pairs = dict(given or {}).items()
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        what = f"{argument} must have strings as names and values"
        raise refusal(TypeError, what, hint="write numbers and booleans as strings, such as 'true'")
    return tuple(sorted(pairs))


def check_column_names(argument: str, given: Any, *, may_be_empty: bool = False) -> tuple[str, ...]:
    """Returns the names of columns, each once.

    >>> check_column_names("key", "team"), check_column_names("key", ["team", "day"])
    (('team',), ('team', 'day'))
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        what = f"{argument} must be the name of a column, or several names"
        raise refusal(TypeError, what, hint=f"write {argument}='team', for example")
    if len(set(names)) < len(names) or (not may_be_empty and not names):
        what = f"{argument} must name columns, each once"
        raise refusal(ValueError, what, hint=f"write {argument}='team', for example")
    return names


def moment_of(argument: str, timestamp: datetime.datetime | str | None) -> str | None:
    """Returns a time as a string in UTC.

    >>> moment_of("timestamp", "2026-05-01T12:00:00+02:00")
    '2026-05-01T10:00:00+00:00'
    """
    if timestamp is None:
        return None
    try:
        if isinstance(timestamp, str):
            timestamp = datetime.datetime.fromisoformat(timestamp)
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC).isoformat()
    except (AttributeError, TypeError, ValueError):
        what = f"{argument} must be a datetime, or a string such as 2026-05-01T12:00:00Z"
        raise refusal(ValueError, what, hint="times without a zone are in UTC") from None


def check_number_from_zero(argument: str, given: object, hint: str) -> int | None:
    """Returns a number that the user passes, or None."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    what = f"{argument} must be a number from 0, but is {given!r}"
    raise refusal(ValueError, what, hint=hint)


def check_one_of(**given: object) -> None:
    """Refuses two arguments that say the same thing."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        what = f"both {names[0]} and {names[1]} are given"
        raise refusal(ValueError, what, hint="leave one of them out")


def check_key_and_value(key: object, value: str | None) -> tuple[str, ...]:
    """Returns the columns of a key, beside which `value` may name one more."""
    keys = () if key is None else check_column_names("key", key)
    if value is not None and not keys:
        what = "value names the column beside a key, but there is no key"
        raise refusal(ValueError, what, hint="pass key=, or leave value out")
    if value is not None and not isinstance(value, str):
        what = f"value must be the name of a column, but is {value!r}"
        raise refusal(TypeError, what, hint="write value='points', for example")
    return keys


def check_coder(coder: Coder | None, method: str) -> None:
    """Refuses an argument that is not a coder."""
    if coder is not None and (isinstance(coder, type) or not callable(getattr(coder, method, None))):
        what = f"coder must be a coder, but is {coder!r}"
        raise refusal(TypeError, what, hint="pass coder=BytesCoder(), or your own coder")


def plain_coder(coder: Coder | None, default: type) -> Any:
    """Returns None for the default coder, ours or Beam's, so that whole batches may be coded; any other unchanged.

    >>> from penstock.coders import BytesCoder, StrUtf8Coder
    >>> plain_coder(StrUtf8Coder(), StrUtf8Coder), plain_coder(BytesCoder(), StrUtf8Coder)
    (None, BytesCoder)
    """
    # A subclass may do something else with the bytes, and so may a class of the user's with the same name.
    own = type(coder)
    is_default = own.__name__ == default.__name__ and own.__module__ in (default.__module__, _BEAMS_CODERS)
    return None if is_default else coder
