"""What Python's built-in functions and methods return, whatever the arguments."""

from __future__ import annotations

import math
import typing

from penstock.typehints.constraints import Hint
from penstock.typehints.containers import ListConstraint, TupleConstraint

_TEXT = (
    "capitalize casefold center expandtabs format format_map join ljust lower lstrip removeprefix "
    "removesuffix replace rjust rstrip strip swapcase title translate upper zfill"
)
_QUESTIONS = "endswith isalnum isalpha isascii isdigit islower isspace istitle isupper startswith"

METHOD_RETURNS: dict[tuple[type, str], Hint] = {
    **{(str, name): str for name in _TEXT.split()},
    **{(bytes, name): bytes for name in _TEXT.split() if hasattr(bytes, name)},
    **{(cls, name): bool for cls in (str, bytes) for name in _QUESTIONS.split()},
    **{(str, name): bool for name in ("isdecimal", "isidentifier", "isnumeric", "isprintable")},
    **{(cls, name): int for cls in (str, bytes) for name in ("count", "find", "index", "rfind", "rindex")},
    **{(cls, name): int for cls in (list, tuple) for name in ("count", "index")},
    **{
        (cls, name): ListConstraint(cls) for cls in (str, bytes) for name in ("split", "rsplit", "splitlines")
    },
    **{
        (cls, name): TupleConstraint((cls, cls, cls))
        for cls in (str, bytes)
        for name in ("partition", "rpartition")
    },
    (str, "encode"): bytes,
    (bytes, "decode"): str,
    (bytes, "hex"): str,
    (int, "bit_length"): int,
    (int, "bit_count"): int,
    (int, "to_bytes"): bytes,
    (float, "is_integer"): bool,
    (float, "hex"): str,
}
"""The result of each method, by class and name."""

FUNCTION_RETURNS: dict[typing.Any, Hint] = {
    all: bool,
    any: bool,
    ascii: str,
    bin: str,
    callable: bool,
    chr: str,
    format: str,
    hasattr: bool,
    hash: int,
    hex: str,
    id: int,
    isinstance: bool,
    issubclass: bool,
    len: int,
    math.exp: float,
    math.isnan: bool,
    math.log: float,
    math.sqrt: float,
    oct: str,
    ord: int,
    print: type(None),
    repr: str,
}
"""The result of each function, whatever the arguments."""
