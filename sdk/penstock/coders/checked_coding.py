"""Encoding and decoding by a user's coder: an error says whose coder it was, and of what type the value."""

from __future__ import annotations

from typing import Any

from penstock.coders.base import Coder
from penstock.error import refusal, three_parts


def encode_value(coder: Coder, value: object, of: object) -> bytes:
    """Returns the bytes of a value.

    Args:
        coder: The coder.
        value: The value; an error shows its type only.
        of: What the coder belongs to: a state's description, or the class for which it is registered.

    Raises:
        TypeError: The coder returns something other than bytes.

    >>> from penstock.coders import StrUtf8Coder
    >>> from penstock.transforms.userstate import BagStateSpec
    >>> seen = BagStateSpec("seen", StrUtf8Coder())
    >>> encode_value(seen.coder, 7, seen)
    Traceback (most recent call last):
        ...
    AttributeError: the coder StrUtf8Coder of BagStateSpec(seen) cannot encode a value of type int: 'int' object has ...
      hint: use a coder for values of type int, or correct its encode
    """
    try:
        data = coder.encode(value)
    except Exception as error:
        kind = type(value).__name__
        what = f"the coder {coder!r} of {_shown(of)} cannot encode a value of type {kind}"
        _explain(error, what, f"use a coder for values of type {kind}, or correct its encode")
        raise
    if type(data) is not bytes:
        what = f"the coder {coder!r} of {_shown(of)} must encode as bytes, and not as {type(data).__name__}"
        raise refusal(TypeError, what, where="", hint="have its encode return bytes")
    return data


def decode_value(coder: Coder, data: bytes, of: object) -> Any:
    """Returns the value of bytes; the arguments are those of `encode_value`."""
    try:
        return coder.decode(data)
    except Exception as error:
        what = f"the coder {coder!r} of {_shown(of)} cannot decode what it has encoded"
        _explain(error, what, "correct its decode, which must take what encode returns")
        raise


def _shown(of: object) -> str:
    return str(of.__qualname__) if isinstance(of, type) else repr(of)


def _explain(error: Exception, what: str, hint: str) -> None:
    """Explains an error in its text; its type and its traceback stay."""
    if isinstance(error, KeyError) or len(error.args) != 1 or not isinstance(error.args[0], str):
        error.add_note(three_parts(what, hint=hint))
        return
    text = error.args[0]
    error.args = (three_parts(f"{what}: {text}", hint=None if "\n" in text else hint),)
