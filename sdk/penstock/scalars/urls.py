"""The functions of URLs: their parts, and strings as parts of them."""

from __future__ import annotations

import re
import urllib.parse
from typing import NoReturn

from penstock.scalars.casting import Compute, refuse, try_function
from penstock.scalars.function import ScalarFunction, choose_always
from penstock.scalars.resolving import takes, takes_strings

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(//([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ALLOWED = re.compile(r"(?:[A-Za-z0-9\-_.!~*'();/?:@&=+$,\[\]#]|%[0-9A-Fa-f]{2}|[^\x00-\xa0\s])*")
_AUTHORITY = re.compile(r"(?:(.*)@)?(\[[^\]]*\]|[^:@]*)(?::([0-9]*))?")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})?")


def _refuse_url() -> NoReturn:
    refuse("the string of PARSE_URL is not a URL", "TRY_PARSE_URL returns NULL instead")


def _parse_url(text: str, part: str, key: str | None = None) -> str | None:
    if key is not None and part != "QUERY":
        return None
    found = _URL.fullmatch(text)
    if found is None or not _ALLOWED.fullmatch(text) or text.count("#") > 1:
        _refuse_url()
    scheme, _, authority, path, query, reference = found.groups()
    if scheme is not None and not authority and not path.startswith("/"):
        if not path and query is None:
            _refuse_url()
        # A URL without slashes, such as mailto:a@b, has no parts but its scheme.
        path, query = None, None
    if key is not None:
        return _value_of(query, key)
    name = _AUTHORITY.fullmatch(authority) if authority else None
    match part:
        case "HOST":
            return (name[2] or None) if name and _is_host(name[2]) else None
        case "PATH":
            return path
        case "QUERY":
            return query
        case "REF":
            return reference
        case "PROTOCOL":
            return scheme
        case "FILE":
            return path if path is None or query is None else f"{path}?{query}"
        case "AUTHORITY":
            return authority or None
        case "USERINFO":
            return name[1] if name and _is_host(name[2]) else None
    return None


_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*(?:[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)\.?"
)
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.%]+\]")


def _is_host(name: str) -> bool:
    return bool(_HOST.fullmatch(name) or _ADDRESS.fullmatch(name))


def _value_of(query: str | None, key: str) -> str | None:
    for pair in (query or "").split("&"):
        name, equals, value = pair.partition("=")
        if equals and name == key:
            return value
    return None


def _encode(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


def _decode(text: str) -> str:
    if any(found[1] is None for found in _ESCAPE.finditer(text)):
        refuse("URL_DECODE has a % without two digits", "TRY_URL_DECODE returns NULL instead")
    return urllib.parse.unquote_plus(text, errors="replace")


def _parses(name: str, compute: Compute) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes_strings("STRING STRING [STRING] -> STRING?"),
        python=choose_always(compute),
        spark=f"{name.lower()}({{all}})",
        not_in_spark="Java's classes accept and refuse other URLs",
    )


FUNCTIONS = (
    _parses("PARSE_URL", _parse_url),
    _parses("TRY_PARSE_URL", try_function(_parse_url)),
    ScalarFunction(
        name="URL_ENCODE",
        resolve=takes("STRING -> STRING"),
        python=choose_always(_encode),
        spark="url_encode({0})",
    ),
    ScalarFunction(
        name="URL_DECODE",
        resolve=takes("STRING -> STRING"),
        python=choose_always(_decode),
        spark="url_decode({0})",
    ),
    ScalarFunction(
        name="TRY_URL_DECODE",
        resolve=takes("STRING -> STRING?"),
        python=choose_always(try_function(_decode)),
        spark="try_url_decode({0})",
    ),
)
"""The records."""
